// The check of the live store and an operator with a database shell: guards dropped, rows changed, hashes
// computed again. Each test first checks that the unchanged store passes.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { formatInstant } from '../../contract/values/instant.ts'
import type { SharedTestControl } from '../../tests/control-plane.ts'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { actorValues } from '../control/actor-columns.ts'
import type { Control } from '../control/database.ts'
import { readActorText } from '../core/actor.ts'
import { seal } from './chain.ts'
import { checkChain, findRewriting, listTenants } from './live-check.ts'
import { appendAudit, appendLedger, type ChainName, readHead } from './log.ts'

const actor = readActorText('x')
const atMs = 1_763_717_400_000
const planes: SharedTestControl[] = []
after(async () => {
  for (const plane of planes) await plane.close()
})

const selection = {
  scope: 'range',
  signals: ['logs'],
  range_start: formatInstant(1761955200000000000n),
  range_end: null,
}

async function insertRequest(control: Control, requestId: string, tenantId = 'acme'): Promise<void> {
  await control
    .insertInto('deletion_requests')
    .values({
      request_id: requestId,
      tenant_id: tenantId,
      scope: 'range',
      signals: '["logs"]',
      range_start_ns: '1761955200000000000',
      range_end_ns: null,
      reason: null,
      note: null,
      ...actorValues('requested_by', actor),
      created_at_ms: atMs,
      idempotency_key: null,
      selection_hash: 'x',
      status: 'completed',
      hidden_at_ms: null,
      removed_at_ms: null,
      verified_at_ms: null,
      finished_at_ms: null,
      attempts: 1,
      crashes: 0,
      retry_at_ms: null,
      blocked_reason: null,
      progress: '{}',
      starts_at_ms: null,
      approve_by_ms: null,
      approved_at_ms: null,
      refuse_late: 0,
      late_rows: 0,
      attempts_forgiven: 0,
      has_mark: 1,
      came_back: 0,
    })
    .execute()
}

/** Opens a store with two finished requests of acme and its audit log, without the guards of these tables. */
async function openFilled(): Promise<Control> {
  return (await openFilledPlane()).control
}

async function openFilledPlane(): Promise<SharedTestControl> {
  const plane = await openSharedControlPlane()
  planes.push(plane)
  const { control } = plane
  for (const requestId of ['del_1', 'del_2']) await insertRequest(control, requestId)
  await control.transaction().execute(async (trx) => {
    for (const requestId of ['del_1', 'del_2']) {
      for (const [from_status, to_status, facts] of [
        [null, 'running', selection],
        ['running', 'verifying', { rows: 5 }],
        ['verifying', 'completed', {}],
      ] as const) {
        await appendLedger(trx, 'acme', atMs, {
          request_id: requestId,
          actor,
          from_status,
          to_status,
          facts,
        })
        const audit = {
          actor,
          action: 'thing.done',
          target: null,
          outcome: 'accepted',
          facts: {},
        } as const
        await appendAudit(trx, 'acme', atMs, audit)
      }
    }
  })
  for (const chain of ['ledger', 'audit'] as const) {
    const { entries, problems } = await checkChain(control, chain, 'acme')
    assert.deepEqual([entries, problems], [6, []], 'the untouched store passes')
  }
  await plane.shell.dropChainGuards()
  return plane
}

const run = (control: Control, statement: string) => sql.raw(statement).execute(control)
const problemsOf = async (control: Control, chain: ChainName = 'ledger') =>
  (await checkChain(control, chain, 'acme')).problems

test('any change to an entry of either chain is reported with its position', async () => {
  for (const chain of ['ledger', 'audit'] as const) {
    const table = `${chain}_entries`
    const cases: readonly (readonly [string, RegExp])[] = [
      [
        `update ${table} set entry = replace(entry, '"x"', '"y"') where seq = 3`,
        /entry 3 .*does not match its hash/,
      ],
      [`update ${table} set hash = replace(hash, substr(hash, 1, 1), 'g') where seq = 3`, /entry 3 .*hash/],
      [`update ${table} set entry = 'no json' where seq = 3`, /entry 3 .*hash/],
      [`delete from ${table} where seq = 3`, /entry 3 should be \(seq 4\): the entry is numbered 4/],
      [`delete from ${table} where seq = 1`, /entry 1 should be \(seq 2\): the entry is numbered 2/],
      [`update ${table} set seq = 60 where seq = 6`, /entry 7 .*numbered 6, its row 60/],
      [
        `update ${table} set seq = case seq when 2 then 30 else seq end where seq < 4`,
        /entry 2 .*numbered 3/,
      ],
      [
        `insert into ${table} select 'acme', 7, entry, hash from ${table} where seq = 6`,
        /entry 7 .*numbered 6/,
      ],
    ]
    for (const [statement, reason] of cases) {
      const control = await openFilled()
      await run(control, statement)
      assert.match((await problemsOf(control, chain)).join('; '), reason, statement)
    }
  }
})

