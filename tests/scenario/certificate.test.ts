// The certificate as its reader gets it: refused until the erasure is verified, then always the same bytes,
// and verified by two libraries that are not ours, only with the keys that the service publishes. Its
// statements are compared with what the organisation and its neighbour can read.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import canonicalize from 'canonicalize'
import { createVerifier } from 'fast-jwt'
import { compactVerify, createLocalJWKSet, exportSPKI, importJWK } from 'jose'
import { CertificateAnswer } from '../../contract/deletion/certificate.ts'
import { DeletionRequest, LedgerEntry } from '../../contract/deletion/requests.ts'
import { Jwks } from '../../contract/organisation/audit.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { temporaryFolder } from '../fixtures.ts'
import { type Ended, runLethe } from './command-line.ts'
import { Barrier, deletionsUrl, instant, minute } from './erasing.ts'
import {
  assertRefused,
  eraseCompletely,
  placesOf,
  problemsOf,
  type Service,
  startService,
  tenants,
  waitUntilCompleted,
} from './service.ts'
import { readSample, sendSample } from './telemetry.ts'

const folder = temporaryFolder()
const dataDir = join(folder, 'data')
let service: Service
const barrier = new Barrier()

before(async () => {
  service = await startService({
    settings: { LETHE_DATA_DIR: dataDir },
    failpoint: barrier.failpoint,
  })
  for (const tenant of tenants) await sendSample(service, `${tenant}/ingest`, [0, 1, 2, 3, 4].map(minute))
})
after(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

const certificateOf = (requestId: string) =>
  service.read(`${deletionsUrl}/${requestId}/certificate`, CertificateAnswer, 'acme/owner')

/** Everything that a verifier elsewhere needs, fetched without a token. */
async function publishedKeys() {
  const answer = await service.send('GET', '/.well-known/jwks.json', { headers: { authorization: null } })
  assert.equal(answer.status, 200)
  return Jwks.parse(JSON.parse(answer.text))
}

async function verifyWithFastJwt(jws: string): Promise<unknown> {
  const { keys } = await publishedKeys()
  const header = JSON.parse(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString())
  const key = keys.find(({ kid }) => kid === header.kid) ?? assert.fail('the key is not published')
  const imported = await importJWK({ ...key }, 'EdDSA', { extractable: true })
  assert.ok(!(imported instanceof Uint8Array))
  return createVerifier({ key: await exportSPKI(imported), algorithms: ['EdDSA'] })(jws)
}

async function verifyWithJose(jws: string) {
  const { payload, protectedHeader } = await compactVerify(jws, createLocalJWKSet(await publishedKeys()))
  return { text: Buffer.from(payload).toString('utf8'), header: protectedHeader }
}

/** Runs a command on a machine with the given data folder, or none. */
function lethe(words: readonly string[], dataFolder = join(folder, 'elsewhere')): Promise<Ended> {
  return runLethe({ PATH: process.env.PATH, LETHE_DATA_DIR: dataFolder }, words)
}

function save(name: string, content: string): string {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), content)
  return join(folder, name)
}

let requestId = ''

