// Series on a real engine: what each kind of metric means in each step, and the three ways of having no
// value.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { engineOfFile } from '../../tests/fixtures.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import type { TableName } from '../telemetry/schema/tables.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { readSeries, type SeriesRequest, type SeriesSet } from './series.ts'
import { replaySeries } from './series-replay.ts'

const engine = engineOfFile()

/** A whole number of hours, so that it is aligned to every step below. */
const t0 = 1_763_712_000_000_000_000n
const at = (seconds: number): bigint => t0 + BigInt(Math.round(seconds * 1000)) * 1_000_000n

const gate = new TelemetryGate()
let organisations = 0

/** Creates an organisation, in a placement that it shares with another one that has the same rows. */
async function organisation(rows: Partial<Record<TableName, readonly FixtureRow[]>>): Promise<TenantReader> {
  const number = organisations++
  const place = { tenantId: `org-${number}`, placement: number % 64 }
  const neighbour = { tenantId: `neighbour-${number}`, placement: number % 64 }
  for (const [table, given] of Object.entries(rows)) {
    await insertFixture(engine, place, table as TableName, given)
    await insertFixture(engine, neighbour, table as TableName, given)
  }
  return new TenantReader(engine, place, gate)
}

type Ask = Partial<SeriesRequest> & Pick<SeriesRequest, 'metricKey'>

function read(reader: TenantReader, ask: Ask): Promise<SeriesSet> {
  return readSeries(reader, { startNs: at(0), endNs: at(240), stepSeconds: 60, maxGroups: 50, ...ask })
}

const rounded = (values: Float64Array | undefined): (number | null)[] =>
  [...(values ?? [])].map((value) => (Number.isNaN(value) ? null : Math.round(value * 1e6) / 1e6))

async function values(reader: TenantReader, ask: Ask): Promise<(number | null)[]> {
  return rounded((await read(reader, ask)).groups[0]?.values)
}

const span = (seconds: number, more: FixtureRow = {}): FixtureRow => ({
  Timestamp: at(seconds),
  ServiceName: 'shop',
  SpanKind: 'Server',
  StatusCode: 'Unset',
  Duration: 10_000_000,
  ...more,
})

test('the rate of spans counts entry spans only, and is zero where a running service had none', async () => {
  const reader = await organisation({
    otel_traces: [
      span(-5000),
      span(1),
      span(2, { SpanKind: 'Client' }),
      span(3, { SpanKind: 'Consumer' }),
      span(190),
    ],
  })
  const set = await read(reader, { metricKey: 'spans.rate' })
  assert.deepEqual(rounded(set.groups[0]?.values), [0.033333, 0, 0, 0.016667])
  assert.deepEqual([...(set.groups[0]?.volume ?? [])], [2, 0, 0, 1])
  assert.deepEqual([set.unit, set.aggregation, set.steps], ['{span}/s', 'rate', 4])
  assert.deepEqual(await values(reader, { metricKey: 'spans.rate', aggregation: 'count' }), [2, 0, 0, 1])
})

test('before the first row of a service there is no data, and a service that stopped counts zero', async () => {
  const reader = await organisation({
    otel_logs: [
      { Timestamp: at(70), ServiceName: 'new' },
      { Timestamp: at(-9000), ServiceName: 'old' },
    ],
  })
  assert.deepEqual(await values(reader, { metricKey: 'logs.rate', service: 'new', aggregation: 'count' }), [
    null,
    1,
    0,
    0,
  ])
  assert.deepEqual(await values(reader, { metricKey: 'logs.rate', service: 'old' }), [0, 0, 0, 0])
  assert.deepEqual((await read(reader, { metricKey: 'logs.rate', service: 'never' })).groups, [])
})

test('errors are counted from severity 17 up, and a service without errors has zero errors rather than no data', async () => {
  const log = (seconds: number, SeverityNumber: number, route: string): FixtureRow => ({
    Timestamp: at(seconds),
    ServiceName: 'shop',
    SeverityNumber,
    LogAttributes: { route },
  })
  const reader = await organisation({
    otel_logs: [log(1, 16, '/a'), log(61, 17, '/a'), log(62, 21, '/b'), log(200, 9, '/a')],
  })
  const metricKey = 'logs.error_count'
  assert.deepEqual(await values(reader, { metricKey }), [0, 2, 0, 0])
  assert.deepEqual(await values(reader, { metricKey, attributes: { route: '/b' } }), [0, 1, 0, 0])
  assert.deepEqual(await values(reader, { metricKey, attributes: [['route', '/c']] }), [0, 0, 0, 0])
})

