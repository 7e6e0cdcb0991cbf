// A policy that becomes stricter after a deletion was accepted: what has not begun waits for a second person
// before its first attempt, and what has begun, was approved, or needs nobody continues. On real stores with
// the real worker; the neighbour's identical rows stay.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openStores, type Stores, silent } from '../../../tests/fixtures.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { findRelated } from '../../tenancy/lineage.ts'
import { readingOf } from '../../worker/clock-watch.ts'
import { all, assertRows, between, monday, times, weekNs } from '../deletion-fixture.ts'
import {
  dayMs,
  type GovernedScene,
  governedSceneOf,
  keepDays,
  minuteMs,
  refuses,
  withClockInDoubt,
} from '../governed-fixture.ts'
import { approvalWaitMs } from '../requests/states.ts'
import { retentionRequester } from '../requests/system-actors.ts'
import { nothingErased } from './remaining.ts'
import { secondPersonRetest } from './second-person.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const ada = tokenNamed('ada')
const dayNs = 86_400_000_000_000n
const firstWeek = between(null, monday + weekNs)
const visible = (scene: GovernedScene) => scene.visible(scene.own, 'otel_logs')
const makeStrict = (scene: GovernedScene, rule: 'every_deletion' | 'full_erasures' = 'every_deletion') =>
  scene.policies.set(scene.own.tenantId, rule, tokenNamed('owner'))
const statusOf = async (scene: GovernedScene, id: string) => (await scene.status(id)).status

/**
 * Nothing is erased, everything can be read, and the audit log says why; then a second person approves it.
 */
async function assertAsksAndContinues(scene: GovernedScene, id: string): Promise<void> {
  const asked = await scene.status(id)
  assert.deepEqual(
    [asked.status, asked.hidden_at, asked.detail.attempts, asked.detail.held_by],
    ['awaiting_approval', null, 0, []],
  )
  assert.equal(Date.parse(asked.approve_by ?? ''), scene.clock.nowMs() + approvalWaitMs)
  await assertRows(scene, times.length)
  assert.equal(await visible(scene), times.length)
  assert.equal(refuses(scene, monday), false)
  assert.deepEqual(scene.journal, [], 'a restore must not carry it out')
  const act = (await scene.acts(id)).at(-1)
  assert.deepEqual(
    [act?.actor, act?.action, act?.facts.approval_cause, act?.facts.approve_by],
    ['system:deletion', 'deletion.ask_approval', 'every_deletion', asked.approve_by],
  )
  await scene.round()
  assert.equal(await statusOf(scene, id), 'awaiting_approval')
  await assert.rejects(scene.decisions.approve(scene.callerOf('ada'), id), { code: 'own_request' })
  await scene.decisions.approve(scene.callerOf('ben'), id)
  assert.equal(await visible(scene), 0)
  assert.equal(Date.parse((await scene.status(id)).hidden_at ?? ''), scene.clock.nowMs())
  await scene.round()
  assert.equal(await statusOf(scene, id), 'completed')
  await assertRows(scene, 0)
}

