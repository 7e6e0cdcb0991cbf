// Looks at the last minutes and hours, for incidents in which no single value is unusual:
// - `hour` and `hours`: the mean distance from this time of the day, over the last hour and the last hours. A
//   day without its usual rise is never far from the value before, but for hours far from other days;
// - `restlessness`: how much the values change from one to the next, compared with this time of other days. A
//   constant reading, a ceiling or a level that flaps does not change the mean.
// They are computed value by value, with a bounded past.

import { type Comparison, leadingLook } from './comparison.ts'
import { Rarity } from './rarity.ts'
import { Residual, ResidualScale } from './residual.ts'
import { at } from './series.ts'

const looks = ['hour', 'hours', 'restlessness'] as const

/** Means are over this many minutes, and at least this many values. */
const hourSpan = { minutes: 60, values: 6 }
const hoursSpan = { minutes: 360, values: 24 }
const restlessValues = 24
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

export class RecentCourse {
  /** Digits of rarity by `looks`; NaN where a look has not seen enough. */
  readonly digits = new Float64Array(looks.length).fill(Number.NaN)
  private readonly means: readonly { readonly over: RunningMean; readonly residual: Residual }[]
  private readonly changes = new RunningMean(restlessValues)
  private readonly usualChange: ResidualScale
  private readonly restlessness = new Rarity(restlessValues)
  private usual = Number.NaN
  private change = Number.NaN
  private deviation = Number.NaN
  private last = Number.NaN
  private beforeLast = Number.NaN

  constructor(stepMinutes: number) {
    this.means = [hourSpan, hoursSpan].map(({ minutes, values }) => {
      const length = Math.max(values, Math.round(minutes / stepMinutes))
      return { over: new RunningMean(length), residual: new Residual(stepMinutes, length) }
    })
    this.usualChange = new ResidualScale(stepMinutes)
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
    this.change = Math.abs(value - 2 * this.last + this.beforeLast)
    this.beforeLast = this.last
    this.last = value
    if (!Number.isNaN(this.change)) this.changes.add(this.change)
    const usual = this.usualChange.at(minute) / sigmaPerMedian
    this.usual = usual
    const octaves = usual > 0 ? Math.log2(this.changes.mean / usual) : Number.NaN
    this.deviation = Math.max(-mostOctaves, Math.min(mostOctaves, octaves)) / octavesPerDeviation
    this.digits[2] = Number.isNaN(this.deviation) ? Number.NaN : this.restlessness.digits(this.deviation)
  }

  /** The comparison of the look with the rarest result for the last hours; null where all are NaN. */
  comparison(days: number): Comparison | null {
    const look = leadingLook(this.digits)
    if (look === null) return null
    const mean = this.means[look]
    if (mean !== undefined) {
      const { over, residual } = mean
      const usual = residual.usualAround(0)
      return { with: 'distances', count: days, over: over.length, measured: over.mean, ...usual }
    }
    const { changes, usual } = this
    const { above, below } = this.restlessness.usualReach()
    const [low, high] = [
      usual / 2 ** (below * octavesPerDeviation),
      usual * 2 ** (above * octavesPerDeviation),
    ]
    return { with: 'changes', count: days, over: changes.length, measured: changes.mean, low, high }
  }

  /** Learns the value compared last; one of an incident is not learnt as usual. */
  learn(minute: number, part: 'usual' | 'start' | 'rest'): void {
    if (part === 'rest') return
    for (const { residual } of this.means) residual.learn(minute, part === 'usual')
    if (part === 'usual' && !Number.isNaN(this.change)) this.usualChange.learn(minute, this.change)
    if (!Number.isNaN(this.deviation)) this.restlessness.learn(this.deviation)
  }
}
