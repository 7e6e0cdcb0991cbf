// Compares metrics with a model: random counters and histograms with gaps, resets and restarts, and random
// gauges beside hidden time and a neighbour with the same names, read by the engine and by a few lines that
// apply the data model point by point.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Aggregation } from '../../contract/telemetry/queries.ts'
import { assertClose } from '../../tests/assert-close.ts'
import { engineOfFile } from '../../tests/fixtures.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { readSeries } from './series.ts'

const engine = engineOfFile()

const t0 = 1_763_712_000
const lengthSeconds = 600
/** How far outside the range a point may complete the first and last step. */
const reachSeconds = 300
const bounds = [10, 20, 40]

/** The start of points whose sender gives none. */
const noStart = Number.NEGATIVE_INFINITY

interface Point {
  /** Seconds from the start of the range; may be before it or after its end. */
  readonly t: number
  /** Seconds too, or {@link noStart}. */
  readonly start: number
  readonly counts: readonly number[]
}

interface Step {
  readonly gapSeconds: number
  readonly added: readonly number[]
  readonly restart: 'none' | 'same start' | 'new start'
}

const anyStep: fc.Arbitrary<Step> = fc.record({
  gapSeconds: fc.integer({ min: 2, max: 150 }),
  added: fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 4, maxLength: 4 }),
  restart: fc.oneof(
    { weight: 6, arbitrary: fc.constant('none' as const) },
    fc.constantFrom('same start' as const, 'new start' as const),
  ),
})

const anySeries: fc.Arbitrary<Point[]> = fc
  .record({
    firstStart: fc.integer({ min: -900, max: 500 }),
    hasStart: fc.boolean(),
    steps: fc.array(anyStep, { maxLength: 12 }),
  })
  .map(({ firstStart, hasStart, steps }) => {
    const points: Point[] = []
    let [t, start, counts] = [firstStart, firstStart, [0, 0, 0, 0]]
    for (const { gapSeconds, added, restart } of steps) {
      const isNew = restart !== 'none'
      if (restart === 'new start') start = t + 1
      t += gapSeconds
      counts = counts.map((count, i) => (isNew ? 0 : count) + (added[i] ?? 0))
      points.push({ t, start: hasStart ? start : noStart, counts })
    }
    return points
  })

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

interface Gain {
  readonly fromT: number
  readonly t: number
  readonly counts: readonly number[]
  /** The count before the increase; null where it counts from the start. */
  readonly before: readonly number[] | null
}

/**
 * Returns the increase of each point since the one before with the same start, and the time of the increase.
 */
function livesOf(points: readonly Point[]): Gain[][] {
  const read = points.filter(({ t }) => t >= -reachSeconds && t < lengthSeconds + reachSeconds)
  return [...Map.groupBy(read, ({ start }) => start).values()].map((life) =>
    life.flatMap((point, i): Gain[] => {
      const { t, start, counts } = point
      const before = life[i - 1]
      if (before === undefined)
        return start >= -reachSeconds && start < t ? [{ fromT: start, t, counts, before: null }] : []
      const isReset = sum(counts) < sum(before.counts)
      const gained = isReset ? counts : counts.map((count, b) => count - (before.counts[b] ?? 0))
      return [{ fromT: before.t, t, counts: gained, before: before.counts }]
    }),
  )
}

/** Returns the time in which the counter is assumed to have grown as between two of its points. */
function growthTimeOf(
  life: readonly Gain[],
  i: number,
  isStartUnknown: boolean,
): { from: number; to: number } {
  const [gain] = life.slice(i)
  assert.ok(gain !== undefined)
  const { fromT, t, before } = gain
  if (before === null) return { from: fromT, to: t }
  const interval = t - fromT
  const gained = sum(gain.counts)
  const sinceZero = gained > 0 ? (sum(before) * interval) / gained : interval
  const back = isStartUnknown && i === 0 ? Math.min(interval / 2, sinceZero) : 0
  const left = lengthSeconds - t
  const isLast = i === life.length - 1 && left > 0
  const on = !isLast ? 0 : left < 1.1 * interval ? left : isStartUnknown ? interval / 2 : 0
  return { from: fromT - back, to: t + on }
}

function modelRate(series: readonly (readonly Point[])[], stepSeconds: number): (number | null)[] {
  return steps(stepSeconds, (from, to) => {
    let rate: number | null = null
    for (const points of series) {
      const isStartUnknown = points[0]?.start === noStart
      for (const life of livesOf(points)) {
        for (const [i, gain] of life.entries()) {
          const time = growthTimeOf(life, i, isStartUnknown)
          const seconds = Math.min(to, time.to) - Math.max(from, time.from)
          if (seconds <= 0) continue
          rate = (rate ?? 0) + (sum(gain.counts) * seconds) / (gain.t - gain.fromT) / stepSeconds
        }
      }
    }
    return rate
  })
}

