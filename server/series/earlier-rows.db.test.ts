// What is known of the earliest rows of an organisation, and how often the engine is asked.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchOf, engineOfFile, insertRows, watchedEngine } from '../../tests/fixtures.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { EarlierRows } from './earlier-rows.ts'

const engine = engineOfFile()

const dayNs = 86_400_000_000_000n
const firstNs = 1_767_600_000_000_000_000n
const own = { tenantId: 'acme', placement: 7 }
const neighbour = { tenantId: 'globex', placement: 7 }

test('what is known of one time answers for earlier or later ones, for each signal, and never for another organisation', async () => {
  await insertRows(engine, own, batchOf('otel_logs', [firstNs]))
  await insertRows(engine, neighbour, batchOf('otel_logs', [firstNs - 40n * dayNs]))
  let reads = 0
  const watched = watchedEngine(engine, () => void reads++)
  const earlier = new EarlierRows(new TenantReader(watched, own, new TelemetryGate()))
  const logsBefore = (days: number) => earlier.areBefore(firstNs + BigInt(days) * dayNs, ['logs'])
  assert.deepEqual([await logsBefore(-20), await logsBefore(20), reads], [false, true, 2])
  assert.deepEqual([await logsBefore(-30), await logsBefore(30), reads], [false, true, 2])
  assert.deepEqual([await logsBefore(-1), await logsBefore(0), await logsBefore(1)], [false, false, true])
  assert.equal(reads, 5, 'between the known times')
  assert.deepEqual([await logsBefore(-20), await logsBefore(20), reads], [false, true, 5])
  const spansBefore = await earlier.areBefore(firstNs + 20n * dayNs, ['traces'])
  assert.deepEqual([spansBefore, reads], [false, 6])
  const ofNeighbour = new EarlierRows(new TenantReader(watched, neighbour, new TelemetryGate()))
  assert.equal(await ofNeighbour.areBefore(firstNs - 30n * dayNs, ['logs']), true)
})
