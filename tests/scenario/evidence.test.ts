// Evidence as its readers use it: an owner who exports both chains, an auditor with only the files and the
// published keys, an operator with the command line beside the running service, and an organisation that is
// removed.

import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Jwks } from '../../contract/organisation/audit.ts'
import { Me, OrganisationRemoved } from '../../contract/organisation/tenancy.ts'
import { systemClock } from '../../server/core/clock.ts'
import { openSecondHandle } from '../control-planes.ts'
import { temporaryFolder } from '../fixtures.ts'
import { type Ended, runLethe } from './command-line.ts'
import { assertRefused, eraseCompletely, problemsOf, type Service, startService } from './service.ts'

const folder = temporaryFolder()
const dataDir = join(folder, 'data')
const elsewhere = join(folder, 'elsewhere')
const file = (name: string) => join(folder, name)
const keysFile = file('jwks.json')

let service: Service
before(async () => {
  service = await startService({ settings: { LETHE_DATA_DIR: dataDir } })
  for (const tenant of ['acme', 'globex'] as const) await storeLog(tenant)
  await eraseCompletely(service, { scope: 'all', confirm: 'acme' })
  writeFileSync(keysFile, await fetch(`${service.address}/.well-known/jwks.json`).then((it) => it.text()))
  for (const chain of ['ledger', 'audit'] as const) writeFileSync(file(chain), await download(chain))
})
after(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

const address = { ledger: '/ledger/export', audit: '/audit-log/export' } as const

async function download(chain: 'ledger' | 'audit'): Promise<Uint8Array> {
  const answer = await service.send('GET', address[chain])
  assert.equal(answer.status, 200, answer.text)
  assert.match(answer.headers.get('content-type') ?? '', /^application\/x-ndjson/)
  assert.equal(answer.headers.get('content-disposition'), `attachment; filename="${chain}-acme.ndjson"`)
  return answer.bytes
}

async function storeLog(tenant: 'acme' | 'globex') {
  const timeUnixNano = String(systemClock.nowNs())
  const logRecords = [{ timeUnixNano, body: { stringValue: 'a line' } }]
  const answer = await service.send('POST', '/v1/logs', {
    as: `${tenant}/ingest`,
    json: { resourceLogs: [{ scopeLogs: [{ logRecords }] }] },
  })
  assert.equal(answer.status, 200, answer.text)
}

/** Runs a command until it ends, in the service's own folder unless another one is given. */
function lethe(words: readonly string[], folder = dataDir): Promise<Ended> {
  return runLethe({ PATH: process.env.PATH, LETHE_DATA_DIR: folder }, words)
}

test('the public keys are readable by everybody, contain no secret, and may be cached', async () => {
  const answer = await fetch(`${service.address}/.well-known/jwks.json`)
  assert.equal(answer.status, 200)
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
  assert.equal(answer.headers.get('cache-control'), 'public, max-age=300')
  const text = await answer.text()
  const { keys } = Jwks.parse(JSON.parse(text))
  assert.equal(keys.length, 1)
  assert.ok(!Object.hasOwn(JSON.parse(text).keys[0], 'd'))
})

test('an export is for owners and admins, of the own organisation, and never for a link of another token', async () => {
  for (const url of Object.values(address)) {
    for (const role of ['member', 'viewer', 'ingest'] as const) {
      assertRefused(await service.send('GET', url, { as: `acme/${role}` }), 403, 'role_not_permitted')
    }
    assert.equal((await service.send('GET', url, { as: 'acme/admin' })).status, 200)
    problemsOf(await service.send('GET', `${url}?tenant_id=globex`))
    assertRefused(await service.send('GET', `${url}?token_id=tok_another`), 409, 'other_token')
    const me = await service.read('/me', Me)
    assert.equal((await service.send('GET', `${url}?token_id=${me.token_id}`)).status, 200)
    const others = await service.send('GET', url, { as: 'globex/owner' })
    assert.ok(!others.text.includes('acme'))
  }
  const ledger = readFileSync(file('ledger'), 'utf8').trimEnd().split('\n')
  const listed = JSON.parse((await service.send('GET', '/ledger')).text).items
  assert.deepEqual(
    ledger.slice(0, -1).map((line) => JSON.parse(line).hash),
    listed.map(({ hash }: { hash: string }) => hash).toReversed(),
  )
})

test('an auditor elsewhere verifies the files with the published keys; without keys the command says so', async () => {
  for (const chain of ['ledger', 'audit'] as const) {
    const sound = await lethe([chain, 'verify', file(chain), '--jwks', keysFile], elsewhere)
    assert.equal(sound.code, 0, sound.out + sound.err)
    assert.match(sound.out, new RegExp(`^acme ${chain}: \\d+ entries, head [0-9a-f]{64} at .*, signed by `))
  }
  const unvouched = await lethe(['ledger', 'verify', file('ledger')], elsewhere)
  assert.equal(unvouched.code, 2)
  assert.match(unvouched.out, /signature NOT CHECKED[\s\S]*--jwks/)
  const swapped = await lethe(['ledger', 'verify', file('audit'), '--jwks', keysFile])
  assert.equal(swapped.code, 1)
})

test('a changed byte in a file is reported, and so is a key of another service', async () => {
  const bytes = readFileSync(file('ledger'))
  const at = bytes.indexOf('completed')
  assert.ok(at > 0)
  bytes[at] = 'C'.charCodeAt(0)
  writeFileSync(file('changed'), bytes)
  const changed = await lethe(['ledger', 'verify', file('changed'), '--jwks', keysFile], elsewhere)
  assert.equal(changed.code, 1)
  assert.match(
    changed.out,
    /BROKEN: line \d+: where entry \d+ should be \(seq \d+\): .*does not match its hash/,
  )

  const foreign = file('foreign')
  await lethe(['org', 'create', 'initech'], foreign)
  await lethe(['keys', 'rotate'], foreign)
  const untrusted = await lethe(['ledger', 'verify', file('ledger')], foreign)
  assert.equal(untrusted.code, 1)
  assert.match(untrusted.out, /not a trusted one/)
})

test('the operator verifies the chains beside the running service, and a changed row is reported', async () => {
  for (const chain of ['ledger', 'audit']) {
    const sound = await lethe([chain, 'verify'])
    assert.equal(sound.code, 0, sound.out)
    assert.match(sound.out, /^acme .*\nglobex .*$/)
  }
  const control = openSecondHandle(join(dataDir, 'control.db'))
  const setStatus = (status: string) =>
    control.updateTable('deletion_requests').set({ status }).where('tenant_id', '=', 'acme').execute()
  await setStatus('cancelled')
  const broken = await lethe(['ledger', 'verify'])
  await setStatus('completed')
  await control.destroy()
  assert.equal(broken.code, 1)
  assert.match(
    broken.out,
    /^acme ledger: BROKEN: the request del_\w+ has status "cancelled", the ledger says/,
  )
  assert.match(broken.out, /^globex ledger: 0 entries/m)
  assert.equal((await lethe(['ledger', 'verify', '--org', 'acme'])).code, 0)

  const unknown = await lethe(['ledger', 'verify', '--org', 'nobody'])
  assert.deepEqual([unknown.code, /no organisation nobody/.test(unknown.err)], [1, true])
  assert.equal((await lethe(['ledger', 'export', '--org', 'nobody'])).code, 1)
})

test('after a rotation the new key signs, and older files are still valid with the current keys', async () => {
  const rotated = await lethe(['keys', 'rotate'])
  assert.equal(rotated.code, 0, rotated.err)
  const list = await lethe(['keys', 'list'])
  assert.match(list.out, new RegExp(`retired .*\\n${rotated.out} .*signs$`))
  const { keys } = Jwks.parse(await (await fetch(`${service.address}/.well-known/jwks.json`)).json())
  assert.deepEqual([keys.length, keys[0]?.kid], [2, rotated.out])
  writeFileSync(file('now'), await download('ledger'))
  assert.match((await lethe(['ledger', 'verify', file('now')])).out, new RegExp(`signed by ${rotated.out}`))
  assert.equal((await lethe(['ledger', 'verify', file('ledger')])).code, 0)
  const old = await lethe(['ledger', 'verify', file('now'), '--jwks', keysFile])
  assert.equal(old.code, 1, 'keys that were saved before the rotation don’t verify a new signature')
})

test('after the removal of an organisation none of its telemetry is left, its chains stay, and its neighbour is unchanged', async () => {
  await storeLog('acme')
  const removal = { json: { confirm: 'acme' } }
  assertRefused(
    await service.send('POST', '/organisation/remove', { ...removal, as: 'acme/admin' }),
    403,
    'role_not_permitted',
  )
  assertRefused(await service.send('POST', '/organisation/remove', removal), 409, 'not_removable')
  assert.equal((await service.send('GET', '/telemetry/logs')).status, 200)

  await eraseCompletely(service, { scope: 'all', confirm: 'acme' })
  const answer = await service.send('POST', '/organisation/remove', removal)
  assert.equal(answer.status, 200, answer.text)
  OrganisationRemoved.parse(JSON.parse(answer.text))
  assertRefused(await service.send('GET', '/me'), 401, 'token_unknown')
  assert.equal(
    (await service.send('POST', '/v1/logs', { as: 'acme/ingest', json: { resourceLogs: [] } })).status,
    401,
  )
  const logs = JSON.parse((await service.send('GET', '/telemetry/logs', { as: 'globex/owner' })).text)
  assert.equal(logs.items.length, 1)

  for (const chain of ['ledger', 'audit']) {
    const kept = await lethe([chain, 'export', '--org', 'acme'])
    assert.equal(kept.code, 0, kept.err)
    writeFileSync(file(`${chain}-after`), `${kept.out}\n`)
    assert.equal((await lethe([chain, 'verify', file(`${chain}-after`), '--live'])).code, 0)
    assert.equal(
      (await lethe([chain, 'verify', file(chain), '--live'])).code,
      0,
      'it continues the earlier export',
    )
  }
  assert.match(readFileSync(file('audit-after'), 'utf8'), /"organisation\.removed"/)
  const again = await lethe(['org', 'create', 'acme'])
  assert.equal(again.code, 1)
  assert.match(again.err, /acme was an organisation before/)
})
