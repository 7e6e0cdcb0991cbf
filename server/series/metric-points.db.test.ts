// The computation from points equals that of the engine: random rows of every kind with gaps, resets,
// restarts, deltas among cumulative points, changed bounds and scales, repeated points and hidden time, read
// both ways. Also tests how the kind of a metric is found, remembered and forgotten.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Aggregation, aggregations } from '../../contract/telemetry/queries.ts'
import { assertClose } from '../../tests/assert-close.ts'
import { delegate, engineOfFile } from '../../tests/fixtures.ts'
import type { TelemetryEngine, TenantPlace } from '../telemetry/engine.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import { tables } from '../telemetry/schema/tables.ts'
import { raw } from '../telemetry/sql.ts'
import { type From, TenantReader } from '../telemetry/tenant-reader.ts'
import { isOfParts, type PartRow, settleRows } from './classic-histogram.ts'
import { aggregationOf, isStepwise, type MetricKind, metricKinds, tableOf } from './metric-kind.ts'
import { pointsMax, readMetricPoints } from './metric-points.ts'
import { metricStatement } from './metric-series.ts'
import { groupsOfPoints } from './point-series.ts'
import { frameOf, readSeries, type SeriesRequest } from './series.ts'
import { groupsOf, type PackedGroup, type SeriesRow } from './series-statement.ts'

const engine = engineOfFile()

const t0 = 1_763_712_000
const lengthSeconds = 600
const at = (seconds: number): bigint => BigInt(t0) * 1_000_000_000n + BigInt(Math.round(seconds * 1e9))

const anyBounds = fc.constantFrom([10, 20, 40], [10, 20, 40], [10, 30], [-5, 20], [0, 10], [])

/** A point of one of four underlying series, by its increase. */
const anyStep = fc.record({
  pod: fc.constantFrom('a', 'b'),
  service: fc.constantFrom('shop', "o'clock"),
  gapSeconds: fc.oneof(fc.integer({ min: 1, max: 130 }), fc.double({ min: 0.001, max: 400, noNaN: true })),
  added: fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 4, maxLength: 4 }),
  restart: fc.constantFrom('none', 'none', 'none', 'none', 'none', 'same start', 'new start'),
  isStartTold: fc.constantFrom(true, true, false),
  bounds: anyBounds,
  temporality: fc.constantFrom(2, 2, 2, 1),
  isMonotonic: fc.constantFrom(true, true, false),
  flags: fc.constantFrom(0, 0, 0, 0, 1),
  scale: fc.constantFrom(0, 0, 1, -1),
  offset: fc.integer({ min: -2, max: 2 }),
  isRepeated: fc.constantFrom(false, false, true),
  isTurned: fc.boolean(),
})

type Step = typeof anyStep extends fc.Arbitrary<infer One> ? One : never

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

/** Rows with every column that some kind of metric has. */
function rowsOf(firstSeconds: number, steps: readonly Step[]): FixtureRow[] {
  const known = new Map<string, { t: number; start: number; counts: number[] }>()
  return steps.flatMap((step): FixtureRow[] => {
    const { pod, service, restart, temporality } = step
    const id = `${pod} ${service} ${temporality}`
    const before = known.get(id) ?? { t: firstSeconds, start: firstSeconds, counts: [0, 0, 0, 0] }
    const start = restart === 'new start' ? before.t + 0.5 : before.start
    const t = Math.round((before.t + step.gapSeconds) * 1000) / 1000
    const isNew = restart !== 'none' || temporality === 1
    const counts = before.counts.map((count, i) => (isNew ? 0 : count) + (step.added[i] ?? 0))
    known.set(id, { t, start, counts })
    const attributes = step.isTurned ? { pod, zone: 'z' } : { zone: 'z', pod }
    const row: FixtureRow = {
      TimeUnix: at(t),
      StartTimeUnix: step.isStartTold ? at(start) : 0n,
      ServiceName: service,
      MetricName: 'm',
      MetricUnit: 'By',
      Attributes: attributes,
      Flags: step.flags,
      AggregationTemporality: temporality,
      IsMonotonic: step.isMonotonic,
      Value: sum(counts),
      Count: sum(counts),
      Sum: counts.reduce((total, count, i) => total + count * (i + 0.25), 0),
      BucketCounts: counts.slice(0, step.bounds.length + 1),
      ExplicitBounds: step.bounds,
      Scale: step.scale,
      ZeroCount: counts[0] ?? 0,
      PositiveOffset: step.offset,
      PositiveBucketCounts: counts.slice(1),
      NegativeOffset: step.offset,
      NegativeBucketCounts: counts.slice(2, 2 + (step.offset & 1)),
    }
    return step.isRepeated ? [row, row] : [row]
  })
}