test('error ratio and latency quantiles use entry spans only, and have no data without any', async () => {
  const reader = await organisation({
    otel_traces: [
      ...Array.from({ length: 101 }, (_, i) => span(i / 10, { Duration: (i * 1_000_000).toString() })),
      span(20, { StatusCode: 'Error', Duration: 1e9, SpanKind: 'Client' }),
      span(130, { StatusCode: 'Error', Duration: 7_000_000 }),
      span(131, { Duration: 9_000_000 }),
    ],
  })
  assert.deepEqual(await values(reader, { metricKey: 'spans.error_ratio' }), [0, null, 0.5, null])
  assert.deepEqual(await values(reader, { metricKey: 'spans.latency_p50' }), [50, null, 8, null])
  assert.deepEqual(await values(reader, { metricKey: 'spans.latency_p99' }), [99, null, 8.98, null])
})

test('the ingest rate adds the rows of all three signals up', async () => {
  const point = { TimeUnix: at(5), MetricName: 'm' }
  const reader = await organisation({
    otel_logs: [{ Timestamp: at(1) }, { Timestamp: at(100) }],
    otel_traces: [span(3, { SpanKind: 'Internal' })],
    otel_metrics_gauge: [point],
    otel_metrics_sum: [point],
    otel_metrics_histogram: [point],
    otel_metrics_exponential_histogram: [point],
    otel_metrics_summary: [point],
  })
  const set = await read(reader, { metricKey: 'ingest.rate', aggregation: 'count' })
  assert.deepEqual(rounded(set.groups[0]?.values), [7, 1, 0, 0])
  assert.deepEqual(set.signals, ['metrics', 'logs', 'traces'])
})

const gauge = (seconds: number, Value: number, more: FixtureRow = {}): FixtureRow => ({
  TimeUnix: at(seconds),
  MetricName: 'memory',
  MetricUnit: 'By',
  ServiceName: 'shop',
  Value,
  ...more,
})

test('a gauge is averaged by default, and its sum adds series and not readings', async () => {
  const pod = (name: string) => ({ Attributes: { pod: name } })
  const reader = await organisation({
    otel_metrics_gauge: [
      gauge(1, 10, pod('a')),
      gauge(31, 20, pod('a')),
      gauge(5, 6, pod('b')),
      gauge(40, 1e9, { Flags: 1 }),
      gauge(-30, 1e9),
    ],
  })
  const expected = { avg: 12, sum: 21, min: 6, max: 20, count: 3, last: 13, p50: 10 }
  for (const [aggregation, value] of Object.entries(expected)) {
    const ask = { metricKey: 'memory', aggregation } as Ask
    assert.deepEqual(await values(reader, ask), [value, null, null, null], aggregation)
  }
  const set = await read(reader, { metricKey: 'memory' })
  assert.deepEqual([set.aggregation, set.unit], ['avg', 'By'])
})

test('steps are aligned to multiples of their length since 1970', async () => {
  const reader = await organisation({ otel_metrics_gauge: [gauge(0, 1), gauge(119, 2)] })
  const set = await read(reader, { metricKey: 'memory', startNs: at(59), endNs: at(61) })
  assert.equal(set.startNs, at(0))
  assert.deepEqual(rounded(set.groups[0]?.values), [1, 2])
})

const counter = (seconds: number, Value: number, more: FixtureRow = {}): FixtureRow => ({
  TimeUnix: at(seconds),
  StartTimeUnix: at(-90_000),
  MetricName: 'requests',
  MetricUnit: '{request}',
  ServiceName: 'shop',
  AggregationTemporality: 2,
  IsMonotonic: true,
  Value,
  ...more,
})

test('the rate of a cumulative counter is distributed over the time between points, for any step', async () => {
  const reader = await organisation({
    otel_metrics_sum: [-30, 30, 90, 150, 210].map((seconds, i) => counter(seconds, 1000 + i * 120)),
  })
  const set = await read(reader, { metricKey: 'requests' })
  assert.deepEqual([set.aggregation, set.unit], ['rate', '{request}/s'])
  assert.deepEqual(rounded(set.groups[0]?.values), [2, 2, 2, 2])
  const first = await values(reader, { metricKey: 'requests', endNs: at(120) })
  assert.deepEqual(first, [2, 2], 'the point after the end completes the last step')
  const fine = await values(reader, { metricKey: 'requests', stepSeconds: 10 })
  assert.deepEqual(fine, Array(24).fill(2), 'the next point is not late yet, so the last gain continues')
  assert.deepEqual(await values(reader, { metricKey: 'requests', aggregation: 'sum' }), [120, 120, 120, 120])
  const longer: Ask = { metricKey: 'requests', endNs: at(300), aggregation: 'increase' }
  assert.deepEqual(
    await values(reader, longer),
    [120, 120, 120, 60, null],
    'it ended, and its start is known',
  )
})

