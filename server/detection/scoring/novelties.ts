// Compares values with everything that the series had before: new highest and lowest values (plain, smoothed
// over 6 values, over 72, of steps, of spread), and an unusual spread. They are computed value by value, with
// a bounded past. In a monotone climb every value is a new extreme, so the caller must report a change only
// once (alert-once.ts).

import { type Comparison, leadingLook, type MeasuredOfRange } from './comparison.ts'
import { Rarity } from './rarity.ts'
import { at } from './series.ts'
import { SortedWindow } from './sorted-window.ts'

const extremeTolerance = 0.01
/** Among fewer values new extremes are common, and the range is too small to judge a distance by. */
const fewestForExtreme = 144
const mostBeyond = 3
/** A single huge early value must not count as a huge early step for long. */
const smoothPoints = 6
/** Long enough that one huge value hardly moves the mean; otherwise it would hide every extreme after it. */
const slowPoints = 72
const spreadPoints = 36
const spreadHistory = 2048
const fewestSpreads = 60
const sigmaPerMedian = 1.4826
/** A spread this many times smaller than usual is no rarer than one that is smaller still. */
const mostNarrowing = 20
/** The numbers of which extremes are detected. */
const extremeSubjects: readonly MeasuredOfRange[] = [
  { kind: 'value', over: 1 },
  { kind: 'mean', over: smoothPoints },
  { kind: 'mean', over: slowPoints },
  { kind: 'step', over: smoothPoints },
  { kind: 'spread', over: spreadPoints },
]

/**
 * Digits of rarity of a value outside the range seen before, by more than a hundredth of it; 0 for others.
 * Among n values in random order the newest is the highest or the lowest with probability 2/n. The distance
 * outside the range adds up to 3.
 */
class ExtremeWatch {
  private lowest = Number.POSITIVE_INFINITY
  private highest = Number.NEGATIVE_INFINITY
  private seen = 0
  /** Before the newest value. */
  private lowestBefore = Number.NaN
  private highestBefore = Number.NaN
  private value = Number.NaN

  /** The newest value beside all before it. */
  comparison(of: MeasuredOfRange): Comparison {
    const { highestBefore, lowestBefore, seen, value } = this
    return { with: 'range', of, count: seen - 1, measured: value, low: lowestBefore, high: highestBefore }
  }

  digits(value: number): number {
    if (Number.isNaN(value)) return 0
    const range = this.highest - this.lowest
    const beyond = range > 0 ? Math.max(value - this.highest, this.lowest - value) / range : 0
    this.value = value
    this.lowestBefore = this.lowest
    this.highestBefore = this.highest
    this.lowest = Math.min(this.lowest, value)
    this.highest = Math.max(this.highest, value)
    this.seen++
    if (beyond <= extremeTolerance || this.seen <= fewestForExtreme) return 0
    return Math.log10(this.seen / 2) + Math.min(mostBeyond, Math.log10(1 + 20 * beyond))
  }
}

export class Novelties {
  /** Digits of rarity: five extremes, then the spread. */
  readonly digits = new Float64Array(6)
  private readonly extremes = Array.from({ length: 5 }, () => new ExtremeWatch())
  private readonly spreads = new SortedWindow(spreadHistory)
  private readonly rarity = new Rarity()
  /** The last values, a ring. */
  private readonly last = new Float64Array(slowPoints)
  private count = 0
  private spread = Number.NaN
  private usualSpread = Number.NaN
  private deviation = Number.NaN

  /** Compares a value (not NaN) with the past. Extremes are learnt at once. `learn` must follow. */
  compare(value: number): void {
    this.last[this.count % slowPoints] = value
    this.count++
    const smooth = this.meanOf(smoothPoints, 0)
    this.spread = this.spreadOf(spreadPoints)
    this.deviation = this.spreadDeviation()
    const watched = [
      value,
      smooth,
      this.meanOf(slowPoints, 0),
      smooth - this.meanOf(smoothPoints, smoothPoints),
      this.spread,
    ]
    for (const [i, each] of watched.entries()) this.digits[i] = this.extremes[i]?.digits(each) ?? 0
    this.digits[5] = Number.isNaN(this.deviation) ? 0 : this.rarity.digits(this.deviation)
  }

  /** The comparison of the look with the rarest result for the last value; null where all are zero. */
  comparison(): Comparison | null {
    const look = leadingLook(this.digits)
    if (look === null || this.digits[look] === 0) return null
    const of = extremeSubjects[look]
    if (of !== undefined) return this.extremes[look]?.comparison(of) ?? null
    const { spread, spreads, usualSpread } = this
    const { above, below } = this.rarity.usualReach()
    const scale = sigmaPerMedian * spreads.medianDistanceTo(usualSpread)
    const [low, high] = [usualSpread / (1 + below), usualSpread + above * scale]
    return { with: 'spreads', count: spreads.size, over: spreadPoints, measured: spread, low, high }
  }

  /** Learns the spread compared last, unless it belongs to the rest of an incident. */
  learn(isLearnt: boolean): void {
    if (!isLearnt || Number.isNaN(this.spread)) return
    this.spreads.push(this.spread)
    if (!Number.isNaN(this.deviation)) this.rarity.learn(this.deviation)
  }

  /** Mean of the newest `points` values without the newest `skipped`; NaN until there are that many. */
  private meanOf(points: number, skipped: number): number {
    if (this.count < points + skipped) return Number.NaN
    let mean = 0
    for (let i = this.count - skipped - points; i < this.count - skipped; i++) mean += this.lastAt(i) / points
    return mean
  }

  /** Standard deviation of the newest values, in units of the largest deviation: no square overflows. */
  private spreadOf(points: number): number {
    const mean = this.meanOf(points, 0)
    if (Number.isNaN(mean)) return Number.NaN
    let largest = 0
    for (let i = this.count - points; i < this.count; i++) {
      largest = Math.max(largest, Math.abs(this.lastAt(i) - mean))
    }
    if (largest === 0) return 0
    let sum = 0
    for (let i = this.count - points; i < this.count; i++) {
      const share = (this.lastAt(i) - mean) / largest
      sum += (share * share) / points
    }
    return largest * Math.sqrt(sum)
  }

  /** A larger spread in robust deviations; a smaller one by how many times it is smaller, below 0. */
  private spreadDeviation(): number {
    if (this.spreads.size < fewestSpreads || Number.isNaN(this.spread)) return Number.NaN
    const usual = this.spreads.median()
    this.usualSpread = usual
    if (this.spread < usual) return 1 - Math.min(mostNarrowing, usual / this.spread)
    const scale = sigmaPerMedian * this.spreads.medianDistanceTo(usual)
    return scale > 0 ? Math.min(1e9, (this.spread - usual) / scale) : Number.NaN
  }

  private lastAt(position: number): number {
    return at(this.last, position % slowPoints)
  }
}
