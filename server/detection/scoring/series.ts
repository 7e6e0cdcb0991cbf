// The regular series a detection method sees: one metric of one group, in equal buckets from oldest to newest.
// Three things that look alike are kept apart, because confusing them is how a detector lies: a bucket with a
// value, a bucket in which nothing arrived (missing), and a bucket of which nothing may be known any more because
// its telemetry was erased (unknown). An unknown bucket never has a value, so no method can remember one.
//
// A bucket that an erased range merely touches is unknown as a whole: what is left of it would look like a dip.

import type { TimeRange } from '../../core/time-range.ts'

const nsPerMinute = 60_000_000_000n

/** Readings beyond this count as this, so that sums and differences of two of them stay finite. */
export const largestValue = 1e300

export interface Series {
  /** Start of bucket 0, nanoseconds since 1970. Bucket i covers `[startNs + i * step, startNs + (i + 1) * step)`. */
  readonly startNs: bigint
  /** Width of a bucket: a positive integer. */
  readonly stepMinutes: number
  /** One value per bucket, within ±1e300; NaN where there is none. */
  readonly values: Float64Array
  /** 1 where the bucket's time was erased, in whole or in part. Its value is then NaN. */
  readonly unknown: Uint8Array
  /** Events behind each value, NaN where not known; null when not known at all. */
  readonly volumes: Float64Array | null
}

/** One row of the engine's answer. */
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
 * Lays points into buckets. Points may come in any order; those outside the span are ignored; of several in one
 * bucket the last one given wins. NaN is no data; infinities become ±1e300. `erased` ranges, with null bounds
 * open, mark the buckets they touch as unknown whatever the points say.
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

/** The same series with the buckets that the ranges touch made unknown. */
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

/** Start of bucket i; with `i + 1`, its end. */
export function bucketStartNs(series: Pick<Series, 'startNs' | 'stepMinutes'>, i: number): bigint {
  return series.startNs + BigInt(i) * BigInt(series.stepMinutes) * nsPerMinute
}

/** An element of an array at an index the caller knows to be inside; NaN outside. */
export function at(values: Float64Array, i: number): number {
  return values[i] ?? Number.NaN
}

/** From the first touched bucket to the one after the last, which may lie beyond the series. */
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
