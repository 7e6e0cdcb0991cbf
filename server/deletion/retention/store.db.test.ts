// Who may shorten retention: one person without a rule of a second person, and two under either rule. Tokens
// of a real control plane, and a manual clock. The rule in force is the one that the worker reads.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { ApprovalRule } from '../../../contract/deletion/governance.ts'
import { openControlPlane } from '../../../tests/control-planes.ts'
import { findBreak } from '../../audit/chain.ts'
import { readChain } from '../../audit/log.ts'
import { type Actor, actorText, operatorActor, tokenActor } from '../../core/actor.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { findRelated } from '../../tenancy/lineage.ts'
import { TenancyStore } from '../../tenancy/store.ts'
import { newTokenSecret } from '../../tenancy/tenancy.ts'
import { DeletionPolicies } from '../governance/policy.ts'
import { approvalWaitMs } from '../requests/states.ts'
import { RetentionStore } from './store.ts'

const { control, close } = await openControlPlane()
after(close)
const dayMs = 86_400_000
let organisations = 0

/**
 * An organisation with this rule that keeps logs for 30 days, and two people with a token of the operator
 * each.
 */
async function scene(approval: ApprovalRule) {
  const clock = new ManualClock(1_767_000_000_000)
  const tenantId = `organisation-${++organisations}`
  const tenancy = new TenancyStore(control, clock)
  await tenancy.createOrganisation(
    { tenantId, name: tenantId, actor: operatorActor('command-line') },
    async () => {},
  )
  const make = async (actor: Actor) => {
    const secret = newTokenSecret('admin')
    await tenancy.createToken({ tenantId, name: 'x', role: 'admin', secret, expiresAtMs: null, actor })
    return (await tenancy.findCaller(secret))?.requester ?? assert.fail('the token is not known')
  }
  const store = new RetentionStore(control, clock, findRelated)
  const policies = new DeletionPolicies(control, clock)
  const [ada, ben] = [await make(operatorActor('command-line')), await make(operatorActor('command-line'))]
  await store.set(tenantId, { logs_days: 30 }, ada)
  await policies.set(tenantId, approval, ada)
  return {
    clock,
    tenantId,
    store,
    policies,
    make,
    ada,
    ben,
    set: (changes: Parameters<RetentionStore['set']>[1], by = ada) => store.set(tenantId, changes, by),
    get: () => store.get(tenantId),
    /** The rule that the worker applies. */
    inForce: async () => Object.fromEntries(await store.rule(tenantId)),
    /** The id of the only change that waits. */
    async waiting(): Promise<string> {
      const { pending = [] } = await store.get(tenantId)
      assert.equal(pending.length, 1)
      return pending[0]?.id ?? ''
    },
    approve: (id: string, by = ben) => store.approve(tenantId, id, by),
    reject: (id: string, by = ben) => store.reject(tenantId, id, by, 'still needed'),
    /** The audit entries about retention, from the setting of the scene on. */
    async acts() {
      const entries = await readChain(control, 'audit_entries', tenantId)
      assert.equal(findBreak(entries), null)
      return entries
        .map(({ text }) => JSON.parse(text))
        .filter(({ action }) => action.startsWith('retention.'))
        .slice(1)
        .map(({ action, actor, facts, target }) => ({ action, actor, facts, target }))
    },
  }
}

const guarded = ['full_erasures', 'every_deletion'] as const

describe('without a rule of a second person', () => {
  test('a shorter retention is in force at once, and nothing waits', async () => {
    const { inForce, set } = await scene('none')
    const { retention, waits } = await set({ logs_days: 7, traces_days: 3 })
    assert.deepEqual([retention, waits], [{ metrics_days: null, logs_days: 7, traces_days: 3 }, false])
    assert.deepEqual(await inForce(), { logs: 7, traces: 3 })
  })
})

