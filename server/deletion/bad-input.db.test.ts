// Erasing under faults: an engine that fails a statement, a full disk, a clock that is set back, and a
// partition of a million rows with an edge inside. Each ends in a state that reports the fault, hidden, with
// every row of the neighbour, and continues by itself when it can. The engine is the real one; it fails where
// a test requests it, before the statement reaches it. order.db.test.ts has the faults of the control plane.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../tests/fixtures.ts'
import type { TenantPlace } from '../telemetry/engine.ts'
import { raw, sql } from '../telemetry/sql.ts'
import { sideTables } from './attempt/side-tables.ts'
import { all, between, monday, times, weekNs } from './deletion-fixture.ts'
import {
  dayMs,
  FailingEngine,
  type GovernedScene,
  governedSceneOf,
  minuteMs,
  refuses,
} from './governed-fixture.ts'

let stores: Stores
let engine: FailingEngine
before(async () => {
  stores = await openStores()
  engine = new FailingEngine(stores.engine)
})
after(() => stores.close())

const firstWeek = between(null, monday + weekNs)
const logs = { ...firstWeek, signals: ['logs' as const] }
const half = times.length / 2

async function begun(draft = logs, isShared = false) {
  const scene = await governedSceneOf({ ...stores, engine }, { isShared })
  assert.equal(await scene.count(scene.own, 'otel_logs'), times.length)
  const { request } = await scene.request(draft)
  return { scene, id: request.request_id }
}

async function assertErased(scene: GovernedScene, id: string): Promise<void> {
  const done = await scene.status(id)
  assert.deepEqual([done.status, done.detail.rows_erased], ['completed', half])
  assert.equal(await scene.count(scene.own, 'otel_logs'), half)
  assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
  assert.deepEqual(await sideTables(stores.engine), [])
  assert.equal(refuses(scene, monday), false)
}

const failures: { what: string; text: RegExp; code: number; isShared: boolean; left: number }[] = [
  { what: 'planning', text: /count\(\) AS selected/, code: 210, isShared: false, left: times.length },
  { what: 'dropping a partition', text: /DROP PARTITION/, code: 499, isShared: false, left: times.length },
  {
    what: 'making a table for survivors',
    text: /^CREATE TABLE erasure_copy/,
    code: 243,
    isShared: true,
    left: times.length,
  },
  {
    what: 'copying survivors to a full disk',
    text: /^INSERT INTO erasure_copy/,
    code: 243,
    isShared: true,
    left: times.length,
  },
  { what: 'counting the copy', text: /FROM erasure_copy/, code: 432, isShared: true, left: times.length },
  {
    what: 'promising the swap',
    text: /^RENAME TABLE erasure_copy/,
    code: 243,
    isShared: true,
    left: times.length,
  },
  { what: 'making the swap', text: /REPLACE PARTITION/, code: 243, isShared: true, left: times.length },
  { what: 'looking for old parts', text: /FROM system\.parts WHERE/, code: 210, isShared: false, left: half },
  {
    what: 'reading back',
    text: /SELECT 1 AS one, toUnixTimestamp64Nano/,
    code: 241,
    isShared: false,
    left: half,
  },
  { what: 'marking it as done', text: /^INSERT INTO erasures_done/, code: 243, isShared: false, left: half },
]

