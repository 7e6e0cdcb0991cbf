// Where an erasure waits for parts, and what it leaves alone, on the real engine.

import assert from 'node:assert/strict'
import { mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { batchOf, insertRows, openStores, type Stores } from '../../../tests/fixtures.ts'
import { systemClock } from '../../core/clock.ts'
import { raw, sql } from '../../telemetry/sql.ts'
import { assertRows, between, monday, sceneOf, times, weekNs } from '../deletion-fixture.ts'
import { ErasureStopped } from './erasure-error.ts'
import { waitUntilRemoved } from './removed-parts.ts'
import { whileRead } from './slow-read-fixture.ts'

let stores: Stores
before(async () => {
  stores = await openStores()
})
after(() => stores.close())

const run = (statement: string) => stores.engine.command(raw(statement))

test('an erasure does not wait for a statement that reads other rows of the same table', {
  timeout: 60_000,
}, async () => {
  const scene = await sceneOf(stores)
  const { neighbour, own, request, round, status } = scene
  await assertRows(scene, times.length)
  const ofNeighbour = `Placement = ${neighbour.placement} AND TenantId = '${neighbour.tenantId}'`
  const nextWeek = `Placement = ${own.placement} AND Timestamp >= fromUnixTimestamp64Nano(${monday + weekNs})`
  for (const [read, week] of [
    [nextWeek, 0n],
    [ofNeighbour, 1n],
  ] as const) {
    await whileRead(stores.engine, `otel_logs WHERE ${read}`, async () => {
      const weekOf = between(monday + week * weekNs, monday + (week + 1n) * weekNs)
      const { request: erased } = await request(weekOf)
      await round()
      assert.equal((await status(erased.request_id)).status, 'completed')
    })
  }
  await assertRows(scene, 0)
})

test('an erasure does not wait for a table that has none of its rows, and ends no merge there', {
  timeout: 60_000,
}, async () => {
  const { neighbour, own, request, round, status } = await sceneOf(stores)
  const inWeek = (week: bigint) => [monday + week * weekNs, monday + week * weekNs + 1n]
  for (const place of [own, neighbour])
    await insertRows(stores.engine, place, batchOf('otel_metrics_gauge', inWeek(3n)))
  // Parts that a merge has replaced stay listed for minutes.
  await run('ALTER TABLE otel_logs MODIFY SETTING old_parts_lifetime = 480')
  // A failpoint of the engine pauses a merge at a projection.
  await run('ALTER TABLE otel_logs ADD PROJECTION paused (SELECT Timestamp ORDER BY Timestamp)')
  for (const week of [4n, 5n])
    for (const ns of inWeek(week)) await insertRows(stores.engine, own, batchOf('otel_logs', [ns]))
  await run(`OPTIMIZE TABLE otel_logs PARTITION ID '${own.placement}-20260202' FINAL`)
  const [replaced] = await stores.engine.select<{ parts: string }>(
    sql`SELECT count() AS parts FROM system.parts WHERE table = 'otel_logs' AND NOT active
      AND partition_id = ${`${own.placement}-20260202`}`,
  )
  assert.equal(Number(replaced?.parts), 2)
  await run('SYSTEM ENABLE FAILPOINT merge_task_projection_stage_pause')
  const week = `${own.placement}-20260209`
  const merging = run(`OPTIMIZE TABLE otel_logs PARTITION ID '${week}' FINAL`)
  const merges = () => stores.engine.select(sql`SELECT 1 FROM system.merges WHERE partition_id = ${week}`)
  try {
    while ((await merges()).length === 0) await new Promise((resolve) => setImmediate(resolve))
    const { request: erased } = await request(between(monday + 3n * weekNs, monday + 4n * weekNs))
    await round()
    const done = await status(erased.request_id)
    assert.deepEqual([done.status, done.detail.rows_erased], ['completed', 2])
    assert.equal((await merges()).length, 1, 'the merge is still running')
  } finally {
    await run('SYSTEM DISABLE FAILPOINT merge_task_projection_stage_pause')
    await run('ALTER TABLE otel_logs MODIFY SETTING old_parts_lifetime = 0')
  }
  await assert.doesNotReject(merging)
  const [kept] = await stores.engine.select<{ rows: string }>(
    sql`SELECT count() AS rows FROM otel_metrics_gauge WHERE TenantId = ${neighbour.tenantId} AND TimeUnix >= ${raw(
      `fromUnixTimestamp64Nano(${monday + 3n * weekNs})`,
    )}`,
  )
  assert.equal(Number(kept?.rows), 2, 'the neighbour has its identical rows')
})

test('a detached part of the placement is waited for in every table, and one of another placement in none', async () => {
  const place = { tenantId: 'acme', placement: 61 }
  const deps = { engine: stores.engine, files: stores.files, clock: systemClock }
  const wait = (changed: readonly string[]) => {
    const removal = { tables: ['otel_traces'], changed: new Set(changed) }
    return waitUntilRemoved(deps, place, removal, AbortSignal.abort())
  }
  const folder = (await stores.files.tableFolders(['otel_traces'])).get('otel_traces') ?? assert.fail()
  const detached = (placement: number) =>
    join(folder, 'detached', `broken-on-start_${placement}-20260105_1_1_0`)
  mkdirSync(detached(60))
  await wait([])
  mkdirSync(detached(61))
  for (const changed of [[], ['otel_traces']]) await assert.rejects(wait(changed), ErasureStopped)
  rmdirSync(detached(61))
  await wait(['otel_traces'])
  rmdirSync(detached(60))
})