describe('under a policy that became stricter, a deletion of one person needs a second one', () => {
  test('where its delay is over', async () => {
    const scene = await governedSceneOf(stores)
    const { request } = await scene.request({ ...all, delayMinutes: 43_200 }, ada)
    assert.deepEqual([request.status, await visible(scene)], ['scheduled', 0])
    await makeStrict(scene)
    await scene.round()
    assert.equal(await statusOf(scene, request.request_id), 'scheduled', 'it can still be cancelled')
    scene.clock.advance(43_200 * minuteMs)
    await scene.round()
    await assertAsksAndContinues(scene, request.request_id)
    assert.deepEqual(await scene.moves(request.request_id), [
      'scheduled',
      'running',
      'awaiting_approval',
      'scheduled',
      'running',
      'verifying',
      'completed',
    ])
  })

  test('where its requester releases the hold that had stopped it', async () => {
    const scene = await governedSceneOf(stores)
    const hold = await scene.hold({}, ada)
    const { request } = await scene.request(all, ada)
    await scene.round()
    const held = await scene.status(request.request_id)
    assert.deepEqual([held.status, held.detail.attempts, await visible(scene)], ['held', 0, 0])
    await makeStrict(scene)
    scene.clock.advance(100 * dayMs)
    await scene.holds.release(scene.own.tenantId, hold.hold_id, ada)
    await scene.round()
    await assertAsksAndContinues(scene, request.request_id)
  })

  test('where it waits for its turn', async () => {
    const scene = await governedSceneOf(stores)
    const { request } = await scene.request(all, ada)
    assert.equal(request.status, 'running')
    await makeStrict(scene)
    await scene.round()
    await assertAsksAndContinues(scene, request.request_id)
  })

  test('where it can’t be told whether the policy was set since', async () => {
    const scene = await governedSceneOf(stores)
    await makeStrict(scene)
    const { request } = await scene.request(firstWeek, ada)
    const known = await scene.requests.stored(scene.own.tenantId, request.request_id)
    const needs = {
      ...{ control: stores.control, findRelated, logger: silent },
      findPlace: async () => scene.own,
      readRemaining: async () => nothingErased,
    }
    const causeOf = async (requestId: string) => {
      const causeIn = await secondPersonRetest(needs, { ...known, requestId }, readingOf(scene.clock))
      return causeIn(stores.control)
    }
    assert.equal(await causeOf(known.requestId), null)
    assert.equal(await causeOf('del_without_entry'), 'every_deletion')
  })

  test('where the ranges of the same person are too long together, and each counts once', async () => {
    const scene = await governedSceneOf(stores)
    const long = between(monday - 6n * dayNs, monday + 14n * dayNs)
    const before = between(monday - 26n * dayNs, monday - 6n * dayNs)
    const first = await scene.request({ ...long, delayMinutes: 60 }, ada)
    const second = await scene.request({ ...before, delayMinutes: 60 }, ada)
    await makeStrict(scene, 'full_erasures')
    scene.clock.advance(60 * minuteMs)
    await scene.round()
    assert.equal(await statusOf(scene, first.request.request_id), 'awaiting_approval')
    assert.equal((await scene.acts(first.request.request_id)).at(-1)?.facts.approval_cause, 'ranges_together')
    assert.equal(await statusOf(scene, second.request.request_id), 'completed', '20 days, and not 40')
    await assertRows(scene, times.length)
  })
})

