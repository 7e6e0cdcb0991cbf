// What one person can erase alone where full erasures need two: tokens of a real control plane, the real
// store of requests, and a manual clock. Each abuse is a way to erase in pieces what may not be erased at
// once.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { openControlPlane } from '../../../tests/control-planes.ts'
import { silent } from '../../../tests/fixtures.ts'
import type { Actor } from '../../core/actor.ts'
import { operatorActor, tokenActor } from '../../core/actor.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { findRelated } from '../../tenancy/lineage.ts'
import { TenancyStore } from '../../tenancy/store.ts'
import { newTokenSecret } from '../../tenancy/tenancy.ts'
import { ClockWatch, confirmClock, readingOf } from '../../worker/clock-watch.ts'
import { all, between, monday, requestStoreOn } from '../deletion-fixture.ts'
import type { DeletionDraft } from '../requests/draft.ts'
import { repeatRequest } from '../requests/repeated-fixture.ts'
import { retentionRequester } from '../requests/system-actors.ts'
import { DeletionPolicies, dropLooserRule } from './policy.ts'
import { nothingErased } from './remaining.ts'
import { completedMax, secondPersonCause } from './second-person.ts'

const { control, close } = await openControlPlane()
after(close)

const operator = operatorActor('command-line')
const dayMs = 86_400_000
const dayNs = 86_400_000_000_000n
let organisations = 0

/** Days of telemetry time from the first Monday on; the second bound is exclusive. */
const days = (from: number, until: number) =>
  between(monday + BigInt(from) * dayNs, monday + BigInt(until) * dayNs)

/** An organisation whose full erasures need two people, and Ada, who has a token of the operator. */
async function scene() {
  const clock = new ManualClock(1_767_000_000_000)
  const tenantId = `organisation-${++organisations}`
  const tenancy = new TenancyStore(control, clock)
  await tenancy.createOrganisation({ tenantId, name: tenantId, actor: operator }, async () => {})
  const policies = new DeletionPolicies(control, clock)
  await policies.set(tenantId, 'full_erasures', tokenNamed('owner'))
  const requestStore = requestStoreOn(control, clock)
  const make = async (actor: Actor) => {
    const secret = newTokenSecret('admin')
    await tenancy.createToken({ tenantId, name: 'x', role: 'admin', secret, expiresAtMs: null, actor })
    return (await tenancy.findCaller(secret))?.requester ?? assert.fail('the token is not known')
  }
  const set = (
    requestId: string,
    columns: { status: string; finished_at_ms?: number; approved_by_kind?: string },
  ) => control.updateTable('deletion_requests').set(columns).where('request_id', '=', requestId).execute()
  return {
    clock,
    tenantId,
    tenancy,
    policies,
    requestStore,
    make,
    ada: await make(operator),
    /** Requests it, and completes it at once where it needs no second person; returns its first status. */
    async erase(draft: DeletionDraft, requester: Actor): Promise<string> {
      const by = { requester, idempotencyKey: null }
      const { isNew, row } = await requestStore.create(tenantId, draft, by)
      assert.ok(isNew)
      if (row.status === 'running') {
        await set(row.request_id, { status: 'completed', finished_at_ms: clock.nowMs() })
      }
      return row.status
    },
    /** Requests it and leaves it as it is; returns its id. */
    async ask(draft: DeletionDraft, requester: Actor): Promise<string> {
      const by = { requester, idempotencyKey: null }
      return (await requestStore.create(tenantId, draft, by)).row.request_id
    },
    set,
  }
}