const labels = ['0.5', '1e1', '+Inf', 'wide']

/** The counters of a classic histogram with the same counts as a row of a histogram. */
function familyOf(row: FixtureRow, counts: readonly number[]): FixtureRow[] {
  const attributes = row.Attributes as Record<string, string>
  const buckets = counts.map((_, i) => ({
    ...row,
    MetricName: 'm_bucket',
    Attributes: { ...attributes, le: labels[i] ?? '' },
    Value: sum(counts.slice(0, i + 1)),
  }))
  return [
    ...buckets,
    { ...row, MetricName: 'm_count', Value: row.Count ?? 0 },
    { ...row, MetricName: 'm_sum', Value: row.Sum ?? 0 },
  ]
}

async function fill(place: TenantPlace, kind: MetricKind, given: readonly FixtureRow[]): Promise<void> {
  const isFamily = kind === 'classic_histogram'
  const rows = isFamily ? given.flatMap((row) => familyOf(row, row.BucketCounts as number[])) : given
  const columns = new Set(tables.find(({ name }) => name === tableOf[kind])?.columns.map(({ name }) => name))
  const own = rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => columns.has(name))))
  if (own.length > 0) await insertFixture(engine, place, tableOf[kind], own)
}

/** Returns what is read at each step, in order of time. */
function ordered(groups: readonly PackedGroup[]): unknown {
  return groups.map(({ grp, counting, groups: all, ...group }) => {
    const order = group.steps.map((_, i) => i).sort((a, b) => (group.steps[a] ?? 0) - (group.steps[b] ?? 0))
    const steps = order.map((i) => [
      Number(group.steps[i]),
      group.readings[i] ?? null,
      Number(group.amounts[i]),
    ])
    return { grp, counting, all: Number(all), steps }
  })
}

/** A sum that is not a flow is averaged, which shows only after its points are read. */
const ways = [...metricKinds, 'classic_histogram' as const].flatMap((kind) =>
  aggregations
    .filter((aggregation) => !isStepwise(kind, aggregation) || (kind === 'sum' && aggregation === 'avg'))
    .filter((aggregation) => aggregation !== 'last')
    .filter(
      (aggregation) =>
        kind !== 'classic_histogram' || aggregationOf({ kind, flows: 1 }, aggregation) === aggregation,
    )
    .map((aggregation) => ({ kind, aggregation })),
)

let organisations = 0

