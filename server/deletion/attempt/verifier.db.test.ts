// The read-back beside copies of survivors, on a real engine: it counts what is selected and nothing else,
// and a copy that is removed or renamed while it is counted is neither missed nor an error.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import type { DerivedStore } from '../../telemetry/derived-store.ts'
import { raw } from '../../telemetry/sql.ts'
import { all, assertRows, between, hourNs, monday, times, weekNs } from '../deletion-fixture.ts'
import { FailingEngine, governedSceneOf } from '../governed-fixture.ts'
import { readBack, readBackOutsideHolds } from './verifier.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const firstWeek = between(null, monday + weekNs)
const place = { tenantId: 'copied', placement: 900 }

/** A copy of log records as the eraser makes it, with one row for each of the given hours. */
async function withCopy(hours: readonly number[], work: () => Promise<void>): Promise<void> {
  const copy = `erasure_copy_${place.placement}_otel_logs`
  await stores.engine.command(raw(`CREATE TABLE ${copy} AS otel_logs`))
  const rows = batchOf(
    'otel_logs',
    hours.map((hour) => monday + BigInt(hour) * hourNs),
  )
  await insertRows(stores.engine, place, rows)
  await stores.engine.command(raw(`INSERT INTO ${copy} SELECT * FROM otel_logs WHERE TenantId = 'copied'`))
  await stores.engine.command(raw("ALTER TABLE otel_logs DROP PARTITION ID '900-20260105'"))
  try {
    await work()
  } finally {
    for (const name of [copy, copy.replace('copy', 'swap')])
      await stores.engine.command(raw(`DROP TABLE IF EXISTS ${name} SYNC`))
  }
}

const target = { ...between(monday, monday + 10n * hourNs), held: [] }
const countCopies = async (engine = stores.engine, wanted = target) =>
  (await readBack(engine, [], place.tenantId, wanted)).rowsLeft.unfinished_copies

test('the count of a request finds nothing in the copy of a neighbour’s survivors', async () => {
  const scene = await governedSceneOf(stores, { isShared: true })
  const { request } = await scene.request(firstWeek)
  await scene.round()
  await assertRows(scene, times.length / 2)
  const by = { requester: tokenNamed('theirs'), idempotencyKey: null }
  const edge = between(null, monday + weekNs + 5n * hourNs)
  await scene.requestStore.create(scene.neighbour.tenantId, edge, by)
  const found: unknown[] = []
  scene.faults.runAt('survivors copied', async () => {
    const { isClean, rowsLeft } = await scene.decisions.verify(scene.callerOf('owner'), request.request_id)
    found.push([isClean, rowsLeft.unfinished_copies])
  })
  await scene.round()
  assert.deepEqual(new Set(found.map(String)), new Set(['true,0']))
})

test('the selected rows of a copy are counted, for the selected signals and without what a hold keeps', async () => {
  await withCopy([3, 4, 9, 10, 30], async () => {
    assert.equal(await countCopies(), 3)
    assert.equal(await countCopies(stores.engine, { ...target, signals: ['metrics', 'traces'] }), 0)
    const hold = { signals: ['logs' as const], range: { startNs: monday + 4n * hourNs, endNs: null } }
    assert.equal(
      (await readBack(stores.engine, [], place.tenantId, { ...all, held: [hold] })).rowsLeft
        .unfinished_copies,
      1,
    )
  })
})

test('a copy that is renamed while it is counted is counted under its new name', async () => {
  await withCopy([3, 4, 9, 10, 30], async () => {
    const engine = new FailingEngine(stores.engine)
    engine.before = async (text) => {
      if (!text.includes('FROM erasure_copy_')) return
      engine.before = null
      await stores.engine.command(
        raw('RENAME TABLE erasure_copy_900_otel_logs TO erasure_swap_900_otel_logs'),
      )
    }
    assert.equal(await countCopies(engine), 3)
    assert.equal(engine.before, null)
  })
})

test('a copy that is removed while it is counted counts as empty', async () => {
  await withCopy([3], async () => {
    const engine = new FailingEngine(stores.engine)
    engine.before = async (text) => {
      if (!text.includes('FROM erasure_copy_')) return
      engine.before = null
      await stores.engine.command(raw('DROP TABLE erasure_copy_900_otel_logs SYNC'))
    }
    assert.equal(await countCopies(engine), 0)
    assert.equal(engine.before, null)
  })
})

test('what is kept by a hold that can’t be named is held by every hold, so the request does not complete', async () => {
  const store: DerivedStore = {
    name: 'kept',
    tables: [],
    preview: async () => ({}),
    remove: async () => 0,
    count: async (_tenantId, _part, held) => (held.length > 0 ? 0 : 1),
    keepers: async () => new Set(),
  }
  const holds = ['first', 'second'].map((holdId) => ({ ...all, holdId }))
  const request = { ...all, tenantId: 'unnamed' }
  const { heldBy } = await readBackOutsideHolds(stores.engine, [store], request, holds)
  assert.deepEqual(heldBy, ['first', 'second'])
})
