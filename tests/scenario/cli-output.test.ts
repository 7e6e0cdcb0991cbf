// What commands print of text that attackers wrote: names in the data folder, fields of an export, responses
// of a service. Every command is tested; none of them lets such a text break its line, move the cursor or
// change the direction of the text, so that nothing that a verification prints can be forged by the evidence.

import assert from 'node:assert/strict'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import canonicalize from 'canonicalize'
import type { Command } from 'commander'
import { sql } from 'kysely'
import { hashOf } from '../../server/audit/chain.ts'
import { buildProgram } from '../../server/cli/program.ts'
import { actorValues } from '../../server/control/actor-columns.ts'
import { tokenActor } from '../../server/core/actor.ts'
import { openSecondHandle } from '../control-planes.ts'
import { temporaryFolder } from '../fixtures.ts'
import { type Ended, runLethe } from './command-line.ts'

/** Ends its line in every possible way, forges another, clears the screen, and changes the direction. */
const evil = 'x\nFORGED\rFORGED\u001b[2J\u0085FORGED\u2028FORGED\u2029FORGED\u202eFORGED\u009b1A\u0000\u2066'

const folder = temporaryFolder()
const env: Record<string, string> = {
  PATH: process.env.PATH ?? '',
  LETHE_DATA_DIR: folder,
  LETHE_LOG_LEVEL: 'silent',
}

const service = createServer((request, response) => {
  const isReading = request.method === 'GET'
  response.writeHead(isReading ? 422 : 409, { 'content-type': 'application/json' })
  const problem = { loc: [evil], msg: evil, type: evil, input: evil, ctx: { [evil]: evil } }
  response.end(JSON.stringify(isReading ? { detail: [problem] } : { detail: evil, code: evil }))
})

const certificate = join(folder, 'certificate.json')
const ledger = join(folder, 'ledger.ndjson')
const points = join(folder, 'points.csv')

