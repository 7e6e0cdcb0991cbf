// The regular series that a detection method receives: one metric of one group, in equal buckets from oldest
// to newest. Three cases that look alike are kept apart, because a detector that confuses them gives wrong
// results: a bucket with a value, a bucket in which nothing arrived (missing), and a bucket whose telemetry
// was erased (unknown). An unknown bucket never has a value, so no method can use one.
//
// A bucket is unknown as a whole if an erased range touches it: the rest of its values would look like a dip.

import type { TimeRange } from '../../core/time-range.ts'

const nsPerMinute = 60_000_000_000n

/** Values beyond this limit are set to it, so that the sum or difference of two values stays finite. */
export const largestValue = 1e300

export interface Series {
  /**
   * Start of bucket 0, nanoseconds since 1970. Bucket i covers `[startNs + i * step,
   * startNs + (i + 1) * step)`.
   */
  readonly startNs: bigint
  /** Width of a bucket: a positive integer. */
  readonly stepMinutes: number
  /** One value per bucket, within ±1e300; NaN where there is none. */
  readonly values: Float64Array
  /** 1 where the bucket's time was erased, in whole or in part. Its value is then NaN. */
  readonly unknown: Uint8Array
  /** Number of events behind each value, NaN where it is not known; null when it is never known. */
  readonly volumes: Float64Array | null
}

/** One row of a result of the engine. */
export interface SeriesPoint {
  readonly timeNs: bigint
  readonly value: number
  readonly volume?: number
}

export interface SeriesSpan {
  readonly startNs: bigint
  readonly stepMinutes: number
  readonly length: number
}

/**
 * Sorts points into buckets. Points may come in any order. Points outside the span are ignored; the last
 * point given for a bucket wins. NaN is no data; infinities become ±1e300. Every bucket that an `erased`
 * range touches becomes unknown, whatever its points. A null bound of a range is open.
 */
export function buildSeries(
  span: SeriesSpan,
  points: Iterable<SeriesPoint>,
  erased: Iterable<TimeRange> = [],
): Series {
  if (!Number.isInteger(span.stepMinutes) || span.stepMinutes < 1)
    throw new RangeError('stepMinutes must be 1 or more')
  if (!Number.isInteger(span.length) || span.length < 0) throw new RangeError('length must be 0 or more')
  const values = new Float64Array(span.length).fill(Number.NaN)
  const volumes = new Float64Array(span.length).fill(Number.NaN)
  for (const point of points) {
    const bucket = bucketOf(span, point.timeNs)
    if (bucket < 0 || bucket >= span.length) continue
    values[bucket] = bounded(point.value)
    volumes[bucket] = point.volume ?? Number.NaN
  }
  const unknown = new Uint8Array(span.length)
  const { startNs, stepMinutes } = span
  const hasVolumes = volumes.some((volume) => !Number.isNaN(volume))
  return eraseFrom({ startNs, stepMinutes, values, unknown, volumes: hasVolumes ? volumes : null }, erased)
}

/** Returns a copy of the series in which the buckets that the ranges touch are unknown. */
export function eraseFrom(series: Series, erased: Iterable<TimeRange>): Series {
  const values = series.values.slice()
  const unknown = series.unknown.slice()
  const volumes = series.volumes?.slice() ?? null
  for (const range of erased) {
    const [from, to] = bucketsTouchedBy(series, range)
    values.fill(Number.NaN, from, to)
    unknown.fill(1, from, to)
    volumes?.fill(Number.NaN, from, to)
  }
  return { ...series, values, unknown, volumes }
}

/** Returns the buckets from `from` up to `to`; the series itself where these are all of it. */
export function sliceOf(series: Series, from: number, to: number): Series {
  if (from === 0 && to === series.values.length) return series
  return {
    startNs: bucketStartNs(series, from),
    stepMinutes: series.stepMinutes,
    values: series.values.slice(from, to),
    unknown: series.unknown.slice(from, to),
    volumes: series.volumes?.slice(from, to) ?? null,
  }
}

/** Buckets `from` up to `to` of a series, which lie in one block. */
interface BlockPart {
  /** Number of the block since 1970. */
  readonly block: number
  readonly from: number
  readonly to: number
}

/**
 * Divides a series at the ends of blocks. All blocks have `blockBuckets` buckets, counted since 1970, so the
 * ends do not depend on where the series begins. Yields the parts in order.
 */
export function* blockParts(
  { startNs, stepMinutes, values }: Series,
  blockBuckets: number,
): Generator<BlockPart> {
  const firstBucket = Number(startNs / (BigInt(stepMinutes) * nsPerMinute))
  for (let from = 0; from < values.length; ) {
    const block = Math.floor((firstBucket + from) / blockBuckets)
    const to = Math.min(values.length, (block + 1) * blockBuckets - firstBucket)
    yield { block, from, to }
    from = to
  }
}

/** Start of bucket i; with `i + 1`, its end. */
export function bucketStartNs(series: Pick<Series, 'startNs' | 'stepMinutes'>, i: number): bigint {
  return series.startNs + BigInt(i) * BigInt(series.stepMinutes) * nsPerMinute
}

/** Start of bucket i in minutes since 1970. */
export function minuteOf(series: Pick<Series, 'startNs' | 'stepMinutes'>, i: number): number {
  return Number(series.startNs / nsPerMinute) + i * series.stepMinutes
}

/** The element at an index that is known to be inside the array; NaN outside. */
export function at(values: Float64Array, i: number): number {
  return values[i] ?? Number.NaN
}

/**
 * Index of the first bucket that the range touches, and of the one after the last, which
 * may lie beyond the series.
 */
function bucketsTouchedBy(series: Series, range: TimeRange): [number, number] {
  const stepNs = BigInt(series.stepMinutes) * nsPerMinute
  const sinceStart = (ns: bigint) => (ns > series.startNs ? ns - series.startNs : 0n)
  const from = range.startNs === null ? 0 : Number(sinceStart(range.startNs) / stepNs)
  const to =
    range.endNs === null ? series.values.length : Number((sinceStart(range.endNs) + stepNs - 1n) / stepNs)
  return [from, to]
}

function bucketOf(span: SeriesSpan, timeNs: bigint): number {
  const sinceStartNs = timeNs - span.startNs
  if (sinceStartNs < 0n) return -1
  return Number(sinceStartNs / (BigInt(span.stepMinutes) * nsPerMinute))
}

function bounded(value: number): number {
  return Math.max(-largestValue, Math.min(largestValue, value))
}
