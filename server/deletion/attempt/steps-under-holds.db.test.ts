// A step that began before its attempt ended may have acted or not. Whether it did is found out by the rows
// that it was to erase, not by those that holds leave now: holds are placed and released in between. Each row
// is counted once, when it is erased.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openStores, type Stores } from '../../../tests/fixtures.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import type { DerivedStore } from '../../telemetry/derived-store.ts'
import { all, assertRows, hourNs, monday, times, weekNs } from '../deletion-fixture.ts'
import { type GovernedScene, governedSceneOf, minuteMs } from '../governed-fixture.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const week = times.length / 2

/** Counts of the request: its state, the rows and steps that it says to have erased. */
async function countsOf(scene: GovernedScene, id: string) {
  const { detail, status } = await scene.status(id)
  return [status, detail.rows_erased, detail.steps_done]
}

async function retry(scene: GovernedScene): Promise<void> {
  scene.clock.advance(minuteMs)
  await scene.round()
}

async function release(scene: GovernedScene, holdId: string): Promise<void> {
  await scene.holds.release(scene.own.tenantId, holdId, tokenNamed('owner'))
  await scene.round()
}

for (const isShared of [false, true]) {
  const of = isShared ? 'shared with a neighbour' : 'of its own'
  test(`rows that a hold keeps after a step had failed before it acted are counted once, in partitions ${of}`, async () => {
    const scene = await governedSceneOf(stores, { isShared })
    const { tables } = scene
    const { request } = await scene.request(all)
    const id = request.request_id
    scene.faults.failOnceAt('before partition step')
    await scene.round()
    await assertRows(scene, times.length)
    const hold = await scene.hold({ startNs: monday, endNs: monday + weekNs })
    await retry(scene)
    await assertRows(scene, week)
    assert.deepEqual(await countsOf(scene, id), ['held', tables.length * week, tables.length])
    await release(scene, hold.hold_id)
    await assertRows(scene, 0)
    assert.deepEqual(await countsOf(scene, id), [
      'completed',
      tables.length * times.length,
      2 * tables.length,
    ])
  })
}

const kept = 10

for (const isReleased of [false, true]) {
  const then = isReleased ? 'is released before the next attempt' : 'stays'
  test(`rows that a step erased beside a hold are counted where it ended before it was recorded, and the hold ${then}`, async () => {
    const scene = await governedSceneOf(stores, { tables: ['otel_logs'], isShared: true })
    const hold = await scene.hold({ startNs: monday, endNs: monday + BigInt(kept) * hourNs })
    const { request } = await scene.request(all)
    const id = request.request_id
    scene.faults.failOnceAt('partition replaced')
    await scene.round()
    await assertRows(scene, week + kept)
    assert.equal((await scene.status(id)).detail.steps_done, 0)
    if (!isReleased) {
      await retry(scene)
      await assertRows(scene, kept)
      assert.deepEqual(await countsOf(scene, id), ['held', times.length - kept, 2])
    }
    scene.clock.advance(minuteMs)
    await release(scene, hold.hold_id)
    await assertRows(scene, 0)
    assert.deepEqual(await countsOf(scene, id), ['completed', times.length, 3])
  })
}

/** A derived store of one record an hour of the first ten, of each organisation. */
function hourly(scene: () => GovernedScene): { store: DerivedStore; left: Map<string, bigint[]> } {
  const left = new Map<string, bigint[]>()
  const of = (tenantId: string) => {
    const known = left.get(tenantId) ?? Array.from({ length: 10 }, (_, i) => monday + BigInt(i) * hourNs)
    left.set(tenantId, known)
    return known
  }
  const free = (tenantId: string, held: Parameters<DerivedStore['count']>[2]) =>
    of(tenantId).filter(
      (at) => !held.some(({ range }) => at >= (range.startNs ?? at) && at < (range.endNs ?? at + 1n)),
    )
  const store: DerivedStore = {
    name: 'hourly',
    tables: [],
    preview: async () => ({}),
    remove: async (tenantId, _, alone) => {
      const gone = new Set(free(tenantId, await scene().holds.active(tenantId)))
      await alone(
        async () =>
          void left.set(
            tenantId,
            of(tenantId).filter((at) => !gone.has(at)),
          ),
      )
      return gone.size
    },
    count: async (tenantId, _, held) => free(tenantId, held).length,
    keepers: async (tenantId, _, holds) =>
      new Set(
        holds.filter((hold) => free(tenantId, [hold]).length < of(tenantId).length).map((one) => one.holdId),
      ),
  }
  return { store, left }
}

test('records that a hold keeps after the step of a derived store had failed are counted once', async () => {
  let scene: GovernedScene | null = null
  const sceneNow = () => scene ?? assert.fail('the scene is not there yet')
  const { store, left } = hourly(sceneNow)
  scene = await governedSceneOf(stores, { derivedStores: [store] })
  const { neighbour, own } = scene
  const { request } = await scene.request(all)
  const id = request.request_id
  const derived = async () => (await sceneNow().requests.stored(own.tenantId, id)).progress.stores
  const remove = store.remove
  Object.assign(store, {
    remove: async () => {
      throw new Error('ended before it acted')
    },
  })
  await scene.round()
  Object.assign(store, { remove })
  assert.equal(left.get(own.tenantId)?.length, 10)
  const hold = await scene.hold({ startNs: monday, endNs: monday + 4n * hourNs })
  await retry(scene)
  assert.equal(left.get(own.tenantId)?.length, 4)
  assert.equal((await derived()).hourly, 6)
  await release(scene, hold.hold_id)
  assert.equal((await scene.status(id)).status, 'completed')
  assert.equal((await derived()).hourly, 10)
  assert.deepEqual([left.get(own.tenantId)?.length, left.get(neighbour.tenantId)], [0, undefined])
})

test('a hold that is placed between the plan and the step of a derived store keeps records that do not count as erased', async () => {
  let scene: GovernedScene | null = null
  const { store, left } = hourly(() => scene ?? assert.fail('the scene is not there yet'))
  const governed = await governedSceneOf(stores, { derivedStores: [store] })
  scene = governed
  const { request } = await governed.request(all)
  governed.faults.runAt('planned', async () => {
    await governed.hold({ startNs: monday, endNs: monday + 4n * hourNs })
  })
  await governed.round()
  const { progress, status } = await governed.requests.stored(governed.own.tenantId, request.request_id)
  assert.deepEqual([status, progress.stores.hourly], ['held', 6])
  assert.equal(left.get(governed.own.tenantId)?.length, 4)
})
