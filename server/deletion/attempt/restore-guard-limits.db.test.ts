// The limits of the restore guard: it erases only what a restore brought back, continues after a stop, and
// keeps the journal complete for the next restore. Also requests that complete without an attempt of their
// own: nothing acknowledged is lost, and nothing is reported too early.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores, silent } from '../../../tests/fixtures.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { newId } from '../../core/ids.ts'
import { raw, sql } from '../../telemetry/sql.ts'
import { all, assertRows, between, hourNs, monday, times, weekNs } from '../deletion-fixture.ts'
import { type GovernedScene, governedSceneOf, minuteMs, refuses, startMs } from '../governed-fixture.ts'
import type { DeletionDraft } from '../requests/draft.ts'
import { CompletionMarks } from './completion-marks.ts'
import { sideTables } from './side-tables.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const firstWeek = between(null, monday + weekNs)
const never = new AbortController().signal

/** An erasure that only the journal knows; of everything where `what` is absent. */
function journalled(
  scene: GovernedScene,
  createdAtMs = startMs - minuteMs,
  what: DeletionDraft = all,
): string {
  const requestId = newId('del', createdAtMs)
  const { tenantId } = scene.own
  const foundingHash = scene.founded.hash
  scene.journal.push({
    ...what,
    requestId,
    tenantId,
    requestedBy: tokenNamed('ada'),
    createdAtMs,
    refuseLate: false,
    reason: null,
    approval: null,
    foundingHash,
  })
  return requestId
}

async function forgetMark(id: string): Promise<void> {
  await stores.engine.command(
    sql`ALTER TABLE erasures_done DELETE WHERE RequestId = ${id} SETTINGS mutations_sync = 2`,
  )
}

test('a completion without a mark in the engine, as of an older version, is left unchanged', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request(all)
  await scene.round()
  await stores.control
    .updateTable('deletion_requests')
    .set({ has_mark: 0 })
    .where('request_id', '=', request.request_id)
    .execute()
  await forgetMark(request.request_id)
  await scene.fill()
  const { gate, worker } = scene.restarted()
  await worker.restore()
  await worker.eraseWhatCameBack(never)
  assert.equal((await scene.status(request.request_id)).status, 'completed')
  assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length)
})

test('an organisation with another first audit entry counts as another organisation of the same name', async () => {
  const scene = await governedSceneOf(stores)
  // Later than every other date here, as with a fast clock: dates decide nothing.
  journalled(scene, startMs + 400 * 86_400_000)
  scene.founded.hash = 'another first entry'
  const { worker } = scene.restarted()
  await worker.restore()
  await worker.eraseWhatCameBack(never)
  await assertRows(scene, times.length)
})

test('an erasure whose journal entry does not identify its organisation is erased again', async () => {
  for (const [written, present] of [
    [null, 'first entry'],
    ['first entry', null],
  ] as const) {
    const scene = await governedSceneOf(stores)
    scene.founded.hash = written
    // Earlier than any founding date can be.
    const id = journalled(scene, 0)
    scene.founded.hash = present
    const { worker } = scene.restarted()
    await assertRows(scene, times.length)
    await worker.restore()
    await worker.eraseWhatCameBack(never)
    assert.equal((await scene.status(id)).status, 'completed')
    await assertRows(scene, 0)
  }
})

/** The organisations of the scene that have an anomaly about that time. */
async function anomaliesAt({ neighbour, own }: GovernedScene, startNs: bigint): Promise<string[]> {
  const found = await stores.control
    .selectFrom('anomalies')
    .select('tenant_id')
    .where('tenant_id', 'in', [own.tenantId, neighbour.tenantId])
    .where('started_at_ns', '=', String(startNs))
    .execute()
  return found.map(({ tenant_id }) => (tenant_id === own.tenantId ? 'own' : 'neighbour')).sort()
}