before(async () => {
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  Object.assign(env, {
    LETHE_URL: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
    LETHE_TOKEN: 'a-token-of-more-than-thirty-two-characters',
  })
  assert.equal((await runLethe(env, ['org', 'create', 'acme'])).code, 0)
  await spoilControlPlane()
  writeFileSync(ledger, `${exportLine({ seq: evil, tenant_id: evil })}\n`)
  writeFileSync(certificate, JSON.stringify({ jws: evil, [evil]: evil }))
  writeFileSync(points, `timestamp,group,value\n${evil},${evil},${evil}\n`)
})
after(async () => {
  await new Promise((resolve) => service.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

/** Makes the changes of an attacker who can write the file and knows what is printed of it. */
async function spoilControlPlane(): Promise<void> {
  const control = openSecondHandle(join(folder, 'control.db'))
  const { tenant_id } = await control
    .selectFrom('organisations')
    .select('tenant_id')
    .executeTakeFirstOrThrow()
  await control.updateTable('organisations').set({ name: evil }).execute()
  await sql`update access_tokens set name = ${evil}`.execute(control)
  await control
    .insertInto('legal_holds')
    .values({
      hold_id: 'hld_1',
      tenant_id,
      signals: '["logs"]',
      range_start_ns: null,
      range_end_ns: null,
      case_ref: evil,
      review_at_ms: null,
      ...actorValues('placed_by', tokenActor('tok_1', evil)),
      placed_at_ms: 1,
      released_at_ms: null,
    })
    .execute()
  const entry = JSON.stringify({ seq: evil, tenant_id: evil, action: evil })
  for (const table of ['ledger_entries', 'audit_entries'] as const) {
    await control.insertInto(table).values({ tenant_id: evil, seq: 1, entry, hash: evil }).execute()
  }
  await control
    .insertInto('signing_keys')
    .values({ kid: evil, public_jwk: '{}', private_jwk: '', created_at_ms: 1, retired_at_ms: 2 })
    .execute()
  await control
    .insertInto('backups')
    .values({
      backup_id: evil,
      folder: evil,
      status: 'failed',
      ...actorValues('requested_by', tokenActor('tok_1', evil)),
      requested_at_ms: 1,
      taken_at_ms: null,
      expires_at_ms: 2,
      bytes: null,
      error: evil,
      removed_at_ms: null,
    })
    .execute()
  await control.destroy()
}

/** A line of a chain with a correct hash. */
function exportLine(fields: Record<string, unknown>): string {
  const entry = { prev_hash: '0'.repeat(64), ...fields }
  return canonicalize({ ...entry, hash: hashOf(canonicalize(entry) ?? '') }) ?? ''
}

/** Arguments of each command. Null, with the reason, for one that is not run. */
const walks: Readonly<Record<string, readonly string[] | { readonly not: string }>> = {
  serve: { not: 'it is the service; what it logs is JSON' },
  demo: { not: 'it shows only its own data' },
  'ledger export': { not: 'it writes a document, byte for byte: see print.ts' },
  'audit export': { not: 'as above' },
  'org create': [evil],
  'org list': [],
  'org describe': ['acme'],
  'token create': ['--org', 'acme', '--role', 'viewer', '--name', evil],
  'token list': ['--org', 'acme'],
  'token revoke': [evil, '--org', 'acme'],
  'hold place': ['--org', 'acme', '--case', evil],
  'hold list': ['--org', 'acme'],
  'hold release': ['hld_1', '--org', 'acme'],
  'clock show': [],
  'clock confirm': [],
  'quota set': ['--org', evil, '--rows-per-second', '1'],
  'quota show': ['--org', evil],
  'migrate control': ['--from', `sqlite:${join(folder, evil)}`, '--to', `sqlite:${evil}`],
  'keys list': [],
  'keys rotate': [],
  'keys reseal': ['--key-file', join(folder, evil)],
  'ledger verify': [ledger],
  'audit verify': [],
  'certificate verify': [certificate],
  'backup create': ['--keep-days', evil],
  'backup list': [],
  'backup remove': [evil],
  'backup restore': [evil],
  detect: [points],
  'erase range': ['--before', evil, '--yes', '--confirm', 'acme'],
  'erase all': ['--yes', '--confirm', 'acme'],
  'deletions list': [],
  'deletions get': [evil],
  'deletions watch': [evil],
  'deletions certificate': [evil],
  'deletions verify': [evil],
  'deletions approve': [evil],
  'deletions cancel': [evil],
  'deletions retry': [evil],
  'deletions reject': [evil, '--reason', evil],
  usage: [],
  'anomalies list': [],
  'anomalies get': [evil],
  'incidents list': ['--service', evil],
  'incidents show': [evil],
}

const leavesOf = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)

const pathOf = (command: Command): string =>
  command.parent?.parent == null ? command.name() : `${pathOf(command.parent)} ${command.name()}`

const paths = leavesOf(buildProgram()).map(pathOf)

test('every command is tested here, or says why not', () => {
  assert.deepEqual(
    paths.filter((path) => !(path in walks)),
    [],
  )
})

function assertHarmless({ err, out }: Ended, what: string): void {
  for (const text of [out, err]) {
    assert.doesNotMatch(text, /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u, what)
    for (const line of text.split('\n')) assert.doesNotMatch(line, /^\s*FORGED/, `${what}: ${text}`)
  }
}

for (const path of paths) {
  const words = walks[path]
  if (words === undefined || 'not' in words) continue
  test(`lethe ${path} prints no text that breaks its line or controls the terminal`, async () => {
    const ended = await runLethe(env, [...path.split(' '), ...words.map(withoutNul)])
    assert.notEqual(`${ended.out}${ended.err}`, '')
    assertHarmless(ended, path)
  })
}

test('broken evidence is named in one line, offline and in the data folder', async () => {
  for (const words of [[ledger], []]) {
    const ended = await runLethe(env, ['ledger', 'verify', ...words])
    assert.equal(ended.code, 1)
    assert.match(ended.out, /BROKEN/)
    assert.match(ended.out, /\\u000a|acme/)
    assertHarmless(ended, 'ledger verify')
  }
})

/** The system does not accept this character in an argument. */
const withoutNul = (word: string) => word.replaceAll('\u0000', '')

/**
 * These print only text of their own: colours of a chart, the demo's guide, the first steps, a cursor that
 * moves up.
 */
const writers = [
  'server/cli/print.ts',
  'server/cli/charts/detect-charts.ts',
  'server/cli/demo.ts',
  'server/cli/serve.ts',
  'server/cli/client/follow.ts',
]

test('commands write to streams only through print.ts', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const direct = globSync('server/cli/**/*.ts', { cwd: root })
    .filter((path) => !path.endsWith('.test.ts'))
    .filter((path) =>
      /std(?:out|err)\.write|console\.|writeSync/.test(readFileSync(join(root, path), 'utf8')),
    )
  assert.deepEqual(direct.filter((path) => !writers.includes(path)).sort(), [])
})
