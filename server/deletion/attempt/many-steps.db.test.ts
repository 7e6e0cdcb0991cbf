// Erasures with very many steps, on real stores: an organisation may have telemetry of nine thousand weeks in
// each table. Steps are written and partitions dropped some at a time, so that other work and other
// organisations come between; a crash between two pieces neither loses a step nor counts one twice.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { delegate, openStores, type Stores } from '../../../tests/fixtures.ts'
import { withTurns } from '../../../tests/with-turns.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { sql, strings, uint } from '../../telemetry/sql.ts'
import { all, assertRows, monday, sceneOf, times, weekNs } from '../deletion-fixture.ts'
import { acting } from '../governance/hold-conflicts.ts'
import { governedSceneOf } from '../governed-fixture.ts'
import { type PlannedStep, planErasure } from './planner.ts'
import { StepStore } from './step-store.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const nowMs = 1_767_571_200_000
const planOf = (count: number): PlannedStep[] =>
  Array.from({ length: count }, (_, i) => ({
    store: i % 2 === 0 ? 'otel_logs' : 'otel_traces',
    partitionId: `0-${i}`,
    rows: i + 1,
    bytes: 10,
  }))

/** A request that no attempt has seen, and its steps. */
async function requested() {
  const scene = await sceneOf(stores)
  const { request_id: id } = (await scene.request(all)).request
  const steps = new StepStore(stores.control)
  const recorded = () =>
    stores.control
      .selectFrom('deletion_steps')
      .select(['ordinal', 'action', 'partition_id', 'rows', 'done_at_ms'])
      .where('request_id', '=', id)
      .orderBy('ordinal')
      .execute()
  return { id, steps, recorded, request: await scene.requests.stored(scene.own.tenantId, id) }
}

test('other work of the event loop runs while thousands of steps are planned, and planned again', async () => {
  const { id, steps, recorded } = await requested()
  const plan = planOf(2_200)
  const first = await withTurns(() => steps.replan(id, plan, nowMs))
  assert.ok(first.turns >= 3, `${first.turns} turns`)
  const again = await withTurns(() => steps.replan(id, plan, nowMs))
  assert.ok(again.turns >= 5, `${again.turns} turns`)
  assert.deepEqual([first.result.at(-1)?.ordinal, again.result[0]?.ordinal], [2_200, 2_201])
  assert.deepEqual(
    (await recorded()).map(({ ordinal }) => ordinal),
    again.result.map(({ ordinal }) => ordinal),
  )
})

test('other work of the event loop runs while the partitions of all weeks are planned, oldest first', async () => {
  const weeks = 9_000
  const rows = await stores.engine.select(
    sql`select arrayJoin(${strings(['otel_traces', 'otel_logs'])}) as store, concat('0-', toString(20000000 - number)) as partition_id,
      '7' as selected from numbers(${uint(weeks)})`,
  )
  const found: typeof stores.engine = {
    ...delegate(stores.engine),
    select: async <T>() => rows as T[],
  }
  const place = { tenantId: 'own', placement: 0 }
  const { result: plan, turns } = await withTurns(() =>
    planErasure(found, place, { ...all, held: [] }, (_, __, rows) => 2 * rows),
  )
  assert.ok(turns > 0)
  const ids = Array.from({ length: weeks }, (_, i) => `0-${20_000_001 - weeks + i}`)
  assert.deepEqual(
    plan,
    ['otel_logs', 'otel_traces'].flatMap((store) =>
      ids.map((partitionId) => ({ store, partitionId, rows: 7, bytes: 14 })),
    ),
  )
})

test('a plan that was written in part is replaced, and what had acted before is kept once', async () => {
  const { id, request, steps, recorded } = await requested()
  const [first, second, third] = await steps.replan(id, planOf(600), nowMs)
  assert.ok(first && second && third)
  await steps.begin(request, new Map([first, second, third].map((step) => [step, step.rows])), [])
  await steps.done(id, [first], 'dropped', nowMs)
  // The second was finished before a crash; the third still has its rows.
  const left = planOf(600).slice(2)
  const unwritable = { store: 'otel_logs', partitionId: null, rows: null as never, bytes: 0 }
  await assert.rejects(steps.replan(id, [...left, unwritable], nowMs))
  const both = (await recorded()).filter((step) => step.done_at_ms === null)
  assert.equal(both.filter(({ partition_id }) => partition_id === left[100]?.partitionId).length, 2)
  assert.equal(both.filter(({ action }) => action === acting).length, 2)
  const undone = await steps.replan(id, left, nowMs)
  assert.deepEqual(
    undone.map(({ partitionId, rows }) => [partitionId, rows]),
    left.map(({ partitionId, rows }) => [partitionId, rows]),
  )
  const stored = await recorded()
  assert.deepEqual(
    stored.map(({ ordinal, partition_id }) => [ordinal, partition_id]),
    [first, second, ...undone].map(({ ordinal, partitionId }) => [ordinal, partitionId]),
  )
  assert.deepEqual(
    stored.map(({ action }) => action),
    ['dropped', 'found_done', ...left.map(() => 'planned')],
  )
  assert.deepEqual(await steps.sums(id), [
    { store: 'otel_logs', action: 'dropped', steps: 1, partitions: 1, rows: 1, bytes: 10 },
    { store: 'otel_traces', action: 'found_done', steps: 1, partitions: 1, rows: 2, bytes: 10 },
  ])
  const {
    rows_erased,
    partitions_dropped,
    steps_done,
    steps_total,
    stores: of,
  } = await steps.progress(id, null)
  assert.deepEqual([rows_erased, partitions_dropped, steps_done, steps_total], [3, 1, 2, 600])
  assert.deepEqual(of, { otel_logs: 1, otel_traces: 2 })
})

test('whole partitions are dropped in pieces, and a hold that is placed between two keeps the rest', async () => {
  const scene = await governedSceneOf(stores, { droppedAtOnce: 1 })
  const { own } = scene
  await assertRows(scene, times.length)
  const id = (await scene.request(all)).request.request_id
  let hold: Awaited<ReturnType<typeof scene.hold>> | null = null
  scene.faults.runAt('step recorded', async () => {
    if (hold !== null) return
    const leftIn = await Promise.all(scene.tables.map((name) => scene.count(own, name)))
    assert.deepEqual(leftIn.toSorted(), [times.length / 2, times.length, times.length])
    await scene.locks.writes.exclusively([own.placement], async () => {})
    hold = await scene.hold({ startNs: monday + weekNs, endNs: monday + 2n * weekNs })
  })
  await scene.round()
  assert.ok(hold !== null)
  assert.equal((await scene.status(id)).status, 'held')
  await assertRows(scene, times.length / 2)
  await scene.holds.release(own.tenantId, (hold as { hold_id: string }).hold_id, tokenNamed('owner'))
  await scene.round()
  const { detail, status } = await scene.status(id)
  assert.deepEqual([status, detail.rows_erased], ['completed', scene.tables.length * times.length])
  assert.equal(scene.faults.points.filter((point) => point === 'partition dropped').length, 6)
  await assertRows(scene, 0)
})