test('a restarted counter counts from zero, and each underlying series separately', async () => {
  const pod = (name: string, StartTimeUnix: bigint) => ({ Attributes: { pod: name }, StartTimeUnix })
  const reader = await organisation({
    otel_metrics_sum: [
      counter(0, 5000, pod('a', at(-90_000))),
      counter(60, 5060, pod('a', at(-90_000))),
      counter(120, 30, pod('a', at(60))),
      counter(180, 90, pod('a', at(60))),
      counter(180, 60, pod('b', at(120))),
    ],
  })
  assert.deepEqual(await values(reader, { metricKey: 'requests' }), [1, 0.5, 2, 1])
  const longer: Ask = { metricKey: 'requests', aggregation: 'sum', endNs: at(300) }
  assert.deepEqual(await values(reader, longer), [60, 30, 120, null, null])
})

test('attributes in another order are the same series, and a series without a known start extends half an interval', async () => {
  const reader = await organisation({
    otel_metrics_sum: [
      counter(0, 700, { Attributes: { a: '1', b: '2' }, StartTimeUnix: 0n }),
      counter(60, 760, { Attributes: { b: '2', a: '1' }, StartTimeUnix: 0n }),
    ],
  })
  assert.deepEqual(await values(reader, { metricKey: 'requests', aggregation: 'sum' }), [60, 30, null, null])
})

test('a series that began inside without a start counts from when it was zero, and at most half an interval before', async () => {
  const pod = (name: string) => ({ Attributes: { pod: name }, StartTimeUnix: 0n })
  const reader = await organisation({
    otel_metrics_sum: [
      counter(60, 700, pod('a')),
      counter(100, 740, pod('a')),
      counter(60, 5, pod('b')),
      counter(100, 45, pod('b')),
    ],
  })
  const ask: Ask = { metricKey: 'requests', aggregation: 'increase', groupBy: 'pod' }
  const set = await read(reader, ask)
  const found = new Map(set.groups.map(({ group, values }) => [group, rounded(values)]))
  assert.deepEqual(found.get('a'), [20, 60, null, null])
  assert.deepEqual(found.get('b'), [5, 60, null, null])
})

test('the rate of an incomplete step is over the part of it that has passed', async () => {
  const points = [0, 60, 120, 180].map((seconds) => counter(seconds, seconds * 2))
  const reader = await organisation({ otel_metrics_sum: points })
  const ask: Ask = { metricKey: 'requests', nowNs: at(200) }
  assert.deepEqual(await values(reader, ask), [2, 2, 2, 2])
  assert.deepEqual(await values(reader, { ...ask, aggregation: 'increase' }), [120, 120, 120, 40])
  const hourly: Ask = { ...ask, nowNs: at(203), stepSeconds: 7200, endNs: at(7200) }
  assert.deepEqual(await values(reader, hourly), [2])
})

test('a rate is the increase in a step over the whole step, so a short job is not a spike', async () => {
  const job = { StartTimeUnix: at(100) }
  const reader = await organisation({ otel_metrics_sum: [counter(100, 0, job), counter(110, 100, job)] })
  const ask: Ask = { metricKey: 'requests', endNs: at(600), stepSeconds: 600 }
  assert.deepEqual(await values(reader, ask), [0.166667])
  assert.deepEqual(await values(reader, { ...ask, aggregation: 'increase' }), [100])
})

test('the increase of a counter is the same for any step, and equals the rate times the step', async () => {
  const reader = await organisation({
    otel_metrics_sum: [
      counter(-20, 1000),
      counter(35, 1030),
      counter(95, 1111),
      counter(160, 40, { StartTimeUnix: at(120) }),
      counter(250, 90, { StartTimeUnix: at(120) }),
    ],
  })
  for (const stepSeconds of [10, 60, 120, 240]) {
    const ask: Ask = { metricKey: 'requests', stepSeconds }
    const increase = await values(reader, { ...ask, aggregation: 'increase' })
    const rate = await values(reader, ask)
    const total = increase.reduce<number>((sum, one) => sum + (one ?? 0), 0)
    const gained = (30 * 35) / 55 + 81 + 40 + (50 * 80) / 90
    assert.ok(Math.abs(total - gained) < 1e-4, `${total} of ${gained} at ${stepSeconds} s`)
    rate.forEach((value, i) => {
      assert.ok(Math.abs((value ?? 0) * stepSeconds - (increase[i] ?? 0)) < 1e-3, `step ${i}`)
    })
  }
})