describe('an engine that fails at', () => {
  for (const { what, text, code, isShared, left } of failures) {
    test(`${what} leaves the request incomplete and hidden, and the next attempt completes it`, async () => {
      const { scene, id } = await begun(logs, isShared)
      engine.failed = 0
      engine.failing = { text, code }
      await scene.round()
      engine.failing = null
      assert.ok(engine.failed > 0, 'the statement was reached')
      const ended = await scene.status(id)
      assert.equal(ended.status, 'incomplete')
      const reason = code === 243 ? /^The disk is full/ : new RegExp(`refused a step \\(code ${code}\\)$`)
      assert.match(String(ended.detail.blocked_reason), reason)
      assert.ok(ended.detail.next_attempt_at)
      assert.deepEqual([ended.verified_at, ended.finished_at], [null, null])
      assert.equal(await scene.count(scene.own, 'otel_logs'), left)
      assert.equal(await scene.visible(scene.own, 'otel_logs'), half)
      assert.equal(refuses(scene, monday), true)
      assert.equal(await scene.count(scene.neighbour, 'otel_logs'), times.length)
      assert.equal((await scene.moves(id)).at(-1), 'incomplete')
      const isPromised = /swap/.test(what)
      assert.equal(scene.gate.isClosed(scene.own.placement), isPromised, 'nothing writes into an open swap')
      await scene.round()
      assert.equal((await scene.status(id)).status, 'incomplete', 'not before it is due')
      assert.equal(scene.gate.isClosed(scene.own.placement), false, 'and no other organisation waits for it')
      scene.clock.advance(minuteMs)
      await scene.round()
      await assertErased(scene, id)
    })
  }

  test('nothing swaps in no copy that lacks a row of a concurrent writer', async () => {
    const { scene, id } = await begun(logs, true)
    const intruder: TenantPlace = { ...scene.neighbour, tenantId: `${scene.neighbour.tenantId}-late` }
    scene.faults.runAt('before partition step', async () => {
      scene.faults.runAt('', () => {})
      await insertRows(stores.engine, intruder, batchOf('otel_logs', [monday]))
    })
    await scene.round()
    const ended = await scene.status(id)
    assert.equal(ended.status, 'incomplete')
    assert.match(String(ended.detail.blocked_reason), /copy of what survives .* is not complete/)
    assert.equal(await scene.count(intruder, 'otel_logs'), 1)
    scene.clock.advance(minuteMs)
    await scene.round()
    await assertErased(scene, id)
    assert.equal(await scene.count(intruder, 'otel_logs'), 1)
  })

  test('everything still accepts the request, hides it, and erases when it works again', async () => {
    const { scene, id } = await begun()
    engine.failing = { text: /./, code: 210 }
    await scene.round()
    scene.clock.advance(minuteMs)
    const second = await scene.request(all)
    assert.equal(second.request.status, 'running')
    await scene.round()
    engine.failing = null
    assert.equal((await scene.status(id)).status, 'incomplete')
    assert.equal(await scene.visible(scene.own, 'otel_logs'), 0)
    assert.equal(await scene.count(scene.own, 'otel_logs'), times.length)
    scene.clock.advance(minuteMs)
    await scene.round()
    assert.equal((await scene.status(id)).status, 'completed')
    assert.equal(await scene.count(scene.own, 'otel_traces'), 0)
    assert.equal(await scene.count(scene.neighbour, 'otel_traces'), times.length)
  })
})

test('a clock that is set back during an erasure changes only the reported times', async () => {
  const { scene, id } = await begun()
  scene.faults.runAt('planned', () => scene.clock.advance(-dayMs))
  await scene.round()
  await assertErased(scene, id)
  const { created_at, removed_at, verified_at } = await scene.status(id)
  assert.ok(removed_at && verified_at && removed_at <= verified_at)
  assert.ok(verified_at < created_at, 'the time of the clock is recorded as it was')
  const next = scene.restarted()
  await next.worker.restore()
  assert.equal((await scene.status(id)).status, 'completed')
})

test('an edge inside a partition of a million rows divides them exactly, and the rows of the neighbour are unchanged', async () => {
  const { scene } = await begun({ ...logs, delayMinutes: 60 }, true)
  const rows = 1_000_000
  const kept = 617_283
  const week = monday + 4n * weekNs
  for (const place of [scene.own, scene.neighbour]) {
    await stores.engine.command(
      sql`INSERT INTO otel_logs (Placement, TenantId, Timestamp, Body)
          SELECT ${raw(String(place.placement))}, ${place.tenantId},
                 fromUnixTimestamp64Nano(toInt64(${raw(String(week))} + number * 1000), 'UTC'), toString(number)
          FROM numbers(${raw(String(rows))})`,
    )
  }
  const before = await printOf(scene.neighbour, week, null)
  assert.equal(before.rows, rows)
  const endNs = week + BigInt(rows - kept) * 1000n
  const survivors = await printOf(scene.own, week, endNs)
  assert.equal(survivors.rows, kept)
  const { request } = await scene.request({ ...logs, range: { startNs: week, endNs } })
  await scene.round()
  const done = await scene.status(request.request_id)
  assert.deepEqual([done.status, done.detail.rows_erased], ['completed', rows - kept])
  assert.equal(done.detail.partitions_rewritten, 1)
  assert.deepEqual(await printOf(scene.own, week, null), survivors)
  assert.deepEqual(await printOf(scene.neighbour, week, null), before)
})

/** Number of log records of an organisation from an instant on, and a hash of their texts and times. */
async function printOf({ tenantId }: TenantPlace, weekNs: bigint, fromNs: bigint | null) {
  const [row] = await stores.engine.select<{ rows: string; print: string }>(
    sql`SELECT count() AS rows, sum(cityHash64(Timestamp, Body)) AS print FROM otel_logs
        WHERE TenantId = ${tenantId} AND toUnixTimestamp64Nano(Timestamp) >= ${raw(String(fromNs ?? weekNs))}`,
  )
  return { rows: Number(row?.rows), print: row?.print }
}