for (const rule of guarded) {
  describe(`under the rule ${rule}`, () => {
    test('fewer days wait for the approval of another person', async () => {
      const { acts, ada, approve, ben, clock, inForce, set, waiting } = await scene(rule)
      const { retention, waits } = await set({ logs_days: 7 })
      assert.equal(waits, true)
      const requested_at = new Date(clock.nowMs()).toISOString()
      const approve_by = new Date(clock.nowMs() + approvalWaitMs).toISOString()
      const id = await waiting()
      assert.deepEqual(retention, {
        metrics_days: null,
        logs_days: 30,
        traces_days: null,
        pending: [{ id, logs_days: 7, requested_by: actorText(ada), requested_at, approve_by }],
      })
      assert.deepEqual(await inForce(), { logs: 30 })
      await assert.rejects(approve(id, ada), { code: 'own_request' })
      assert.deepEqual(await inForce(), { logs: 30 })
      assert.deepEqual(await approve(id), { metrics_days: null, logs_days: 7, traces_days: null })
      assert.deepEqual(await inForce(), { logs: 7 })
      await assert.rejects(approve(id), { code: 'not_found' })
      const rules = {
        before: { metrics_days: null, logs_days: 30, traces_days: null },
        after: { metrics_days: null, logs_days: 7, traces_days: null },
      }
      assert.deepEqual(await acts(), [
        {
          action: 'retention.requested',
          actor: actorText(ada),
          target: id,
          facts: { logs_days: 7, approve_by },
        },
        {
          action: 'retention.approved',
          actor: actorText(ben),
          target: (await acts())[1]?.target,
          facts: { change_id: id, requested_by: actorText(ada), ...rules },
        },
      ])
    })

    test('the first limit of a signal waits too, whatever its number of days', async () => {
      const { inForce, set } = await scene(rule)
      assert.equal((await set({ traces_days: 3650 })).waits, true)
      assert.deepEqual(await inForce(), { logs: 30 })
    })

    test('more days, or none, are in force at once, also beside fewer that wait', async () => {
      const { get, inForce, set } = await scene(rule)
      assert.equal((await set({ logs_days: 31 })).waits, false)
      assert.deepEqual(await inForce(), { logs: 31 })
      assert.equal((await set({ logs_days: 60, metrics_days: 400, traces_days: null })).waits, true)
      assert.deepEqual(await inForce(), { logs: 60 })
      const { pending } = await get()
      assert.deepEqual(
        pending?.map(({ logs_days, metrics_days, traces_days }) => [logs_days, metrics_days, traces_days]),
        [[undefined, 400, undefined]],
      )
      assert.equal((await set({ logs_days: null })).waits, false)
      assert.deepEqual(await inForce(), {})
      assert.equal(
        (await set({ logs_days: 60 })).waits,
        true,
        'a limit that was removed counts as set for the first time',
      )
    })

    test('is not approved with a token of the same line, nor by an unknown actor', async () => {
      const { ada, approve, inForce, make, set, waiting } = await scene(rule)
      const [child, sibling] = [await make(ada), await make(ada)]
      await set({ logs_days: 7 }, child)
      const id = await waiting()
      const unknown = [tokenActor('tok_gone', 'gone'), operatorActor('command-line')]
      for (const by of [child, ada, sibling, await make(sibling), ...unknown]) {
        await assert.rejects(approve(id, by), { code: 'own_request' }, actorText(by))
      }
      assert.deepEqual(await inForce(), { logs: 30 })
    })

    test('can be rejected by anyone, also by its requester, and the reason is kept', async () => {
      const { acts, ada, ben, inForce, reject, set, waiting } = await scene(rule)
      for (const by of [ben, ada]) {
        await set({ logs_days: 7 })
        const id = await waiting()
        assert.equal('pending' in (await reject(id, by)), false)
        const last = (await acts()).at(-1)
        assert.deepEqual(last, {
          action: 'retention.rejected',
          actor: actorText(by),
          target: id,
          facts: { logs_days: 7, reason: 'still needed' },
        })
        await assert.rejects(reject(id), { code: 'not_found' })
      }
      assert.deepEqual(await inForce(), { logs: 30 })
    })

    test('a change that is not approved within thirty days is gone, for readers and for late approvals', async () => {
      const { acts, approve, clock, get, inForce, set, store, waiting } = await scene(rule)
      await set({ logs_days: 7 })
      const id = await waiting()
      await clock.advance(approvalWaitMs - 1)
      await store.expire()
      assert.equal(await waiting(), id)
      await clock.advance(1)
      assert.equal('pending' in (await get()), false)
      await assert.rejects(approve(id), { code: 'not_found' })
      await store.expire()
      await store.expire()
      assert.deepEqual(
        (await acts()).map(({ action }) => action),
        ['retention.requested', 'retention.expired'],
      )
      assert.deepEqual(await inForce(), { logs: 30 })
      await set({ logs_days: 7 })
      assert.notEqual(await waiting(), id, 'the same request is a new change')
    })
  })
}

