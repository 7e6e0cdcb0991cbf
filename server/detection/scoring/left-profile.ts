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
//
// Values may come piece by piece: the sums of all lags at the end of a piece are kept, so that each distance
// is the same bit for bit, wherever pieces end.

import { type DenseValues, joinedValues } from './dense-values.ts'
import { at } from './series.ts'

const rebuildEvery = 1024
/** In units of the spread. Values farther out are set to this limit. */
const cutOff = 1e3

interface PieceProfile {
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

/** Values with their positions in their runs, and the number of values before the first of them. */
interface Known {
  readonly values: Float64Array
  readonly runs: Int32Array
  readonly first: number
}

/** Part of a block, counted in values since the beginning. */
interface BlockPart {
  /** Where the block begins. */
  readonly block: number
  readonly from: number
  readonly to: number
}

/** The profile of a series that comes piece by piece. */
export class LeftProfile {
  private readonly lengths: readonly number[]
  private readonly historyPoints: number
  private readonly longest: number
  /** Per length: the sum of each lag at the newest value. */
  private readonly sums: readonly Float64Array[]
  /** As many as a new value is compared with. */
  private known: Known = { values: new Float64Array(0), runs: new Int32Array(0), first: 0 }
  private count = 0
  /** Where the newest block begins. */
  private block = 0
  private centre = 0
  private spread = 0

  /** `lengths` is ascending. Stretches begin at most `historyPoints` values earlier. */
  constructor(lengths: readonly number[], historyPoints: number) {
    this.lengths = lengths
    this.historyPoints = historyPoints
    this.longest = lengths.at(-1) ?? 0
    this.sums = lengths.map(() => new Float64Array(historyPoints))
  }

  /** The profile of the next values. */
  add({ runs, values }: Pick<DenseValues, 'values' | 'runs'>): PieceProfile {
    const begin = this.count
    const end = begin + values.length
    const { first } = this.known
    const known: Known = {
      values: joinedValues(this.known.values, values),
      runs: joinedValues(this.known.runs, runs),
      first,
    }
    const distances = this.lengths.map(() => new Float64Array(values.length).fill(Number.NaN))
    const expected = new Float64Array(values.length).fill(Number.NaN)
    while (this.count < end) {
      const part = this.nextPart(known, end)
      const searches = this.compare(known, part)
      for (const [which, search] of searches.entries()) {
        search.writeDistances(distances[which] ?? expected, this.spread, begin)
        if (which === 0) search.writeFollowers(expected, begin)
      }
      this.count = part.to
    }
    const drop = Math.max(0, known.values.length - this.historyPoints - this.longest)
    this.known = {
      values: known.values.slice(drop),
      runs: known.runs.slice(drop),
      first: first + drop,
    }
    return { distances, expected }
  }

  /** The next values of one block. A new block begins with a new scale. */
  private nextPart(known: Known, end: number): BlockPart {
    const from = this.count
    if (from === 0 || this.endsBefore(known, from)) {
      this.block = from
      this.rescale(known, from)
    }
    let to = from + 1
    while (to < end && !this.endsBefore(known, to)) to++
    return { block: this.block, from, to }
  }

  /** A series that was constant so far has no spread until it changes. */
  private endsBefore({ first, values }: Known, i: number): boolean {
    return i % rebuildEvery === 0 || (this.spread === 0 && at(values, i - first) !== this.centre)
  }

  /** Measures centre and spread of the values that value i is compared with. */
  private rescale({ first, values }: Known, i: number): void {
    const from = Math.max(0, i - this.historyPoints - this.longest)
    const sorted = values.slice(from - first, i - first).sort()
    const own = at(values, i - first)
    const quantile = (share: number) => at(sorted, Math.floor(share * (sorted.length - 1)))
    this.centre = i === 0 ? own : quantile(0.5)
    const spread = i === 0 ? 0 : quantile(0.95) - quantile(0.05)
    this.spread = spread || (i === 0 ? 0 : quantile(1) - quantile(0)) || Math.abs(own - this.centre)
  }

