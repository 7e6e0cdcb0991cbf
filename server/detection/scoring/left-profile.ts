// The distance from the newest stretch of a series to the most similar earlier stretch. This is the left
// matrix profile (Yeh et al. 2016; with the past only, on streams: DAMP, Lu et al. 2022). A stretch with a
// large distance is a discord: it resembles nothing before it. Values are not normalised per stretch, because
// to an operator the same shape at another level is a different shape.
//
// For one lag, the squared distance of two stretches of length m is a sum of m squared differences. From one
// value to the next, one difference enters the sum and one leaves it. So each new value costs one addition
// per lag and length, whatever the length: the result is exact, needs no index and no pruning, and costs the
// same on every kind of data. DAMP's pruning is faster on smooth data and no faster on noise, and the time
// limit must be correct for both.
//
// The outer loop is over lags and not over values: along a lag the sums stay in registers, a difference that
// leaves a short sum leaves the longer ones later, and memory is read in order. Three lengths are summed in
// one loop, because one alone waits for its previous sum.
//
// Sums that are only added to and subtracted from drift, and squares of 1e300 overflow. So values are
// scaled by their own spread and limited far outside it, and the sums are rebuilt every thousand values:
// the drift stays below 1e-10.

import type { DenseValues } from './dense-values.ts'
import { at } from './series.ts'

const rebuildEvery = 1024
/** In units of the spread. Values farther out are set to this limit. */
const cutOff = 1e3

interface LeftProfile {
  /**
   * Per length: the distance per value to the nearest earlier stretch that does not overlap;
   * NaN where there is none.
   */
  readonly distances: readonly Float64Array[]
  /**
   * The value that followed the stretch most similar to the values before (of the shortest length, without
   * the value itself); NaN where there is none.
   */
  readonly expected: Float64Array
}

/** `lengths` is ascending. Stretches begin at most `historyPoints` values earlier. */
export function leftProfile(
  dense: DenseValues,
  lengths: readonly number[],
  historyPoints: number,
): LeftProfile {
  const count = dense.values.length
  const longest = lengths.at(-1) ?? 0
  const scaled = new ScaledValues(dense.values)
  const squares = new Float64Array(longest + rebuildEvery)
  const searches = lengths.map((length) => new Search(length, longest, dense.runs))
  const distances = lengths.map(() => new Float64Array(count).fill(Number.NaN))
  const expected = new Float64Array(count).fill(Number.NaN)
  for (let from = 0, to = 0; from < count; from = to) {
    to = scaled.scaleBlock(from, historyPoints + longest)
    for (const search of searches) search.begin(from, to)
    for (let lag = 1; lag <= historyPoints && lag < to; lag++) {
      squareDifferences(scaled.values.subarray(0, to), lag, squares, from - longest)
      slideAll(searches, squares, lag)
    }
    for (const [which, search] of searches.entries()) {
      search.writeDistances(distances[which] ?? expected, scaled.spread)
      if (which === 0) search.writeFollowers(expected, dense.values)
    }
  }
  return { distances, expected }
}

/** The values in units of their spread, which is measured again for each block. */
class ScaledValues {
  readonly values: Float64Array
  spread = 0
  readonly #raw: Float64Array
  #centre = 0

  constructor(raw: Float64Array) {
    this.#raw = raw
    this.values = new Float64Array(raw.length)
  }

