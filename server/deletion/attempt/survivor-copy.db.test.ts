// The table of a copy, and how it is filled, on the real engine.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import type { LocalEngineFiles } from '../../telemetry/engine-files.ts'
import { raw, sql } from '../../telemetry/sql.ts'
import { underLock } from '../../telemetry/statement-settings.ts'
import { between, monday, sceneOf, weekNs } from '../deletion-fixture.ts'
import { FailingEngine } from '../governed-fixture.ts'
import { CopyEngines } from './survivor-copy.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

/** Creates a table of this engine with eight parts of one row, asks for a merge, and returns its parts. */
async function partsAfterMerge(name: string, engineText: string): Promise<number> {
  const { engine } = stores
  await engine.command(raw(`CREATE TABLE ${name} AS otel_logs ENGINE = ${engineText}`))
  for (let part = 0; part < 8; part++) {
    await engine.command(raw(`INSERT INTO ${name} SELECT * FROM otel_logs LIMIT 1`))
  }
  await engine.command(raw(`OPTIMIZE TABLE ${name}`))
  const [found] = await engine.select<{ parts: string }>(
    sql`SELECT count() AS parts FROM system.parts WHERE table = ${name} AND active`,
  )
  return Number(found?.parts)
}

test('no part of a copy is merged, so each still belongs to one piece', async () => {
  const place = { tenantId: 'acme', placement: 0 }
  await insertRows(stores.engine, place, batchOf('otel_logs', [1_767_600_000_000_000_000n]))
  const engineText = await new CopyEngines(stores.engine).of('otel_logs', true)
  assert.equal(await partsAfterMerge('unmerged', engineText), 8)
  const others = engineText.replaceAll(/, max_bytes_to_merge_\w+ = 1/g, '')
  assert.equal(await partsAfterMerge('merged', others), 1, 'without the settings of a copy')
})

test('survivors are counted and copied with the priority of the event loop where the placement is locked, and with that of other statements before', async () => {
  const engine = new FailingEngine(stores.engine)
  const scene = await sceneOf({ ...stores, engine }, { isShared: true, fewRows: 0 })
  const { request } = await scene.request({ ...between(null, monday + weekNs / 2n), signals: ['logs'] })
  const counts: [isLocked: boolean, hasPriority: boolean][] = []
  const copies: [isLocked: boolean, hasPriority: boolean][] = []
  engine.before = async (text, limits) => {
    const isLocked = scene.locks.writes.isTaken(scene.own.placement)
    if (text.startsWith('INSERT INTO erasure_copy_')) {
      copies.push([isLocked, text.includes(underLock)])
      // Something is left to the lock, however often survivors are copied ahead.
      if (!isLocked) await insertRows(stores.engine, scene.own, batchOf('otel_logs', [monday + weekNs - 1n]))
    }
    if (text.includes('AS own, count()')) counts.push([isLocked, limits?.isUnderLock === true])
  }
  await scene.round()
  assert.equal((await scene.status(request.request_id)).status, 'completed')
  for (const statements of [counts, copies]) {
    assert.ok(
      statements.every(([isLocked, hasPriority]) => isLocked === hasPriority),
      JSON.stringify(statements),
    )
    assert.equal(new Set(statements.flat()).size, 2, 'both before the lock and under it')
  }
})

/** The files of the engine, synced as the test says. */
function filesWith(changed: Pick<LocalEngineFiles, 'sync' | 'syncsAtOnce'>): LocalEngineFiles {
  const { files } = stores
  return {
    tableFolders: (names) => files.tableFolders(names),
    partNames: (names) => files.partNames(names),
    syncFolders: (names) => files.syncFolders(names),
    copyTo: (...to) => files.copyTo(...to),
    restoreFrom: (path) => files.restoreFrom(path),
    ...changed,
  }
}

const syncedByEngine = ['synced copy', 'survivors', 'promise']
const waysToSync = [
  { how: 'by one sync', syncsAtOnce: true, expected: ['copy', 'survivors', 'sync', 'promise'] },
  { how: 'by the engine, file by file', syncsAtOnce: false, expected: syncedByEngine },
  { how: 'by the engine ahead of the lock', syncsAtOnce: true, fewRows: 0, expected: syncedByEngine },
]
for (const { how, syncsAtOnce, expected, ...options } of waysToSync) {
  test(`survivors are on the disk before their swap is promised, ${how}`, async () => {
    const engine = new FailingEngine(stores.engine)
    const events: string[] = []
    const files = filesWith({ syncsAtOnce, sync: async () => void events.push('sync') })
    const scene = await sceneOf({ ...stores, engine, files }, { isShared: true, ...options })
    const { request } = await scene.request({ ...between(null, monday + weekNs / 2n), signals: ['logs'] })
    engine.before = async (text) => {
      if (text.startsWith('CREATE TABLE erasure_copy_'))
        events.push(text.includes('fsync_after_insert = 1') ? 'synced copy' : 'copy')
      if (text.startsWith('INSERT INTO erasure_copy_') && events.at(-1) !== 'survivors')
        events.push('survivors')
      if (text.startsWith('RENAME TABLE erasure_copy_')) events.push('promise')
    }
    await scene.round()
    assert.equal((await scene.status(request.request_id)).status, 'completed')
    assert.deepEqual(events.slice(0, expected.length), expected)
  })
}

test('no swap is promised where its survivors could not be synced', async () => {
  const engine = new FailingEngine(stores.engine)
  let promises = 0
  let isBroken = true
  const sync = async () => {
    if (isBroken) throw new Error('the disk is broken')
  }
  const clock = new ManualClock(Date.now())
  const scene = await sceneOf(
    { ...stores, engine, files: filesWith({ syncsAtOnce: true, sync }) },
    { isShared: true, clock },
  )
  const { request } = await scene.request({ ...between(null, monday + weekNs / 2n), signals: ['logs'] })
  engine.before = async (text) => {
    if (text.startsWith('RENAME TABLE erasure_copy_')) promises += 1
  }
  await scene.round()
  assert.deepEqual([(await scene.status(request.request_id)).status, promises], ['incomplete', 0])
  isBroken = false
  await clock.advance(60 * 60_000)
  await scene.round()
  assert.equal((await scene.status(request.request_id)).status, 'completed')
})