function modelMedian(series: readonly (readonly Point[])[], stepSeconds: number): (number | null)[] {
  return steps(stepSeconds, (from, to) => {
    const gains = series
      .flatMap(livesOf)
      .flat()
      .filter(({ t }) => t >= from && t < to)
    const counts = [0, 1, 2, 3].map((b) => sum(gains.map((gain) => gain.counts[b] ?? 0)))
    const rank = sum(counts) / 2
    if (rank <= 0) return null
    const edges = [0, ...bounds]
    let below = 0
    for (const [b, count] of counts.entries()) {
      const [lower = 0, upper] = [edges[b], edges[b + 1]]
      if (count > 0 && below + count >= rank) {
        return upper === undefined ? lower : lower + ((upper - lower) * (rank - below)) / count
      }
      below += count
    }
    return null
  })
}

function steps<T>(stepSeconds: number, read: (from: number, to: number) => T): T[] {
  return Array.from({ length: lengthSeconds / stepSeconds }, (_, i) =>
    read(i * stepSeconds, (i + 1) * stepSeconds),
  )
}

let organisations = 0

/** Stores the series as counter `c` and as histogram `h` of an organisation of its own. */
async function organisationWith(series: readonly (readonly Point[])[]): Promise<TenantReader> {
  const place = { tenantId: `org-${organisations++}`, placement: 0 }
  const at = (seconds: number): bigint => BigInt(t0 + seconds) * 1_000_000_000n
  const rows = series.flatMap((points, pod) =>
    points.map(({ t, start, counts }) => ({
      common: {
        TimeUnix: at(t),
        StartTimeUnix: start === noStart ? 0n : at(start),
        ServiceName: 'shop',
        Attributes: { pod: String(pod) },
        AggregationTemporality: 2,
      },
      counts,
    })),
  )
  const counters = rows.map(
    ({ common, counts }): FixtureRow => ({
      ...common,
      MetricName: 'c',
      Value: sum(counts),
      IsMonotonic: true,
    }),
  )
  const histograms = rows.map(
    ({ common, counts }): FixtureRow => ({
      ...common,
      MetricName: 'h',
      Count: sum(counts),
      BucketCounts: counts,
      ExplicitBounds: bounds,
    }),
  )
  if (rows.length > 0) {
    await insertFixture(engine, place, 'otel_metrics_sum', counters)
    await insertFixture(engine, place, 'otel_metrics_histogram', histograms)
  }
  return new TenantReader(engine, place, new TelemetryGate())
}

async function read(
  reader: TenantReader,
  metricKey: string,
  aggregation: Aggregation,
  stepSeconds: number,
): Promise<(number | null)[]> {
  const startNs = BigInt(t0) * 1_000_000_000n
  const endNs = startNs + BigInt(lengthSeconds) * 1_000_000_000n
  const request = { metricKey, aggregation, startNs, endNs, stepSeconds, maxGroups: 1 }
  const set = await readSeries(reader, request)
  const values = set.groups[0]?.values ?? new Float64Array(set.steps).fill(Number.NaN)
  return [...values].map((value) => (Number.isNaN(value) ? null : value))
}

test('counters and histograms are read as the data model says, at every step', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anySeries, { minLength: 1, maxLength: 3 }), async (series) => {
      const reader = await organisationWith(series)
      for (const stepSeconds of [20, 60, 300]) {
        assertClose(
          await read(reader, 'c', 'rate', stepSeconds),
          modelRate(series, stepSeconds),
          `rate at ${stepSeconds} s`,
        )
        assertClose(
          await read(reader, 'h', 'increase', stepSeconds),
          modelRate(series, stepSeconds).map((rate) => (rate === null ? null : rate * stepSeconds)),
          `increase at ${stepSeconds} s`,
        )
        assertClose(
          await read(reader, 'h', 'p50', stepSeconds),
          modelMedian(series, stepSeconds),
          `median at ${stepSeconds} s`,
        )
      }
    }),
    { numRuns: 15 },
  )
})

interface Level {
  readonly t: number
  readonly value: number
  readonly service: string
  readonly host: string
  readonly flags: number
}

const anyLevel: fc.Arbitrary<Level> = fc.record({
  t: fc.integer({ min: -400, max: lengthSeconds + 400 }),
  value: fc.integer({ min: -50, max: 50 }),
  service: fc.constantFrom('shop', "o'clock"),
  host: fc.constantFrom('a', 'b', ''),
  flags: fc.constantFrom(0, 0, 0, 1),
})

