// A batch returns what each request returns alone: random rows of every table, random requests with
// repetitions, erased time, hidden time and a neighbour with the same names.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { aggregations } from '../../contract/telemetry/queries.ts'
import { assertClose } from '../../tests/assert-close.ts'
import { engineOfFile } from '../../tests/fixtures.ts'
import type { TenantPlace } from '../telemetry/engine.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import { tables } from '../telemetry/schema/tables.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { readSeriesBatch } from './batched-read.ts'
import { readSeries, type SeriesRequest } from './series.ts'

const engine = engineOfFile()

const t0 = 1_763_712_000
const at = (seconds: number): bigint => BigInt(t0 + seconds) * 1_000_000_000n
const services = ['shop', "o'clock", '']
const keysOf = {
  metrics: ['m', 'n\n"', 'nobody', 'f', 'f_bucket', 'ingest.rate'],
  traces: ['spans.rate', 'spans.error_ratio', 'spans.latency_p95', 'ingest.rate'],
  logs: ['logs.rate', 'logs.error_count'],
}

const anyRow = fc.record({
  t: fc.integer({ min: -400, max: 1000 }),
  metric: fc.constantFrom('m', 'n\n"', 'f_bucket', 'f_count'),
  service: fc.constantFrom(...services),
  host: fc.constantFrom('a', 'b'),
  value: fc.integer({ min: 0, max: 50 }),
})

type AnyRow = typeof anyRow extends fc.Arbitrary<infer Row> ? Row : never

/** Few different times and filters, so that many requests can share a statement. */
const anyRequest = (keys: readonly string[]): fc.Arbitrary<SeriesRequest> =>
  fc.record({
    metricKey: fc.constantFrom(...keys),
    service: fc.constantFrom(undefined, ...services),
    attributes: fc.constantFrom([], [['host', 'a'] as const]),
    groupBy: fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, fc.constantFrom('service', 'host')),
    aggregation: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, fc.constantFrom(...aggregations)),
    startNs: fc.constant(at(0)),
    endNs: fc.constantFrom(at(600), at(590)),
    stepSeconds: fc.constant(60),
    maxGroups: fc.constant(10),
  })

let organisations = 0

async function fill(place: TenantPlace, rows: readonly { table: string; row: FixtureRow }[]): Promise<void> {
  for (const { name } of tables) {
    const own = rows.filter(({ table }) => table === name).map(({ row }) => row)
    if (own.length > 0) await insertFixture(engine, place, name, own)
  }
}

function rowOf({ table, t, metric, service, host, value }: AnyRow & { table: string }) {
  const spec = tables.find(({ name }) => name === table)
  const given: Record<string, FixtureRow[string]> = {
    Timestamp: at(t),
    TimeUnix: at(t),
    StartTimeUnix: at(-400),
    ServiceName: service,
    MetricName: metric,
    MetricUnit: `{${metric}}`,
    ResourceAttributes: { host },
    Attributes: metric === 'f_bucket' ? { le: value % 2 === 0 ? '1' : '+Inf' } : {},
    Value: value,
    Count: value,
    Sum: value,
    AggregationTemporality: value % 3 === 0 ? 1 : 2,
    IsMonotonic: true,
    BucketCounts: [value, 1],
    ExplicitBounds: [10],
    SpanKind: 'Server',
    Duration: value * 1_000_000,
    StatusCode: value % 2 === 0 ? 'Error' : 'Unset',
    SeverityNumber: value,
  }
  const columns = new Set(spec?.columns.map(({ name }) => name))
  return { table, row: Object.fromEntries(Object.entries(given).filter(([name]) => columns.has(name))) }
}

