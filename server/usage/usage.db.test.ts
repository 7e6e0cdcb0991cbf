// What an organisation stores, on a real engine: rows counted exactly, bytes that reveal nothing of a
// neighbour in the same partition, hidden rows gone at once.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { pino } from 'pino'
import type { z } from 'zod'
import { ErasedTimePage, ServiceStorage, type StorageUsage } from '../../contract/organisation/usage.ts'
import type { Role } from '../../contract/role.ts'
import { earliestNs, latestNs } from '../../contract/values/instant.ts'
import { delegate, engineOfFile } from '../../tests/fixtures.ts'
import { weighingForAnswers } from '../app/wire-row-weights.ts'
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
import { raw, sql, uint } from '../telemetry/sql.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { RefusalCounts } from './refusals.ts'
import { addUsageRoutes } from './routes.ts'
import { readStorage } from './storage.ts'
import { readServiceStorage } from './storage-by-service.ts'

type Usage = z.infer<typeof StorageUsage>

const engine = engineOfFile()
const gate = new TelemetryGate()
/** On the day after the newest rows of most tests. */
const clock = new ManualClock(Date.parse('2025-11-25T06:00:00Z'))
const kept = { days: 30, erases_before: '2025-10-26T00:00:00.000Z', last_erasure: null }
const http = createHttp({
  clock,
  logger: pino({ level: 'silent' }),
  authenticate: byAccessToken(async (secret) => callerFor(secret)),
  isReady: () => true,
})
/** Placements that more than one organisation has. */
const shared = [2]
const unlimited = { days: null, erases_before: null, last_erasure: null }
addUsageRoutes(http, {
  readerOf: (caller) => new TenantReader(engine, caller, gate),
  weighRows: ({ place }) => weighRows(engine, place, shared.includes(place.placement)),
  keptFor: async () => ({ metrics: unlimited, logs: kept, traces: unlimited }),
  gate,
  refusals: new RefusalCounts(clock),
  clock,
})
after(() => http.close())

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

test('other work of the event loop runs while the days of a century and a half are added up', async () => {
  const days = 54_000
  // Before the days are weighed one after another, and before they are added up.
  let [turns, atReading, atLastWeight] = [0, 0, 0]
  const turn = async () => void turns++
  const place = { tenantId: 'ancient', placement: 9 }
  let reads = 0
  const ofDays: Parameters<typeof engine.select>[0] =
    sql`SELECT 'otel_logs' AS place, toString(toDate(number)) AS day,
    concat('9-', formatDateTime(toMonday(toDate(number)), '%Y%m%d')) AS partition_id, '2' AS total,
    toString(number * 86400000000000) AS oldest, toString(number * 86400000000000 + 1) AS newest
    FROM numbers(${uint(days)}) ORDER BY day`
  const many: typeof engine = {
    ...delegate(engine),
    async select<T>(...[statement, limits, share]: Parameters<typeof engine.select>): Promise<T[]> {
      const rows = await engine.select<T>(reads++ === 0 ? ofDays : statement, limits, share)
      if (reads === 1) atReading = turns
      return rows
    },
  }
  const reader = new TenantReader(many, place, gate, { turn })
  const weigh = async () => () => {
    atLastWeight = turns
    return 5
  }
  const assertTurns = () => {
    const found = [atLastWeight - atReading, turns - atLastWeight]
    assert.ok(
      found.every((count) => count >= 2),
      `${found} turns`,
    )
  }
  const keptFor = { metrics: unlimited, logs: unlimited, traces: unlimited }
  const usage = await readStorage(reader, weigh, { keptFor, nowMs: clock.nowMs() })
  const [, logsUsage] = usage.signals
  assert.deepEqual([usage.rows, usage.bytes, logsUsage?.days.length], [2 * days, 5 * days, days])
  assert.deepEqual([usage.oldest, usage.newest], ['1970-01-01T00:00:00Z', '2117-11-05T00:00:00.000000001Z'])
  assert.deepEqual(
    [usage.last_7_days, usage.previous_7_days],
    [
      { rows: 14, bytes: 35 },
      { rows: 14, bytes: 35 },
    ],
  )
  assertTurns()
  reads = 0
  await readServiceStorage(reader, weigh, { limit: 1 }, clock.nowMs())
  assertTurns()
})

test('every role but ingest may ask', async () => {
  for (const role of ['owner', 'admin', 'member', 'viewer'])
    assert.equal((await ask(`one.1.${role}`)).status, 200)
  assert.equal((await ask('one.1.ingest')).status, 403)
})

const get = (secret: string, url: string, query: Record<string, string> = {}) =>
  http.inject({ url, query, headers: { authorization: `Bearer ${secret}` } })

async function servicesOf(tenant: string, query: Record<string, string> = {}) {
  const answer = await get(`${tenant}.viewer`, '/usage/storage/services', query)
  assert.equal(answer.statusCode, 200, answer.body)
  return ServiceStorage.parse(answer.json())
}

