// The rule of a second person, in a real control plane: stricter at once, looser a day later, and an unknown
// value counts as the strictest.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { sql } from 'kysely'
import type { ApprovalRule } from '../../../contract/deletion/governance.ts'
import type { Role } from '../../../contract/role.ts'
import { openControlPlane } from '../../../tests/control-planes.ts'
import { silent } from '../../../tests/fixtures.ts'
import { findBreak } from '../../audit/chain.ts'
import { readChain } from '../../audit/log.ts'
import { type Actor, operatorActor, systemActor, tokenActor } from '../../core/actor.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { TenancyStore } from '../../tenancy/store.ts'
import { newTokenSecret } from '../../tenancy/tenancy.ts'
import { ClockWatch, readingOf } from '../../worker/clock-watch.ts'
import { all, between, monday, requestStoreOn, weekNs } from '../deletion-fixture.ts'
import { approvalCause, approvalRuleOf, DeletionPolicies, dropLooserRule } from './policy.ts'

const { control, close, shell } = await openControlPlane()
after(close)
const dayMs = 86_400_000
let organisations = 0

/** An organisation of its own, and a manual clock. */
function scene() {
  const clock = new ManualClock(1_763_717_400_000)
  const tenantId = `organisation-${++organisations}`
  const policies = new DeletionPolicies(control, clock)
  const requestStore = requestStoreOn(control, clock)
  return {
    clock,
    tenantId,
    set: (approval: ApprovalRule) => policies.set(tenantId, approval, tokenNamed('owner')),
    get: () => policies.get(tenantId),
    rule: () => approvalRuleOf(control, tenantId, readingOf(clock)),
    /** The first status of a request. */
    async born(draft = all, requester: Actor = tokenNamed('owner')) {
      const { row } = await requestStore.create(tenantId, draft, { requester, idempotencyKey: null })
      await control.deleteFrom('deletion_requests').where('tenant_id', '=', tenantId).execute()
      return row.status
    },
  }
}

test('without a rule no approval is required, and each rule requires its approvals', async () => {
  const { get, rule } = scene()
  assert.deepEqual(await get(), { approval: 'none', pending: null })
  assert.equal(await rule(), 'none')
  const drafts = [between(monday, monday + weekNs), all]
  const cases = (['none', 'full_erasures', 'every_deletion'] as const).flatMap((approval) =>
    drafts.map((draft) => approvalCause(approval, draft)),
  )
  assert.deepEqual(cases, [null, null, null, 'full_erasure', 'every_deletion', 'every_deletion'])
})

test('a range that could be a full erasure counts as one: without a start, or longer than 31 days', () => {
  const dayNs = weekNs / 7n
  const asked = [
    between(null, monday),
    between(monday, monday + 31n * dayNs),
    between(monday, monday + 31n * dayNs + 1n),
  ]
  assert.deepEqual(
    asked.map((draft) => approvalCause('full_erasures', draft)),
    ['full_erasure', null, 'full_erasure'],
  )
})

test('a stricter rule applies at once, to the next request', async () => {
  const { born, get, set } = scene()
  assert.equal(await born(), 'running')
  assert.deepEqual(await set('full_erasures'), { approval: 'full_erasures', pending: null })
  assert.deepEqual(
    [await born(), await born(between(monday, monday + weekNs))],
    ['awaiting_approval', 'running'],
  )
  await set('every_deletion')
  assert.equal(await born(between(null, monday)), 'awaiting_approval')
  assert.equal(await born(all, systemActor('retention')), 'running', 'retention needs no approval')
  assert.deepEqual(await get(), { approval: 'every_deletion', pending: null })
})

test('a looser rule applies a day later and not a millisecond before', async () => {
  const { born, clock, get, set } = scene()
  await set('every_deletion')
  const loosened = await set('none')
  const effective_at = new Date(clock.nowMs() + dayMs).toISOString()
  assert.deepEqual(loosened, { approval: 'every_deletion', pending: { approval: 'none', effective_at } })
  await clock.advance(dayMs - 1)
  assert.equal(await born(), 'awaiting_approval')
  await clock.advance(1)
  assert.equal(await born(), 'running')
  assert.deepEqual(await get(), { approval: 'none', pending: null })
})

test('a pending looser rule is withdrawn by requesting the rule in force, or replaced by a stricter one', async () => {
  const { clock, get, set } = scene()
  await set('full_erasures')
  await set('none')
  assert.deepEqual(await set('full_erasures'), { approval: 'full_erasures', pending: null })
  await set('none')
  await set('every_deletion')
  await clock.advance(2 * dayMs)
  assert.deepEqual(await get(), { approval: 'every_deletion', pending: null })
})

test('requesting a looser rule again restarts the day, and a clock that is set back lengthens it', async () => {
  const { clock, rule, set } = scene()
  await set('every_deletion')
  await set('none')
  await clock.advance(dayMs - 1)
  await set('full_erasures')
  await clock.advance(1)
  assert.equal(await rule(), 'every_deletion')
  await clock.advance(-10 * dayMs)
  assert.equal(await rule(), 'every_deletion')
  await clock.advance(11 * dayMs)
  assert.equal(await rule(), 'full_erasures')
})

