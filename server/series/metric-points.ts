// Reads the points of a metric from its table, for windows small enough to be computed here: planning how
// points relate to their neighbours takes the engine ten times as long as reading a few thousand points
// (docs/decisions/0011). One statement of one level with a limit of rows; `point-series.ts` computes the
// series.

import { attribute } from '../telemetry/attribute.ts'
import { isResultTooLarge, type StatementLimits, usualLimits } from '../telemetry/engine.ts'
import { halvesOf, type Lists, type Longs, NativeReader, type Texts } from '../telemetry/native-reader.ts'
import { join, raw, type Sql, sql } from '../telemetry/sql.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { bucketLabel } from './classic-histogram.ts'
import { type MetricKind, quantileOf, tableOf } from './metric-kind.ts'
import { around, type MetricRequest, pointConditions } from './point-conditions.ts'
import { groupOf, type SeriesFrame } from './series-statement.ts'

/** A distribution as in its row. */
export type Buckets =
  | {
      /**
       * The items of this point are those from `start` to before `end`: copying them would take longer than
       * using them.
       */
      readonly counts: ArrayLike<number>
      readonly start: number
      readonly end: number
      readonly bounds: ArrayLike<number>
    }
  | {
      readonly scale: number
      readonly zeros: number
      readonly positiveOffset: number
      readonly positive: ArrayLike<number>
      readonly negativeOffset: number
      readonly negative: ArrayLike<number>
    }

export interface Point {
  /**
   * Nanoseconds from the start of the series: of the point, and of the start from which it counts; a start
   * long ago is rounded.
   */
  readonly t: number
  readonly s: number
  /** Number of observations of a distribution or a summary. */
  readonly value: number
  /** Sum of observations; zero where the kind has none, and where buckets were requested. */
  readonly total: number
  /** Whether it counts since the point before it, and not since the start. */
  readonly isDelta: boolean
  readonly onlyGrows: boolean
  readonly buckets: Buckets | undefined
}

/**
 * One life of an underlying series, in the order of time: cumulative points that count since the same start,
 * or all of its deltas. Processes that send the same series, one after the other or at once, have a life
 * each.
 */
export interface PointSeries {
  readonly group: string
  /** For a classic histogram, the part of its counters as in {@link MetricRequest}; empty otherwise. */
  readonly part: string
  readonly isDelta: boolean
  readonly points: Point[]
}

interface MetricPoints {
  /** UCUM, from one of the points. */
  readonly unit: string
  /** Whether a rate is more useful than a level, from the points of a sum. */
  readonly flows: boolean
  /** Null where there are too many points; empty where there are none. */
  readonly series: readonly PointSeries[] | null
}

/**
 * The most points that are read. Fetching and computing them takes less time than a statement that computes
 * the series, but nothing else runs while they are computed (docs/decisions/0015). A distribution may have a
 * hundred buckets.
 */
export const pointsMax: Record<MetricKind, number> = {
  gauge: 100_000,
  sum: 100_000,
  histogram: 20_000,
  exponential_histogram: 20_000,
  summary: 100_000,
  classic_histogram: 100_000,
}

/**
 * The most bytes of points that are read: twice those of {@link pointsMax} distributions with a hundred
 * buckets. A point may have 4,096 buckets.
 */
const pointsBytesMax = 64 << 20

/**
 * Reads the points of the series and of a little time around it. Returns null where they are too large.
 *
 * @param aggregation the use of the points; buckets are not fetched where it needs none
 */