/** Log records of a service at noon of a day. */
const served = (service: string, text: string, count: number, length = 10): FixtureRow[] =>
  logs(text, count).map((row) => ({ ...row, ServiceName: service, Body: 'x'.repeat(length) }))

test('growth counts whole UTC days before today', async () => {
  await insert('grown', 4, 'otel_logs', [
    ...logs('2025-11-25', 1),
    ...logs('2025-11-24', 2),
    ...logs('2025-11-18', 4),
    ...logs('2025-11-17', 8),
    ...logs('2025-11-11', 16),
    ...logs('2025-11-10', 32),
  ])
  const usage = await usageOf('grown', 4)
  assert.deepEqual([usage.last_7_days.rows, usage.previous_7_days.rows, usage.rows], [6, 24, 63])
  const [, own] = usage.signals
  assert.deepEqual([own?.last_7_days, own?.previous_7_days], [usage.last_7_days, usage.previous_7_days])
  assert.deepEqual(own?.retention, kept)
})

test('services are listed with their days, most bytes first, and the others are added up', async () => {
  await insert('shop', 5, 'otel_logs', [
    ...served('cart', '2025-11-24', 3),
    ...served('checkout', '2025-11-24', 50),
    ...served('checkout', '2025-11-23', 20),
    ...served('', '2025-11-24', 1),
  ])
  await insert('shop', 5, 'otel_traces', [{ Timestamp: day('2025-11-17'), ServiceName: 'checkout' }])
  const all = await servicesOf('shop.5')
  assert.deepEqual(
    all.services.map(({ newest, rows, service }) => [service, rows, newest]),
    [
      ['checkout', 71, '2025-11-24T12:00:00.000000049Z'],
      ['cart', 3, '2025-11-24T12:00:00.000000002Z'],
      ['', 1, '2025-11-24T12:00:00Z'],
    ],
  )
  assert.deepEqual(all.others, { services: 0, rows: 0, bytes: 0 })
  assert.deepEqual([all.range_start, all.range_end], ['2025-10-26T00:00:00Z', '2025-11-26T00:00:00Z'])
  const [checkout] = all.services
  assert.deepEqual(
    checkout?.signals.map(({ days, rows, signal }) => [signal, rows, days.map((one) => [one.day, one.rows])]),
    [
      [
        'logs',
        70,
        [
          ['2025-11-23', 20],
          ['2025-11-24', 50],
        ],
      ],
      ['traces', 1, [['2025-11-17', 1]]],
    ],
  )
  assert.deepEqual([checkout?.last_7_days.rows, checkout?.previous_7_days.rows], [70, 1])
  const top = await servicesOf('shop.5', { limit: '1' })
  assert.deepEqual([top.services.length, top.others.services, top.others.rows], [1, 2, 4])
  const usage = await usageOf('shop', 5)
  const sum = top.others.bytes + (top.services[0]?.bytes ?? 0)
  assert.ok(Math.abs(sum - usage.bytes) <= 10, `${sum} of ${usage.bytes}`)
})

test('a range selects the days that are listed, and not the totals', async () => {
  const query = { range_start: '2025-11-17T05:00:00Z', range_end: '2025-11-23T00:00:01Z' }
  const part = await servicesOf('shop.5', query)
  assert.deepEqual([part.range_start, part.range_end], ['2025-11-17T00:00:00Z', '2025-11-24T00:00:00Z'])
  const [checkout] = part.services
  assert.equal(checkout?.rows, 71)
  assert.deepEqual(
    checkout?.signals.map(({ days }) => days.map((one) => one.day)),
    [['2025-11-23'], ['2025-11-17']],
  )
})

test('a service with long records has more bytes than one with as many short ones', async () => {
  await insert('lengths', 6, 'otel_logs', [
    ...served('terse', '2025-11-20', 100, 10),
    ...served('wordy', '2025-11-20', 100, 5000),
  ])
  await settle()
  const [first, second] = (await servicesOf('lengths.6')).services
  assert.deepEqual([first?.service, second?.service], ['wordy', 'terse'])
  assert.ok((first?.bytes ?? 0) > 20 * (second?.bytes ?? 0), `${first?.bytes} and ${second?.bytes}`)
})

test('hidden rows of a service are in none of its figures, and rows of a neighbour never are', async () => {
  await insert('near', 7, 'otel_logs', [...served('a', '2025-11-24', 5), ...served('b', '2025-11-20', 7)])
  await insert('far', 7, 'otel_logs', served('a', '2025-11-24', 100))
  const before = await servicesOf('near.7')
  assert.deepEqual(before.services.map(({ rows }) => rows).sort(), [5, 7])
  gate.hide('near', { id: 'del_2', signals: ['logs'], range: { startNs: day('2025-11-24'), endNs: null } })
  const { others, services } = await servicesOf('near.7')
  assert.deepEqual(
    services.map(({ rows, service }) => [service, rows]),
    [['b', 7]],
  )
  assert.equal(others.services, 0)
  gate.unhide('near', 'del_2')
  assert.deepEqual(await servicesOf('near.7'), before)
  assert.deepEqual((await servicesOf('nobody.7')).services, [])
})