test('the computation from points returns what the engine computes', async () => {
  const anyCase = fc.record({
    firstSeconds: fc.integer({ min: -700, max: 200 }),
    steps: fc.array(anyStep, { minLength: 1, maxLength: 40 }),
    way: fc.constantFrom(...ways),
    questions: fc.array(
      fc.record({
        service: fc.constantFrom(undefined, 'shop', 'nobody'),
        groupBy: fc.constantFrom(undefined, 'service', 'pod', 'none'),
        attributes: fc.constantFrom([], [['pod', 'a'] as const]),
        stepSeconds: fc.constantFrom(1, 20, 60, 300),
        maxGroups: fc.constantFrom(1, 10),
      }),
      { minLength: 3, maxLength: 3 },
    ),
    hidden: fc.option(fc.tuple(fc.integer({ min: -300, max: 500 }), fc.integer({ min: 1, max: 200 })), {
      nil: null,
    }),
    passedSeconds: fc.constantFrom(lengthSeconds, lengthSeconds - 7, 310),
    /** How much of the first and of the last step is not requested. */
    cut: fc.constantFrom([0, 0] as const, [7, 0] as const, [0, 13] as const, [130.25, 95.5] as const),
  })
  let readings = 0
  await fc.assert(
    fc.asyncProperty(anyCase, async ({ firstSeconds, steps, way, questions, hidden, passedSeconds, cut }) => {
      const place = { tenantId: `org-${organisations++}`, placement: organisations % 3 }
      const rows = rowsOf(firstSeconds, steps)
      await fill(place, way.kind, rows)
      await fill({ ...place, tenantId: `neighbour-of-${place.tenantId}` }, way.kind, rows)
      const gate = new TelemetryGate()
      if (hidden !== null) {
        const range = { startNs: at(hidden[0]), endNs: at(hidden[0] + hidden[1]) }
        gate.hide(place.tenantId, { id: 'h', signals: ['metrics'], range })
      }
      const reader = new TenantReader(engine, place, gate)
      for (const question of questions) {
        const asked = { startNs: at(cut[0]), endNs: at(lengthSeconds - cut[1]), isExact: true }
        const request = { ...question, ...asked, nowNs: at(passedSeconds), metricKey: 'm' }
        const frame = frameOf(request)
        const what = { metric: 'm', ...way }
        const statement = (from: From) => metricStatement(from, frame, what)
        const hasParts = way.kind === 'classic_histogram' && isOfParts(way.aggregation)
        const expected = hasParts
          ? await settleRows(frame, await reader.rows<PartRow>(statement), way.aggregation)
          : groupsOf(frame, await reader.rows<SeriesRow>(statement), false)
        const series = (await readMetricPoints(reader, frame, what, undefined))?.series ?? null
        assert.ok(series !== null)
        const groups = groupsOfPoints(frame, series, way)
        assert.ok(groups !== null)
        readings += groups.length
        assertClose(ordered(groups), ordered(expected), JSON.stringify(question))
      }
    }),
    { numRuns: 50 },
  )
  assert.ok(readings > 30, `${readings} groups`)
})

