// The order in which requests are carried out, on real stores. Those of one organisation run one after the
// other, what a wider request has erased is not erased again, and no organisation waits for another. A
// control plane that can't be written delays an erasure and loses none.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openStores, type Stores } from '../../../tests/fixtures.ts'
import { waitFor } from '../../../tests/wait-for.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { systemClock } from '../../core/clock.ts'
import { all, assertRows, between, hourNs, monday, sceneOf, times, weekNs } from '../deletion-fixture.ts'
import { type GovernedScene, governedSceneOf, minuteMs, refuses } from '../governed-fixture.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const firstWeek = between(null, monday + weekNs)
const secondWeek = between(monday + weekNs, monday + 2n * weekNs)

/** A millisecond after the previous one, because requests of the same millisecond have no order. */
async function ask(
  scene: GovernedScene,
  draft: typeof all,
  requester = tokenNamed('owner'),
): Promise<string> {
  scene.clock.advance(1)
  return (await scene.request(draft, requester)).request.request_id
}

/** Ids of the requests that completed, in that order. */
async function completed(scene: GovernedScene): Promise<string[]> {
  const entries = await scene.ledgerEntries()
  return entries.filter((entry) => entry.to_status === 'completed').map((entry) => entry.request_id)
}

test('requests of an organisation are carried out in the order they were made', async () => {
  const scene = await governedSceneOf(stores)
  const later = await ask(scene, secondWeek)
  const earlier = await ask(scene, firstWeek)
  await scene.round()
  assert.deepEqual(await completed(scene), [later, earlier])
  await assertRows(scene, 0)
})

test('a clock that is set back changes neither the order nor what a wider request completes', async () => {
  const scene = await governedSceneOf(stores)
  const first = await ask(scene, firstWeek)
  scene.clock.advance(-60 * minuteMs)
  const second = await ask(scene, secondWeek)
  scene.clock.advance(-60 * minuteMs)
  const wide = await ask(scene, between(null, monday + 3n * weekNs))
  scene.clock.advance(-60 * minuteMs)
  const later = await ask(scene, between(monday, monday + weekNs))
  await scene.round()
  assert.deepEqual(await completed(scene), [first, second, wide, later])
  const covering = await governedSceneOf(stores)
  const delayed = await ask(covering, { ...firstWeek, delayMinutes: 600 })
  covering.clock.advance(-60 * minuteMs)
  const full = await ask(covering, all)
  await covering.round()
  assert.deepEqual(await completed(covering), [full, delayed])
})

test('a full erasure goes first, and earlier requests that it covers are verified and not erased again', async () => {
  const scene = await governedSceneOf(stores)
  const range = await ask(scene, firstWeek)
  const delayed = await ask(scene, { ...secondWeek, delayMinutes: 60 })
  const full = await ask(scene, all)
  await scene.round()
  assert.deepEqual(await completed(scene), [full, range, delayed])
  for (const id of [range, delayed]) {
    const { detail, removed_at, verified_at } = await scene.status(id)
    assert.deepEqual([detail.erased_by, detail.attempts, detail.rows_erased], [full, 0, 0])
    assert.ok(removed_at && verified_at)
  }
  await assertRows(scene, 0)
  assert.deepEqual(scene.gate.hidden(scene.own.tenantId), [])
})

test('a completion that the journal could not take is journalled by a later look', async () => {
  const scene = await governedSceneOf(stores)
  const range = await ask(scene, firstWeek)
  await ask(scene, all)
  const { journal } = scene
  const push = journal.push.bind(journal)
  journal.push = (...lines) => {
    if (lines.some(({ requestId }) => requestId === range)) throw new Error('The disk does not answer.')
    return push(...lines)
  }
  await scene.round()
  await scene.round()
  const isThere = () => journal.some(({ requestId }) => requestId === range)
  assert.deepEqual([(await scene.status(range)).status, isThere()], ['completed', false])
  journal.push = push
  await scene.round()
  assert.ok(isThere())
  await assertRows(scene, 0)
})