const middle = (sorted: readonly number[]): number =>
  ((sorted[Math.floor((sorted.length - 1) / 2)] ?? 0) + (sorted[Math.ceil((sorted.length - 1) / 2)] ?? 0)) / 2

/** Returns the reading of one step of levels; never called without levels. */
const levelModels: Partial<Record<Aggregation, (levels: readonly Level[]) => number>> = {
  avg: (levels) => sum(levels.map(({ value }) => value)) / levels.length,
  min: (levels) => Math.min(...levels.map(({ value }) => value)),
  max: (levels) => Math.max(...levels.map(({ value }) => value)),
  count: (levels) => levels.length,
  p50: (levels) => middle(levels.map(({ value }) => value).toSorted((a, b) => a - b)),
  sum: (levels) =>
    sum(
      [...Map.groupBy(levels, ({ service, host }) => `${service} ${host}`).values()].map(
        (own) => sum(own.map(({ value }) => value)) / own.length,
      ),
    ),
}

test('gauges are read as the data model says, alone and by group, beside hidden time and a neighbour', async () => {
  const anyQuestion = fc.record({
    levels: fc.array(anyLevel, { maxLength: 25 }),
    aggregation: fc.constantFrom(...(Object.keys(levelModels) as Aggregation[])),
    service: fc.constantFrom(undefined, 'shop', "o'clock", 'nobody'),
    attributes: fc.constantFrom([], [['host', 'a'] as const]),
    groupBy: fc.constantFrom(undefined, 'service', 'host'),
    stepSeconds: fc.constantFrom(20, 60, 300),
    hidden: fc.option(fc.tuple(fc.integer({ min: -100, max: 500 }), fc.integer({ min: 1, max: 200 })), {
      nil: null,
    }),
  })
  await fc.assert(
    fc.asyncProperty(anyQuestion, async ({ levels, hidden, ...question }) => {
      const { aggregation, attributes, groupBy, service, stepSeconds } = question
      const number = organisations++
      const place = { tenantId: `org-${number}`, placement: number % 3 }
      const at = (seconds: number): bigint => BigInt(t0 + seconds) * 1_000_000_000n
      const rows = levels.map(({ t, host, ...level }): FixtureRow => {
        const common = { TimeUnix: at(t), ServiceName: level.service, MetricName: 'g', MetricUnit: 'By' }
        return {
          ...common,
          Value: level.value,
          Flags: level.flags,
          ...(host === '' ? {} : { Attributes: { host } }),
        }
      })
      if (rows.length > 0) {
        await insertFixture(engine, place, 'otel_metrics_gauge', rows)
        await insertFixture(engine, { ...place, tenantId: `neighbour-${number}` }, 'otel_metrics_gauge', rows)
      }
      const gate = new TelemetryGate()
      const range = hidden === null ? null : { startNs: at(hidden[0]), endNs: at(hidden[0] + hidden[1]) }
      if (range !== null) gate.hide(place.tenantId, { id: 'h', signals: ['metrics'], range })
      const set = await readSeries(new TenantReader(engine, place, gate), {
        ...question,
        metricKey: 'g',
        startNs: at(0),
        endNs: at(lengthSeconds),
        maxGroups: 10,
      })
      const isHidden = ({ t }: Level) => hidden !== null && t >= hidden[0] && t < hidden[0] + hidden[1]
      const asked = levels.filter(
        (level) =>
          level.flags === 0 &&
          level.t >= 0 &&
          level.t < lengthSeconds &&
          !isHidden(level) &&
          (service === undefined || level.service === service) &&
          (attributes.length === 0 || level.host === 'a'),
      )
      const keyOf = (level: Level) => (groupBy === undefined ? null : level[groupBy as 'service' | 'host'])
      const expected = [...Map.groupBy(asked, keyOf)].map(([group, own]) => [
        String(group),
        steps(stepSeconds, (from, to) => {
          if (hidden !== null && hidden[0] < to && hidden[0] + hidden[1] > from) return 'unknown'
          const inside = own.filter(({ t }) => t >= from && t < to)
          return inside.length === 0 ? 'none' : (levelModels[aggregation]?.(inside) ?? 0)
        }),
      ])
      const actual = set.groups.map(({ group, values }) => [
        String(group),
        [...values].map((value, i) =>
          set.unknown[i] === 1 ? 'unknown' : Number.isNaN(value) ? 'none' : value,
        ),
      ])
      assert.equal(actual.length, expected.length)
      assertClose(Object.fromEntries(actual), Object.fromEntries(expected))
      if (expected.length > 0)
        assert.deepEqual([set.unit, set.aggregation], [aggregation === 'count' ? '1' : 'By', aggregation])
    }),
    { numRuns: 60 },
  )
})