describe('where full erasures need two people, one person', () => {
  test('does not erase everything by ranges of 31 days beside each other', async () => {
    const { ada, erase } = await scene()
    assert.equal(await erase(days(0, 31), ada), 'running')
    for (const from of [31, 62, -31]) {
      assert.equal(await erase(days(from, from + 31), ada), 'awaiting_approval')
    }
    assert.equal(await erase(days(31, 32), ada), 'awaiting_approval', 'nor a day at a time')
  })

  test('may erase 31 days in any number of pieces, and not a nanosecond more', async () => {
    const { ada, erase } = await scene()
    for (let day = 0; day < 31; day++) assert.equal(await erase(days(day, day + 1), ada), 'running')
    const next = between(monday + 31n * dayNs, monday + 31n * dayNs + 1n)
    assert.equal(await erase(next, ada), 'awaiting_approval')
  })

  test('erases the same time again without counting it again, also where ranges overlap', async () => {
    const { ada, erase } = await scene()
    assert.equal(await erase(days(0, 20), ada), 'running')
    assert.equal(await erase(days(0, 20), ada), 'running', 'what came late')
    assert.equal(await erase(days(10, 31), ada), 'running')
    assert.equal(await erase(days(5, 31), ada), 'running')
    assert.equal(await erase(days(5, 32), ada), 'awaiting_approval')
  })

  test('can’t continue with another of their tokens, made before or after, nor with the child of a revoked one', async () => {
    const { ada, erase, make, tenancy, tenantId } = await scene()
    const [child, sibling] = [await make(ada), await make(ada)]
    const grandchild = await make(child)
    assert.equal(await erase(days(0, 16), child), 'running')
    assert.equal(await erase(days(16, 31), grandchild), 'running')
    const { id } = child
    const revocation = { tenantId, id, actor: ada, actorRole: 'owner', withDescendants: false } as const
    await tenancy.revokeToken({ ...revocation, onAdministratorRevoked: dropLooserRule })
    for (const requester of [ada, sibling, grandchild, await make(sibling)]) {
      assert.equal(await erase(days(31, 32), requester), 'awaiting_approval')
      await control.deleteFrom('deletion_requests').where('status', '=', 'awaiting_approval').execute()
    }
  })

  test('can’t continue by separating signals: the time counts for all of them', async () => {
    const { ada, erase } = await scene()
    assert.equal(await erase({ ...days(0, 31), signals: ['logs'] }, ada), 'running')
    assert.equal(await erase({ ...days(0, 31), signals: ['traces'] }, ada), 'running', 'the same time')
    assert.equal(await erase({ ...days(31, 62), signals: ['traces'] }, ada), 'awaiting_approval')
  })

  test('can’t continue by delays: a waiting request counts while it waits, and a month after it was erased', async () => {
    const { ada, ask, clock, erase, set } = await scene()
    const delayed = await ask({ ...days(0, 31), delayMinutes: 43_200 }, ada)
    assert.equal(await erase({ ...days(31, 62), delayMinutes: 43_200 }, ada), 'awaiting_approval')
    await clock.advance(40 * dayMs)
    assert.equal(await erase(days(31, 32), ada), 'awaiting_approval')
    await set(delayed, { status: 'completed', finished_at_ms: clock.nowMs() })
    await clock.advance(31 * dayMs - 1)
    assert.equal(await erase(days(32, 33), ada), 'awaiting_approval')
    await clock.advance(1)
    assert.equal(await erase(days(33, 64), ada), 'running')
  })

  test('can’t continue with ranges for which late rows are refused', async () => {
    const { ada, erase } = await scene()
    assert.equal(await erase({ ...days(0, 31), refuseLate: true }, ada), 'running')
    assert.equal(await erase({ ...days(31, 62), refuseLate: true }, ada), 'awaiting_approval')
  })

  test('can’t continue while a hold or a failure keeps a request open', async () => {
    const { ada, ask, clock, erase, set } = await scene()
    for (const status of ['held', 'failed', 'incomplete', 'verifying', 'scheduled']) {
      const id = await ask(days(0, 31), ada)
      await set(id, { status, ...(status === 'failed' && { finished_at_ms: clock.nowMs() }) })
      await clock.advance(400 * dayMs)
      assert.equal(await erase(days(31, 32), ada), 'awaiting_approval', status)
      await control.deleteFrom('deletion_requests').execute()
    }
  })

  test('can’t continue where the clock jumps ahead by a month', async () => {
    const { ada, clock, erase } = await scene()
    const watch = new ClockWatch({ control, clock, logger: silent })
    await watch.now()
    assert.equal(await erase(days(0, 31), ada), 'running')
    clock.set(32 * dayMs)
    assert.equal(await erase(days(31, 32), ada), 'awaiting_approval', 'before the next check')
    assert.equal(await watch.now(), null)
    assert.equal(await erase(days(31, 33), ada), 'awaiting_approval', 'and after it')
    await confirmClock(control, clock.nowMs())
    assert.equal(await watch.now(), clock.nowMs())
    assert.equal(await erase(days(32, 33), ada), 'running')
    await control.deleteFrom('instance').where('key', '=', 'clock').execute()
  })

  test('can’t get two concurrent requests accepted', async () => {
    const { ada, requestStore, tenantId } = await scene()
    const by = { requester: ada, idempotencyKey: null }
    const born = await Promise.all(
      [days(0, 31), days(31, 62)].map(async (draft) => {
        const { row } = await requestStore.create(tenantId, draft, by)
        return row.status
      }),
    )
    assert.deepEqual(born.sort(), ['awaiting_approval', 'running'])
  })

  test('gains nothing by loosening the rule and making it strict again within the day', async () => {
    const { ada, clock, erase, policies, tenantId } = await scene()
    assert.equal(await erase(days(0, 31), ada), 'running')
    await policies.set(tenantId, 'none', ada)
    await clock.advance(dayMs - 1)
    assert.equal(await erase(days(31, 62), ada), 'awaiting_approval')
    await policies.set(tenantId, 'full_erasures', ada)
    await clock.advance(dayMs)
    assert.equal(await erase(days(62, 93), ada), 'awaiting_approval')
  })

  test('without a known token counts as the person who requests', async () => {
    const { ada, erase, tenantId } = await scene()
    assert.equal(await erase(days(0, 31), tokenActor('tok_gone', 'gone')), 'running')
    assert.equal(await erase(days(31, 32), ada), 'awaiting_approval')
    await control.deleteFrom('deletion_requests').where('tenant_id', '=', tenantId).execute()
    assert.equal(await erase(days(0, 31), ada), 'running')
    assert.equal(await erase(days(31, 32), tokenActor('tok_gone', 'gone')), 'awaiting_approval')
  })
})

