// What a restore brings back is hidden before any read, erased before the service is ready, and recorded
// again; rows that only arrived late stay. On real stores: the restore of an older copy is a real telemetry
// store with the rows back and without the mark of the erasure.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { newId } from '../../core/ids.ts'
import { sql } from '../../telemetry/sql.ts'
import { all, assertRows, between, hourNs, monday, times, weekNs } from '../deletion-fixture.ts'
import { type GovernedScene, governedSceneOf, minuteMs, refuses, startMs } from '../governed-fixture.ts'
import type { DeletionDraft } from '../requests/draft.ts'
import { CompletionMarks } from './completion-marks.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const firstWeek = between(null, monday + weekNs)
const never = new AbortController().signal
const approvedByBen = { by: tokenNamed('ben'), atMs: startMs - 1 }

/** A scene whose organisation has completed an erasure. */
async function erased(draft: DeletionDraft) {
  const scene = await governedSceneOf(stores)
  await assertRows(scene, times.length)
  const { request } = await scene.request(draft)
  await scene.round()
  assert.equal((await scene.status(request.request_id)).status, 'completed')
  return { scene, id: request.request_id }
}

/** Restores the organisation's rows and the engine's marks to their state before the erasure. */
async function bringBack(scene: GovernedScene, id: string, timesNs: readonly bigint[]): Promise<void> {
  for (const name of scene.tables) await insertRows(stores.engine, scene.own, batchOf(name, timesNs))
  await stores.engine.command(
    sql`ALTER TABLE erasures_done DELETE WHERE RequestId = ${id} SETTINGS mutations_sync = 2`,
  )
  assert.equal((await new CompletionMarks(stores.engine).all()).has(id), false)
}

const firstWeekTimes = times.filter((time) => time < monday + weekNs)

test('telemetry that came back with an older copy is hidden at once, erased before ready, and completed again', async () => {
  const { scene, id } = await erased({ ...firstWeek, refuseLate: true })
  await assertRows(scene, times.length / 2)
  await bringBack(scene, id, firstWeekTimes)
  await assertRows(scene, times.length)
  scene.clock.advance(minuteMs)
  const { gate, worker } = scene.restarted()
  assert.equal(
    await scene.visible(scene.own, 'otel_logs', gate),
    times.length,
    'without the guard it is readable',
  )
  await worker.restore()
  assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length / 2)
  assert.equal(refuses({ ...scene, gate }, monday), true)
  assert.deepEqual(gate.lateSelections(scene.own.tenantId), [], 'refused completely during the erasure')
  const again = await scene.status(id)
  assert.deepEqual(
    [again.status, again.removed_at, again.verified_at, again.finished_at],
    ['running', null, null, null],
  )
  await assertRows(scene, times.length)
  await worker.eraseWhatCameBack(never)
  const done = await scene.status(id)
  assert.equal(done.status, 'completed')
  assert.equal(Date.parse(done.verified_at ?? ''), scene.clock.nowMs())
  await assertRows(scene, times.length / 2)
  assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length / 2)
  assert.equal(refuses({ ...scene, gate }, monday), false)
  assert.deepEqual(
    gate.lateSelections(scene.own.tenantId).map((late) => late.id),
    [id],
  )
  assert.deepEqual(await scene.moves(id), [
    'running',
    'verifying',
    'completed',
    'running',
    'verifying',
    'completed',
  ])
  const acts = await scene.acts(id)
  assert.deepEqual(
    acts.map(({ actor, action }) => [actor, action]),
    [
      ['token:owner (tok_owner)', 'deletion.requested'],
      ['system:deletion', 'deletion.completed'],
      ['system:restore-guard', 'deletion.reapply'],
      ['system:deletion', 'deletion.completed'],
    ],
  )
  const next = scene.restarted()
  await next.worker.restore()
  assert.equal((await scene.status(id)).status, 'completed', 'it is recorded again')
})

test('rows that arrived after an erasure stay at every start', async () => {
  const { scene } = await erased(all)
  await insertRows(stores.engine, scene.own, batchOf('otel_logs', [monday, monday + weekNs]))
  const { gate, worker } = scene.restarted()
  await worker.restore()
  await worker.eraseWhatCameBack(never)
  assert.equal(await scene.visible(scene.own, 'otel_logs', gate), 2)
  assert.equal(refuses({ ...scene, gate }, monday), false)
})