test('there is no certificate while the erasure is in progress, and one after it is verified', async () => {
  barrier.close()
  const asked = await service.send('POST', deletionsUrl, {
    json: {
      scope: 'range',
      confirm: 'acme',
      range_start: instant(1),
      range_end: instant(3),
      reason: 'leaked_secret',
      note: 'the-note-of-the-request',
    },
  })
  requestId = DeletionRequest.parse(JSON.parse(asked.text)).request_id
  const early = await service.send('GET', `${deletionsUrl}/${requestId}/certificate`)
  assertRefused(early, 409, 'not_verified')
  assert.equal(early.headers.get('retry-after'), '1')
  const page = await service.send('GET', `${deletionsUrl}/${requestId}/certificate?format=html`)
  assertRefused(page, 409, 'not_verified')
  barrier.open()
  const completed = await waitUntilCompleted(service, requestId, 'acme/owner')

  const { certificate, request_id } = await certificateOf(requestId)
  assert.equal(request_id, requestId)
  assert.deepEqual(certificate.request, {
    request_id: requestId,
    scope: 'range',
    signals: ['metrics', 'logs', 'traces'],
    range_start: instant(1),
    range_end: instant(3),
    reason: 'leaked_secret',
    requested_by: completed.requested_by,
    approved_by: null,
  })
  const { hidden_at, removed_at, verified_at } = completed
  assert.deepEqual(certificate.times, {
    requested_at: completed.created_at,
    approved_at: null,
    hidden_at,
    removed_at,
    verified_at,
    backups_clear_by: null,
  })
  assert.equal(certificate.organisation.tenant_id, 'acme')
  assert.ok(!JSON.stringify(certificate).includes('the-note'), 'the note is not in it')
  assert.ok(!/paid at|queue\.length|GET \/cart/.test(JSON.stringify(certificate)), 'no telemetry is in it')
})

test('its statements are true: the counts, the ledger’s entry, what is readable, and a neighbour that lost nothing', async () => {
  const { certificate } = await certificateOf(requestId)
  assert.deepEqual(
    certificate.erasure.stores.map(({ store, method, rows }) => [store, method, rows]),
    ['otel_metrics_gauge', 'otel_logs', 'otel_traces'].map((store) => [store, 'partition_rewritten', 2]),
  )
  assert.deepEqual([certificate.erasure.rows, certificate.verification.rows_remaining], [6, 0])
  assert.equal(Object.keys(certificate.verification.stores).length, 9)
  const ledger = await service.read('/ledger?limit=500', pageOf(LedgerEntry))
  const entry = ledger.items.find(({ seq }) => seq === certificate.ledger.seq)
  assert.deepEqual(
    [entry?.request_id, entry?.to_status, entry?.hash],
    [requestId, 'completed', certificate.ledger.hash],
  )
  assert.match(certificate.issuer.engine_version, /^\d+\.\d+/)
  const minutes = async (tenant: 'acme' | 'globex') =>
    (await readSample(service, `${tenant}/viewer`)).logs.map(({ time }) => time.slice(14, 16)).reverse()
  assert.deepEqual(await minutes('acme'), ['00', '03', '04'])
  assert.deepEqual(await minutes('globex'), ['00', '01', '02', '03', '04'])
})

test('it is issued once: the same bytes for everybody with access, and one entry in the audit log', async () => {
  const asked = ['acme/owner', 'acme/admin', 'acme/owner', 'acme/owner'] as const
  const answers = await Promise.all(
    asked.map((as) => service.send('GET', `${deletionsUrl}/${requestId}/certificate`, { as })),
  )
  for (const answer of answers) assert.deepEqual(answer.bytes, answers[0]?.bytes)
  const fresh = await eraseCompletely(service, {
    scope: 'range',
    confirm: 'acme',
    range_start: instant(30),
    range_end: instant(31),
  })
  const racing = await Promise.all(Array.from({ length: 8 }, () => certificateOf(fresh.request_id)))
  assert.equal(new Set(racing.map(({ jws }) => jws)).size, 1)
  const audit = await service.send('GET', '/audit-log?limit=500')
  const issued = JSON.parse(audit.text).items.filter(
    ({ action, target }: { action: string; target: string }) =>
      action === 'certificate.issued' && target === fresh.request_id,
  )
  assert.equal(issued.length, 1)
})

test('two other libraries verify it with only the published keys, and read what the response shows', async () => {
  const { certificate, jws } = await certificateOf(requestId)
  assert.deepEqual(await verifyWithFastJwt(jws), certificate)
  const { text, header } = await verifyWithJose(jws)
  assert.equal(text, canonicalize(certificate))
  assert.deepEqual([header.alg, header.typ], ['EdDSA', 'deletion-certificate+jws'])
})