export async function readMetricPoints(
  reader: TenantReader,
  frame: SeriesFrame,
  what: MetricRequest,
  limits: StatementLimits = usualLimits,
): Promise<MetricPoints | null> {
  const { kind, aggregation } = what
  const most = pointsMax[kind]
  const withBuckets = quantileOf(aggregation) !== undefined
  const part = partOf(what)
  const columns = join(
    [
      raw('SeriesId'),
      sql`CAST(${groupOf(frame, 'AttributesPairs')}, 'String')`,
      ...(part === undefined ? [] : [sql`CAST(${part}, 'String')`]),
      ...[`CAST(MetricUnit, 'String')`, 'TimeUnix', ...columnsOf(kind, withBuckets)].map(raw),
    ],
    ', ',
  )
  const bytes = await reader
    .bytes(
      (from) =>
        from.select(tableOf[kind], {
          columns: sql`${columns}`,
          conditions: pointConditions(frame, what, around(frame)),
          limit: most + 1,
          isOrdered: true,
        }),
      { ...limits, maxResultBytes: pointsBytesMax },
    )
    .catch((error: unknown) => {
      if (isResultTooLarge(error)) return null
      throw error
    })
  if (bytes === null) return null
  const native = new NativeReader(bytes)
  const origin = halvesOf(frame.startNs)
  return decode({ native, origin, kind, withBuckets, hasParts: part !== undefined, bounds: [] }, most)
}

/** What identifies the counters of a classic histogram, where an aggregation relates them to each other. */
export function partOf({ aggregation, kind }: MetricRequest): Sql | undefined {
  if (kind !== 'classic_histogram') return undefined
  if (quantileOf(aggregation) !== undefined) return attribute('AttributesPairs', bucketLabel)
  return aggregation === 'avg' ? raw('MetricName') : undefined
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

/** A gauge has no start, and a summary has no temporality. */
function columnsOf(kind: MetricKind, withBuckets: boolean): readonly string[] {
  if (kind === 'gauge') return ['Value']
  if (isCounted(kind)) return ['StartTimeUnix', 'Value', 'AggregationTemporality', 'IsMonotonic']
  const counted = ['StartTimeUnix', 'Count', ...(withBuckets ? [] : ['Sum'])]
  if (kind === 'summary') return counted
  return [...counted, 'AggregationTemporality', ...(withBuckets ? (bucketColumns[kind] ?? []) : [])]
}

const isCounted = (kind: MetricKind): boolean => kind === 'sum' || kind === 'classic_histogram'

/** The source of points, and their kind. */
interface Reading {
  readonly native: NativeReader
  readonly origin: { readonly hi: number; readonly lo: number }
  readonly kind: MetricKind
  readonly withBuckets: boolean
  readonly hasParts: boolean
  /** Each different list of bounds once: most points of a metric have the same. */
  readonly bounds: ArrayLike<number>[]
}

function decode(reading: Reading, most: number): MetricPoints {
  const { native } = reading
  const index = new SeriesIndex()
  const first = { unit: '', flows: false }
  let count = 0
  while (!native.isDone) {
    const rows = native.block()
    const [ids, groups] = [native.longs(), native.texts()]
    const parts = reading.hasParts ? native.texts() : undefined
    const units = native.texts()
    const pointAt = pointsOf(reading)
    for (let row = 0; row < rows; row++, count++) {
      const point = pointAt(row)
      if (count === 0) {
        first.unit = units.at(row)
        first.flows = point.isDelta || point.onlyGrows
      }
      index.add(index.at({ ids, groups, parts }, row), point)
    }
  }
  if (count > most) return { ...first, series: null }
  const { series } = index
  for (const { points } of series) points.sort((a, b) => a.t - b.t)
  return { ...first, series }
}

/** One identity of a series, and its points. */
interface Identified {
  readonly upper: number
  readonly group: string
  readonly part: string
  deltas: PointSeries | undefined
  /** The life of the last cumulative point, and the start from which it counts. */
  life: PointSeries | undefined
  start: number
  /** All lives by their start, where there are at least two. */
  lives: Map<number, PointSeries> | undefined
  /** Another identity with the same lower half. */
  readonly other: Identified | undefined
}

/** The columns that identify the series of each row of a block. */
interface Identities {
  readonly ids: Longs
  readonly groups: Texts
  readonly parts: Texts | undefined
}

/**
 * Series by their identity, which is looked up by halves: a BigInt for each point would take longer than
 * everything else.
 */
class SeriesIndex {
  readonly series: PointSeries[] = []
  readonly #byLower = new Map<number, Identified>()

  /** Returns the identity in a row. Its texts are read only once. */
  at({ groups, ids, parts }: Identities, row: number): Identified {
    const lower = ids.lower(row)
    const upper = ids.upper(row)
    const other = this.#byLower.get(lower)
    for (let known = other; known !== undefined; known = known.other) if (known.upper === upper) return known
    const [group, part] = [groups.at(row), parts?.at(row) ?? '']
    const added = {
      upper,
      group,
      part,
      deltas: undefined,
      life: undefined,
      start: 0,
      lives: undefined,
      other,
    }
    this.#byLower.set(lower, added)
    return added
  }

  add(known: Identified, point: Point): void {
    if (point.isDelta) {
      known.deltas ??= this.#begin(known, true)
      known.deltas.points.push(point)
      return
    }
    if (known.life === undefined) {
      known.life = this.#begin(known, false)
      known.start = point.s
    } else if (known.start !== point.s) this.#change(known, known.life, point.s)
    known.life.points.push(point)
  }

  #begin({ group, part }: Identified, isDelta: boolean): PointSeries {
    const begun = { group, part, isDelta, points: [] }
    this.series.push(begun)
    return begun
  }

  /** Returns the life with another start than that of the point before. */
  #change(known: Identified, life: PointSeries, start: number): void {
    known.lives ??= new Map([[known.start, life]])
    const other = known.lives.get(start) ?? this.#begin(known, false)
    known.lives.set(start, other)
    known.life = other
    known.start = start
  }
}