async function insertAnomalies({ neighbour, own }: GovernedScene, startNs: bigint): Promise<void> {
  for (const { tenantId } of [own, neighbour]) {
    await stores.control
      .insertInto('anomalies')
      .values({
        id: newId('ano', startMs),
        tenant_id: tenantId,
        detector_id: 'det_1',
        group_key: '{"service":"checkout"}',
        metric_key: 'logs.rate',
        signal: 'logs',
        started_at_ns: String(startNs),
        ended_at_ns: String(startNs + 1n),
        seen_until_ns: String(startNs + 1n),
        peak_at_ns: String(startNs),
        value: 1,
        expected: 0,
        lower: 0,
        upper: 0,
        score: 3,
        reason: 'r',
        read_from_ns: String(startNs),
        created_at_ms: 1,
        updated_at_ms: 1,
      })
      .execute()
  }
}

/** Stores in the engine that a control plane has completed the erasure. */
async function markConfirmed(requestId: string): Promise<void> {
  const marks = new CompletionMarks(stores.engine)
  await marks.mark(requestId, startMs)
  await marks.confirm([{ requestId, doneAtMs: startMs }], silent)
}

/** An erasure of the first week that the engine has completed and the control plane doesn't have. */
async function doneElsewhere(scene: GovernedScene): Promise<string> {
  const id = journalled(scene, startMs, firstWeek)
  await markConfirmed(id)
  return id
}

test('what an older control plane derived before an erasure is removed, although the engine has completed it', async () => {
  const scene = await governedSceneOf(stores)
  const id = await doneElsewhere(scene)
  const laterNs = monday + weekNs + hourNs
  await insertAnomalies(scene, monday)
  await insertAnomalies(scene, laterNs)
  assert.deepEqual(await anomaliesAt(scene, monday), ['neighbour', 'own'])
  const { worker } = scene.restarted()
  await worker.restore()
  assert.equal((await scene.status(id)).status, 'completed')
  assert.deepEqual(await anomaliesAt(scene, monday), ['neighbour'])
  assert.deepEqual(await anomaliesAt(scene, laterNs), ['neighbour', 'own'], 'of another time')
  await assertRows(scene, times.length)
})

test('where a hold keeps what an older control plane derived, its erasure is not recorded as completed', async () => {
  const scene = await governedSceneOf(stores)
  const id = await doneElsewhere(scene)
  await insertAnomalies(scene, monday)
  await scene.hold({ startNs: monday, endNs: monday + hourNs })
  const { worker } = scene.restarted()
  await worker.restore()
  await worker.eraseWhatCameBack(never)
  assert.equal((await scene.status(id)).status, 'held')
  assert.deepEqual(await anomaliesAt(scene, monday), ['neighbour', 'own'])
})

test('an erasure of the journal that this engine has completed is recorded and erases no telemetry', async () => {
  const scene = await governedSceneOf(stores)
  const id = journalled(scene)
  await markConfirmed(id)
  const { gate, worker } = scene.restarted()
  await worker.restore()
  await worker.eraseWhatCameBack(never)
  await assertRows(scene, times.length)
  assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length)
  const known = await scene.status(id)
  assert.deepEqual([known.status, known.verified_at], ['completed', null], 'nothing here can confirm it')
})

for (const born of ['awaiting_approval', 'scheduled'] as const) {
  test(`an erasure that is ${born} in the control plane and begun in the journal is hidden and erased`, async () => {
    const scene = await governedSceneOf(stores)
    if (born === 'awaiting_approval')
      await scene.policies.set(scene.own.tenantId, 'every_deletion', tokenNamed('owner'))
    const { request } = await scene.request({ ...firstWeek, delayMinutes: born === 'scheduled' ? 600 : 0 })
    assert.equal(request.status, born)
    const requestId = request.request_id
    const stored = await scene.requests.stored(scene.own.tenantId, requestId)
    scene.journal.push({ ...stored, foundingHash: scene.founded.hash })
    const { gate, worker } = scene.restarted()
    await worker.restore()
    assert.equal(await scene.visible(scene.own, 'otel_logs', gate), times.length / 2)
    await worker.eraseWhatCameBack(never)
    assert.equal((await scene.status(requestId)).status, 'completed')
    await assertRows(scene, times.length / 2)
  })
}