test('a wider erasure completes only the requests that it includes; other signals and later requests continue on their own', async () => {
  const scene = await governedSceneOf(stores)
  const traces = await ask(scene, { ...firstWeek, signals: ['traces'] })
  const logs = await ask(scene, { ...firstWeek, signals: ['logs'] })
  const empty = await ask(scene, { ...between(null, monday), signals: ['traces'] })
  scene.faults.failOnceAt('planned')
  const full = await ask(scene, { ...all, signals: ['logs', 'metrics'] })
  await scene.round()
  assert.equal((await scene.status(full)).status, 'incomplete')
  const after = await ask(scene, { ...secondWeek, signals: ['logs'] })
  scene.clock.advance(minuteMs)
  await scene.round()
  const erasedBy = async (id: string) => (await scene.status(id)).detail.erased_by
  assert.deepEqual(await Promise.all([logs, traces, empty, after].map(erasedBy)), [full, null, null, null])
  assert.deepEqual(new Set(await completed(scene)), new Set([full, logs, traces, empty, after]))
  assert.equal(await scene.count(scene.own, 'otel_traces'), times.length / 2)
  assert.equal(await scene.count(scene.own, 'otel_logs'), 0)
})

test('a request that waits for approval is withdrawn when a wider one has erased all of it', async () => {
  const scene = await governedSceneOf(stores)
  const { policies, own } = scene
  await policies.set(own.tenantId, 'every_deletion', tokenNamed('owner'))
  const waiting = await ask(scene, firstWeek, tokenNamed('ada'))
  const full = await ask(scene, all, tokenNamed('ada'))
  await scene.decisions.approve(scene.callerOf('ben'), full)
  await scene.round()
  const withdrawn = await scene.status(waiting)
  assert.equal(withdrawn.status, 'cancelled')
  const [last] = (await scene.ledgerEntries()).filter((entry) => entry.request_id === waiting).slice(-1)
  assert.equal(last?.facts.superseded_by, full)
  await assertRows(scene, 0)
})

test('a request that waits for its next attempt delays later requests of its organisation and of no other', async () => {
  const scene = await governedSceneOf(stores)
  const first = await ask(scene, firstWeek)
  const second = await ask(scene, secondWeek)
  const by = { requester: tokenNamed('owner'), idempotencyKey: null }
  // Of organisations that had the same the one with a single request would be first.
  const hour = between(null, monday + hourNs)
  await scene.requestStore.create(scene.neighbour.tenantId, hour, by)
  const theirs = await scene.requestStore.create(scene.neighbour.tenantId, firstWeek, by)
  scene.faults.failOnceAt('planned')
  await scene.round()
  const attempts = async (id: string) => (await scene.status(id)).detail.attempts
  assert.equal((await scene.status(first)).status, 'incomplete')
  assert.deepEqual([await attempts(first), await attempts(second)], [1, 0])
  const done = await scene.requests.get(scene.neighbour.tenantId, theirs.row.request_id)
  assert.equal(done.status, 'completed')
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length / 2)
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length)
  await scene.round()
  assert.deepEqual([await attempts(first), await attempts(second)], [1, 0], 'not before it is due')
  scene.clock.advance(minuteMs)
  await scene.round()
  assert.deepEqual(await completed(scene), [first, second])
})

test('an attempt whose end can’t be recorded is continued, and delays no other organisation', async () => {
  const scene = await governedSceneOf(stores)
  const id = await ask(scene, between(null, monday + hourNs))
  const by = { requester: tokenNamed('owner'), idempotencyKey: null }
  const theirs = await scene.requestStore.create(scene.neighbour.tenantId, firstWeek, by)
  const goOn = await stores.plane.shell.failMoves(scene.own.tenantId, ['completed', 'incomplete'])
  try {
    await scene.round()
    assert.equal((await scene.status(id)).status, 'verifying')
    await scene.round()
    assert.equal((await scene.status(id)).status, 'verifying')
    assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length - 1)
    const done = await scene.requests.get(scene.neighbour.tenantId, theirs.row.request_id)
    assert.equal(done.status, 'completed')
  } finally {
    await goOn()
  }
  await scene.round()
  assert.equal((await scene.status(id)).status, 'completed')
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length - 1)
})