/** Decodes the points of a block by row, in the order of {@link columnsOf}. */
function pointsOf(reading: Reading): (row: number) => Point {
  const { native, origin, kind } = reading
  const times = native.longs()
  if (kind === 'gauge') {
    const values = native.float64s()
    return (row) => ({
      t: times.from(origin, row),
      // What is not a flow has no start at which it was zero.
      s: Number.NEGATIVE_INFINITY,
      value: values[row] ?? 0,
      total: 0,
      isDelta: false,
      onlyGrows: false,
      buckets: undefined,
    })
  }
  const starts = native.longs()
  if (isCounted(kind)) {
    const [values, temporality, onlyGrows] = [native.float64s(), native.int32s(), native.uint8s()]
    return (row) => ({
      t: times.from(origin, row),
      s: starts.from(origin, row),
      value: values[row] ?? 0,
      total: 0,
      isDelta: temporality[row] === 1,
      onlyGrows: onlyGrows[row] === 1,
      buckets: undefined,
    })
  }
  const counts = native.longs()
  const totals = reading.withBuckets ? undefined : native.float64s()
  const temporality = kind === 'summary' ? undefined : native.int32s()
  const bucketsAt = reading.withBuckets ? bucketsOf(reading) : undefined
  return (row) => ({
    t: times.from(origin, row),
    s: starts.from(origin, row),
    value: counts.at(row),
    total: totals?.[row] ?? 0,
    isDelta: temporality?.[row] === 1,
    onlyGrows: true,
    buckets: bucketsAt?.(row),
  })
}

function bucketsOf({ native, kind, bounds }: Reading): ((row: number) => Buckets) | undefined {
  if (kind === 'histogram') {
    const [counts, own] = [native.uint64Lists(), native.float64Lists()]
    return (row) => ({
      counts: counts.items,
      start: counts.start(row),
      end: counts.end(row),
      bounds: shared(bounds, own, row),
    })
  }
  if (kind !== 'exponential_histogram') return undefined
  const [scales, zeros] = [native.int32s(), native.longs()]
  const [positiveOffsets, positive] = [native.int32s(), native.uint64Lists()]
  const [negativeOffsets, negative] = [native.int32s(), native.uint64Lists()]
  return (row) => ({
    scale: scales[row] ?? 0,
    zeros: zeros.at(row),
    positiveOffset: positiveOffsets[row] ?? 0,
    positive: positive.at(row),
    negativeOffset: negativeOffsets[row] ?? 0,
    negative: negative.at(row),
  })
}

/** The most lists that are kept; above it equal lists are stored several times, which only costs time. */
const boundsMax = 16

/** Returns the list with the same items among those that are kept. */
function shared(met: ArrayLike<number>[], lists: Lists, row: number): ArrayLike<number> {
  for (const known of met) if (lists.is(known, row)) return known
  const own = lists.at(row)
  if (met.length < boundsMax) met.push(own)
  return own
}