test('a batch returns what each request returns alone', async () => {
  const anyCase = fc.constantFrom(...tables).chain(({ name, signal }) =>
    fc.record({
      table: fc.constant(name),
      rows: fc.array(anyRow, { maxLength: 30 }),
      requests: fc.array(anyRequest(keysOf[signal]), { minLength: 2, maxLength: 12 }),
      erased: fc.boolean(),
    }),
  )
  await fc.assert(
    fc.asyncProperty(anyCase, async ({ table, rows, requests, erased }) => {
      const number = organisations++
      const place = { tenantId: `org-${number}`, placement: number % 2 }
      const own = rows.map((row) => rowOf({ ...row, table }))
      await fill(place, own)
      await fill({ ...place, tenantId: `neighbour-${number}` }, own)
      const gate = new TelemetryGate()
      const range = { startNs: at(100), endNs: at(130) }
      if (erased) gate.hide(place.tenantId, { id: 'e', signals: ['metrics', 'traces'], range })
      const reader = new TenantReader(engine, place, gate)
      const alone = []
      for (const request of requests) alone.push(await readSeries(reader, request))
      assertClose(await readSeriesBatch(reader, requests), alone)
    }),
    { numRuns: 20 },
  )
})

test('two metrics of one source are two series, whose points are never related to each other', async () => {
  const place = { tenantId: 'twins', placement: 4 }
  const rows = [0, 60, 120, 180].flatMap((t) =>
    ['m', 'n'].map((metric) => ({
      TimeUnix: at(t),
      StartTimeUnix: at(-400),
      ServiceName: 'shop',
      MetricName: metric,
      Value: metric === 'm' ? t : 1_000_000 - t,
      Count: t,
      BucketCounts: metric === 'm' ? [t, 0] : [0, t],
      ExplicitBounds: [10],
      AggregationTemporality: 2,
      IsMonotonic: true,
    })),
  )
  await fill(
    place,
    rows.flatMap(({ Value, IsMonotonic, Count, BucketCounts, ExplicitBounds, ...common }) => [
      { table: 'otel_metrics_sum', row: { ...common, Value, IsMonotonic } },
      {
        table: 'otel_metrics_histogram',
        row: { ...common, MetricName: `h${common.MetricName}`, Count, BucketCounts, ExplicitBounds },
      },
    ]),
  )
  const reader = new TenantReader(engine, place, new TelemetryGate())
  const requests = ['m', 'n', 'hm', 'hn'].map((metricKey) => ({
    metricKey,
    startNs: at(0),
    endNs: at(240),
    stepSeconds: 60,
    maxGroups: 1,
  }))
  const alone = []
  for (const request of requests) alone.push(await readSeries(reader, request))
  assert.deepEqual(await readSeriesBatch(reader, requests), alone)
})

test('requests of one axis take two statements for all their metrics, and one for all services of a built-in', async () => {
  const place = { tenantId: 'counted', placement: 3 }
  const rows = services.map((service) => ({
    TimeUnix: at(5),
    ServiceName: service,
    MetricName: 'm',
    Value: 1,
  }))
  await insertFixture(engine, place, 'otel_metrics_gauge', rows)
  const spans = services.map((service) => ({ Timestamp: at(5), ServiceName: service, SpanKind: 'Server' }))
  await insertFixture(engine, place, 'otel_traces', spans)
  let statements = 0
  const counting = Object.assign(Object.create(engine), {
    select: (...args: Parameters<typeof engine.select>) => {
      statements++
      return engine.select(...args)
    },
  })
  const reader = new TenantReader(counting, place, new TelemetryGate())
  const requests = ['m', 'spans.rate'].flatMap((metricKey) =>
    [...services, ...services].map((service) => ({
      metricKey,
      service,
      startNs: at(0),
      endNs: at(600),
      stepSeconds: 60,
      maxGroups: 1,
    })),
  )
  const sets = await readSeriesBatch(reader, requests)
  assert.equal(statements, 3)
  assert.deepEqual(
    sets.map(({ groups }) => groups[0]?.values[0]),
    requests.map(({ metricKey }) => (metricKey === 'm' ? 1 : 1 / 60)),
  )
})