  /**
   * Scales the values of the block that begins at `from`, and `reach` values before it.
   * Returns the end of the block.
   */
  scaleBlock(from: number, reach: number): number {
    const first = Math.max(0, from - reach)
    this.#rescale(first, from)
    let next = from + 1
    // A series that was constant so far has no spread until it changes.
    const mustRescale = () => this.spread === 0 && at(this.#raw, next) !== this.#centre
    while (next < this.#raw.length && next % rebuildEvery !== 0 && !mustRescale()) next++
    for (let i = first; i < next; i++) {
      const distance = (at(this.#raw, i) - this.#centre) / (this.spread || 1)
      this.values[i] = Math.max(-cutOff, Math.min(cutOff, distance))
    }
    return next
  }

  /** Measures centre and spread of the values from `first` up to `i`. */
  #rescale(first: number, i: number): void {
    const sorted = this.#raw.slice(first, i).sort()
    const quantile = (share: number) => at(sorted, Math.floor(share * (sorted.length - 1)))
    this.#centre = i === 0 ? at(this.#raw, 0) : quantile(0.5)
    const spread = i === 0 ? 0 : quantile(0.95) - quantile(0.05)
    this.spread =
      spread || (i === 0 ? 0 : quantile(1) - quantile(0)) || Math.abs(at(this.#raw, i) - this.#centre)
  }
}

/**
 * The squared difference of each value from `first` on to the value one lag earlier. It is 0 where there is
 * no earlier value, so that every difference can enter and leave a sum.
 */
function squareDifferences(values: Float64Array, lag: number, squares: Float64Array, first: number): void {
  const begin = Math.max(first, lag)
  squares.fill(0, 0, begin - first)
  for (let i = begin; i < values.length; i++) {
    const difference = (values[i] ?? 0) - (values[i - lag] ?? 0)
    squares[i - first] = difference * difference
  }
}

/** For one length: the nearest of the earlier stretches compared so far, for each value of a block. */
class Search {
  readonly length: number
  from = 0
  to = 0
  /** Position of the block's first value in an array of squares. */
  readonly lead: number
  /** Squared distance to the nearest stretch. */
  readonly nearest = new Float64Array(rebuildEvery)
  /** The same without the newest value, and the index of the value that followed the nearest stretch. */
  readonly nearestPast = new Float64Array(rebuildEvery)
  readonly followers = new Int32Array(rebuildEvery)
  readonly #runs: Int32Array

  constructor(length: number, lead: number, runs: Int32Array) {
    this.length = length
    this.lead = lead
    this.#runs = runs
  }

  begin(from: number, to: number): void {
    this.from = from
    this.to = to
    this.nearest.fill(Number.POSITIVE_INFINITY)
    this.nearestPast.fill(Number.POSITIVE_INFINITY)
  }

  /** The sum of the squares just before an offset of the block. */
  sumBefore(squares: Float64Array, offset: number): number {
    let sum = 0
    for (let i = this.lead + offset - this.length; i < this.lead + offset; i++) sum += at(squares, i)
    return sum
  }

  /** Whether the earlier stretch at that lag has no gap and does not overlap. */
  isStretch(offset: number, lag: number): boolean {
    return lag >= this.length && (this.#runs[this.from + offset - lag] ?? 0) >= this.length
  }

  follow(offset: number, lag: number, past: number): void {
    if (!this.isStretch(offset, lag)) return
    this.nearestPast[offset] = past
    this.followers[offset] = this.from + offset - lag
  }

  writeDistances(into: Float64Array, spread: number): void {
    for (let i = this.from; i < this.to; i++) {
      const nearest = at(this.nearest, i - this.from)
      if (!this.#isKnown(i)) continue
      into[i] = Math.min(Number.MAX_VALUE, Math.sqrt(Math.max(0, nearest) / this.length) * spread)
    }
  }

  writeFollowers(into: Float64Array, values: Float64Array): void {
    for (let i = this.from; i < this.to; i++) {
      if (this.#isKnown(i)) into[i] = at(values, this.followers[i - this.from] ?? -1)
    }
  }

  #isKnown(i: number): boolean {
    const isFound = at(this.nearest, i - this.from) < Number.POSITIVE_INFINITY
    return isFound && (this.#runs[i] ?? 0) >= this.length
  }
}

/**
 * Compares the stretches of a block with those one lag earlier. Only the shortest length looks for
 * the value that followed.
 */
function slideAll(searches: readonly Search[], squares: Float64Array, lag: number): void {
  const [shortest, middle, long] = searches
  const isThree = shortest !== undefined && middle !== undefined && long !== undefined
  if (isThree) slideThree(shortest, middle, long, squares, lag)
  for (let which = isThree ? 3 : 0; which < searches.length; which++) {
    const search = searches[which]
    if (search !== undefined) slideOne(search, squares, lag)
  }
}

function slideOne(search: Search, squares: Float64Array, lag: number): void {
  const { from, lead, length, nearest, nearestPast, to } = search
  const first = Math.max(0, lag - from)
  let sum = search.sumBefore(squares, first)
  for (let i = first; i < to - from; i++) {
    const past = sum - (squares[lead + i - length] ?? 0)
    sum = past + (squares[lead + i] ?? 0)
    if (sum < (nearest[i] ?? 0) && search.isStretch(i, lag)) nearest[i] = sum
    if (past < (nearestPast[i] ?? 0)) search.follow(i, lag, past)
  }
}

function slideThree(a: Search, b: Search, c: Search, squares: Float64Array, lag: number): void {
  const { from, lead, nearest: nearestA, nearestPast, to } = a
  const { nearest: nearestB } = b
  const { nearest: nearestC } = c
  const [leadA, leadB, leadC] = [lead - a.length, lead - b.length, lead - c.length]
  const first = Math.max(0, lag - from)
  let sumA = a.sumBefore(squares, first)
  let sumB = b.sumBefore(squares, first)
  let sumC = c.sumBefore(squares, first)
  for (let i = first; i < to - from; i++) {
    const enters = squares[lead + i] ?? 0
    const past = sumA - (squares[leadA + i] ?? 0)
    sumA = past + enters
    sumB = sumB - (squares[leadB + i] ?? 0) + enters
    sumC = sumC - (squares[leadC + i] ?? 0) + enters
    if (sumA < (nearestA[i] ?? 0) && a.isStretch(i, lag)) nearestA[i] = sumA
    if (past < (nearestPast[i] ?? 0)) a.follow(i, lag, past)
    if (sumB < (nearestB[i] ?? 0) && b.isStretch(i, lag)) nearestB[i] = sumB
    if (sumC < (nearestC[i] ?? 0) && c.isStretch(i, lag)) nearestC[i] = sumC
  }
}
