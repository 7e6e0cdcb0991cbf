// Statistics over the last few values of a run, one per value, computed from that value and those before it;
// NaN until there are enough values. Values lie within ±1e300, and so do all results.

import { at } from './series.ts'
import { SortedWindow } from './sorted-window.ts'

const gapHistory = 4096
const fewestForGap = 30

/** Mean of the last `points` values. */
export function rollingMeans(values: Float64Array, points: number): Float64Array {
  return values.map((_, i) => (i < points - 1 ? Number.NaN : meanAt(values, i, points)))
}

/** Difference between the mean of the last `points` values and the mean of as many values before them. */
export function rollingSteps(values: Float64Array, points: number): Float64Array {
  const means = rollingMeans(values, points)
  return means.map((mean, i) => mean - at(means, i - points))
}

/** Standard deviation of the last `points` values. */
export function rollingSpreads(values: Float64Array, points: number): Float64Array {
  return values.map((_, i) => {
    if (i < points - 1) return Number.NaN
    const mean = meanAt(values, i, points)
    let largest = 0
    for (let j = i - points + 1; j <= i; j++) largest = Math.max(largest, Math.abs(at(values, j) - mean))
    if (largest === 0) return 0
    // In units of the largest deviation, so that no square overflows.
    let sum = 0
    for (let j = i - points + 1; j <= i; j++) {
      const deviation = (at(values, j) - mean) / largest
      sum += (deviation * deviation) / points
    }
    return largest * Math.sqrt(sum)
  })
}

/** Distance from each value to the nearest of the last 4096 values before it; NaN until there are 30. */
export function valueGaps(values: Float64Array): Float64Array {
  const past = new SortedWindow(Math.min(gapHistory, values.length))
  return values.map((value) => {
    const below = past.countBelow(value)
    const upper = past.rank(below)
    const lower = past.rank(below - 1)
    const toUpper = Number.isNaN(upper) ? Number.POSITIVE_INFINITY : upper - value
    const toLower = below === 0 ? Number.POSITIVE_INFINITY : value - lower
    const gap = past.size < fewestForGap ? Number.NaN : Math.min(toUpper, toLower)
    past.push(value)
    return gap
  })
}

function meanAt(values: Float64Array, i: number, points: number): number {
  let mean = 0
  for (let j = i - points + 1; j <= i; j++) mean += at(values, j) / points
  return mean
}
