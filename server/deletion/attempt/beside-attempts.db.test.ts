// What must not wait for a long attempt of another organisation, on real stores: the release of a hold, a
// placement that an interrupted swap keeps closed, retention, and requests that were not approved in time.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { batchOf, openStores, type Stores, silent } from '../../../tests/fixtures.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { raw } from '../../telemetry/sql.ts'
import { findRelated } from '../../tenancy/lineage.ts'
import { between, monday, sceneOf, times, weekNs } from '../deletion-fixture.ts'
import { dayMs, type GovernedScene, governedSceneOf } from '../governed-fixture.ts'
import { approvalWaitMs } from '../requests/states.ts'
import { RetentionStore } from '../retention/store.ts'
import { RetentionWorker } from '../retention/worker.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const firstWeek = between(null, monday + weekNs)
const by = { requester: tokenNamed('owner'), idempotencyKey: null }
const { signal } = new AbortController()

/**
 * Runs a round in which the neighbour's attempt does `work`, and ends when `isDone` returns true, or after a
 * limit. Returns whether it was true then.
 */
async function duringTheirs(
  scene: Pick<GovernedScene, 'faults' | 'neighbour' | 'requests' | 'requestStore' | 'worker'>,
  work: () => Promise<unknown>,
  isDone: () => Promise<boolean> | boolean,
  beside: readonly (() => Promise<void>)[] = [],
): Promise<boolean> {
  const { row } = await scene.requestStore.create(scene.neighbour.tenantId, firstWeek, by)
  let isBegun = false
  let isDoneMeanwhile = false
  scene.faults.runAt('planned', async () => {
    if (isBegun) return
    isBegun = true
    await work()
    scene.worker.wake()
    for (let look = 0; look < 5000 && !isDoneMeanwhile; look++) {
      // A statement, because turns of the loop alone may be over before the engine has done anything.
      await stores.engine.command(raw('SELECT 1'))
      isDoneMeanwhile = await isDone()
    }
  })
  await scene.worker.round(signal, beside)
  const { status } = await scene.requests.stored(scene.neighbour.tenantId, row.request_id)
  assert.deepEqual([isBegun, status], [true, 'completed'])
  return isDoneMeanwhile
}

test('an erasure continues at the release of its hold during an attempt of another organisation, also one that was held in the same round', async () => {
  const scene = await governedSceneOf(stores, { attemptsAtOnce: 4 })
  const held = { startNs: monday, endNs: monday + weekNs / 7n }
  const before = await scene.hold(held)
  const first = (await scene.request(firstWeek)).request.request_id
  await scene.round()
  const statusOf = async (id: string) => (await scene.status(id)).status
  assert.equal(await statusOf(first), 'held')
  let second = ''
  const isContinued = await duringTheirs(
    scene,
    () => scene.holds.release(scene.own.tenantId, before.hold_id, tokenNamed('owner')),
    async () => {
      if ((await statusOf(first)) !== 'completed') return false
      if (second === '') {
        const hold = await scene.hold({ startNs: monday + weekNs, endNs: monday + 2n * weekNs })
        second = (await scene.request(between(monday + weekNs, monday + 2n * weekNs))).request.request_id
        scene.worker.wake()
        while ((await statusOf(second)) !== 'held') await new Promise((resolve) => setImmediate(resolve))
        assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2, 'the hold keeps it')
        await scene.holds.release(scene.own.tenantId, hold.hold_id, tokenNamed('owner'))
        scene.worker.wake()
      }
      return (await statusOf(second)) === 'completed'
    },
  )
  assert.ok(isContinued)
  assert.equal(await scene.count(scene.own, 'otel_logs'), 0)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length / 2)
})

test('a placement that an attempt left closed opens during an attempt of another organisation', async () => {
  const scene = await sceneOf(stores, { attemptsAtOnce: 4 })
  const isClosed = () => scene.gate.refuses(scene.own, [batchOf('otel_logs', [monday + weekNs])])
  let hasEnded = false
  const isOpened = await duringTheirs(
    scene,
    async () => {
      scene.faults.failOnceAt('swap promised')
      await scene.request({ ...between(null, monday + weekNs / 2n), signals: ['logs'] })
    },
    async () => {
      const [own] = await scene.requests.inStatus(['incomplete'], scene.own.tenantId)
      if (own === undefined) return false
      if (!hasEnded) {
        hasEnded = true
        assert.ok(isClosed())
        scene.worker.wake()
      }
      return !isClosed()
    },
  )
  assert.ok(isOpened)
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length - times.length / 4)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length / 2)
})

test('retention is carried out during an attempt of another organisation', async () => {
  const scene = await governedSceneOf(stores, { attemptsAtOnce: 4 })
  const store = new RetentionStore(stores.control, scene.clock, findRelated)
  const retention = new RetentionWorker({
    store,
    requests: scene.requests,
    requestStore: scene.requestStore,
    engine: stores.engine,
    trustedNowMs: async () => scene.clock.nowMs(),
    logger: silent,
    findPlace: async () => scene.own,
    ruleOf: async () => 'none',
    holdsSince: (tenantId) => scene.holds.active(tenantId),
    nudge: () => scene.worker.wake(),
  })
  const isDone = await duringTheirs(
    scene,
    () => store.set(scene.own.tenantId, { logs_days: 14 }, tokenNamed('owner')),
    async () => (await scene.requests.inStatus(['completed'], scene.own.tenantId)).length === 1,
    [() => retention.round(signal)],
  )
  assert.ok(isDone)
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length / 2)
})

test('a request that was not approved in time expires during an attempt of another organisation', async () => {
  const scene = await governedSceneOf(stores, { attemptsAtOnce: 4 })
  await scene.policies.set(scene.own.tenantId, 'every_deletion', tokenNamed('owner'))
  const { request } = await scene.request(firstWeek)
  assert.equal(request.status, 'awaiting_approval')
  const isExpired = await duringTheirs(
    scene,
    async () => scene.clock.advance(approvalWaitMs + dayMs),
    async () => (await scene.status(request.request_id)).status === 'expired',
  )
  assert.ok(isExpired)
  assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length)
})
