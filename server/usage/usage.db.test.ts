// What an organisation stores, on a real engine: rows counted exactly, bytes that reveal nothing of a
// neighbour in the same partition, hidden rows gone at once.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { pino } from 'pino'
import type { z } from 'zod'
import { earliestNs, latestNs } from '../../contract/instant.ts'
import type { Role } from '../../contract/tenancy.ts'
import type { StorageUsage } from '../../contract/usage.ts'
import { openEngine } from '../../tests/fixtures.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import type { Caller } from '../core/caller.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { byAccessToken } from '../http/authentication.ts'
import { createHttp } from '../http/server.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { partitionSizes } from '../telemetry/partitions.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import { weighRows } from '../telemetry/row-weights.ts'
import { type TableName, tables } from '../telemetry/schema/tables.ts'
import { raw } from '../telemetry/sql.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { addUsageRoutes } from './routes.ts'

type Usage = z.infer<typeof StorageUsage>

const { close, engine } = await openEngine()
const gate = new TelemetryGate()
const http = createHttp({
  clock: new ManualClock(0),
  logger: pino({ level: 'silent' }),
  authenticate: byAccessToken(async (secret) => callerFor(secret)),
  isReady: () => true,
})
/** Placements that more than one organisation has. */
const shared = [2]
addUsageRoutes(
  http,
  (caller) => new TenantReader(engine, caller, gate),
  (place) => weighRows(engine, place, shared.includes(place.placement)),
)
after(async () => {
  await http.close()
  await close()
})

/** A secret is `<tenant>.<placement>.<role>`. */
function callerFor(secret: string): Caller | null {
  const [tenantId = '', placement, role] = secret.split('.')
  if (role === undefined) return null
  return {
    tenantId,
    placement: Number(placement),
    organisationName: tenantId,
    role: role as Role,
    requester: tokenNamed(secret),
  }
}

async function ask(secret: string): Promise<{ status: number; usage: Usage }> {
  const answer = await http.inject({ url: '/usage/storage', headers: { authorization: `Bearer ${secret}` } })
  return { status: answer.statusCode, usage: answer.json() }
}

async function usageOf(tenantId: string, placement: number): Promise<Usage> {
  const { status, usage } = await ask(`${tenantId}.${placement}.viewer`)
  assert.equal(status, 200)
  return usage
}

/** Merges all parts, so that no background merge changes the bytes between two reads. */
async function settle(): Promise<void> {
  for (const { name } of tables) await engine.command(raw(`OPTIMIZE TABLE ${name} FINAL`))
}

const insert = (tenantId: string, placement: number, table: TableName, rows: readonly FixtureRow[]) =>
  insertFixture(engine, { tenantId, placement }, table, rows)

const day = (text: string): bigint => BigInt(Date.parse(`${text}T12:00:00Z`)) * 1_000_000n
const logs = (text: string, count: number): FixtureRow[] =>
  Array.from({ length: count }, (_, i) => ({ Timestamp: day(text) + BigInt(i), Body: `line ${i}` }))

test('rows are counted by signal and UTC day, with the oldest and newest instant exact', async () => {
  await insert('one', 1, 'otel_logs', [
    ...logs('2025-11-17', 2),
    ...logs('2025-11-23', 3),
    ...logs('2025-11-24', 4),
  ])
  await insert('one', 1, 'otel_metrics_gauge', [{ TimeUnix: day('2025-11-20') }])
  await insert('one', 1, 'otel_metrics_summary', [{ TimeUnix: day('2025-11-20') + 1n }])
  const usage = await usageOf('one', 1)
  assert.deepEqual([usage.tenant_id, usage.rows], ['one', 11])
  assert.deepEqual([usage.oldest, usage.newest], ['2025-11-17T12:00:00Z', '2025-11-24T12:00:00.000000003Z'])
  const counts = usage.signals.map(({ signal, rows, days }) => [
    signal,
    rows,
    days.map((one) => [one.day, one.rows]),
  ])
  assert.deepEqual(counts, [
    ['metrics', 2, [['2025-11-20', 2]]],
    [
      'logs',
      9,
      [
        ['2025-11-17', 2],
        ['2025-11-23', 3],
        ['2025-11-24', 4],
      ],
    ],
    ['traces', 0, []],
  ])
  assert.deepEqual([usage.signals[2]?.oldest, usage.signals[2]?.bytes], [null, 0])
})