test('the next start but one also waits for the erasure of what came back, and a stop in between is not a crash', async () => {
  const scene = await governedSceneOf(stores)
  const id = journalled(scene)
  await scene.restarted().worker.restore()
  const { worker } = scene.restarted()
  await worker.restore()
  const waiting = await scene.status(id)
  assert.deepEqual([waiting.status, waiting.detail.crashes], ['running', 0])
  await worker.eraseWhatCameBack(never)
  assert.equal((await scene.status(id)).status, 'completed')
  await assertRows(scene, 0)
})

test('a request that needed many attempts has all its attempts again when a restore brings its telemetry back', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request(all)
  const id = request.request_id
  await scene.round()
  await stores.control
    .updateTable('deletion_requests')
    .set({ attempts: 10, crashes: 3 })
    .where('request_id', '=', id)
    .execute()
  await forgetMark(id)
  await scene.fill()
  const { worker } = scene.restarted()
  await worker.restore()
  await worker.eraseWhatCameBack(never)
  assert.equal((await scene.status(id)).status, 'completed')
})

test('a journal that lacks erasures is completed at the start', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request(firstWeek)
  await scene.request({ ...all, delayMinutes: 60 })
  await scene.round()
  scene.journal.length = 0
  await scene.restarted().worker.restore()
  assert.deepEqual(
    scene.journal.filter(({ tenantId }) => tenantId === scene.own.tenantId).map(({ requestId }) => requestId),
    [request.request_id],
    'requests that have begun, and none that only waits',
  )
})

test('a request that a wider one is about to complete accepts no rows meanwhile', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request({ ...firstWeek, delayMinutes: 600 })
  assert.equal(refuses(scene, monday), false, 'while it waits it accepts rows')
  const wide = await scene.request(all)
  const seen: boolean[] = []
  scene.faults.runAt('marked done', () => void seen.push(refuses(scene, monday)))
  await scene.round()
  assert.equal((await scene.status(request.request_id)).detail.erased_by, wide.request.request_id)
  assert.deepEqual(seen, [true, true])
  assert.equal(refuses(scene, monday), false)
})

test('a request that a wider one has completed is in the journal, so that an older control plane learns of it', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request({ ...firstWeek, delayMinutes: 600 })
  const wide = await scene.request(all)
  await scene.round()
  assert.equal((await scene.status(request.request_id)).status, 'completed')
  const own = () =>
    scene.journal.filter(({ tenantId }) => tenantId === scene.own.tenantId).map(({ requestId }) => requestId)
  assert.deepEqual(new Set(own()), new Set([request.request_id, wide.request.request_id]))
  scene.journal.length = 0
  await scene.restarted().worker.restore()
  assert.deepEqual(new Set(own()), new Set([request.request_id, wide.request.request_id]), 'a lost journal')
})

test('a request whose completion by a wider one was prevented accepts rows again', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request({ ...firstWeek, delayMinutes: 600 })
  const wide = await scene.request(all)
  let marks = 0
  scene.faults.runAt('marked done', () => {
    if (++marks === 2) throw new Error('no')
  })
  await scene.round()
  assert.equal(marks, 2)
  assert.equal((await scene.status(wide.request.request_id)).status, 'completed')
  assert.equal((await scene.status(request.request_id)).status, 'scheduled')
  assert.equal(refuses(scene, monday), false)
  const own = scene.journal.filter(({ tenantId }) => tenantId === scene.own.tenantId)
  assert.deepEqual(
    own.map(({ requestId }) => requestId),
    [wide.request.request_id],
    'a request in the journal counts as begun',
  )
  await scene.restarted().worker.restore()
  assert.equal((await scene.status(request.request_id)).status, 'scheduled')
})

test('a request that could not be completed by a wider one accepts rows again', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request({ ...firstWeek, delayMinutes: 600 })
  await scene.request(all)
  // Is stored in a wrong partition, so that only the count of the narrow request finds it after the wide one
  // is done.
  scene.faults.runAt('marked done', () =>
    insertRows(
      stores.engine,
      { tenantId: scene.own.tenantId, placement: 998 },
      batchOf('otel_logs', [monday]),
    ),
  )
  await scene.round()
  assert.equal((await scene.status(request.request_id)).status, 'scheduled')
  assert.equal(refuses(scene, monday), false)
  await stores.engine.command(raw("alter table otel_logs drop partition id '998-20260105'"))
})