test('an erasure that only the journal has is hidden, fenced, erased and recorded', async () => {
  const scene = await governedSceneOf(stores)
  const requestId = newId('del', startMs - minuteMs)
  const { tenantId } = scene.own
  scene.journal.push({
    ...firstWeek,
    requestId,
    tenantId,
    requestedBy: tokenNamed('ada'),
    createdAtMs: startMs - minuteMs,
    refuseLate: false,
    reason: 'personal_data',
    approval: approvedByBen,
    foundingHash: scene.founded.hash,
  })
  scene.journal.push({
    ...all,
    requestId: newId('del', startMs),
    tenantId: 'gone',
    requestedBy: tokenNamed('x'),
    createdAtMs: 0,
    approval: null,
    foundingHash: null,
  })
  const { gate, worker } = scene.restarted()
  await worker.restore()
  assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length / 2)
  assert.equal(refuses({ ...scene, gate }, monday), true)
  await worker.eraseWhatCameBack(never)
  const done = await scene.status(requestId)
  assert.deepEqual(
    [done.status, done.requested_by, done.approved_by, done.reason, Date.parse(done.created_at)],
    ['completed', 'token:ada (tok_ada)', 'token:ben (tok_ben)', 'personal_data', startMs - minuteMs],
  )
  await assertRows(scene, times.length / 2)
  const [first] = await scene.ledgerEntries()
  assert.deepEqual(
    [first?.actor, first?.from_status, first?.to_status, first?.facts.taken_up_after_restore],
    ['system:restore-guard', null, 'running', true],
  )
  assert.equal(first?.facts.approved_by, 'token:ben (tok_ben)')
  const { approved_at_ms } = await stores.control
    .selectFrom('deletion_requests')
    .select('approved_at_ms')
    .where('request_id', '=', requestId)
    .executeTakeFirstOrThrow()
  assert.equal(approved_at_ms, approvedByBen.atMs)
  const lines = scene.journal.filter((line) => line.requestId === requestId)
  assert.ok(lines.length > 1, 'the attempt has written its own')
  assert.deepEqual(
    lines.map(({ approval }) => approval),
    lines.map(() => approvedByBen),
  )
  assert.deepEqual(
    (await scene.acts(requestId)).map(({ action }) => action),
    ['deletion.taken_up', 'deletion.completed'],
  )
  const unknown = await stores.control
    .selectFrom('deletion_requests')
    .select('request_id')
    .where('tenant_id', '=', 'gone')
    .execute()
  assert.deepEqual(unknown, [], 'nothing of an unknown organisation can be stored')
  await scene.restarted().worker.restore()
  assert.deepEqual(await scene.moves(requestId), ['running', 'verifying', 'completed'], 'taken up once')
})

test('an erasure that has begun by the journal is carried out, whatever its state in an older control plane', async () => {
  for (const status of ['awaiting_approval', 'scheduled', 'cancelled', 'rejected', 'expired'] as const) {
    const scene = await governedSceneOf(stores)
    const { request } = await scene.request({ ...firstWeek, delayMinutes: 60 })
    await stores.control
      .updateTable('deletion_requests')
      .set({ status, hidden_at_ms: null })
      .where('request_id', '=', request.request_id)
      .execute()
    scene.journal.push({
      ...firstWeek,
      requestId: request.request_id,
      tenantId: scene.own.tenantId,
      requestedBy: tokenNamed('owner'),
      createdAtMs: startMs,
      refuseLate: false,
      reason: null,
      approval: approvedByBen,
      foundingHash: scene.founded.hash,
    })
    scene.clock.advance(minuteMs)
    const { gate, worker } = scene.restarted()
    await assertRows(scene, times.length)
    await worker.restore()
    assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length / 2, status)
    assert.equal(Date.parse((await scene.status(request.request_id)).hidden_at ?? ''), scene.clock.nowMs())
    await worker.eraseWhatCameBack(never)
    const done = await scene.status(request.request_id)
    assert.deepEqual([done.status, done.approved_by], ['completed', 'token:ben (tok_ben)'], status)
    await assertRows(scene, times.length / 2)
  }
})

for (const older of ['held', 'running'] as const) {
  test(`an erasure that had begun and is ${older} in an older control plane can’t be cancelled under its hold`, async () => {
    const scene = await governedSceneOf(stores)
    const hold = await scene.hold()
    const { request } = await scene.request(firstWeek)
    const id = request.request_id
    if (older === 'held') await scene.round()
    const known = await scene.status(id)
    assert.deepEqual([known.status, known.detail.attempts], [older, 0])
    const stored = await scene.requests.stored(scene.own.tenantId, id)
    scene.journal.push({ ...stored, foundingHash: scene.founded.hash })
    const { gate, worker } = scene.restarted()
    await worker.restore()
    await worker.eraseWhatCameBack(never)
    assert.equal((await scene.status(id)).status, 'held')
    await assertRows(scene, times.length)
    await assert.rejects(scene.decisions.cancel(scene.callerOf('owner'), id), { code: 'deletion_state' })
    assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length / 2)
    await scene.holds.release(scene.own.tenantId, hold.hold_id, tokenNamed('owner'))
    await worker.round(never)
    assert.equal((await scene.status(id)).status, 'completed')
    await assertRows(scene, times.length / 2)
  })
}