test('a deployment in the middle of a step changes no rate', async () => {
  const pod = (name: string, start: number) => ({ Attributes: { pod: name }, StartTimeUnix: at(start) })
  const old = [-60, 0, 60, 90].map((seconds) => counter(seconds, 6000 + seconds * 10, pod('a', -600)))
  const young = [90, 120, 180, 240].map((seconds) => counter(seconds, (seconds - 90) * 10, pod('b', 90)))
  const reader = await organisation({ otel_metrics_sum: [...old, ...young] })
  assert.deepEqual(await values(reader, { metricKey: 'requests' }), [10, 10, 10, 10])
})

test('two overlapping processes of one identity are distinguished by their start', async () => {
  const started = (seconds: number) => ({ StartTimeUnix: at(seconds) })
  const reader = await organisation({
    otel_metrics_sum: [
      counter(0, 5000, started(-900)),
      counter(60, 5060, started(-900)),
      counter(70, 10, started(50)),
      counter(80, 5070, started(-900)),
      counter(120, 60, started(50)),
    ],
  })
  const ask: Ask = { metricKey: 'requests', aggregation: 'increase', endNs: at(120), stepSeconds: 120 }
  assert.deepEqual(await values(reader, ask), [130])
})

test('a counter whose start is not in the range counts from its first point, as the Collector marks it', async () => {
  const seen = { StartTimeUnix: at(30) }
  const points = [counter(30, 90_000, seen), counter(60, 90_060, seen), counter(90, 90_120, seen)]
  const reader = await organisation({ otel_metrics_sum: points })
  const ask: Ask = { metricKey: 'requests', aggregation: 'increase', endNs: at(90), stepSeconds: 90 }
  assert.deepEqual(await values(reader, ask), [120])
})

test('a delta counter counts in the step of its point and is zero in steps without one', async () => {
  const delta = { AggregationTemporality: 1 }
  const reader = await organisation({
    otel_metrics_sum: [counter(61, 30, delta), counter(62, 30, delta), counter(190, 6, delta)],
  })
  assert.deepEqual(await values(reader, { metricKey: 'requests' }), [null, 1, 0, 0.1])
  assert.deepEqual(await values(reader, { metricKey: 'requests', aggregation: 'sum' }), [null, 60, 0, 6])
})

test('a delta that covers more time than the remaining part of a cut step is not a spike there', async () => {
  const delta = (seconds: number, since: number, value: number) =>
    counter(seconds, value, { AggregationTemporality: 1, StartTimeUnix: at(since) })
  const minutes = await organisation({ otel_metrics_sum: [delta(60, 0, 30), delta(122, 62, 30)] })
  const ask: Ask = { metricKey: 'requests', isExact: true, endNs: at(125) }
  assert.deepEqual(await values(minutes, ask), [null, 0.5, 0.5])
  assert.deepEqual(await values(minutes, { ...ask, aggregation: 'increase' }), [null, 30, 30])
  const seconds = await organisation({ otel_metrics_sum: [delta(121, 120, 3), delta(122, 121, 2)] })
  assert.deepEqual(await values(seconds, ask), [null, null, 1])
})

test('a sum that may decrease is a level by default, and its rate is its change', async () => {
  const level = { IsMonotonic: false }
  const reader = await organisation({
    otel_metrics_sum: [counter(0, 100, level), counter(60, 40, level), counter(120, 70, level)],
  })
  const set = await read(reader, { metricKey: 'requests' })
  assert.equal(set.aggregation, 'avg')
  assert.deepEqual(rounded(set.groups[0]?.values), [100, 40, 70, null])
  const ask: Ask = { metricKey: 'requests', aggregation: 'rate' }
  assert.deepEqual(await values(reader, ask), [-1, 0.5, null, null])
  assert.deepEqual(await values(reader, { ...ask, aggregation: 'increase' }), [-60, 30, null, null])
})

