// A mark is stored before the completion, which may fail after it. Such a mark must not make the guard
// accept a restored copy that has rows which arrived between the mark and the completion. On real stores: the
// restore of an older copy is a real telemetry store with the rows and the marks of before.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { newId } from '../../core/ids.ts'
import { raw, sql, uint } from '../../telemetry/sql.ts'
import { all, assertRows, between, monday, times, weekNs } from '../deletion-fixture.ts'
import {
  FailingEngine,
  type GovernedScene,
  governedSceneOf,
  minuteMs,
  refuses,
  startMs,
} from '../governed-fixture.ts'
import { CompletionMarks } from './completion-marks.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const firstWeek = between(null, monday + weekNs)
const firstWeekTimes = times.filter((time) => time < monday + weekNs)
const never = new AbortController().signal

async function marksOf(id: string) {
  return (await new CompletionMarks(stores.engine).all()).get(id) ?? []
}

/** Stores rows that the request hides and does not erase yet. */
async function storeHidden(scene: GovernedScene): Promise<void> {
  assert.equal(refuses(scene, monday), false)
  for (const name of scene.tables) await insertRows(stores.engine, scene.own, batchOf(name, firstWeekTimes))
}

/** Brings the telemetry back to before the completion, when the mark of `staleMs` was there. */
async function restoreOlder(scene: GovernedScene, id: string, staleMs: number): Promise<void> {
  await stores.engine.command(
    sql`ALTER TABLE erasures_done DELETE WHERE RequestId = ${id} AND DoneAtMs != ${uint(staleMs)} SETTINGS mutations_sync = 2`,
  )
  const left = await stores.engine.select<{ ms: string }>(
    sql`SELECT DoneAtMs AS ms FROM erasures_done WHERE RequestId = ${id}`,
  )
  assert.deepEqual(
    left.map(({ ms }) => Number(ms)),
    [staleMs],
  )
  for (const name of scene.tables) await insertRows(stores.engine, scene.own, batchOf(name, firstWeekTimes))
}

/** Asserts that a start hides and erases the rows of the first week, all that the organisation has of it. */
async function assertErasedAgain(scene: GovernedScene, id: string, others: number): Promise<void> {
  await assertRows(scene, firstWeekTimes.length + others)
  scene.clock.advance(minuteMs)
  const { gate, worker } = scene.restarted()
  const visible = () => scene.visible(scene.own, 'otel_logs', gate)
  assert.equal(await visible(), firstWeekTimes.length + others, 'without the guard they are readable')
  await worker.restore()
  assert.equal(await visible(), others)
  await worker.eraseWhatCameBack(never)
  assert.equal((await scene.status(id)).status, 'completed')
  await assertRows(scene, others)
  await scene.restarted().worker.restore()
  assert.equal((await scene.status(id)).status, 'completed', 'it is recorded again')
}

/** A delayed request whose completion by a wider one failed after its mark. */
async function markedByWider(scene: GovernedScene): Promise<string> {
  const { request } = await scene.request({ ...firstWeek, delayMinutes: 600 })
  await scene.request(all)
  let marks = 0
  scene.faults.runAt('marked done', () => {
    if (++marks === 2) throw new Error('ended after the mark')
  })
  await scene.round()
  assert.equal(marks, 2)
  await assertRows(scene, 0)
  assert.equal((await scene.status(request.request_id)).status, 'scheduled')
  return request.request_id
}

test('rows that a delayed request hid after a completion of it had failed are erased again when a restore brings them back', async () => {
  const scene = await governedSceneOf(stores)
  const id = await markedByWider(scene)
  await storeHidden(scene)
  scene.clock.advance(600 * minuteMs)
  await scene.round()
  assert.equal((await scene.status(id)).status, 'completed')
  await assertRows(scene, 0)
  await restoreOlder(scene, id, startMs)
  await assertErasedAgain(scene, id, 0)
})

test('rows that a held request hid after a completion of it had failed are erased again when a restore brings them back', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request(firstWeek)
  const id = request.request_id
  scene.faults.failOnceAt('marked done')
  await scene.round()
  const hold = await scene.hold()
  scene.clock.advance(minuteMs)
  await scene.round()
  assert.equal((await scene.status(id)).status, 'held')
  await storeHidden(scene)
  await scene.holds.release(scene.own.tenantId, hold.hold_id, tokenNamed('owner'))
  await scene.round()
  assert.equal((await scene.status(id)).status, 'completed')
  await assertRows(scene, times.length / 2)
  await restoreOlder(scene, id, startMs)
  await assertErasedAgain(scene, id, times.length / 2)
})

test('an erasure that only the journal has, with a mark of a completion that failed, is erased again', async () => {
  const scene = await governedSceneOf(stores)
  const requestId = newId('del', startMs)
  scene.journal.push({
    ...firstWeek,
    requestId,
    tenantId: scene.own.tenantId,
    requestedBy: tokenNamed('ada'),
    createdAtMs: startMs,
    refuseLate: false,
    reason: null,
    approval: null,
    foundingHash: scene.founded.hash,
  })
  await new CompletionMarks(stores.engine).mark(requestId, startMs)
  await assertErasedAgain(scene, requestId, times.length / 2)
})

test('a start confirms what an earlier build has completed, and carries out nothing of it again', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request(firstWeek)
  await scene.round()
  const mark = { requestId: request.request_id, doneAtMs: startMs, isConfirmed: true }
  assert.deepEqual(await marksOf(request.request_id), [mark], 'this build confirms at once')
  await stores.engine.command(raw('ALTER TABLE erasures_done DROP COLUMN IsConfirmed'))
  for (const name of scene.tables) await insertRows(stores.engine, scene.own, batchOf(name, firstWeekTimes))
  scene.clock.advance(minuteMs)
  const { gate, worker } = scene.restarted()
  await worker.restore()
  await worker.eraseWhatCameBack(never)
  assert.equal((await scene.status(request.request_id)).status, 'completed')
  assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length, 'new telemetry stays')
  assert.deepEqual(await marksOf(request.request_id), [mark])
})

test('an erasure that can’t be confirmed is completed, and the next start confirms it', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request(firstWeek)
  const engine = new FailingEngine(stores.engine)
  const { worker } = scene.restarted(engine)
  await worker.restore()
  scene.faults.runAt('marked done', () => {
    engine.failing = { text: /^INSERT INTO erasures_done/, code: 243 }
  })
  await worker.round(never)
  assert.equal(engine.failed > 0, true)
  assert.equal((await scene.status(request.request_id)).status, 'completed')
  const mark = { requestId: request.request_id, doneAtMs: startMs, isConfirmed: false }
  assert.deepEqual(await marksOf(request.request_id), [mark])
  await scene.restarted().worker.restore()
  assert.deepEqual(await marksOf(request.request_id), [{ ...mark, isConfirmed: true }])
})