test('with more erasures in a month than are counted, any further one needs a second person', async () => {
  const { ada, ask, clock, erase, set, tenantId } = await scene()
  const short = await ask(days(0, 1), ada)
  await set(short, { status: 'completed', finished_at_ms: clock.nowMs() })
  await repeatRequest(control, short, completedMax - 1)
  assert.equal(await erase(days(0, 1), ada), 'running')
  assert.equal(await erase(days(0, 1), ada), 'awaiting_approval')
  await control
    .deleteFrom('deletion_requests')
    .where('tenant_id', '=', tenantId)
    .where('status', '=', 'awaiting_approval')
    .execute()
  await clock.advance(31 * dayMs)
  assert.equal(await erase(days(0, 1), ada), 'running')
})

describe('the sum of one person does not include', () => {
  test('cancelled requests, requests that wait for a second person, and requests that one has approved', async () => {
    const { ada, ask, erase, set } = await scene()
    for (const status of ['cancelled', 'rejected', 'expired']) {
      await set(await ask(days(0, 31), ada), { status, finished_at_ms: 1_767_000_000_000 })
    }
    assert.equal(await erase(all, ada), 'awaiting_approval')
    const approved = await ask(days(31, 62), ada)
    await set(approved, { status: 'completed', finished_at_ms: 1_767_000_000_000, approved_by_kind: 'token' })
    assert.equal(await erase(days(62, 93), ada), 'running')
  })

  test('what another person, retention or another organisation has erased', async () => {
    const { ada, erase, make } = await scene()
    const ben = await make(operator)
    const elsewhere = await scene()
    assert.equal(await erase(days(0, 31), ben), 'running')
    assert.equal(await erase(between(null, monday), retentionRequester), 'running')
    assert.equal(await erase(days(-90, -60), retentionRequester), 'running')
    assert.equal(await elsewhere.erase(days(0, 31), elsewhere.ada), 'running')
    assert.equal(await erase(days(31, 62), ada), 'running')
    assert.equal(await erase(days(62, 63), ben), 'awaiting_approval', 'each has a sum of their own')
  })

  test('an erasure of everything from before the rule, but it includes a short range from then', async () => {
    const { ada, clock, erase, policies, tenantId } = await scene()
    await policies.set(tenantId, 'none', ada)
    await clock.advance(dayMs)
    assert.equal(await erase(all, ada), 'running')
    assert.equal(await erase(days(0, 10), ada), 'running')
    await policies.set(tenantId, 'full_erasures', ada)
    assert.equal(await erase(days(10, 31), ada), 'running')
    assert.equal(await erase(days(31, 32), ada), 'awaiting_approval')
  })

  test('anything, where every deletion needs two people or none does', async () => {
    const { ada, clock, erase, policies, tenantId } = await scene()
    await policies.set(tenantId, 'every_deletion', ada)
    assert.equal(await erase(days(0, 1), ada), 'awaiting_approval')
    await policies.set(tenantId, 'none', ada)
    await clock.advance(dayMs)
    for (const from of [0, 31, 62]) assert.equal(await erase(days(from, from + 31), ada), 'running')
  })
})

test('a preview says whether the deletion will need a second person, and why', async () => {
  const { ada, clock, erase, make, tenantId } = await scene()
  const ben = await make(operator)
  const cause = (requester: Actor, draft: DeletionDraft) =>
    secondPersonCause(control, findRelated, { tenantId, requester }, draft, readingOf(clock), nothingErased)
  assert.equal(await cause(ada, days(31, 62)), null)
  await erase(days(0, 31), ada)
  assert.equal(await cause(ada, days(31, 62)), 'ranges_together')
  assert.equal(await cause(ada, all), 'full_erasure')
  assert.equal(await cause(ben, days(31, 62)), null)
})

test('over random ranges and waits, one line of tokens erases at most 31 days alone in a month', async () => {
  const step = fc.record({
    from: fc.integer({ min: 0, max: 90 }),
    length: fc.integer({ min: 1, max: 40 }),
    wait: fc.integer({ min: 0, max: 12 }),
    who: fc.nat(2),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
      const { ada, clock, erase, make } = await scene()
      const line = [ada, await make(ada)]
      const taken: { atMs: number; from: number; until: number }[] = []
      for (const { from, length, wait, who } of steps) {
        await clock.advance(wait * dayMs)
        const isAlone = (await erase(days(from, from + length), line[who % 2] ?? ada)) === 'running'
        // A second implementation of the rule: days are marked one by one.
        const marked = new Set<number>()
        const mark = (a: number, b: number) => {
          for (let day = a; day < b; day++) marked.add(day)
        }
        for (const past of taken) if (past.atMs > clock.nowMs() - 31 * dayMs) mark(past.from, past.until)
        mark(from, from + length)
        assert.equal(isAlone, marked.size <= 31)
        if (isAlone) taken.push({ atMs: clock.nowMs(), from, until: from + length })
        await control.deleteFrom('deletion_requests').where('status', '=', 'awaiting_approval').execute()
      }
    }),
    { numRuns: 30 },
  )
})
