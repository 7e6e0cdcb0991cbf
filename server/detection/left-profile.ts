// How far is the newest stretch of a series from the most similar earlier stretch? That distance is the left matrix
// profile (Yeh et al. 2016; its use on streams with the past only: DAMP, Lu et al. 2022), and a stretch with a large
// one is a discord: it resembles nothing before it. Values are not normalised per stretch: a shape at another height
// is another shape to whoever operates the thing.
//
// For one lag L the squared distance of two stretches of length m is a sum of m squared differences, and from one
// value to the next one difference enters and one leaves. So each new value costs one addition per lag and length,
// whatever the length: exact, no index, no pruning, and the same cost on every kind of data. DAMP's pruning is
// faster on smooth data and no faster on noise, and a budget must hold for both.
//
// Sums that only ever add and subtract drift, and squares of 1e300 overflow. So values are held in units of their own
// spread, cut off far outside it, and the sums are rebuilt from the values every thousand: drift stays below 1e-10.

import type { DenseValues } from './dense-values.ts'
import { at } from './series.ts'

const rebuildEvery = 1024
/** In spreads; further out there is only "far out". */
const cutOff = 1e3

export interface LeftProfile {
  /** Per length the distance per value to the nearest earlier stretch that does not overlap; NaN where none is. */
  readonly distances: readonly Float64Array[]
  /** What followed the most similar past of the shortest length, that is, without the value itself; NaN without one. */
  readonly expected: Float64Array
}

/** `lengths` ascending; stretches begin at most `historyPoints` values earlier. */
export function leftProfile(
  dense: DenseValues,
  lengths: readonly number[],
  historyPoints: number,
): LeftProfile {
  const count = dense.values.length
  const scaled = new ScaledValues(dense.values)
  const lags = lengths.map((length) => new LagSums(length, Math.min(historyPoints, count), dense.runs))
  const distances = lengths.map(() => new Float64Array(count).fill(Number.NaN))
  const expected = new Float64Array(count).fill(Number.NaN)
  for (let i = 0; i < count; i++) {
    const isRescaled = i % rebuildEvery === 0 || scaled.mustRescale(i)
    if (isRescaled) scaled.rescale(i, historyPoints + (lengths.at(-1) ?? 0))
    scaled.take(i)
    for (const [which, lag] of lags.entries()) {
      if (isRescaled) lag.rebuild(scaled.values, i)
      lag.advance(scaled.values, i)
      const column = distances[which]
      if (column) column[i] = Math.min(Number.MAX_VALUE, Math.sqrt(lag.nearest / lag.length) * scaled.spread)
      if (which === 0 && lag.follower >= 0) expected[i] = at(dense.values, lag.follower)
    }
  }
  return { distances, expected }
}

/** The values in units of the spread they had at the last rescaling. */
class ScaledValues {
  readonly values: Float64Array
  spread = 0
  readonly #raw: Float64Array
  #centre = 0

  constructor(raw: Float64Array) {
    this.#raw = raw
    this.values = new Float64Array(raw.length)
  }

  /** A series that was constant so far has no spread until it moves. */
  mustRescale(i: number): boolean {
    return this.spread === 0 && at(this.#raw, i) !== this.#centre
  }

  /** Takes centre and spread from up to `reach` values before i, and lays those out anew. */
  rescale(i: number, reach: number): void {
    const from = Math.max(0, i - reach)
    const sorted = this.#raw.slice(from, i).sort()
    const quantile = (share: number) => at(sorted, Math.floor(share * (sorted.length - 1)))
    this.#centre = i === 0 ? at(this.#raw, 0) : quantile(0.5)
    const spread = i === 0 ? 0 : quantile(0.95) - quantile(0.05)
    this.spread =
      spread || (i === 0 ? 0 : quantile(1) - quantile(0)) || Math.abs(at(this.#raw, i) - this.#centre)
    for (let j = from; j < i; j++) this.take(j)
  }

  take(i: number): void {
    const distance = (at(this.#raw, i) - this.#centre) / (this.spread || 1)
    this.values[i] = Math.max(-cutOff, Math.min(cutOff, distance))
  }
}

/** For one length, the squared distance of the newest stretch to the one at every lag. */
class LagSums {
  readonly length: number
  /** Squared distance to the nearest stretch; NaN without one. */
  nearest = Number.NaN
  /** Index of the value that followed the past most like the present one; -1 without one. */
  follower = -1
  readonly #sums: Float64Array
  readonly #runs: Int32Array

  constructor(length: number, mostLags: number, runs: Int32Array) {
    this.length = length
    this.#sums = new Float64Array(mostLags + 1)
    this.#runs = runs
  }

  /** As if all values before i had just been taken one by one. */
  rebuild(values: Float64Array, i: number): void {
    const sums = this.#sums
    for (let lag = 1; lag < sums.length && lag < i; lag++) {
      let sum = 0
      for (let j = Math.max(lag, i - this.length); j < i; j++)
        sum += (at(values, j) - at(values, j - lag)) ** 2
      sums[lag] = sum
    }
  }

  advance(values: Float64Array, i: number): void {
    const sums = this.#sums
    const length = this.length
    const value = at(values, i)
    const leaving = i >= length ? at(values, i - length) : 0
    const mostLags = Math.min(sums.length - 1, i)
    const fullLags = Math.min(mostLags, i - length + 1)
    let nearest = Number.POSITIVE_INFINITY
    let nearestPast = Number.POSITIVE_INFINITY
    let follower = -1
    let lag = 1
    for (; lag <= fullLags; lag++) {
      const enters = value - at(values, i - lag)
      const out = i - length - lag
      const leaves = out >= 0 ? leaving - at(values, out) : 0
      const past = at(sums, lag) - leaves * leaves
      const sum = past + enters * enters
      sums[lag] = sum
      if (lag < length || (sum >= nearest && past >= nearestPast)) continue
      if ((this.#runs[i - lag] ?? 0) < length) continue
      if (sum < nearest) nearest = sum
      if (past < nearestPast) {
        nearestPast = past
        follower = i - lag
      }
    }
    for (; lag <= mostLags; lag++) {
      const enters = value - at(values, i - lag)
      sums[lag] = at(sums, lag) + enters * enters
    }
    const isKnown = nearest < Number.POSITIVE_INFINITY && (this.#runs[i] ?? 0) >= length
    this.nearest = isKnown ? Math.max(0, nearest) : Number.NaN
    this.follower = isKnown ? follower : -1
  }
}
