// What the last run of a detector said is derived from telemetry, and hidden with it: real stores, requests
// that wait for a date or a second person, and a neighbour with the same detector.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openStores, type Stores } from '../../tests/fixtures.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import {
  createErrorsDetector,
  definitionOf,
  errorsDraft,
  runRecordOf,
} from '../detection/detection-fixture.ts'
import { DetectionStore } from '../detection/detectors/store.ts'
import { all, between, monday } from './deletion-fixture.ts'
import { readActiveHolds } from './governance/active-holds.ts'
import { type GovernedScene, governedSceneOf } from './governed-fixture.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const said = ['anomalous', 'Series: 3 ok, 1 anomalous.']
const nothing = [null, null]

/** Two organisations, each with a detector whose last run found something. */
async function detectingScene() {
  const scene = await governedSceneOf(stores)
  const store = new DetectionStore(stores.control, scene.clock, scene.gate, readActiveHolds)
  const ids = new Map<string, string>()
  for (const place of [scene.own, scene.neighbour]) {
    const { placement, tenantId } = place
    const organisation = { tenant_id: tenantId, name: tenantId, placement, created_at_ms: 0 }
    await stores.control.insertInto('organisations').values(organisation).execute()
    ids.set(tenantId, (await createErrorsDetector(store, place)).id)
  }
  const found = async (tenantId: string) =>
    (await store.findDetector(tenantId, ids.get(tenantId) ?? '')) ?? assert.fail('it exists')
  const run = async (tenantId: string) => {
    const record = runRecordOf(await found(tenantId), scene.clock.nowMs(), [])
    const summary = { status: 'anomalous', note: 'Series: 3 ok, 1 anomalous.' } as const
    assert.ok(await store.recordRun({ ...record, summary }))
  }
  for (const { tenantId } of [scene.own, scene.neighbour]) await run(tenantId)
  const results = async ({ tenantId } = scene.own) => {
    const { lastNote, lastStatus } = await found(tenantId)
    const [listed] = await store.listDetectors(tenantId, { limit: 1, beforeId: null })
    assert.deepEqual([listed?.lastStatus, listed?.lastNote], [lastStatus, lastNote])
    return [lastStatus, lastNote]
  }
  return { scene, store, run, results }
}

const delayed = { ...between(null, monday + 1n), delayMinutes: 43_200 }
const stored = (scene: GovernedScene, id: string) => scene.requests.stored(scene.own.tenantId, id)

test('the result of a run from before a deletion was accepted is hidden at once, and the neighbour’s is not', async () => {
  const { results, run, scene } = await detectingScene()
  assert.deepEqual(await results(), said)
  const { request } = await scene.request(delayed)
  assert.equal(request.status, 'scheduled')
  assert.deepEqual(await results(), nothing)
  assert.deepEqual(await results(scene.neighbour), said)
  await run(scene.own.tenantId)
  assert.deepEqual(await results(), said, 'a run that does not read what is hidden')
  await scene.requestStore.move(await stored(scene, request.request_id), 'start', { actor: tokenNamed('x') })
  assert.deepEqual(await results(), said, 'it was hidden before')
})

test('a request that waits for a second person hides no result before it is approved', async () => {
  const { results, scene } = await detectingScene()
  await scene.policies.set(scene.own.tenantId, 'every_deletion', tokenNamed('owner'))
  const { request } = await scene.request({ ...all, delayMinutes: 60 }, tokenNamed('ada'))
  assert.deepEqual([request.status, await results()], ['awaiting_approval', said])
  await scene.decisions.approve(scene.callerOf('ben'), request.request_id)
  assert.deepEqual(await results(), nothing)
  assert.deepEqual(await results(scene.neighbour), said)
})

test('the statuses of detectors that have judged nothing stay, as in an erasure', async () => {
  const { scene, store } = await detectingScene()
  const { tenantId } = scene.own
  const learning = await store.createDetector(tenantId, definitionOf(errorsDraft), tokenNamed('me'))
  const summary = { status: 'learning', note: 'It needs 3 more buckets with data.' } as const
  assert.ok(await store.recordRun({ ...runRecordOf(learning, scene.clock.nowMs(), []), summary }))
  await scene.request(delayed)
  const { lastNote, lastStatus } = (await store.findDetector(tenantId, learning.id)) ?? assert.fail()
  assert.deepEqual([lastStatus, lastNote], ['learning', null])
})