test('every change of a character of the signed text is detected', async () => {
  const { jws } = await certificateOf(requestId)
  const keys = createLocalJWKSet(await publishedKeys())
  // The last character has bits that no decoder reads; our own verification checks its spelling too
  // (certificate.test.ts).
  for (let at = 0; at < jws.length - 1; at++) {
    const other = jws[at] === 'A' ? 'B' : 'A'
    await assert.rejects(compactVerify(`${jws.slice(0, at)}${other}${jws.slice(at + 1)}`, keys), `at ${at}`)
  }
  const swapped = jws.replace(/^(.*)\.(.*)\.(.*)$/, '$1.$3.$2')
  await assert.rejects(compactVerify(swapped, keys))
  await assert.rejects(verifyWithFastJwt(`${jws.slice(0, -30)}${'A'.repeat(30)}`))
})

test('the command line verifies a saved file elsewhere, names what was changed, and trusts only given keys', async () => {
  const answer = await certificateOf(requestId)
  const kept = save('certificate.json', JSON.stringify(answer, null, 2))
  const keys = save('jwks.json', JSON.stringify(await publishedKeys()))
  const altered = { ...answer, certificate: { ...answer.certificate, exclusions: [] } }
  const changed = save('changed.json', JSON.stringify(altered))

  const [good, bad, unknown, own] = await Promise.all([
    lethe(['certificate', 'verify', kept, '--jwks', keys]),
    lethe(['certificate', 'verify', changed, '--jwks', keys]),
    lethe(['certificate', 'verify', kept]),
    lethe(['certificate', 'verify', kept], dataDir),
  ])
  assert.equal(good.code, 0, good.out)
  for (const text of ['acme', requestId, answer.certificate.ledger.hash, '6 rows', '0 rows in 9 stores']) {
    assert.ok(good.out.includes(text), text)
  }
  assert.equal(bad.code, 1)
  assert.match(bad.out, /NOT VALID: certificate\.exclusions\.0: /)
  assert.deepEqual([unknown.code, /no trusted key was given/.test(unknown.out)], [2, true])
  assert.equal(own.code, 0, own.out)
})

test('after a key rotation new certificates have a new key, and old ones still verify and do not change', async () => {
  const old = await certificateOf(requestId)
  const keysBefore = await publishedKeys()
  const rotated = await lethe(['keys', 'rotate'], dataDir)
  assert.equal(rotated.code, 0, rotated.out)
  const { request_id } = await eraseCompletely(service, {
    scope: 'range',
    confirm: 'acme',
    range_start: instant(4),
    range_end: instant(5),
  })
  const next = await certificateOf(request_id)
  assert.equal((await verifyWithJose(next.jws)).header.kid, rotated.out)
  await assert.rejects(compactVerify(next.jws, createLocalJWKSet(keysBefore)), 'signed only with the new key')
  assert.deepEqual(await certificateOf(requestId), old)
  assert.deepEqual(await verifyWithFastJwt(old.jws), old.certificate)
  assert.deepEqual(await verifyWithFastJwt(next.jws), next.certificate)
})

