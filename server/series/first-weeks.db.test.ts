// The week of an organisation's first row, and how often the engine is asked for it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchOf, engineOfFile, insertRows, watchedEngine } from '../../tests/fixtures.ts'
import type { TenantPlace } from '../telemetry/engine.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { FirstWeeks } from './first-weeks.ts'

const engine = engineOfFile()

const dayNs = 86_400_000_000_000n
/** A Monday. */
const mondayNs = BigInt(Date.UTC(2026, 0, 5)) * 1_000_000n
const weekNs = 7n * dayNs

/** Returns the weeks of an organisation, and the statements that were read. */
function weeksOf(place: TenantPlace, gate = new TelemetryGate()): { weeks: FirstWeeks; reads: string[] } {
  const reads: string[] = []
  const watched = watchedEngine(engine, (statement, share) => {
    assert.equal(share?.tenantId, place.tenantId, 'each read is on behalf of the organisation')
    reads.push(statement)
  })
  return { weeks: new FirstWeeks(watched, new TenantReader(watched, place, gate)), reads }
}

test('an organisation that is alone in its placement is asked for once, for each signal and for all who ask', async () => {
  const alone = { tenantId: 'acme', placement: 7 }
  await insertRows(engine, alone, batchOf('otel_logs', [mondayNs + 3n * dayNs, mondayNs + 5n * weekNs]))
  await insertRows(engine, alone, batchOf('otel_metrics_sum', [mondayNs + 2n * weekNs]))
  const { reads, weeks } = weeksOf(alone)
  const ofLogs = await Promise.all([weeks.of(['logs']), weeks.of(['logs'])])
  assert.deepEqual(
    [ofLogs, reads.length],
    [[mondayNs, mondayNs], 2],
    'the weeks of the placement, and one search',
  )
  assert.equal(await weeks.of(['metrics']), mondayNs + 2n * weekNs)
  assert.equal(await weeks.of(['metrics', 'logs']), mondayNs)
  assert.deepEqual([await weeks.of(['traces']), reads.length], [null, 4])
})

test('weeks that only neighbours have do not count, and are halved', async () => {
  const [own, neighbour] = [
    { tenantId: 'acme', placement: 8 },
    { tenantId: 'globex', placement: 8 },
  ]
  const weeksBack = Array.from({ length: 40 }, (_, i) => mondayNs - BigInt(i) * weekNs)
  await insertRows(engine, neighbour, batchOf('otel_logs', weeksBack))
  await insertRows(engine, own, batchOf('otel_logs', [mondayNs - 3n * weekNs + dayNs]))
  const { reads, weeks } = weeksOf(own)
  assert.equal(await weeks.of(['logs']), mondayNs - 3n * weekNs)
  assert.ok(reads.length <= 8, `${reads.length} statements`)
  assert.equal(await weeksOf(neighbour).weeks.of(['logs']), mondayNs - 39n * weekNs)
  assert.equal(await weeksOf({ tenantId: 'empty', placement: 8 }).weeks.of(['logs']), null)
})

test('a search that fails is made again by whoever asks later', async () => {
  const own = { tenantId: 'acme', placement: 10 }
  await insertRows(engine, own, batchOf('otel_logs', [mondayNs]))
  const failures = [new Error('the list of weeks'), null, new Error('the rows'), null, null]
  const failing = watchedEngine(engine, () => {
    const failure = failures.shift()
    if (failure) throw failure
  })
  const weeks = new FirstWeeks(failing, new TenantReader(failing, own, new TelemetryGate()))
  await assert.rejects(weeks.of(['logs']), /the list of weeks/)
  const [first, second] = await Promise.allSettled([weeks.of(['logs']), weeks.of(['logs'])])
  assert.deepEqual([first?.status, second?.status], ['rejected', 'rejected'])
  assert.equal(await weeks.of(['logs']), mondayNs)
})

test('hidden rows do not count', async () => {
  const own = { tenantId: 'acme', placement: 9 }
  await insertRows(engine, own, batchOf('otel_logs', [mondayNs, mondayNs + 4n * weekNs]))
  const gate = new TelemetryGate()
  gate.hide('acme', { id: 'd', signals: ['logs'], range: { startNs: 0n, endNs: mondayNs + dayNs } })
  assert.equal(await weeksOf(own).weeks.of(['logs']), mondayNs)
  assert.equal(await weeksOf(own, gate).weeks.of(['logs']), mondayNs + 4n * weekNs)
})