const histogram = (seconds: number, BucketCounts: readonly number[], more: FixtureRow = {}): FixtureRow => ({
  TimeUnix: at(seconds),
  StartTimeUnix: at(-90_000),
  MetricName: 'latency',
  MetricUnit: 'ms',
  ServiceName: 'shop',
  AggregationTemporality: 1,
  Count: BucketCounts.reduce((sum, count) => sum + count, 0),
  Sum: 100,
  BucketCounts,
  ExplicitBounds: [10, 20, 40],
  ...more,
})

test('a histogram has quantiles that are interpolated within its buckets', async () => {
  const reader = await organisation({
    otel_metrics_histogram: [
      histogram(1, [0, 50, 50, 0]),
      histogram(61, [10, 0, 0, 0]),
      histogram(121, [0, 0, 0, 5]),
    ],
  })
  const set = await read(reader, { metricKey: 'latency' })
  assert.deepEqual([set.aggregation, set.unit], ['p95', 'ms'])
  assert.deepEqual(rounded(set.groups[0]?.values), [38, 9.5, 40, null])
  assert.deepEqual([...(set.groups[0]?.volume ?? [])], [100, 10, 5, 0])
  assert.deepEqual(await values(reader, { metricKey: 'latency', aggregation: 'p50' }), [20, 5, 40, null])
  assert.deepEqual(await values(reader, { metricKey: 'latency', aggregation: 'avg' }), [1, 10, 20, null])
})

test('a cumulative histogram counts the increase since the previous point, also at a reset', async () => {
  const cumulative = (seconds: number, counts: readonly number[], Sum: number, start = -90_000) =>
    histogram(seconds, counts, { AggregationTemporality: 2, Sum, StartTimeUnix: at(start) })
  const reader = await organisation({
    otel_metrics_histogram: [
      cumulative(-50, [900, 0, 0, 0], 1000),
      cumulative(10, [900, 100, 0, 0], 2500),
      cumulative(70, [900, 100, 10, 0], 2800),
      cumulative(130, [0, 4, 0, 0], 60, 80),
    ],
  })
  assert.deepEqual(await values(reader, { metricKey: 'latency', aggregation: 'p50' }), [15, 30, 15, null])
  assert.deepEqual(await values(reader, { metricKey: 'latency', aggregation: 'avg' }), [15, 30, 15, null])
  assert.deepEqual(await values(reader, { metricKey: 'latency', aggregation: 'count' }), [
    25,
    4.866667,
    0.8,
    null,
  ])
})

test('histograms with different bounds add up', async () => {
  const reader = await organisation({
    otel_metrics_histogram: [
      histogram(1, [0, 50, 0, 0]),
      histogram(2, [0, 50], { ExplicitBounds: [20], Attributes: { pod: 'b' } }),
    ],
  })
  assert.deepEqual(await values(reader, { metricKey: 'latency', aggregation: 'p50' }), [20, null, null, null])
})

const exponential = (seconds: number, counts: readonly number[], more: FixtureRow = {}): FixtureRow => ({
  TimeUnix: at(seconds),
  StartTimeUnix: at(-90_000),
  MetricName: 'size',
  ServiceName: 'shop',
  AggregationTemporality: 1,
  Count: counts.reduce((sum, count) => sum + count, 0),
  Sum: 100,
  Scale: 0,
  PositiveOffset: 1,
  PositiveBucketCounts: counts,
  ...more,
})

test('an exponential histogram has quantiles, also when its scale changes between cumulative points', async () => {
  const cumulative = { AggregationTemporality: 2 }
  const reader = await organisation({
    otel_metrics_exponential_histogram: [
      // Scale 1: (2, 2.83], (2.83, 4], (4, 5.66], (5.66, 8].
      exponential(-60, [4, 4, 0, 0], { ...cumulative, Scale: 1, PositiveOffset: 2 }),
      // Scale 0: (2, 4], (4, 8]: the same eight and ten more.
      exponential(30, [8, 10], cumulative),
    ],
  })
  const [middle] = await values(reader, { metricKey: 'size', aggregation: 'p50' })
  assert.ok(middle !== undefined && middle !== null && middle > 4 && middle <= 8, String(middle))
  const delta = await organisation({
    otel_metrics_exponential_histogram: [
      exponential(30, [0, 10], { ZeroCount: 0 }),
      exponential(90, [], { ZeroCount: 3, Count: 3 }),
      exponential(150, [], { NegativeOffset: 1, NegativeBucketCounts: [10], Count: 10 }),
    ],
  })
  assert.deepEqual(await values(delta, { metricKey: 'size', aggregation: 'p50' }), [6, 0, -3, null])
})

