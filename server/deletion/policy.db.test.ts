// The rule of a second person, in a real control plane: stricter at once, looser a day later, and whatever else the
// table says counts as the strictest.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import type { ApprovalRule } from '../../contract/deletion-governance.ts'
import { findBreak } from '../audit/chain.ts'
import { readChain } from '../audit/log.ts'
import { migrate } from '../control/migrate.ts'
import { openSqlite } from '../control/sqlite.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { all, between, monday, weekNs } from './deletion-fixture.ts'
import { DeletionLedger } from './ledger.ts'
import { approvalRuleOf, DeletionPolicies, needsApproval } from './policy.ts'

const control = openSqlite(':memory:')
await migrate(control)
after(() => control.destroy())
const dayMs = 86_400_000
let organisations = 0

/** An organisation of its own, and a clock that is moved by hand. */
function scene() {
  const clock = new ManualClock(1_763_717_400_000)
  const tenantId = `organisation-${++organisations}`
  const policies = new DeletionPolicies(control, clock)
  const ledger = new DeletionLedger(control, clock)
  return {
    clock,
    tenantId,
    set: (approval: ApprovalRule) => policies.set(tenantId, approval, 'owner'),
    get: () => policies.get(tenantId),
    rule: () => approvalRuleOf(control, tenantId, clock.nowMs()),
    /** The status a request is born in. */
    async born(draft = all, requester = 'owner') {
      const { row } = await ledger.create(tenantId, draft, { requester, idempotencyKey: null }, () => {})
      await control.deleteFrom('deletion_requests').where('tenant_id', '=', tenantId).execute()
      return row.status
    },
  }
}

test('nobody is asked where nobody ever asked for it, and each rule asks for what it says', async () => {
  const { get, rule } = scene()
  assert.deepEqual(await get(), { approval: 'none', pending: null })
  assert.equal(await rule(), 'none')
  const drafts = [between(monday, monday + weekNs), all]
  const cases = (['none', 'all', 'always'] as const).flatMap((approval) =>
    drafts.map((draft) => needsApproval(approval, draft)),
  )
  assert.deepEqual(cases, [false, false, false, true, true, true])
})

test('a range that could be a full erasure is judged like one: without a start, or longer than 31 days', () => {
  const dayNs = weekNs / 7n
  const asked = [
    between(null, monday),
    between(monday, monday + 31n * dayNs),
    between(monday, monday + 31n * dayNs + 1n),
  ]
  assert.deepEqual(
    asked.map((draft) => needsApproval('all', draft)),
    [true, false, true],
  )
})

test('a stricter rule holds at once, for the very next request', async () => {
  const { born, get, set } = scene()
  assert.equal(await born(), 'running')
  assert.deepEqual(await set('all'), { approval: 'all', pending: null })
  assert.deepEqual(
    [await born(), await born(between(monday, monday + weekNs))],
    ['awaiting_approval', 'running'],
  )
  await set('always')
  assert.equal(await born(between(null, monday)), 'awaiting_approval')
  assert.equal(await born(all, 'system:retention'), 'running', 'retention asks nobody')
  assert.deepEqual(await get(), { approval: 'always', pending: null })
})

test('a looser rule holds a day later and not a millisecond before', async () => {
  const { born, clock, get, set } = scene()
  await set('always')
  const loosened = await set('none')
  const effective_at = new Date(clock.nowMs() + dayMs).toISOString()
  assert.deepEqual(loosened, { approval: 'always', pending: { approval: 'none', effective_at } })
  await clock.advance(dayMs - 1)
  assert.equal(await born(), 'awaiting_approval')
  await clock.advance(1)
  assert.equal(await born(), 'running')
  assert.deepEqual(await get(), { approval: 'none', pending: null })
})

test('a looser rule that is pending is taken back by asking for the rule in force, or replaced by a stricter one', async () => {
  const { clock, get, set } = scene()
  await set('all')
  await set('none')
  assert.deepEqual(await set('all'), { approval: 'all', pending: null })
  await set('none')
  await set('always')
  await clock.advance(2 * dayMs)
  assert.deepEqual(await get(), { approval: 'always', pending: null })
})

test('asking for a looser rule again begins the day again, and a clock set back lengthens it', async () => {
  const { clock, rule, set } = scene()
  await set('always')
  await set('none')
  await clock.advance(dayMs - 1)
  await set('all')
  await clock.advance(1)
  assert.equal(await rule(), 'always')
  await clock.advance(-10 * dayMs)
  assert.equal(await rule(), 'always')
  await clock.advance(11 * dayMs)
  assert.equal(await rule(), 'all')
})

test('what is no rule of ours counts as the strictest', async () => {
  const { clock, get, rule, set, tenantId } = scene()
  await set('none')
  await sql`pragma ignore_check_constraints = on`.execute(control)
  for (const approval of ['', 'None', 'none ', 'never', '0']) {
    await sql`update deletion_policies set approval = ${approval} where tenant_id = ${tenantId}`.execute(
      control,
    )
    assert.equal(await rule(), 'always', JSON.stringify(approval))
  }
  await sql`update deletion_policies set approval = 'all', pending_approval = 'nobody', pending_from_ms = ${clock.nowMs() + 1} where tenant_id = ${tenantId}`.execute(
    control,
  )
  assert.equal(await rule(), 'all')
  await clock.advance(1)
  assert.equal(await rule(), 'always')
  assert.equal((await get()).approval, 'always')
})

test('every change is in the audit log, and one organisation’s rule is no other’s', async () => {
  const first = scene()
  const second = scene()
  await first.set('always')
  await first.set('none')
  assert.equal(await second.rule(), 'none')
  const entries = await readChain(control, 'audit_entries', first.tenantId)
  assert.equal(findBreak(entries), null)
  const [, loosened] = entries.map(({ text }) => JSON.parse(text))
  assert.deepEqual(
    [loosened.action, loosened.actor, loosened.outcome],
    ['deletion_policy.changed', 'owner', 'accepted'],
  )
  assert.equal(loosened.facts.before.approval, 'always')
  assert.equal(loosened.facts.after.pending.approval, 'none')
  assert.deepEqual(await readChain(control, 'audit_entries', second.tenantId), [])
})