test('an erasure that only the journal has can’t be cancelled under a hold', async () => {
  const scene = await governedSceneOf(stores)
  await scene.hold()
  const requestId = newId('del', startMs)
  const { tenantId } = scene.own
  const foundingHash = scene.founded.hash
  scene.journal.push({
    ...all,
    requestId,
    tenantId,
    requestedBy: tokenNamed('ada'),
    createdAtMs: startMs,
    approval: null,
    foundingHash,
  })
  const { gate, worker } = scene.restarted()
  await worker.restore()
  await worker.eraseWhatCameBack(never)
  assert.equal((await scene.status(requestId)).status, 'held')
  await assert.rejects(scene.decisions.cancel(scene.callerOf('owner'), requestId), { code: 'deletion_state' })
  await assertRows(scene, times.length)
  assert.equal(await scene.visible(scene.own, 'otel_logs', gate), 0)
})

test('a mark that was written before the completion in the ledger does not complete the request', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request(firstWeek)
  scene.faults.failOnceAt('marked done')
  await scene.round()
  const id = request.request_id
  assert.equal((await scene.status(id)).status, 'incomplete')
  assert.equal((await new CompletionMarks(stores.engine).all()).has(id), true)
  const { gate, worker } = scene.restarted()
  await worker.restore()
  assert.equal((await scene.status(id)).status, 'incomplete')
  assert.deepEqual(
    gate.hidden(scene.own.tenantId).map((hidden) => hidden.id),
    [id],
  )
  await worker.eraseWhatCameBack(never)
  assert.equal(
    (await scene.status(id)).status,
    'incomplete',
    'it did not come back, so the start does not wait for it',
  )
  scene.clock.advance(minuteMs)
  await worker.round(never)
  assert.equal((await scene.status(id)).status, 'completed')
  await assertRows(scene, times.length / 2)
  await scene.restarted().worker.restore()
  assert.equal((await scene.status(id)).status, 'completed')
})

test('what came back under a legal hold ends held and hidden, and does not delay readiness', async () => {
  const { scene, id } = await erased(firstWeek)
  await bringBack(scene, id, firstWeekTimes)
  await scene.hold({ startNs: monday, endNs: monday + 10n * hourNs })
  const { gate, worker } = scene.restarted()
  await worker.restore()
  await worker.eraseWhatCameBack(never)
  assert.equal((await scene.status(id)).status, 'held')
  await assertRows(scene, times.length / 2 + 10)
  assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length / 2)
  await assert.rejects(scene.decisions.cancel(scene.callerOf('owner'), id), { code: 'deletion_state' })
})

test('an erasure of what came back that fails is tried until the service is stopped, and stays hidden', async () => {
  const { scene, id } = await erased(firstWeek)
  await bringBack(scene, id, firstWeekTimes)
  const { gate, worker } = scene.restarted()
  await worker.restore()
  const stopping = new AbortController()
  scene.faults.runAt('planned', () => {
    stopping.abort()
    throw new Error('no')
  })
  await worker.eraseWhatCameBack(stopping.signal)
  assert.equal((await scene.status(id)).status, 'incomplete')
  assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length / 2)
  await assertRows(scene, times.length)
  const next = scene.restarted()
  await next.worker.restore()
  assert.equal(await scene.visible(scene.own, 'otel_logs', next.gate), times.length / 2)
})

test('a start reads of completed requests only what readers and writers depend on', async () => {
  const { scene, id } = await erased(firstWeek)
  const { control } = stores
  const progressOf = () => control.updateTable('deletion_requests').where('request_id', '=', id)
  const { progress } = await control
    .selectFrom('deletion_requests')
    .select('progress')
    .where('request_id', '=', id)
    .executeTakeFirstOrThrow()
  await progressOf().set({ progress: 'unreadable' }).execute()
  await assert.rejects(scene.status(id), SyntaxError)
  const { gate, worker } = scene.restarted()
  await worker.restore()
  assert.deepEqual(
    gate.erased(scene.own.tenantId).map((erasure) => erasure.id),
    [id],
  )
  await progressOf().set({ progress }).execute()
})