test('an organisation that is alone in its partitions has all their bytes, and sums agree at every level', async () => {
  await settle()
  const usage = await usageOf('one', 1)
  const stored = [...(await partitionSizes(engine, 1)).values()].reduce((sum, { bytes }) => sum + bytes, 0)
  assert.ok(stored > 0 && Math.abs(usage.bytes - stored) <= 3, `${usage.bytes} of ${stored}`)
  const days = usage.signals.flatMap((signal) => signal.days)
  assert.equal(
    days.reduce((sum, { bytes }) => sum + bytes, 0),
    usage.bytes,
  )
  assert.equal(
    days.reduce((sum, { rows }) => sum + rows, 0),
    usage.rows,
  )
})

test('neighbours in one partition reveal nothing of each other, not even in their numbers of bytes', async () => {
  const spans = (text: string, count: number, StatusMessage: string) =>
    Array.from({ length: count }, () => ({ Timestamp: day(text), StatusMessage }))
  await insert('small', 2, 'otel_traces', spans('2025-11-19', 100, 'short'))
  const alone = await usageOf('small', 2)
  await insert('big', 2, 'otel_traces', spans('2025-11-18', 300, 'a long text '.repeat(100)))
  await settle()
  const [big, small] = [await usageOf('big', 2), await usageOf('small', 2)]
  assert.deepEqual(small, alone)
  assert.deepEqual([big.rows, small.rows], [300, 100])
  assert.ok(small.bytes > 0 && big.bytes > 10 * small.bytes, `${big.bytes} and ${small.bytes}`)
  assert.deepEqual(
    small.signals[2]?.days.map((one) => one.day),
    ['2025-11-19'],
  )
  assert.equal((await usageOf('stranger', 2)).rows, 0)
})

test('hidden rows do not count, and count again when they are shown', async () => {
  await settle()
  const before = await usageOf('one', 1)
  gate.hide('one', { id: 'del_1', signals: ['logs'], range: { startNs: null, endNs: day('2025-11-24') } })
  const hidden = await usageOf('one', 1)
  assert.deepEqual([hidden.rows, hidden.signals[1]?.rows, hidden.signals[0]?.rows], [6, 4, 2])
  assert.ok(hidden.bytes < before.bytes)
  gate.unhide('one', 'del_1')
  assert.deepEqual(await usageOf('one', 1), before)
})

test('the first and the last instant that can be stored are weighed on their own days, in every table', async () => {
  for (const { name, timeColumn } of tables) {
    await insert('ends', 3, name, [{ [timeColumn]: earliestNs }, { [timeColumn]: latestNs - 1n }])
  }
  const usage = await usageOf('ends', 3)
  assert.deepEqual([usage.oldest, usage.newest], ['1970-01-01T00:00:00Z', '2149-05-31T23:59:59.999999999Z'])
  for (const signal of usage.signals) {
    assert.deepEqual(
      signal.days.map((one) => one.day),
      ['1970-01-01', '2149-05-31'],
    )
    assert.ok(
      signal.days.every(({ bytes }) => bytes > 0),
      'every day found its partition',
    )
  }
})

test('every role but ingest may ask', async () => {
  for (const role of ['owner', 'admin', 'member', 'viewer'])
    assert.equal((await ask(`one.1.${role}`)).status, 200)
  assert.equal((await ask('one.1.ingest')).status, 403)
})