test('a summary has a mean from count and sum, and the quantiles that were sent', async () => {
  const summary = (seconds: number, Count: number, Sum: number): FixtureRow => ({
    TimeUnix: at(seconds),
    StartTimeUnix: at(-90_000),
    MetricName: 'wait',
    ServiceName: 'shop',
    Count,
    Sum,
    'ValueAtQuantiles.Quantile': [0, 0.5, 0.99],
    'ValueAtQuantiles.Value': [1, seconds, 9],
  })
  const reader = await organisation({
    otel_metrics_summary: [summary(-60, 10, 100), summary(0, 20, 400), summary(60, 20, 400)],
  })
  assert.deepEqual(await values(reader, { metricKey: 'wait' }), [30, null, null, null])
  assert.deepEqual(await values(reader, { metricKey: 'wait', aggregation: 'p50' }), [0, 60, null, null])
  assert.deepEqual(await values(reader, { metricKey: 'wait', aggregation: 'p90' }), [null, null, null, null])
  assert.deepEqual(await values(reader, { metricKey: 'wait', aggregation: 'min' }), [1, 1, null, null])
})

/**
 * The counters of a classic histogram at one scrape: the number of observations at or below each bound, and
 * their sum.
 */
const scrape = (
  seconds: number,
  buckets: Readonly<Record<string, number>>,
  total: number,
  attributes: Readonly<Record<string, string>> = {},
): FixtureRow[] => {
  const own = (suffix: string, Value: number, more: Readonly<Record<string, string>> = {}) =>
    counter(seconds, Value, {
      MetricName: `wait_seconds${suffix}`,
      MetricUnit: 's',
      StartTimeUnix: 0n,
      Attributes: { ...attributes, ...more },
    })
  return [
    ...Object.entries(buckets).map(([le, count]) => own('_bucket', count, { le })),
    own('_count', Math.max(...Object.values(buckets))),
    own('_sum', total),
  ]
}

test('counters of a classic histogram are read as a histogram, by either name', async () => {
  const reader = await organisation({
    otel_metrics_sum: [
      ...scrape(0, { '0.5': 100, '1': 100, '+Inf': 100 }, 40),
      ...scrape(60, { '0.5': 110, '1': 140, '+Inf': 140 }, 64),
      ...scrape(120, { '0.5': 120, '1': 140, '+Inf': 160 }, 94),
    ],
  })
  const ask: Ask = { metricKey: 'wait_seconds', endNs: at(120) }
  const set = await read(reader, ask)
  assert.deepEqual([set.aggregation, set.unit], ['p95', 's'])
  assert.deepEqual(rounded(set.groups[0]?.values), [0.966667, 1])
  assert.deepEqual([...(set.groups[0]?.volume ?? [])], [40, 20])
  for (const metricKey of ['wait_seconds', 'wait_seconds_bucket']) {
    assert.deepEqual(await values(reader, { ...ask, metricKey, aggregation: 'p50' }), [0.666667, 0.5])
  }
  assert.deepEqual(await values(reader, { ...ask, aggregation: 'avg' }), [0.6, 1.5])
  assert.deepEqual(await values(reader, { ...ask, aggregation: 'count' }), [40, 20])
  assert.deepEqual(await values(reader, { ...ask, aggregation: 'increase' }), [40, 20])
  assert.deepEqual(await values(reader, { ...ask, aggregation: 'sum' }), [24, 30])
  assert.equal((await read(reader, { ...ask, aggregation: 'max' })).aggregation, 'p95')
  assert.equal((await read(reader, { ...ask, aggregation: 'rate' })).unit, '1/s')
  const buckets = await read(reader, { ...ask, metricKey: 'wait_seconds_bucket', groupBy: 'le' })
  assert.deepEqual(
    new Map(buckets.groups.map(({ group, values }) => [group, rounded(values)[0]])),
    new Map([
      ['0.5', 0.166667],
      ['1', 0.666667],
      ['+Inf', 0.666667],
    ]),
    'a bucket is a counter too',
  )
})

