// How far is the newest stretch of a series from the most similar earlier stretch? That distance is the left matrix
// profile (Yeh et al. 2016; its use on streams with the past only: DAMP, Lu et al. 2022), and a stretch with a large
// one is a discord: it resembles nothing before it. Values are not normalised per stretch: a shape at another height
// is another shape to whoever operates the thing.
//
// For one lag the squared distance of two stretches of length m is a sum of m squared differences, and from one
// value to the next one difference enters and one leaves. So each new value costs one addition per lag and length,
// whatever the length: exact, no index, no pruning, and the same cost on every kind of data. DAMP's pruning is
// faster on smooth data and no faster on noise, and a budget must hold for both.
//
// Lag by lag and not value by value: along a lag the sums stay in registers, what enters one length leaves it and all
// others later, and all that is read lies side by side. Three lengths go together, because one alone waits for its own last sum.
//
// Sums that only ever add and subtract drift, and squares of 1e300 overflow. So values are held in units of their own
// spread, cut off far outside it, and the sums begin anew every thousand values: drift stays below 1e-10.

import type { DenseValues } from './dense-values.ts'
import { at } from './series.ts'

const rebuildEvery = 1024
/** In spreads; further out there is only "far out". */
const cutOff = 1e3

interface LeftProfile {
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
  const longest = lengths.at(-1) ?? 0
  const scaled = new ScaledValues(dense.values)
  const squares = new Float64Array(longest + rebuildEvery)
  const searches = lengths.map((length) => new Search(length, longest, dense.runs))
  const distances = lengths.map(() => new Float64Array(count).fill(Number.NaN))
  const expected = new Float64Array(count).fill(Number.NaN)
  for (let from = 0, to = 0; from < count; from = to) {
    to = scaled.layOut(from, historyPoints + longest)
    for (const search of searches) search.begin(from, to)
    for (let lag = 1; lag <= historyPoints && lag < to; lag++) {
      squareDifferences(scaled.values.subarray(0, to), lag, squares, from - longest)
      slideAll(searches, squares, lag)
    }
    for (const [which, search] of searches.entries()) {
      search.tellDistances(distances[which] ?? expected, scaled.spread)
      if (which === 0) search.tellFollowers(expected, dense.values)
    }
  }
  return { distances, expected }
}

/** The values in units of the spread they had when they were last laid out. */
class ScaledValues {
  readonly values: Float64Array
  spread = 0
  readonly #raw: Float64Array
  #centre = 0

  constructor(raw: Float64Array) {
    this.#raw = raw
    this.values = new Float64Array(raw.length)
  }

  /** Lays out values on a new scale, from `reach` before `from` to the one before which the next scale begins: the answer. */
  layOut(from: number, reach: number): number {
    const first = Math.max(0, from - reach)
    this.#rescale(first, from)
    let next = from + 1
    // A series that was constant so far has no spread until it moves.
    const mustRescale = () => this.spread === 0 && at(this.#raw, next) !== this.#centre
    while (next < this.#raw.length && next % rebuildEvery !== 0 && !mustRescale()) next++
    for (let i = first; i < next; i++) {
      const distance = (at(this.#raw, i) - this.#centre) / (this.spread || 1)
      this.values[i] = Math.max(-cutOff, Math.min(cutOff, distance))
    }
    return next
  }

  /** Takes centre and spread from the values between. */
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
 * Of each value from `first` on the squared difference to the one a lag earlier; 0 where there is none, so that it
 * can enter and leave a sum all the same.
 */
function squareDifferences(values: Float64Array, lag: number, squares: Float64Array, first: number): void {
  const begin = Math.max(first, lag)
  squares.fill(0, 0, begin - first)
  for (let i = begin; i < values.length; i++) {
    const difference = (values[i] ?? 0) - (values[i - lag] ?? 0)
    squares[i - first] = difference * difference
  }
}

/** For one length and each value of a block, the nearest of the earlier stretches looked at so far. */
class Search {
  readonly length: number
  from = 0
  to = 0
  /** Where in an array of squares the first of the block is. */
  readonly lead: number
  /** Squared distance to the nearest stretch. */
  readonly nearest = new Float64Array(rebuildEvery)
  /** The same without the newest value, and the index of the value that followed there. */
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

  /** The sum of the squares before one of the block. */
  sumBefore(squares: Float64Array, place: number): number {
    let sum = 0
    for (let i = this.lead + place - this.length; i < this.lead + place; i++) sum += at(squares, i)
    return sum
  }

  /** Whether the stretch at that lag is one, and does not overlap. */
  isStretch(place: number, lag: number): boolean {
    return lag >= this.length && (this.#runs[this.from + place - lag] ?? 0) >= this.length
  }

  follow(place: number, lag: number, past: number): void {
    if (!this.isStretch(place, lag)) return
    this.nearestPast[place] = past
    this.followers[place] = this.from + place - lag
  }

  tellDistances(into: Float64Array, spread: number): void {
    for (let i = this.from; i < this.to; i++) {
      const nearest = at(this.nearest, i - this.from)
      if (!this.#isKnown(i)) continue
      into[i] = Math.min(Number.MAX_VALUE, Math.sqrt(Math.max(0, nearest) / this.length) * spread)
    }
  }

  tellFollowers(into: Float64Array, values: Float64Array): void {
    for (let i = this.from; i < this.to; i++) {
      if (this.#isKnown(i)) into[i] = at(values, this.followers[i - this.from] ?? -1)
    }
  }

  #isKnown(i: number): boolean {
    const isFound = at(this.nearest, i - this.from) < Number.POSITIVE_INFINITY
    return isFound && (this.#runs[i] ?? 0) >= this.length
  }
}

/** Compares the stretches of a block with those at one lag. Only the shortest length looks for what followed. */
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
