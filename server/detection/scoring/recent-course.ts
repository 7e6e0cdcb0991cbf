// Looks at the last minutes and hours, for incidents in which no single value is unusual:
// - `hour` and `hours`: the mean distance from this time of the day, over the last hour and the last hours. A
//   day without its usual rise is never far from the value before, but for hours far from other days;
// - `restlessness`: how much the values change from one to the next, compared with this time of other days. A
//   constant reading, a ceiling or a level that flaps does not change the mean;
// - `slopes`: how much the slope changes, of single values and of means over three and twelve, over several
//   spans. A beat or a lost peak stays in the usual range, but the line bends more or less than usual.
// They are computed value by value, with a bounded past.

import { type Comparison, leadingLook } from './comparison.ts'
import { Rarity } from './rarity.ts'
import { Residual, ResidualScale } from './residual.ts'
import { at } from './series.ts'

const looks = ['hour', 'hours', 'restlessness'] as const

/** Means are over this many minutes, and at least this many values. */
const hourSpan = { minutes: 60, values: 6 }
const hoursSpan = { minutes: 360, values: 24 }
/** The changes of the slope are of means of so many values, and averaged over so many changes. */
const slopeSpans = [
  { size: 1, spans: [8, 24] },
  { size: 3, spans: [24] },
  { size: 12, spans: [48] },
]
/** Restlessness is the second of them. */
const restlessLook = 1
const sigmaPerMedian = 1.4826
/** The mean of two dozen changes varies by about this, in octaves: the unit of its deviations. */
const octavesPerDeviation = 0.15
const mostOctaves = 6

/** Mean of the last values; NaN until there are enough. */
class RunningMean {
  private readonly ring: Float64Array
  private count = 0

  constructor(length: number) {
    this.ring = new Float64Array(length)
  }

  get length(): number {
    return this.ring.length
  }

  add(value: number): void {
    this.ring[this.count++ % this.ring.length] = value
  }

  get mean(): number {
    const { length } = this.ring
    if (this.count < length) return Number.NaN
    let mean = 0
    for (let i = 0; i < length; i++) mean += at(this.ring, i) / length
    return mean
  }
}

/**
 * How much the slope changes from one mean of `size` values to the next: `|a - 2b + c|` of three consecutive
 * means, averaged over spans of values and compared with this time of other days.
 */
class SlopeChanges {
  /** Digits of rarity by span; NaN where too little is known. */
  readonly digits: Float64Array
  readonly size: number
  private readonly spans: readonly { readonly over: RunningMean; readonly rarity: Rarity }[]
  private readonly deviations: Float64Array
  private readonly usualChange: ResidualScale
  /** The values of three means, a ring. */
  private readonly last: Float64Array
  private count = 0
  private usual = Number.NaN
  private change = Number.NaN

  constructor(stepMinutes: number, size: number, spans: readonly number[]) {
    this.size = size
    this.spans = spans.map((length) => ({
      over: new RunningMean(length),
      rarity: new Rarity(length + 2 * (size - 1)),
    }))
    this.digits = new Float64Array(spans.length).fill(Number.NaN)
    this.deviations = new Float64Array(spans.length).fill(Number.NaN)
    this.usualChange = new ResidualScale(stepMinutes)
    this.last = new Float64Array(3 * size).fill(Number.NaN)
  }

  compare(minute: number, value: number): void {
    this.last[this.count++ % this.last.length] = value
    this.change = Math.abs(this.meanBefore(0) - 2 * this.meanBefore(1) + this.meanBefore(2))
    this.usual = this.usualChange.at(minute) / sigmaPerMedian
    for (const [i, { over, rarity }] of this.spans.entries()) {
      if (!Number.isNaN(this.change)) over.add(this.change)
      const octaves = this.usual > 0 ? Math.log2(over.mean / this.usual) : Number.NaN
      const deviation = Math.max(-mostOctaves, Math.min(mostOctaves, octaves)) / octavesPerDeviation
      this.deviations[i] = deviation
      this.digits[i] = Number.isNaN(deviation) ? Number.NaN : rarity.digits(deviation)
    }
  }

