// The points of a metric as they stand in its table, for windows small enough to be computed here: to plan what
// relates a point to its neighbours takes the engine ten times as long as to read a few thousand points
// (docs/decisions/0011). One statement of one level, bounded in rows; the arithmetic is `point-series.ts`.

import type { Aggregation } from '../../contract/telemetry.ts'
import { type MetricKind, quantileOf, tableOf } from './metric-kind.ts'
import { around, pointConditions } from './metric-rows.ts'
import { halvesOf, RowBinaryReader } from './row-binary-reader.ts'
import { groupOf, type SeriesFrame } from './series-statement.ts'
import { join, raw, sql } from './sql.ts'
import type { StatementLimits } from './telemetry.ts'
import type { TenantReader } from './tenant-reader.ts'

/** A distribution as its row has it. */
export type Buckets =
  | { readonly counts: readonly number[]; readonly bounds: readonly number[] }
  | {
      readonly scale: number
      readonly zeros: number
      readonly positiveOffset: number
      readonly positive: readonly number[]
      readonly negativeOffset: number
      readonly negative: readonly number[]
    }

export interface Point {
  /** Nanoseconds from the start of the series, of the point and of what it counts since; a start long ago is rounded. */
  readonly t: number
  readonly s: number
  /** Of a distribution or a summary the number of its observations. */
  readonly value: number
  /** Of what was observed; zero where the kind has none. */
  readonly total: number
  /** Counts since the point before, not since the start. */
  readonly isDelta: boolean
  readonly onlyGrows: boolean
  readonly buckets: Buckets | undefined
}

/** One underlying series, its deltas apart from its cumulative points, in the order of time. */
export interface PointSeries {
  readonly group: string
  readonly isDelta: boolean
  readonly points: Point[]
}

export interface MetricPoints {
  /** UCUM, as some point has it. */
  readonly unit: string
  /** Whether the points of a sum say that a rate tells more than a level. */
  readonly flows: boolean
  /** Null where there are too many points; none where there is none. */
  readonly series: readonly PointSeries[] | null
}

/**
 * Points that are read at most. To fetch and compute them takes less than to have the engine compute the series, but
 * nothing else runs while they are computed (docs/decisions/0015). A distribution may have a hundred buckets.
 */
export const pointsMax: Record<MetricKind, number> = {
  gauge: 100_000,
  sum: 100_000,
  histogram: 20_000,
  exponential_histogram: 20_000,
  summary: 100_000,
}

/**
 * The points of the series and a little around it.
 *
 * @param aggregation what the points are read for; where it needs no buckets they stay where they are
 */
export async function readPoints(
  reader: TenantReader,
  frame: SeriesFrame,
  what: { readonly metric: string; readonly kind: MetricKind; readonly aggregation: Aggregation },
  limits: StatementLimits | undefined,
): Promise<MetricPoints> {
  const { metric, kind, aggregation } = what
  const most = pointsMax[kind]
  const withBuckets = quantileOf(aggregation) !== undefined
  const columns = join(
    [
      raw('SeriesId'),
      groupOf(frame, 'AttributesPairs'),
      ...['MetricUnit', 'TimeUnix', ...columnsOf(kind, withBuckets)].map(raw),
    ],
    ', ',
  )
  const bytes = await reader.bytes(
    (from) =>
      from.select(tableOf[kind], {
        columns: sql`${columns}`,
        conditions: pointConditions(frame, metric, around(frame)),
        limit: most + 1,
        isOrdered: true,
      }),
    limits,
  )
  const rows = new RowBinaryReader(bytes)
  return decode({ rows, origin: halvesOf(frame.startNs), kind, withBuckets, bounds: [] }, most)
}

const bucketColumns: Partial<Record<MetricKind, readonly string[]>> = {
  histogram: ['BucketCounts', 'ExplicitBounds'],
  exponential_histogram: [
    'Scale',
    'ZeroCount',
    'PositiveOffset',
    'PositiveBucketCounts',
    'NegativeOffset',
    'NegativeBucketCounts',
  ],
}

/** A gauge has no start, and a summary no temporality. */
function columnsOf(kind: MetricKind, withBuckets: boolean): readonly string[] {
  if (kind === 'gauge') return ['Value']
  if (kind === 'sum') return ['StartTimeUnix', 'Value', 'AggregationTemporality', 'IsMonotonic']
  const counted = ['StartTimeUnix', 'Count', 'Sum']
  if (kind === 'summary') return counted
  return [...counted, 'AggregationTemporality', ...(withBuckets ? (bucketColumns[kind] ?? []) : [])]
}