test('a control plane that another process has locked delays an erasure and loses none', async () => {
  const scene = await governedSceneOf(stores)
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length)
  const id = await ask(scene, { ...firstWeek, signals: ['logs'] })
  const { whileLocked, waitAtMost } = stores.plane
  const unlock = Promise.withResolvers<void>()
  const lock = Promise.withResolvers<void>()
  const locking = lock.promise.then(() =>
    whileLocked(async () => {
      scene.faults.points.push('locked')
      await unlock.promise
    }),
  )
  scene.faults.runAt('before read-back', async () => {
    // A real wait is five seconds; what follows is the same.
    await waitAtMost(stores.control, 20)
    lock.resolve()
    while (scene.faults.points.at(-1) !== 'locked')
      await new Promise<void>((resolve) => setImmediate(resolve))
  })
  await scene.round()
  const stuck = await scene.status(id)
  assert.deepEqual([stuck.status, stuck.finished_at], ['verifying', null])
  assert.equal(await scene.visible(scene.own, 'otel_logs'), times.length / 2)
  await assert.rejects(scene.request(all), { code: 'overloaded' })
  assert.equal(
    await scene.visible(scene.own, 'otel_traces'),
    times.length,
    'what is not recorded is not hidden',
  )
  unlock.resolve()
  await locking
  await waitAtMost(stores.control, 5000)
  scene.faults.runAt('', () => {})
  await scene.round()
  assert.equal((await scene.status(id)).detail.rows_erased, times.length / 2)
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
  assert.equal(refuses(scene, monday), false)
  assert.deepEqual(await scene.moves(id), ['running', 'verifying', 'completed'])
})

test('a request of a neighbour that arrives during an attempt is carried out before the attempt ends', async () => {
  const scene = await sceneOf(stores, { attemptsAtOnce: 4 })
  const by = { requester: tokenNamed('owner'), idempotencyKey: null }
  let theirs = 'not yet'
  scene.faults.runAt('planned', async () => {
    if (theirs !== 'not yet') return
    theirs = 'asked'
    const { row } = await scene.requestStore.create(scene.neighbour.tenantId, firstWeek, by)
    scene.worker.wake()
    for (let look = 0; look < 20_000 && theirs !== 'completed'; look++) {
      await new Promise((resolve) => setImmediate(resolve))
      theirs = (await scene.requests.get(scene.neighbour.tenantId, row.request_id)).status
    }
  })
  const { request } = await scene.request(firstWeek)
  await scene.round()
  assert.equal(theirs, 'completed')
  assert.equal((await scene.status(request.request_id)).status, 'completed')
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length / 2)
})

test('a long rewrite lets others run after each partition, also an organisation in the same placement', async () => {
  let nowMs = 0
  // Each piece is as long as a turn may be, however fast the machine is.
  const clock = { ...systemClock, elapsedMs: () => (nowMs += 500) }
  const scene = await sceneOf(stores, { attemptsAtOnce: 4, clock })
  const by = { requester: tokenNamed('owner'), idempotencyKey: null }
  const bothWeeks = between(monday + hourNs, monday + weekNs + hourNs)
  const halfAnHour = { ...between(monday + hourNs, monday + 2n * hourNs), signals: ['logs' as const] }
  const { request } = await scene.request(bothWeeks)
  const theirs = await scene.requestStore.create(scene.neighbour.tenantId, bothWeeks, by)
  const places = [
    [scene.own.tenantId, request.request_id],
    [scene.neighbour.tenantId, theirs.row.request_id],
  ] as const
  const details = () => Promise.all(places.map(async (ids) => (await scene.requests.get(...ids)).detail))
  const plans = async () => scene.faults.points.filter((point) => point === 'planned').length
  /** Begins with the steps of the other one when the last step of the first one was recorded. */
  const stepsOfOther: number[] = []
  scene.faults.runAt('step recorded', async () => {
    await waitFor(plans, (count) => count === 2)
    const now = await details()
    const done = now.map(({ steps_done }) => Number(steps_done))
    if (done.includes(6)) stepsOfOther.push(Math.min(...done))
  })
  await scene.round()
  const [then = 0] = stepsOfOther
  assert.ok(then > 0, `one had done ${then} steps when the other had done all six`)
  for (const ids of places) assert.equal((await scene.requests.get(...ids)).status, 'completed')
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length / 2)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length / 2)

  const shared = await sceneOf(stores, { attemptsAtOnce: 4, isShared: true, clock })
  const own = await shared.request(bothWeeks)
  const beside = await shared.requestStore.create(shared.neighbour.tenantId, halfAnHour, by)
  await shared.round()
  assert.equal((await shared.status(own.request.request_id)).status, 'completed')
  const besideDone = await shared.requests.get(shared.neighbour.tenantId, beside.row.request_id)
  assert.equal(besideDone.status, 'completed')
  assert.equal(await shared.count(shared.own, 'otel_logs'), times.length / 2)
  assert.equal(await shared.count(shared.neighbour, 'otel_logs'), times.length - 1)
})