  private compare(known: Known, part: BlockPart): Search[] {
    const { historyPoints, lengths, longest, sums } = this
    const scaled = known.values.subarray(0, part.to - known.first).map((value) => {
      const distance = (value - this.centre) / (this.spread || 1)
      return Math.max(-cutOff, Math.min(cutOff, distance))
    })
    const squares = new Float64Array(longest + part.to - part.from)
    const searches = lengths.map(
      (length, i) => new Search({ length, lead: longest, sums: sums[i] ?? squares, known, part }),
    )
    for (let lag = 1; lag <= historyPoints && lag < part.to; lag++) {
      squareDifferences(scaled, lag, squares, part.from - known.first - longest)
      slideAll(searches, squares, lag)
    }
    return searches
  }
}

/**
 * The squared difference of each value from `from` on, which may be negative, to the value one lag earlier.
 * It is 0 where there is no earlier value, so that every difference can enter and leave a sum.
 */
function squareDifferences(values: Float64Array, lag: number, squares: Float64Array, from: number): void {
  const begin = Math.max(from, lag)
  squares.fill(0, 0, begin - from)
  for (let i = begin; i < values.length; i++) {
    const difference = (values[i] ?? 0) - (values[i - lag] ?? 0)
    squares[i - from] = difference * difference
  }
}

interface SearchOptions {
  readonly length: number
  readonly lead: number
  readonly sums: Float64Array
  readonly known: Known
  readonly part: BlockPart
}

/** For one length: the nearest of the earlier stretches compared so far, for each value of a part. */
class Search {
  readonly length: number
  /** Position of the first value of the part in an array of squares. */
  readonly lead: number
  readonly size: number
  /** Squared distance to the nearest stretch. */
  readonly nearest: Float64Array
  /** The same without the newest value, and where the value is that followed the nearest stretch. */
  readonly nearestPast: Float64Array
  readonly #followers: Int32Array
  readonly #sums: Float64Array
  readonly #values: Float64Array
  readonly #runs: Int32Array
  readonly #part: BlockPart
  /** Position of the first value of the part among the known values. */
  readonly #own: number

  constructor({ known, lead, length, part, sums }: SearchOptions) {
    this.length = length
    this.lead = lead
    this.size = part.to - part.from
    this.nearest = new Float64Array(this.size).fill(Number.POSITIVE_INFINITY)
    this.nearestPast = new Float64Array(this.size).fill(Number.POSITIVE_INFINITY)
    this.#followers = new Int32Array(this.size)
    this.#sums = sums
    this.#values = known.values
    this.#runs = known.runs
    this.#part = part
    this.#own = part.from - known.first
  }

  /** The first value of the part that is compared with one a lag earlier. */
  firstOf(lag: number): number {
    return Math.max(0, lag - this.#part.from)
  }

  /** The sum of the squares just before the first value: that of the part before, or a new one. */
  sumBefore(squares: Float64Array, lag: number): number {
    const { block, from } = this.#part
    if (Math.max(block, lag) < from) return at(this.#sums, lag - 1)
    const end = this.lead + this.firstOf(lag)
    let sum = 0
    for (let i = end - this.length; i < end; i++) sum += at(squares, i)
    return sum
  }

  keepSum(lag: number, sum: number): void {
    this.#sums[lag - 1] = sum
  }

  /** Whether the earlier stretch at that lag has no gap and does not overlap. */
  isStretch(offset: number, lag: number): boolean {
    return lag >= this.length && (this.#runs[this.#own + offset - lag] ?? 0) >= this.length
  }

  /** Keeps an index and not a value, so that the compiler can place all of this in the loops. */
  follow(offset: number, lag: number, past: number): void {
    if (!this.isStretch(offset, lag)) return
    this.nearestPast[offset] = past
    this.#followers[offset] = this.#own + offset - lag
  }

  /** `begin`: the value that the column begins with. */
  writeDistances(into: Float64Array, spread: number, begin: number): void {
    for (let i = 0; i < this.size; i++) {
      if (!this.#isKnown(i)) continue
      const distance = Math.sqrt(Math.max(0, at(this.nearest, i)) / this.length) * spread
      into[this.#part.from + i - begin] = Math.min(Number.MAX_VALUE, distance)
    }
  }

  writeFollowers(into: Float64Array, begin: number): void {
    for (let i = 0; i < this.size; i++) {
      if (this.#isKnown(i)) into[this.#part.from + i - begin] = at(this.#values, this.#followers[i] ?? -1)
    }
  }

  #isKnown(offset: number): boolean {
    const isFound = at(this.nearest, offset) < Number.POSITIVE_INFINITY
    return isFound && (this.#runs[this.#own + offset] ?? 0) >= this.length
  }
}

/**
 * Compares the stretches of a part with those one lag earlier. Only the shortest length looks for
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
  const { lead, length, nearest, nearestPast, size } = search
  let sum = search.sumBefore(squares, lag)
  for (let i = search.firstOf(lag); i < size; i++) {
    const past = sum - (squares[lead + i - length] ?? 0)
    sum = past + (squares[lead + i] ?? 0)
    if (sum < (nearest[i] ?? 0) && search.isStretch(i, lag)) nearest[i] = sum
    if (past < (nearestPast[i] ?? 0)) search.follow(i, lag, past)
  }
  search.keepSum(lag, sum)
}

function slideThree(a: Search, b: Search, c: Search, squares: Float64Array, lag: number): void {
  const { lead, nearest: nearestA, nearestPast, size } = a
  const { nearest: nearestB } = b
  const { nearest: nearestC } = c
  const [leadA, leadB, leadC] = [lead - a.length, lead - b.length, lead - c.length]
  let sumA = a.sumBefore(squares, lag)
  let sumB = b.sumBefore(squares, lag)
  let sumC = c.sumBefore(squares, lag)
  for (let i = a.firstOf(lag); i < size; i++) {
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
  a.keepSum(lag, sumA)
  b.keepSum(lag, sumB)
  c.keepSum(lag, sumC)
}