describe('a change that waits', () => {
  test('exists once: the same request by anyone returns the waiting change and does not approve it', async () => {
    const { ada, approve, ben, clock, inForce, set, waiting } = await scene('every_deletion')
    await set({ logs_days: 7 })
    const id = await waiting()
    await clock.advance(dayMs)
    assert.equal((await set({ logs_days: 7 }, ben)).waits, true)
    assert.equal(await waiting(), id)
    assert.deepEqual(await inForce(), { logs: 30 })
    await assert.rejects(approve(id, ada), { code: 'own_request' })
  })

  test('can’t be replaced before the approval: other days are another change', async () => {
    const { acts, approve, inForce, set, waiting } = await scene('every_deletion')
    await set({ logs_days: 29 })
    const harmless = await waiting()
    await set({ logs_days: 1 })
    assert.notEqual(await waiting(), harmless)
    await assert.rejects(approve(harmless), { code: 'not_found' })
    assert.deepEqual(await inForce(), { logs: 30 })
    assert.deepEqual(
      (await acts()).map(({ action, facts }) => [action, facts.logs_days]),
      [
        ['retention.requested', 29],
        ['retention.withdrawn', 29],
        ['retention.requested', 1],
      ],
    )
  })

  test('never includes the request of another person, so that a person can’t approve their own part', async () => {
    const { ada, approve, ben, clock, get, inForce, set } = await scene('every_deletion')
    await set({ logs_days: 7 }, ada)
    await clock.advance(1)
    await set({ traces_days: 5 }, ben)
    const [first, second] = (await get()).pending ?? []
    assert.ok(first && second)
    assert.deepEqual([first.requested_by, second.requested_by], [actorText(ada), actorText(ben)])
    await assert.rejects(approve(first.id, ada), { code: 'own_request' })
    await assert.rejects(approve(second.id, ben), { code: 'own_request' })
    await approve(second.id, ada)
    assert.deepEqual(await inForce(), { logs: 30, traces: 5 })
    await approve(first.id, ben)
    assert.deepEqual(await inForce(), { logs: 7, traces: 5 })
  })

  test('is withdrawn for a signal by requesting the days in force or more', async () => {
    const { approve, get, inForce, set } = await scene('every_deletion')
    await set({ logs_days: 7, metrics_days: 7, traces_days: 7 })
    const { retention, waits } = await set({ logs_days: 30, metrics_days: null })
    assert.equal(waits, false)
    const [left, ...others] = retention.pending ?? []
    assert.deepEqual([left?.traces_days, left?.logs_days, others], [7, undefined, []])
    await approve(left?.id ?? '')
    assert.deepEqual(await inForce(), { logs: 30, traces: 7 })
    assert.equal('pending' in (await get()), false)
  })

  test('can’t be read or decided by another organisation', async () => {
    const [own, other] = [await scene('every_deletion'), await scene('every_deletion')]
    await own.set({ logs_days: 7 })
    const id = await own.waiting()
    assert.equal('pending' in (await other.get()), false)
    await assert.rejects(other.approve(id, other.ben), { code: 'not_found' })
    await assert.rejects(other.reject(id), { code: 'not_found' })
    await own.approve(id)
  })

  test('is approved once where two approve at once', async () => {
    const { approve, ben, inForce, make, set, waiting } = await scene('every_deletion')
    await set({ logs_days: 7 })
    const id = await waiting()
    const cleo = await make(operatorActor('command-line'))
    const answers = await Promise.allSettled([approve(id, ben), approve(id, cleo)])
    assert.deepEqual(answers.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    assert.deepEqual(await inForce(), { logs: 7 })
  })

  test('does not come into force by a looser rule, which only allows a new request a day later', async () => {
    const { ada, clock, inForce, policies, set, tenantId } = await scene('every_deletion')
    await set({ logs_days: 1 })
    await policies.set(tenantId, 'none', ada)
    assert.equal((await set({ logs_days: 1 })).waits, true, 'the looser rule is not in force')
    await clock.advance(dayMs - 1)
    assert.equal((await set({ logs_days: 1 })).waits, true)
    await policies.set(tenantId, 'full_erasures', ada)
    await clock.advance(dayMs)
    assert.deepEqual(await inForce(), { logs: 30 })
    assert.equal((await set({ logs_days: 1 })).waits, true, 'the next looser rule applies to it as well')
  })

  test('can’t be avoided by small steps, by null in between, or by setting the whole rule', async () => {
    const { inForce, set } = await scene('full_erasures')
    for (const logs_days of [29, 28, 1]) assert.equal((await set({ logs_days })).waits, true)
    await set({ logs_days: null })
    for (const logs_days of [3650, 30, 1]) assert.equal((await set({ logs_days })).waits, true)
    assert.equal((await set({ metrics_days: null, logs_days: 1, traces_days: null })).waits, true)
    assert.deepEqual(await inForce(), {})
  })
})

test('setting nothing, or the rule in force, changes nothing and returns the rule', async () => {
  const { acts, set } = await scene('every_deletion')
  assert.equal((await set({})).waits, false)
  assert.equal((await set({ logs_days: 30 })).waits, false)
  const rule = { metrics_days: null, logs_days: 30, traces_days: null }
  assert.deepEqual(
    (await acts()).map(({ action, facts }) => [action, facts]),
    [
      ['retention.changed', { before: rule, after: rule }],
      ['retention.changed', { before: rule, after: rule }],
    ],
  )
})
