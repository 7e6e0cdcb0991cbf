// Which legal holds a held erasure names, on real stores: exactly those that keep something of it. A hold
// beside the selection may keep an anomaly that begins inside it, while one inside may keep nothing.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openStores, type Stores } from '../../../tests/fixtures.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { createErrorsDetector, findingOf, runRecordOf } from '../../detection/detection-fixture.ts'
import { DetectionStore } from '../../detection/detectors/store.ts'
import type { TenantPlace } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { assertRows, between, hourNs, monday, times } from '../deletion-fixture.ts'
import { type GovernedScene, governedSceneOf } from '../governed-fixture.ts'
import { readActiveHolds } from './active-holds.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const at = (hours: number) => monday + BigInt(hours) * hourNs
const firstHours = between(monday, at(50))

/** Records an anomaly of traces, with a band that was learnt from `learntFrom` on, for both organisations. */
async function recordAnomaly(scene: GovernedScene, start: number, end: number, learntFrom = start) {
  const store = new DetectionStore(stores.control, scene.clock, new TelemetryGate(), readActiveHolds)
  for (const place of [scene.own, scene.neighbour]) {
    await stores.control
      .insertInto('organisations')
      .values({ tenant_id: place.tenantId, name: place.tenantId, placement: 0, created_at_ms: 0 })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const detector = await createErrorsDetector(store, place)
    const read = [{ startNs: at(learntFrom), endNs: at(end) }]
    const window = { startNs: at(0), windowStartNs: at(0), judgedUntilNs: null, isTruncated: false }
    const findings = [findingOf(at(start), at(end))]
    const run = runRecordOf(detector, scene.clock.nowMs(), findings, { read, window })
    assert.ok(await store.recordRun(run))
  }
}

const anomaliesOf = async ({ tenantId }: TenantPlace) =>
  (await stores.control.selectFrom('anomalies').selectAll().where('tenant_id', '=', tenantId).execute()).map(
    ({ expected }) => (expected === null ? 'redacted' : 'whole'),
  )

const release = (scene: GovernedScene, holdId: string) =>
  scene.holds.release(scene.own.tenantId, holdId, tokenNamed('owner'))

async function heldBy(scene: GovernedScene, requestId: string): Promise<string[]> {
  const { detail, status } = await scene.status(requestId)
  assert.equal(status, 'held')
  assert.ok(Array.isArray(detail.held_by))
  return detail.held_by.map(String)
}

test('an erasure that only a hold beside it stops names that hold, and continues at its release', async () => {
  const scene = await governedSceneOf(stores)
  await recordAnomaly(scene, 49, 51)
  await assertRows(scene, times.length)
  // Between two rows, so it keeps nothing.
  const inside = await scene.hold({ startNs: at(9) + 1n, endNs: at(9) + 2n })
  const beside = await scene.hold({ startNs: at(50) })
  const { request } = await scene.request(firstHours)
  await scene.round()
  assert.deepEqual(await heldBy(scene, request.request_id), [beside.hold_id])
  assert.deepEqual(await anomaliesOf(scene.own), ['whole'], 'the hold keeps it')
  await assertRows(scene, times.length - 50)
  await release(scene, beside.hold_id)
  await scene.round()
  assert.equal((await scene.status(request.request_id)).status, 'completed')
  assert.deepEqual(await anomaliesOf(scene.own), [])
  assert.deepEqual(await anomaliesOf(scene.neighbour), ['whole'])
  assert.equal((await scene.holds.get(scene.own.tenantId, inside.hold_id)).released_at, null)
})

test('the release of a hold that keeps nothing moves nothing, and each release frees exactly what no other hold keeps', async () => {
  const scene = await governedSceneOf(stores)
  await recordAnomaly(scene, 60, 61, 20)
  const nothing = [await scene.hold({ startNs: at(400) })]
  nothing.push(await scene.hold({ startNs: at(9) + 1n, endNs: at(9) + 2n }))
  const ofLogs = await scene.hold({ startNs: at(5), endNs: at(7), signals: ['logs'] })
  const twins = [await scene.hold({ startNs: at(20), endNs: at(30) })]
  twins.push(await scene.hold({ startNs: at(20), endNs: at(30) }))
  const { request } = await scene.request({ ...firstHours, range: { startNs: monday, endNs: at(30) } })
  await scene.round()
  const named = new Set(await heldBy(scene, request.request_id))
  assert.deepEqual(named, new Set([ofLogs.hold_id, ...twins.map(({ hold_id }) => hold_id)]))
  const before = await scene.moves(request.request_id)
  for (const { hold_id } of nothing) await release(scene, hold_id)
  await scene.round()
  assert.deepEqual(await scene.moves(request.request_id), before)
  await release(scene, twins[0]?.hold_id ?? '')
  await scene.round()
  const still = new Set(await heldBy(scene, request.request_id))
  assert.deepEqual(still, new Set([ofLogs.hold_id, twins[1]?.hold_id]))
  assert.equal(await scene.count(scene.own, 'otel_traces'), times.length - 20, 'the other twin keeps ten')
  assert.deepEqual(await anomaliesOf(scene.own), ['whole'], 'and the band that was learnt there')
  await release(scene, twins[1]?.hold_id ?? '')
  await scene.round()
  assert.deepEqual(await heldBy(scene, request.request_id), [ofLogs.hold_id])
  assert.deepEqual(
    [await anomaliesOf(scene.own), await anomaliesOf(scene.neighbour)],
    [['redacted'], ['whole']],
  )
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length - 28)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
})