test('a promised swap whose table is empty closes its own placement and no other', async () => {
  const [scene, other] = [await governedSceneOf(stores), await governedSceneOf(stores)]
  const { placement } = scene.own
  await stores.engine.command(raw(`CREATE TABLE erasure_swap_${placement}_otel_logs AS otel_logs`))
  const { gate, worker } = scene.restarted()
  await worker.restore()
  assert.deepEqual(gate.closedPlacements(), [placement])
  const { request } = await other.request(all)
  await stores.engine.command(raw(`DROP TABLE erasure_swap_${placement}_otel_logs SYNC`))
  await other.round()
  assert.equal((await other.status(request.request_id)).status, 'completed')
  assert.deepEqual(await sideTables(stores.engine), [])
})

const yearNs = 365n * 24n * hourNs

test('a range that ends in the future is unknown up to its completion, and later rows are new', async () => {
  const scene = await governedSceneOf(stores)
  const { tenantId } = scene.own
  const doneNs = BigInt(startMs) * 1_000_000n
  const wide = { startNs: null, endNs: doneNs + 2n * yearNs }
  const unknown = (gate = scene.gate) => gate.unknownTime(tenantId, 'logs', wide)
  const { request } = await scene.request({ ...between(monday, doneNs + yearNs), refuseLate: true })
  await scene.request(between(doneNs + hourNs, doneNs + yearNs))
  await scene.round()
  await assertRows(scene, 0)
  assert.deepEqual(unknown(), [{ startNs: monday, endNs: doneNs }])
  const late = scene.gate.lateSelections(tenantId)
  assert.deepEqual(
    late.map(({ id, range }) => [id, range.endNs]),
    [[request.request_id, doneNs]],
  )
  scene.clock.advance(60 * minuteMs)
  await insertRows(stores.engine, scene.own, batchOf('otel_logs', [doneNs + hourNs]))
  assert.equal(await scene.visible(scene.own, 'otel_logs'), 1)
  const { gate, worker } = scene.restarted()
  await worker.restore()
  assert.deepEqual(unknown(gate), [{ startNs: monday, endNs: doneNs }], 'a start does not extend it')
})

test('the time of an erasure that only the journal has, and that the engine has completed, is unknown up to the completion', async () => {
  const scene = await governedSceneOf(stores)
  const id = journalled(scene)
  await markConfirmed(id)
  scene.clock.advance(1000 * minuteMs)
  const { gate, worker } = scene.restarted()
  await worker.restore()
  const done = { startNs: null, endNs: BigInt(startMs) * 1_000_000n }
  assert.deepEqual(gate.unknownTime(scene.own.tenantId, 'logs', { startNs: null, endNs: null }), [done])
  const again = scene.restarted()
  await again.worker.restore()
  assert.deepEqual(again.gate.unknownTime(scene.own.tenantId, 'logs', { startNs: null, endNs: null }), [done])
})

test('a legal hold on an empty part does not prevent the completion of an erasure', async () => {
  const scene = await governedSceneOf(stores)
  await scene.hold({ startNs: monday - 10n * hourNs, endNs: monday })
  const { request } = await scene.request(between(monday - weekNs, monday + weekNs))
  await scene.round()
  const done = await scene.status(request.request_id)
  assert.equal(done.status, 'completed')
  assert.ok(done.removed_at !== null && done.verified_at !== null)
  await assertRows(scene, times.length / 2)
})

test('a step that acted without recording it is counted when a person requests a verification', async () => {
  const scene = await governedSceneOf(stores)
  const { request } = await scene.request({ ...firstWeek, signals: ['logs'] })
  scene.faults.failOnceAt('partition dropped')
  await scene.round()
  const ended = await scene.status(request.request_id)
  assert.equal(ended.status, 'incomplete')
  await scene.decisions.verify(scene.callerOf('owner'), request.request_id)
  const done = await scene.status(request.request_id)
  assert.deepEqual([done.status, done.detail.rows_erased], ['completed', times.length / 2])
})