  /** The comparison of a span; null for one that does not exist. */
  comparison(span: number, days: number): Comparison | null {
    const { size, spans, usual } = this
    const compared = spans[span]
    if (compared === undefined) return null
    const { above, below } = compared.rarity.usualReach()
    return {
      ...{ with: 'changes', count: days, over: compared.over.length, measured: compared.over.mean },
      low: usual / 2 ** (below * octavesPerDeviation),
      high: usual * 2 ** (above * octavesPerDeviation),
      ...(size === 1 ? {} : { means: size }),
    }
  }

  learn(minute: number, isUsual: boolean): void {
    if (isUsual && !Number.isNaN(this.change)) this.usualChange.learn(minute, this.change)
    for (const [i, { rarity }] of this.spans.entries()) {
      const deviation = at(this.deviations, i)
      if (!Number.isNaN(deviation)) rarity.learn(deviation)
    }
  }

  /** Mean of `size` values, without the newest `skipped` means; NaN until there are that many. */
  private meanBefore(skipped: number): number {
    const { last, size } = this
    const end = this.count - skipped * size
    let mean = 0
    for (let i = end - size; i < end; i++) mean += at(last, (i + last.length) % last.length) / size
    return mean
  }
}

export class RecentCourse {
  /** Digits of rarity by `looks`; NaN where a look has not seen enough. */
  readonly digits = new Float64Array(looks.length).fill(Number.NaN)
  /** Digits of the looks at the slope, by size and span. */
  readonly slopeDigits: Float64Array
  private readonly means: readonly { readonly over: RunningMean; readonly residual: Residual }[]
  private readonly slopes: readonly SlopeChanges[]
  /** The size and the span of each look at the slope. */
  private readonly slopeLooks: readonly (readonly [of: SlopeChanges, span: number])[]

  constructor(stepMinutes: number) {
    this.means = [hourSpan, hoursSpan].map(({ minutes, values }) => {
      const length = Math.max(values, Math.round(minutes / stepMinutes))
      return { over: new RunningMean(length), residual: new Residual(stepMinutes, length) }
    })
    this.slopes = slopeSpans.map(({ size, spans }) => new SlopeChanges(stepMinutes, size, spans))
    this.slopeLooks = this.slopes.flatMap((of) => Array.from(of.digits, (_, span) => [of, span] as const))
    this.slopeDigits = new Float64Array(this.slopeLooks.length).fill(Number.NaN)
  }

  /**
   * Compares a value (not NaN) at a local minute with the past. `fromSeason`: its distance from this time of
   * the day, NaN where unknown. `floor`: the least unit of deviations. `learn` must follow.
   */
  compare(minute: number, value: number, fromSeason: number, floor: number): void {
    for (const [i, { over, residual }] of this.means.entries()) {
      if (!Number.isNaN(fromSeason)) over.add(fromSeason)
      this.digits[i] = residual.digits(over.mean, minute, floor)
    }
    for (const slope of this.slopes) slope.compare(minute, value)
    for (const [i, [of, span]] of this.slopeLooks.entries()) this.slopeDigits[i] = at(of.digits, span)
    this.digits[2] = at(this.slopeDigits, restlessLook)
  }

  /** The comparison of the look with the rarest result for the last hours; null where all are NaN. */
  comparison(days: number): Comparison | null {
    const look = leadingLook(this.digits)
    if (look === null) return null
    const mean = this.means[look]
    if (mean === undefined) return this.comparisonOfSlope(restlessLook, days)
    const { over, residual } = mean
    const usual = residual.usualAround(0)
    return { with: 'distances', count: days, over: over.length, measured: over.mean, ...usual }
  }

  /** The same of the looks at the slope. */
  slopeComparison(days: number): Comparison | null {
    const look = leadingLook(this.slopeDigits)
    return look === null ? null : this.comparisonOfSlope(look, days)
  }

  /** Learns the value compared last; one of an incident is not learnt as usual. */
  learn(minute: number, part: 'usual' | 'start' | 'rest'): void {
    if (part === 'rest') return
    for (const { residual } of this.means) residual.learn(minute, part === 'usual')
    for (const slope of this.slopes) slope.learn(minute, part === 'usual')
  }

  private comparisonOfSlope(look: number, days: number): Comparison | null {
    const [of, span] = this.slopeLooks[look] ?? []
    return of === undefined || span === undefined ? null : of.comparison(span, days)
  }
}