describe('under a policy that became stricter, what a wider deletion has erased', () => {
  const late = { ...firstWeek, refuseLate: true }
  const refusesLate = (scene: GovernedScene) => scene.gate.lateSelections(scene.own.tenantId)

  /** Ada's request, then the stricter policy, then all of it erased by Ben with the approval of Cleo. */
  async function coveredScene(draft: typeof firstWeek) {
    const scene = await governedSceneOf(stores)
    const { request } = await scene.request(draft, ada)
    await makeStrict(scene)
    await assertRows(scene, times.length)
    const wide = await scene.request(all, tokenNamed('ben'))
    await scene.decisions.approve(scene.callerOf('cleo'), wide.request.request_id)
    return { scene, id: request.request_id, wide: wide.request.request_id }
  }

  for (const delayMinutes of [43_200, 0]) {
    test(`refuses no late telemetry by the act of one person, with a delay of ${delayMinutes}`, async () => {
      const { scene, id, wide } = await coveredScene({ ...late, delayMinutes })
      await scene.round()
      await assertRows(scene, 0)
      assert.equal(await statusOf(scene, wide), 'completed')
      assert.equal(await statusOf(scene, id), 'cancelled')
      assert.deepEqual(refusesLate(scene), [])
      assert.deepEqual(scene.gate.hidden(scene.own.tenantId), [])
      assert.equal(refuses(scene, monday), false)
      const act = (await scene.acts(id)).at(-1)
      assert.deepEqual(
        [act?.actor, act?.action, act?.facts.superseded_by, act?.facts.approval_cause],
        ['system:deletion', 'deletion.cancelled', wide, 'every_deletion'],
      )
      assert.deepEqual(
        scene.journal.map(({ requestId }) => requestId),
        [wide],
        'a restore must not carry it out',
      )
      await scene.fill()
      assert.equal(await visible(scene), times.length, 'what arrives later is new')
    })
  }

  test('is complete where it refuses nothing, or was approved', async () => {
    const plain = await coveredScene({ ...firstWeek, delayMinutes: 43_200 })
    await plain.scene.round()
    const covered = await plain.scene.status(plain.id)
    assert.deepEqual([covered.status, covered.detail.erased_by], ['completed', plain.wide])

    const scene = await governedSceneOf(stores)
    await makeStrict(scene)
    const { request } = await scene.request({ ...late, delayMinutes: 43_200 }, ada)
    await scene.decisions.approve(scene.callerOf('ben'), request.request_id)
    await makeStrict(scene)
    const wide = await scene.request(all, tokenNamed('ben'))
    await scene.decisions.approve(scene.callerOf('cleo'), wide.request.request_id)
    await scene.round()
    assert.equal(await statusOf(scene, request.request_id), 'completed')
    assert.equal(refusesLate(scene).length, 1)
  })

  test('refuses late telemetry as it was accepted, where nobody has set the policy since', async () => {
    const scene = await governedSceneOf(stores)
    const { request } = await scene.request({ ...late, delayMinutes: 43_200 }, ada)
    await scene.request(all, tokenNamed('ben'))
    await scene.round()
    assert.equal(await statusOf(scene, request.request_id), 'completed')
    assert.equal(refusesLate(scene).length, 1)
  })
})

describe('a deletion continues by itself', () => {
  test('where nobody has set the policy since, although the clock came in doubt', async () => {
    const scene = await governedSceneOf(stores)
    await makeStrict(scene, 'full_erasures')
    await scene.request(between(monday - 30n * dayNs, monday), ada)
    await scene.round()
    scene.clock.advance(40 * dayMs)
    const { request } = await scene.request({ ...between(monday, monday + weekNs), delayMinutes: 60 }, ada)
    scene.clock.advance(60 * minuteMs)
    await assertRows(scene, times.length)
    await withClockInDoubt(stores.control, scene.round)
    assert.equal(await statusOf(scene, request.request_id), 'completed')
    await assertRows(scene, times.length / 2)
    assert.deepEqual(await scene.moves(request.request_id), [
      'scheduled',
      'running',
      'verifying',
      'completed',
    ])
  })

  test('where it has begun, also by a retry', async () => {
    const scene = await governedSceneOf(stores)
    const { request } = await scene.request(firstWeek, ada)
    scene.faults.failOnceAt('planned')
    await scene.round()
    assert.equal(await statusOf(scene, request.request_id), 'incomplete')
    await makeStrict(scene)
    await scene.decisions.retry(scene.callerOf('ada'), request.request_id)
    await scene.round()
    assert.equal(await statusOf(scene, request.request_id), 'completed')
    await assertRows(scene, times.length / 2)
  })

  test('where a second person has approved it, or retention requested it', async () => {
    const scene = await governedSceneOf(stores)
    await makeStrict(scene)
    const { request } = await scene.request(between(monday + weekNs, monday + 2n * weekNs), ada)
    await scene.decisions.approve(scene.callerOf('ben'), request.request_id)
    await keepDays(stores.control, scene.own.tenantId, 14)
    const retention = await scene.request(firstWeek, retentionRequester)
    await makeStrict(scene)
    await scene.round()
    assert.equal(await statusOf(scene, request.request_id), 'completed')
    assert.equal(await statusOf(scene, retention.request.request_id), 'completed')
    await assertRows(scene, 0)
  })
})