test('a looser rule does not apply where the clock has jumped ahead, also before the next check', async () => {
  const { born, clock, rule, set } = scene()
  await new ClockWatch({ control, clock, logger: silent }).now()
  await set('every_deletion')
  await set('none')
  clock.set(2 * dayMs)
  assert.deepEqual([await rule(), await born()], ['every_deletion', 'awaiting_approval'])
  clock.set(-2 * dayMs)
  await clock.advance(dayMs)
  assert.deepEqual([await rule(), await born()], ['none', 'running'])
  await control.deleteFrom('instance').where('key', '=', 'clock').execute()
})

describe('while a looser rule waits, the end of the token of', () => {
  /** The rule and its last change. A token is revoked `afterMs` after the request for a looser rule. */
  async function afterRevoking(role: Role, afterMs = dayMs - 1, descendant?: Role) {
    const { clock, get, rule, set, tenantId } = scene()
    const tenancy = new TenancyStore(control, clock)
    await tenancy.createOrganisation(
      { tenantId, name: tenantId, actor: operatorActor('test') },
      async () => {},
    )
    const make = (made: Role, actor: Actor) =>
      tenancy.createToken({
        ...{ tenantId, name: made, role: made, secret: newTokenSecret(made), expiresAtMs: null, actor },
      })
    const { id } = await make(role, operatorActor('test'))
    if (descendant !== undefined) await make(descendant, tokenActor(id, role))
    await set('every_deletion')
    await set('none')
    await clock.advance(afterMs)
    const actor = tokenNamed('owner')
    const head = { tenantId, id, actor, actorRole: 'owner', withDescendants: true } as const
    const revocation = { ...head, onAdministratorRevoked: dropLooserRule }
    await tenancy.revokeToken(revocation)
    const { pending } = await get()
    await clock.advance(dayMs)
    const later = await rule()
    const entries = await readChain(control, 'audit_entries', tenantId)
    const change = entries
      .map(({ text }) => JSON.parse(text))
      .findLast(({ action }) => action === 'deletion_policy.changed')
    return { pending: pending?.approval, later, facts: change?.facts, actor: change?.actor, id }
  }

  test('an owner or admin, also as a descendant, drops it', async () => {
    for (const [role, descendant] of [['owner'], ['admin'], ['viewer', 'admin']] as const) {
      const { actor, facts, id, later, pending } = await afterRevoking(role, dayMs - 1, descendant)
      assert.deepEqual(
        [pending, later, actor],
        [undefined, 'every_deletion', 'token:owner (tok_owner)'],
        role,
      )
      assert.deepEqual(
        [facts.cause, facts.token_id, facts.before.pending.approval, facts.after],
        [...['token_revoked', id, 'none'], { approval: 'every_deletion', pending: null }],
      )
    }
  })

  test('anybody else leaves it, and so does one that ends when the looser rule is in force', async () => {
    const others = [await afterRevoking('member'), await afterRevoking('ingest')]
    const { later } = await afterRevoking('owner', dayMs)
    assert.deepEqual([...others.map((other) => other.pending), later], ['none', 'none', 'none'])
  })
})

test('an unknown rule counts as the strictest', async () => {
  const { clock, get, rule, set, tenantId } = scene()
  await set('none')
  await shell.dropValueChecks()
  for (const approval of ['', 'None', 'none ', 'never', '0']) {
    await sql`update deletion_policies set approval = ${approval} where tenant_id = ${tenantId}`.execute(
      control,
    )
    assert.equal(await rule(), 'every_deletion', JSON.stringify(approval))
  }
  await sql`update deletion_policies set approval = 'all', pending_approval = 'nobody', pending_from_ms = ${clock.nowMs() + 1} where tenant_id = ${tenantId}`.execute(
    control,
  )
  assert.equal(await rule(), 'full_erasures')
  await clock.advance(1)
  assert.equal(await rule(), 'every_deletion')
  assert.equal((await get()).approval, 'every_deletion')
})

test('a rule that was stored in the first form is read, and a new one is stored in the same form', async () => {
  const { clock, get, rule, set, tenantId } = scene()
  for (const [word, current] of [
    ['none', 'none'],
    ['all', 'full_erasures'],
    ['always', 'every_deletion'],
  ] as const) {
    const columns = { approval: word, pending_approval: 'none', pending_from_ms: clock.nowMs() + 1 }
    await control
      .insertInto('deletion_policies')
      .values({ tenant_id: tenantId, ...columns })
      .onConflict((conflict) => conflict.column('tenant_id').doUpdateSet(columns))
      .execute()
    assert.equal(await rule(), current)
    assert.equal((await get()).approval, current)
    await set(current)
    const row = await control
      .selectFrom('deletion_policies')
      .select(['approval', 'pending_approval'])
      .where('tenant_id', '=', tenantId)
      .executeTakeFirst()
    assert.deepEqual({ ...row }, { approval: word, pending_approval: null })
  }
})

test('every change is in the audit log, and a rule applies to its own organisation', async () => {
  const first = scene()
  const second = scene()
  await first.set('every_deletion')
  await first.set('none')
  assert.equal(await second.rule(), 'none')
  const entries = await readChain(control, 'audit_entries', first.tenantId)
  assert.equal(findBreak(entries), null)
  const [, loosened] = entries.map(({ text }) => JSON.parse(text))
  assert.deepEqual(
    [loosened.action, loosened.actor, loosened.outcome],
    ['deletion_policy.changed', 'token:owner (tok_owner)', 'accepted'],
  )
  assert.equal(loosened.facts.before.approval, 'every_deletion')
  assert.equal(loosened.facts.after.pending.approval, 'none')
  assert.deepEqual(await readChain(control, 'audit_entries', second.tenantId), [])
})