test('a replay of the past reads a classic histogram like a read at its instant', async () => {
  const points = [0, 60, 120, 180].flatMap((t) => scrape(t, { '0.5': t, '1': t * 2, '+Inf': t * 3 }, t))
  const reader = await organisation({ otel_metrics_sum: points })
  const whole = { startNs: at(0), endNs: at(240), stepSeconds: 60, maxGroups: 5 }
  const window = { startNs: at(60), endNs: at(120) }
  for (const metricKey of ['wait_seconds', 'wait_seconds_bucket']) {
    const request = { ...whole, metricKey, aggregation: 'p50' } as const
    const replay = await replaySeries(reader, request)
    assert.equal(replay.rows, 12)
    const found = await replay.window({ ...window, knownUntilNs: at(130) })
    assert.deepEqual(found, await readSeries(reader.until(at(130)), { ...request, ...window }))
    assert.deepEqual(rounded(found.groups[0]?.values), [0.75])
  }
})

test('bounds are parsed in any spelling, for each group, and without the open bucket there is no quantile', async () => {
  const reader = await organisation({
    otel_metrics_sum: [
      ...scrape(0, { '0.5': 0, '1': 0, '+Inf': 0 }, 0, { pod: 'a' }),
      ...scrape(60, { '0.5': 10, '1': 20, '+Inf': 20 }, 9, { pod: 'a' }),
      ...scrape(0, { '5e-1': 0, '1.0': 0, Inf: 0, tall: 0 }, 0, { pod: 'b' }),
      ...scrape(60, { '5e-1': 30, '1.0': 60, Inf: 60, tall: 9 }, 9, { pod: 'b' }),
      ...scrape(0, { '0.5': 0, '1': 0 }, 0, { pod: 'c' }),
      ...scrape(60, { '0.5': 30, '1': 60 }, 9, { pod: 'c' }),
    ],
  })
  const ask: Ask = { metricKey: 'wait_seconds', aggregation: 'p50', endNs: at(60) }
  assert.deepEqual(await values(reader, { ...ask, attributes: { pod: 'b' } }), [0.5])
  assert.deepEqual(await values(reader, { ...ask, attributes: { pod: 'c' } }), [])
  const byPod = await read(reader, { ...ask, groupBy: 'pod' })
  assert.deepEqual(
    byPod.groups.map(({ group, values }) => [group, rounded(values)]),
    [
      ['b', [0.5]],
      ['a', [0.5]],
    ],
  )
  assert.equal(byPod.truncatedGroups, 0)
})

test('counters that are named like those of a histogram but have no buckets are not a histogram', async () => {
  const reader = await organisation({
    otel_metrics_sum: [
      ...[0, 60].map((seconds) => counter(seconds, seconds, { MetricName: 'jobs_count' })),
      ...[0, 60].map((seconds) => counter(seconds, seconds, { MetricName: 'leaky_bucket' })),
    ],
  })
  for (const aggregation of [undefined, 'rate', 'p95', 'avg'] as const) {
    assert.deepEqual((await read(reader, { metricKey: 'jobs', aggregation })).groups, [])
    assert.deepEqual((await read(reader, { metricKey: 'leaky', aggregation })).groups, [])
  }
  assert.deepEqual(await values(reader, { metricKey: 'leaky_bucket', endNs: at(60) }), [1])
})

test('groups are the busiest first, found by the record and then by its resource, and the rest are counted', async () => {
  const log = (seconds: number, zone: string | null, resourceZone: string): FixtureRow => ({
    Timestamp: at(seconds),
    ServiceName: `in-${zone ?? resourceZone}`,
    LogAttributes: zone === null ? {} : { zone },
    ResourceAttributes: { zone: resourceZone },
  })
  const reader = await organisation({
    otel_logs: [
      log(1, 'a', 'x'),
      log(2, 'b', 'x'),
      log(70, 'b', 'x'),
      log(3, null, 'c'),
      log(4, null, 'c'),
      log(5, null, 'c'),
    ],
  })
  const ask: Ask = { metricKey: 'logs.rate', aggregation: 'count', groupBy: 'zone', maxGroups: 2 }
  const set = await read(reader, ask)
  assert.equal(set.truncatedGroups, 1)
  assert.deepEqual(
    set.groups.map(({ group, values }) => [group, rounded(values)]),
    [
      ['c', [3, 0, 0, 0]],
      ['b', [1, 1, 0, 0]],
    ],
  )
  const services = await read(reader, { ...ask, groupBy: 'service', maxGroups: 9 })
  assert.deepEqual(
    services.groups.map(({ group }) => group),
    ['in-c', 'in-b', 'in-a'],
  )
})