test('an entry that was moved from another organisation is reported', async () => {
  const control = await openFilled()
  await run(control, "update audit_entries set tenant_id = 'globex'")
  assert.match((await checkChain(control, 'audit', 'globex')).problems.join(), /the entry is of acme/)
  assert.match((await problemsOf(control, 'audit')).join(), /is empty/)
})

test('a request that was changed without a ledger entry is reported with what changed', async () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["set status = 'failed'", /request del_1 has status "failed", the ledger says "completed"/],
    ["set scope = 'all'", /request del_1 has scope "all"/],
    [`set signals = '["logs","traces"]'`, /request del_1 has signals \["logs","traces"\]/],
    ["set signals = 'no json'", /request del_1 has signals "no json"/],
    ["set range_start_ns = '1761955200000000001'", /request del_1 has range_start .*000001Z/],
    ["set range_end_ns = 'never'", /request del_1 has range_end "never"/],
    [
      "set request_id = 'del_3'",
      /ledger has the request del_1, which is not stored; .* del_3 is stored, but/,
    ],
    ["set tenant_id = 'globex'", /ledger has the request del_1, which is not stored/],
  ]
  for (const [change, reason] of cases) {
    const control = await openFilled()
    await run(control, `update deletion_requests ${change} where request_id = 'del_1'`)
    const problems = await problemsOf(control)
    assert.match(problems.join('; '), reason, change)
    assert.ok(!problems.join().includes('del_2'), 'the untouched one is not accused')
  }
})

test('a request without a ledger entry is reported, and so is a removed one', async () => {
  const control = await openFilled()
  await insertRequest(control, 'del_9')
  assert.match((await problemsOf(control)).join(), /del_9 is stored, but the ledger does not have it/)
  await run(control, "delete from deletion_requests where request_id in ('del_9', 'del_2')")
  assert.match((await problemsOf(control)).join(), /ledger has the request del_2, which is not stored/)
})

test('a ledger whose end was cut off differs from its requests, and either chain from an export', async () => {
  for (const chain of ['ledger', 'audit'] as const) {
    const control = await openFilled()
    const exported = { tenantId: 'acme', ...(await readHead(control, `${chain}_entries`, 'acme')) }
    assert.equal(await findRewriting(control, chain, exported), null)
    await run(control, `delete from ${chain}_entries where seq = 6`)
    assert.match((await findRewriting(control, chain, exported)) ?? '', /entry 6 .*it is gone/)
    if (chain === 'ledger') {
      assert.match(
        (await problemsOf(control)).join(),
        /del_2 has status "completed", the ledger says "verifying"/,
      )
    }
  }
})

test('a last hash that was computed again differs from an export', async () => {
  const control = await openFilled()
  const exported = { tenantId: 'acme', ...(await readHead(control, 'audit_entries', 'acme')) }
  const row = await control
    .selectFrom('audit_entries')
    .selectAll()
    .where('seq', '=', 6)
    .executeTakeFirstOrThrow()
  const { text, hash } = seal({ ...JSON.parse(row.entry), actor: 'somebody else' })
  await sql`update audit_entries set entry = ${text}, hash = ${hash} where seq = 6`.execute(control)
  assert.deepEqual(await problemsOf(control, 'audit'), [], 'the chain alone can’t know')
  assert.match((await findRewriting(control, 'audit', exported)) ?? '', /entry 6 has the hash/)
})

test('every organisation with records is listed, also removed ones', async () => {
  const control = await openFilled()
  await insertRequest(control, 'del_7', 'initech')
  await control
    .insertInto('organisations')
    .values({ tenant_id: 'globex', name: 'x', placement: 0, created_at_ms: 0 })
    .execute()
  assert.deepEqual(await listTenants(control), ['acme', 'globex', 'initech'])
})

test('the check reads one moment while another handle writes, and does not block it', async () => {
  const { control, another, waitAtMost } = await openFilledPlane()
  const other = another()
  await waitAtMost(other, 0)
  const event = { request_id: 'del_1', actor, from_status: 'completed', to_status: 'odd', facts: {} }
  const [checked] = await Promise.all([
    checkChain(control, 'ledger', 'acme'),
    other.transaction().execute((trx) => appendLedger(trx, 'acme', atMs, event)),
  ])
  // Either before or after, never entries of one moment and requests of another.
  assert.deepEqual(checked.problems.length, checked.entries - 6)
})
