// The points of a metric as they stand in its table, for windows small enough to be computed here: to plan what
// relates a point to its neighbours takes the engine ten times as long as to read a few thousand points
// (docs/decisions/0011). One statement of one level, bounded in rows; the arithmetic is `point-series.ts`.

import type { Ns } from '../../contract/instant.ts'
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
 * Points that are read at most; of more the engine computes the series, which then takes less than to fetch them.
 * A distribution may have a hundred buckets.
 */
const pointsMax: Record<MetricKind, number> = {
  gauge: 20_000,
  sum: 20_000,
  histogram: 5000,
  exponential_histogram: 5000,
  summary: 20_000,
}

const minuteNs = 60_000_000_000n

/** Whether a series may be small enough: one that reports each minute, as senders do, has so many points. */
export function mayBeSmall(frame: SeriesFrame, kind: MetricKind): boolean {
  return (frame.endNs - frame.startNs) / minuteNs <= BigInt(pointsMax[kind])
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
      groupOf(frame, 'Attributes'),
      ...['SeriesId', 'MetricUnit', 'TimeUnix', ...columnsOf(kind, withBuckets)].map(raw),
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
  return decode(bytes, frame.startNs, kind, withBuckets, most)
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

function decode(
  bytes: Uint8Array,
  startNs: Ns,
  kind: MetricKind,
  withBuckets: boolean,
  most: number,
): MetricPoints {
  const rows = new RowBinaryReader(bytes)
  const origin = halvesOf(startNs)
  const [cumulative, deltas] = [new Map<bigint, PointSeries>(), new Map<bigint, PointSeries>()]
  const first = { unit: '', flows: false }
  let count = 0
  for (; !rows.isDone; count++) {
    const group = rows.text()
    const id = rows.bigUint64()
    const unit = rows.text()
    const { isDelta, ...point } = readPoint(rows, origin, kind, withBuckets)
    if (count === 0) Object.assign(first, { unit, flows: isDelta || point.onlyGrows })
    const known = isDelta ? deltas : cumulative
    const series = known.get(id)
    if (series === undefined) known.set(id, { group, isDelta, points: [point] })
    else series.points.push(point)
  }
  if (count > most) return { ...first, series: null }
  const series = [...cumulative.values(), ...deltas.values()]
  for (const { points } of series) points.sort((a, b) => a.t - b.t)
  return { ...first, series }
}

function readPoint(
  rows: RowBinaryReader,
  origin: { readonly hi: number; readonly lo: number },
  kind: MetricKind,
  withBuckets: boolean,
): Point & { readonly isDelta: boolean } {
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
  const buckets = withBuckets ? readBuckets(rows, kind) : undefined
  return { t, s, value, total, isDelta, onlyGrows: true, buckets }
}

function readBuckets(rows: RowBinaryReader, kind: MetricKind): Buckets | undefined {
  if (kind === 'histogram') return { counts: rows.uint64s(), bounds: rows.float64s() }
  if (kind !== 'exponential_histogram') return undefined
  const scale = rows.int32()
  const zeros = rows.uint64()
  const positiveOffset = rows.int32()
  const positive = rows.uint64s()
  const negativeOffset = rows.int32()
  const negative = rows.uint64s()
  return { scale, zeros, positiveOffset, positive, negativeOffset, negative }
}
