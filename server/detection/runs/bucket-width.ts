// How wide the buckets of a series should be: the narrowest in which data is dense. Finer buckets have gaps
// or contain too few events to distinguish a change from chance; wider ones hide short incidents and delay
// alarms.
//
// Only hours in which something arrived count. So an outage, or a service that rests at night, does not make
// the buckets wider, and an hour is always dense.

/** The share that OpenSearch uses when it proposes an interval. */
const wantedShare = 0.75

/**
 * With fewer events no change can be seen, because their number varies by a third. Used where a detector is
 * suggested.
 */
export const fewestEvents = 10
const minutesPerHour = 60

interface Volumes {
  /** Number of points or events in each step; the first step begins an hour. */
  readonly volume: Float64Array
  readonly stepMinutes: number
}

/** The narrowest of some widths that is dense, else the widest. `least`: points or events in a bucket. */
export function densestWidth<Width extends number>(
  arrivals: readonly Volumes[],
  widths: readonly Width[],
  least: number,
): Width | undefined {
  return widths.find((width) => medianOf(arrivals, width, least) >= wantedShare) ?? widths.at(-1)
}

/** The median series decides: half of the series are denser. */
function medianOf(arrivals: readonly Volumes[], width: number, least: number): number {
  const shares = arrivals.map((one) => denseShare(one, width, least)).filter((share) => !Number.isNaN(share))
  shares.sort((a, b) => a - b)
  return shares[(shares.length - 1) >> 1] ?? 1
}

/**
 * The share of dense buckets in the hours in which something arrived, from the first arrival to the last; NaN
 * without any.
 */
function denseShare({ stepMinutes, volume }: Volumes, widthMinutes: number, least: number): number {
  const perHour = minutesPerHour / stepMinutes
  const perBucket = widthMinutes / stepMinutes
  const first = volume.findIndex((events) => events > 0)
  const last = volume.findLastIndex((events) => events > 0)
  if (first < 0) return Number.NaN
  let [buckets, dense] = [0, 0]
  for (let hour = first - (first % perHour); hour <= last; hour += perHour) {
    if (sumOf(volume.subarray(hour, hour + perHour)) === 0) continue
    const until = Math.min(hour + perHour, last + 1)
    for (let from = Math.max(hour, first - (first % perBucket)); from < until; from += perBucket) {
      buckets++
      if (sumOf(volume.subarray(from, from + perBucket)) >= least) dense++
    }
  }
  return dense / buckets
}

function sumOf(volume: Float64Array): number {
  let sum = 0
  for (let i = 0; i < volume.length; i++) sum += volume[i] ?? 0
  return sum
}