for (const groupBy of ['zone', ['zone', 'zone']]) {
  const keys = typeof groupBy === 'string' ? 'one key' : 'several keys'
  test(`groups of ${keys} with long names are left out and counted, after all others`, async () => {
    const zones = { a: 1, b: 2, ['ü'.repeat(100)]: 5, ['\u0001'.repeat(40)]: 4, ['x'.repeat(90)]: 3 }
    const rows = Object.entries(zones).flatMap(([zone, count]) =>
      Array.from({ length: count }, (_, i) => ({
        Timestamp: at(60 * (i % 2) + i),
        ServiceName: 'shop',
        LogAttributes: { zone },
      })),
    )
    const reader = await organisation({ otel_logs: rows })
    const ask = { metricKey: 'logs.rate', groupBy, startNs: at(0), endNs: at(240), stepSeconds: 60 }
    const request = { ...ask, maxGroups: 9, groupBytesMax: groupBy === 'zone' ? 100 : 200 }
    const replay = await replaySeries(reader, request)
    const window = { startNs: at(0), endNs: at(240), knownUntilNs: at(240) }
    const seen = async (maxGroups: number) => {
      const set = await readSeries(reader, { ...request, maxGroups })
      const again = await replay.window({ ...window, maxGroups })
      assert.deepEqual({ ...again, counted: null }, { ...set, counted: null }, 'a replay reads the same')
      const names = set.groups.map(({ group }) =>
        JSON.stringify(group)
          .replaceAll(/[^abxü]/g, '')
          .slice(0, 2),
      )
      return [names.map(([name]) => name), set.longGroups, set.truncatedGroups]
    }
    assert.deepEqual(await seen(9), [['x', 'b', 'a'], 2, 0])
    assert.deepEqual(await seen(4), [['x', 'b', 'a'], 2, 0], 'also where not all of them fit')
    assert.deepEqual(await seen(3), [['x', 'b', 'a'], 0, 2], 'they take no place of others')
    assert.deepEqual(await seen(2), [['x', 'b'], 0, 3])
    const whole = await read(reader, { ...ask, maxGroups: 9 })
    assert.deepEqual([whole.groups.length, whole.longGroups], [5, 0], 'without a limit all are there')
  })
}

test('erased and hidden time is unknown, also for a counter with points before and after it', async () => {
  const reader = await organisation({
    otel_logs: [{ Timestamp: at(-900) }, ...[5, 65, 125, 185].map((seconds) => ({ Timestamp: at(seconds) }))],
    otel_metrics_sum: [0, 60, 120, 180, 240].map((seconds, i) => counter(seconds, i * 60)),
  })
  const { tenantId } = reader.place
  const range = { startNs: at(70), endNs: at(121) }
  gate.hide(tenantId, { id: 'del_1', signals: ['logs', 'metrics'], range })
  const ask: Ask = { metricKey: 'logs.rate', aggregation: 'count' }
  const set = await read(reader, ask)
  assert.deepEqual([...set.unknown], [0, 1, 1, 0])
  assert.deepEqual(rounded(set.groups[0]?.values), [1, null, null, 1])
  assert.deepEqual([...(set.groups[0]?.volume ?? [])], [1, 0, 0, 1])
  const [, , third, fourth, fifth, ...rest] = await values(reader, { metricKey: 'requests', stepSeconds: 30 })
  assert.deepEqual([third, fourth, fifth], [null, null, null])
  assert.deepEqual(rest, [1, 1, 1])
  gate.unhide(tenantId, 'del_1')
  assert.deepEqual(await values(reader, ask), [1, 1, 1, 1])
  gate.markErased(tenantId, { id: 'del_1', signals: ['logs'], range: { startNs: null, endNs: at(60) } })
  assert.deepEqual(await values(reader, ask), [null, 1, 1, 1])
})

test('a metric nobody sent has no groups', async () => {
  const reader = await organisation({})
  const set = await read(reader, {
    metricKey: "' OR 1 = 1 --",
    groupBy: "') --",
    service: "\\'; drop table x",
  })
  assert.deepEqual([set.groups, set.unit, set.truncatedGroups], [[], '', 0])
  for (const metricKey of ['spans.rate', 'ingest.rate', 'logs.error_count']) {
    assert.deepEqual((await read(reader, { metricKey })).groups, [])
  }
})

test('more steps than the limit are refused before the engine is called', async () => {
  const reader = await organisation({})
  await assert.rejects(
    read(reader, { metricKey: 'm', endNs: at(11_001), stepSeconds: 1 }),
    /1 to 11000 steps/,
  )
  assert.equal((await read(reader, { metricKey: 'm', endNs: at(11_000), stepSeconds: 1 })).steps, 11_000)
})