test('names that look like statements are names, and a page of very long names is cut', async () => {
  const strange = ["'); SELECT 1 --", 'otel_logs', '\\', 'a\u0000b', 'Grüße 👋']
  await insert(
    'strange',
    8,
    'otel_logs',
    strange.flatMap((name) => served(name, '2025-11-24', 2)),
  )
  const { services } = await servicesOf('strange.8')
  assert.deepEqual(services.map(({ service }) => service).sort(), strange.toSorted())
  assert.ok(services.every(({ signals }) => signals[0]?.days[0]?.rows === 2))
  const long = Array.from({ length: 6 }, (_, i) => `${i}`.repeat(1 << 20))
  await insert(
    'long',
    9,
    'otel_logs',
    long.flatMap((name) => served(name, '2025-11-24', 1)),
  )
  const cut = await servicesOf('long.9')
  assert.ok(cut.services.length < 5, `${cut.services.length} services`)
  assert.equal(cut.services.length + cut.others.services, 6)
  assert.equal(cut.others.rows, 6 - cut.services.length)
})

test('an empty range, and more days than fit with so many services, are refused', async () => {
  const problemsOf = async (query: Record<string, string>) => {
    const answer = await get('shop.5.viewer', '/usage/storage/services', query)
    assert.equal(answer.statusCode, 422, answer.body)
    return answer.json().detail.map(({ ctx, loc }: { ctx: object; loc: string[] }) => [loc[1], ctx])
  }
  const [start, end] = ['2025-11-20T00:00:00Z', '2025-11-10T00:00:00Z']
  assert.deepEqual(await problemsOf({ range_start: start, range_end: end }), [['range_end', {}]])
  const years = { range_start: '2020-01-01T00:00:00Z', limit: '100' }
  assert.deepEqual(await problemsOf(years), [['range_start', { days_max: 100 }]])
  assert.deepEqual((await problemsOf({ limit: '101' }))[0]?.[0], 'limit')
})

async function erasedOf(tenant: string, query: Record<string, string> = {}) {
  const answer = await get(`${tenant}.viewer`, '/usage/storage/erased', query)
  assert.equal(answer.statusCode, 200, answer.body)
  return ErasedTimePage.parse(answer.json())
}

test('hidden and erased time is listed with its deletion, newest first, in pages', async () => {
  const range = (start: string | null, end: string | null) => ({
    startNs: start === null ? null : day(start),
    endNs: end === null ? null : day(end),
  })
  const both = ['traces', 'logs'] as const
  gate.markErased('gone', { id: 'del_a', signals: both, range: range(null, '2025-11-02') })
  gate.markErased('gone', { id: 'del_b', signals: ['metrics'], range: range('2025-11-10', '2025-11-11') })
  gate.hide('gone', { id: 'del_c', signals: ['logs'], range: range('2025-11-20', null) })
  gate.hide('other', { id: 'del_d', signals: ['logs'], range: range(null, null) })
  const all = await erasedOf('gone.1')
  assert.deepEqual(all, {
    items: [
      {
        request_id: 'del_c',
        state: 'hidden',
        signals: ['logs'],
        range_start: '2025-11-20T12:00:00Z',
        range_end: null,
      },
      {
        request_id: 'del_b',
        state: 'erased',
        signals: ['metrics'],
        range_start: '2025-11-10T12:00:00Z',
        range_end: '2025-11-11T12:00:00Z',
      },
      {
        request_id: 'del_a',
        state: 'erased',
        signals: ['logs', 'traces'],
        range_start: null,
        range_end: '2025-11-02T12:00:00Z',
      },
    ],
    next_cursor: null,
  })
  const ids = ({ items }: Awaited<ReturnType<typeof erasedOf>>) => items.map(({ request_id: id }) => id)
  assert.deepEqual(ids(await erasedOf('gone.1', { range_start: '2025-11-11T12:00:00Z' })), ['del_c'])
  const first = await erasedOf('gone.1', { limit: '2' })
  const next = await erasedOf('gone.1', { limit: '2', cursor: first.next_cursor ?? '' })
  assert.deepEqual([ids(first), ids(next), next.next_cursor], [['del_c', 'del_b'], ['del_a'], null])
  gate.markErased('gone', { id: 'del_c', signals: ['logs'], range: range('2025-11-20', '2025-11-25') })
  assert.equal((await erasedOf('gone.1')).items[0]?.state, 'hidden', 'both at once: it is still hidden')
  gate.unhide('gone', 'del_c')
  assert.equal((await erasedOf('gone.1')).items[0]?.state, 'erased')
})

test('nothing is weighed for a client that has gone', async () => {
  const weigh = weighingForAnswers({ engine, tenancy: { sharesPlacement: async () => false } })
  const place = { tenantId: 'gone', placement: 40 }
  const readerUntil = (signal: AbortSignal) => new TenantReader(engine, place, gate, { signal })
  assert.equal((await weigh(readerUntil(new AbortController().signal)))('otel_logs', 'x', 1), 0)
  await assert.rejects(weigh(readerUntil(AbortSignal.abort())), { name: 'AbortError' })
})