/** Where points are read from, and as what. */
interface Reading {
  readonly rows: RowBinaryReader
  readonly origin: { readonly hi: number; readonly lo: number }
  readonly kind: MetricKind
  readonly withBuckets: boolean
  /** Lists of bounds that were met, each once: most points of a metric have the same. */
  readonly bounds: (readonly number[])[]
}

function decode(reading: Reading, most: number): MetricPoints {
  const { rows } = reading
  const index = new SeriesIndex()
  const first = { unit: '', flows: false }
  let count = 0
  for (; !rows.isDone; count++) {
    const known = index.next(rows)
    if (count === 0) first.unit = rows.text()
    else rows.skipText()
    const point = readPoint(reading)
    if (count === 0) first.flows = point.isDelta || point.onlyGrows
    index.add(known, point)
  }
  if (count > most) return { ...first, series: null }
  const series = [...index.cumulative, ...index.deltas]
  for (const { points } of series) points.sort((a, b) => a.t - b.t)
  return { ...first, series }
}

/** One identity of a series, and its points. */
interface Identified {
  readonly upper: number
  readonly group: string
  cumulative: PointSeries | undefined
  deltas: PointSeries | undefined
  /** Another identity with the same lower half. */
  readonly other: Identified | undefined
}

/** Series by their identity, which is looked up by halves: a BigInt for each point would take longer than all else. */
class SeriesIndex {
  readonly cumulative: PointSeries[] = []
  readonly deltas: PointSeries[] = []
  readonly #byLower = new Map<number, Identified>()

  /** Reads the identity and the group behind it, which is a text only once. */
  next(rows: RowBinaryReader): Identified {
    const lower = rows.int32()
    const upper = rows.int32()
    const other = this.#byLower.get(lower)
    for (let known = other; known !== undefined; known = known.other) {
      if (known.upper !== upper) continue
      rows.skipText()
      return known
    }
    const added = { upper, group: rows.text(), cumulative: undefined, deltas: undefined, other }
    this.#byLower.set(lower, added)
    return added
  }

  add(known: Identified, point: Point): void {
    const { isDelta } = point
    const series = isDelta ? known.deltas : known.cumulative
    if (series !== undefined) {
      series.points.push(point)
      return
    }
    const begun = { group: known.group, isDelta, points: [point] }
    if (isDelta) {
      known.deltas = begun
      this.deltas.push(begun)
    } else {
      known.cumulative = begun
      this.cumulative.push(begun)
    }
  }
}

function readPoint(reading: Reading): Point {
  const { rows, origin, kind } = reading
  const t = rows.int64From(origin)
  if (kind === 'gauge') {
    // What is no flow has no beginning at which it was zero.
    const s = Number.NEGATIVE_INFINITY
    return { t, s, value: rows.float64(), total: 0, isDelta: false, onlyGrows: false, buckets: undefined }
  }
  const s = rows.int64From(origin)
  if (kind === 'sum') {
    const value = rows.float64()
    const isDelta = rows.int32() === 1
    return { t, s, value, total: 0, isDelta, onlyGrows: rows.uint8() === 1, buckets: undefined }
  }
  const value = rows.uint64()
  const total = rows.float64()
  const isDelta = kind !== 'summary' && rows.int32() === 1
  const buckets = reading.withBuckets ? readBuckets(reading) : undefined
  return { t, s, value, total, isDelta, onlyGrows: true, buckets }
}

function readBuckets({ rows, kind, bounds }: Reading): Buckets | undefined {
  if (kind === 'histogram') return { counts: rows.uint64s(), bounds: shared(bounds, rows.float64s()) }
  if (kind !== 'exponential_histogram') return undefined
  const scale = rows.int32()
  const zeros = rows.uint64()
  const positiveOffset = rows.int32()
  const positive = rows.uint64s()
  const negativeOffset = rows.int32()
  const negative = rows.uint64s()
  return { scale, zeros, positiveOffset, positive, negativeOffset, negative }
}

/** More lists than these are kept apart, which costs time alone. */
const boundsMax = 16

/** The list among those that were met that has the same items. */
function shared(met: (readonly number[])[], own: readonly number[]): readonly number[] {
  const known = met.find((one) => one.length === own.length && one.every((item, i) => item === own[i]))
  if (known !== undefined) return known
  if (met.length < boundsMax) met.push(own)
  return own
}