test('as HTML it is a page with the same facts and without scripts; JSON stays the default', async () => {
  const { jws, certificate } = await certificateOf(requestId)
  const ask = (path: string, accept: string | null) =>
    service.send('GET', `${deletionsUrl}/${requestId}/certificate${path}`, { headers: { accept } })
  for (const [path, accept] of [
    ['?format=html', 'application/json'],
    ['', 'text/html'],
    ['', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'],
    ['', 'application/json;q=0.5, Text/HTML'],
  ] as const) {
    const page = await ask(path, accept)
    assert.equal(page.status, 200)
    assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
    assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'sha256-/)
    assert.deepEqual([page.headers.get('vary'), page.headers.get('cache-control')], ['accept', 'no-store'])
    for (const text of [jws, requestId, certificate.ledger.hash, certificate.times.verified_at]) {
      assert.ok(page.text.includes(text), text)
    }
    assert.doesNotMatch(page.text, /<script|https?:\/\/|the-note/)
  }
  for (const [path, accept] of [
    ['', '*/*'],
    ['', 'application/json, text/html'],
    ['', 'text/html;q=0, */*'],
    ['', 'nonsense;;q=,'],
    ['?format=json', 'text/html'],
  ] as const) {
    const json = await ask(path, accept)
    assert.match(json.headers.get('content-type') ?? '', /^application\/json/, accept)
    assert.equal(CertificateAnswer.parse(JSON.parse(json.text)).jws, jws)
  }
  assert.deepEqual(placesOf(problemsOf(await ask('?format=pdf', null))), ['query.format enum'])
  assert.deepEqual(placesOf(problemsOf(await ask('?tenant_id=globex', null))), [
    'query.tenant_id extra_forbidden',
  ])
})

test('it names the second person, the refusal of late telemetry, and the backups that may have a copy', async () => {
  const backupId = (await lethe(['backup', 'create'], dataDir)).out.match(/bak_[0-9a-z]{26}/)?.[0]
  assert.ok(backupId)
  const policy = await service.send('PUT', '/usage/storage/deletion-policy', { json: { approval: 'always' } })
  assert.equal(policy.status, 200, policy.text)
  const json = { scope: 'range', confirm: 'acme', range_end: instant(1), refuse_late: true }
  const asked = await service.send('POST', deletionsUrl, { json })
  const { request_id } = DeletionRequest.parse(JSON.parse(asked.text))
  const waiting = await service.send('GET', `${deletionsUrl}/${request_id}/certificate`)
  assertRefused(waiting, 409, 'not_verified')
  assert.equal(waiting.headers.get('retry-after'), '60')
  const approved = await service.send('POST', `${deletionsUrl}/${request_id}/approve`, { as: 'acme/admin' })
  assert.equal(approved.status, 200, approved.text)
  const completed = await waitUntilCompleted(service, request_id, 'acme/owner')
  const { certificate } = await certificateOf(request_id)
  assert.match(certificate.request.approved_by ?? '', /^token:admin /)
  assert.equal(certificate.request.approved_by, completed.approved_by)
  assert.ok(certificate.times.approved_at !== null)
  assert.equal(certificate.late_data.rule, 'refused')
  assert.deepEqual(
    certificate.backups.map(({ backup_id }) => backup_id),
    [backupId],
  )
  assert.equal(certificate.times.backups_clear_by, certificate.backups[0]?.expires_at)
  assert.equal(certificate.times.backups_clear_by, completed.backups_clear_by)
  const first = await certificateOf(requestId)
  assert.deepEqual(first.certificate.backups, [], 'what was erased before the backup is not in it')
})

test('the response for another organisation’s certificate equals that for one that does not exist, byte for byte', async () => {
  const unknown = await service.send('GET', `${deletionsUrl}/del_${'0'.repeat(26)}/certificate`, {
    as: 'globex/owner',
  })
  const foreign = await service.send('GET', `${deletionsUrl}/${requestId}/certificate`, {
    as: 'globex/owner',
  })
  assertRefused(foreign, 404, 'not_found')
  assert.deepEqual(foreign.bytes, unknown.bytes)
  for (const id of [
    `${requestId}%25`,
    requestId.replace(/.$/, '_'),
    requestId.toUpperCase(),
    '%25',
    `${requestId}%00`,
  ]) {
    assert.equal((await service.send('GET', `${deletionsUrl}/${id}/certificate`)).status, 404, id)
  }
  for (const as of ['acme/member', 'acme/viewer', 'acme/ingest'] as const) {
    assertRefused(
      await service.send('GET', `${deletionsUrl}/${requestId}/certificate`, { as }),
      403,
      'role_not_permitted',
    )
  }
})