/** The engine, with a list of the tables that statements read. */
function watched(): { engine: TelemetryEngine; asked: string[] } {
  const asked: string[] = []
  const note = (statement: unknown) => {
    const kinds = [...JSON.stringify(statement).matchAll(/FROM ",.*?"otel_metrics_(\w+)"/g)]
    asked.push(kinds.map(([, kind]) => kind).join(' '))
  }
  const noting: TelemetryEngine = {
    ...delegate(engine),
    select: (statement, limits) => {
      note(statement)
      return engine.select(statement, limits)
    },
    bytes: (statement, limits) => {
      note(statement)
      return engine.bytes(statement, limits)
    },
    close: () => Promise.resolve(),
  }
  return { engine: noting, asked }
}

const request: SeriesRequest = {
  metricKey: 'm',
  startNs: at(0),
  endNs: at(lengthSeconds),
  stepSeconds: 60,
  maxGroups: 1,
}

const point = (seconds: number, value: number): FixtureRow => ({
  TimeUnix: at(seconds),
  StartTimeUnix: at(-900),
  ServiceName: 'shop',
  MetricName: 'm',
  MetricUnit: 'By',
  Value: value,
  Count: value,
  BucketCounts: [value, 0],
  ExplicitBounds: [10],
  AggregationTemporality: 2,
  IsMonotonic: true,
})

test('a kind is found by trying, tried first after that, and forgotten when something is hidden', async () => {
  const place = { tenantId: 'found', placement: 1 }
  await fill(place, 'histogram', [point(5, 10), point(65, 30)])
  const { engine: used, asked } = watched()
  const gate = new TelemetryGate()
  const reader = new TenantReader(used, place, gate)
  const first = await readSeries(reader, request)
  const others = 'histogram exponential_histogram summary sum'
  assert.deepEqual(asked.splice(0), ['gauge', 'sum', others, 'histogram'])
  assert.deepEqual(await readSeries(reader, request), first)
  assert.deepEqual(asked.splice(0), ['histogram'])
  gate.hide('found', { id: 'h', signals: ['metrics'], range: { startNs: at(60), endNs: at(70) } })
  await readSeries(reader, request)
  assert.deepEqual(asked.splice(0), ['gauge', 'sum', others, 'histogram'])
  await readSeries(reader, { ...request, aggregation: 'p50' })
  assert.deepEqual(asked.splice(0), ['histogram'], 'a quantile asks for distributions first')
  await readSeries(reader, { ...request, startNs: at(-90_000), endNs: at(-80_000) })
  const rest = 'gauge sum exponential_histogram summary sum'
  assert.deepEqual(asked.splice(0), ['histogram', rest], 'what is remembered says only where to look first')
})

test('a name of two kinds is read as the kind that the request needs, or as a gauge, after some reads at the latest', async () => {
  const place = { tenantId: 'two-kinds', placement: 1 }
  await fill(place, 'sum', [point(5, 10), point(65, 70)])
  const reader = new TenantReader(engine, place, new TelemetryGate())
  const readingOf = async (aggregation?: Aggregation) =>
    (await readSeries(reader, { ...request, aggregation })).groups[0]?.values[1]
  assert.equal(await readingOf(), 5 / 60)
  await fill(place, 'gauge', [point(65, 5)])
  await fill(place, 'histogram', [point(5, 10), point(65, 30)])
  const found = []
  for (let i = 0; i < 40; i++) found.push(await readingOf())
  assert.deepEqual(new Set(found), new Set([5 / 60, 5]))
  assert.equal(found.at(-1), 5)
  assert.equal(await readingOf('rate'), 5 / 60)
  assert.equal(await readingOf('p50'), 5)
})

test('series whose identities are equal in one half are different series', async () => {
  const place = { tenantId: 'alike', placement: 1 }
  const halves = [1n, (1n << 32n) + 1n, 1n << 32n, (1n << 63n) + 1n, 2n ** 64n - 1n]
  const rows = halves.flatMap((id, i) =>
    [0, 60, 120].map((seconds) => ({
      ...point(seconds, 100 - i + seconds * (i + 1)),
      SeriesId: id.toString(),
    })),
  )
  await fill(place, 'sum', rows)
  const reader = new TenantReader(engine, place, new TelemetryGate())
  const what = { metric: 'm', kind: 'sum', aggregation: 'rate' } as const
  const read = await readMetricPoints(reader, frameOf(request), what, undefined)
  assert.deepEqual(
    read?.series?.map(({ points }) => points.length),
    halves.map(() => 3),
  )
  const set = await readSeries(reader, { ...request, aggregation: 'rate' })
  assert.equal(set.groups[0]?.values[1], 15)
})

test('the engine computes series with more points than are computed here', async () => {
  const place = { tenantId: 'many', placement: 1 }
  const rows = Array.from({ length: pointsMax.histogram + 1 }, (_, i) => point(i / 40, i))
  await fill(place, 'histogram', rows)
  const { engine: used, asked } = watched()
  const reader = new TenantReader(used, place, new TelemetryGate())
  const set = await readSeries(reader, { ...request, aggregation: 'p50' })
  assert.deepEqual(asked, ['histogram', 'histogram'])
  assert.deepEqual([set.unit, set.groups[0]?.values[1], set.groups[0]?.volume[1]], ['By', 5, 2400])
})

test('points of a long range are counted first, and fetched where they are few', async () => {
  const place = { tenantId: 'long', placement: 1 }
  await fill(place, 'sum', [point(5, 10), point(65, 70)])
  const { engine: used, asked } = watched()
  const reader = new TenantReader(used, place, new TelemetryGate())
  const day = 86_400
  const long = { ...request, aggregation: 'rate', startNs: at(-2 * day), stepSeconds: 3600 } as const
  const set = await readSeries(reader, long)
  assert.deepEqual(asked.splice(0), ['sum', 'sum'])
  const added = [...(set.groups[0]?.values.slice(-2) ?? [])].map((rate) => Math.round(rate * 3600))
  assert.deepEqual(added, [10, 60])
  assert.deepEqual((await readSeries(reader, { ...long, metricKey: 'none' })).groups, [])
  assert.deepEqual(
    asked,
    ['sum', 'histogram', 'exponential_histogram summary gauge sum'],
    'one for the others',
  )
})

/** Points in the second minute with a hundred bounds each; those of `kinds` neighbouring points differ. */
const bounded = (points: number, kinds: number): FixtureRow[] =>
  Array.from({ length: points }, (_, i) => ({
    ...point(60 + (i * 60) / points, 100),
    BucketCounts: Array.from({ length: 101 }, (_, b) => (b < 100 ? 1 : 0)),
    ExplicitBounds: Array.from({ length: 100 }, (_, b) => b + 1 + (i % kinds) / kinds),
    AggregationTemporality: 1,
  }))

test('of points with bounds of their own only a limited number of edges is merged here; the engine merges more', async () => {
  const place = { tenantId: 'edges', placement: 1 }
  const read = async (points: number, kinds: number) => {
    await engine.command(raw('TRUNCATE TABLE otel_metrics_histogram'))
    await fill(place, 'histogram', bounded(points, kinds))
    const { engine: used, asked } = watched()
    const reader = new TenantReader(used, place, new TelemetryGate())
    const set = await readSeries(reader, { ...request, aggregation: 'p50' })
    return { asked: asked.length, values: set.groups[0]?.values[1] ?? 0, volume: set.groups[0]?.volume[1] }
  }
  assert.deepEqual(await read(1200, 1), { asked: 1, values: 50, volume: 120_000 }, 'the same bounds')
  const few = await read(1000, 1000)
  assert.deepEqual([few.asked, few.volume], [1, 100_000])
  const many = await read(1200, 1200)
  assert.deepEqual([many.asked, many.volume], [2, 120_000])
  assert.ok(Math.abs(few.values - many.values) < 0.01, `${few.values} and ${many.values}`)
  const way = { kind: 'histogram', aggregation: 'p50' } as const
  const reader = new TenantReader(engine, place, new TelemetryGate())
  const points = await readMetricPoints(reader, frameOf(request), { metric: 'm', ...way }, undefined)
  assert.equal(groupsOfPoints(frameOf(request), points?.series ?? [], way), null)
})

test('buckets that not even the engine can merge within its limits are refused by name', async () => {
  const place = { tenantId: 'refused', placement: 1 }
  await fill(place, 'histogram', bounded(2000, 2000))
  const reader = new TenantReader(engine, place, new TelemetryGate())
  const limits = { maxSeconds: 20, maxMemoryBytes: 16 << 20 }
  await assert.rejects(readSeries(reader, { ...request, aggregation: 'p50' }, limits), {
    code: 'query_too_expensive',
    message: /too many different buckets/,
  })
})

test('points of few but endless histograms are not fetched, and the engine computes them', async () => {
  await engine.command(
    raw(`INSERT INTO otel_metrics_histogram
  (Placement, TenantId, MetricName, MetricUnit, ServiceName, TimeUnix, StartTimeUnix, Count, BucketCounts, ExplicitBounds, AggregationTemporality)
  SELECT 1, 'endless', 'm', 'By', 'shop', fromUnixTimestamp64Nano(toInt64(${at(60)})) + number, fromUnixTimestamp64Nano(toInt64(${at(0)})),
    100000 * (number + 1), arrayMap(x -> toUInt64(if(x < 100000, number + 1, 0)), range(100001)), arrayMap(x -> x + 1., range(100000)), 2
  FROM numbers(45) SETTINGS max_block_size = 5`),
  )
  const place = { tenantId: 'endless', placement: 1 }
  const { engine: used, asked } = watched()
  const reader = new TenantReader(used, place, new TelemetryGate())
  const what = { metric: 'm', kind: 'histogram', aggregation: 'p50' } as const
  // Not `equal`, which would print all of it.
  assert.ok((await readMetricPoints(reader, frameOf(request), what, undefined)) === null)
  const set = await readSeries(reader, { ...request, aggregation: 'p50' })
  assert.equal(asked.length, 4, 'points twice, then the facts and the series')
  assert.deepEqual([set.unit, set.groups[0]?.values[1], set.groups[0]?.volume[1]], ['By', 50_000, 4_500_000])
})
