// The usual size of the residuals of a prediction, recently and at this time of the day on the last seven
// days. It converts a residual to robust standard deviations. Traffic varies much at noon and little at
// night; one scale for both would miss incidents at night and alarm at noon.
//
// Both are medians of sizes, so that incidents hardly move them, and the caller leaves incidents out. The
// rarity of a residual comes from its past (rarity.ts): residuals of an incident count there as rare, and are
// not learnt as usual here.

import { BucketRing } from './bucket-ring.ts'
import { Rarity } from './rarity.ts'
import { SortedWindow } from './sorted-window.ts'

const sigmaPerMedian = 1.4826
const recentResiduals = 240
const fewestRecent = 10
/**
 * Residuals of a day are kept in slots of at least this many minutes: rhythms are not exact to the minute.
 */
const shortestSlotMinutes = 15
const days = 7
const fewestSlots = 5
const mostDeviation = 1e9

export class ResidualScale {
  private readonly recent = new SortedWindow(recentResiduals)
  private readonly slotMinutes: number
  private readonly slotsPerDay: number
  /** Median size of the residuals by slot. */
  private readonly slots: BucketRing
  private slot = Number.NEGATIVE_INFINITY
  private readonly inSlot: number[] = []
  private readonly known: number[] = []
  private atThisTime = Number.NaN

  constructor(stepMinutes: number) {
    this.slotMinutes = Math.max(shortestSlotMinutes, stepMinutes)
    this.slotsPerDay = Math.max(1, Math.round(1440 / this.slotMinutes))
    this.slots = new BucketRing((days + 1) * this.slotsPerDay)
  }

  /** One robust standard deviation at a local minute; NaN until ten residuals were learnt. */
  at(minute: number): number {
    this.moveTo(minute)
    const recent = this.recent.size < fewestRecent ? Number.NaN : sigmaPerMedian * this.recent.median()
    if (Number.isNaN(this.atThisTime)) return recent
    return Number.isNaN(recent) ? this.atThisTime : Math.hypot(recent, this.atThisTime) * Math.SQRT1_2
  }

  /** `size`: the absolute residual at a local minute, not NaN. */
  learn(minute: number, size: number): void {
    this.moveTo(minute)
    this.recent.push(size)
    this.inSlot.push(size)
  }

  private moveTo(minute: number): void {
    const slot = Math.floor(minute / this.slotMinutes)
    if (slot === this.slot) return
    if (this.inSlot.length > 0) this.slots.set(this.slot, medianOfSizes(this.inSlot))
    this.inSlot.length = 0
    this.slot = slot
    const { known } = this
    known.length = 0
    for (let day = 1; day <= days; day++) {
      for (let shift = -1; shift <= 1; shift++) {
        const size = this.slots.get(slot - day * this.slotsPerDay + shift)
        if (!Number.isNaN(size)) known.push(size)
      }
    }
    this.atThisTime = known.length < fewestSlots ? Number.NaN : sigmaPerMedian * medianOfSizes(known)
  }
}

/** Sorts the sizes. They are two dozen at most, so insertion is quicker than the sort of the language. */
function medianOfSizes(sizes: number[]): number {
  for (let i = 1; i < sizes.length; i++) {
    const size = sizes[i] ?? 0
    let place = i
    for (; place > 0 && (sizes[place - 1] ?? 0) > size; place--) sizes[place] = sizes[place - 1] ?? 0
    sizes[place] = size
  }
  return (sizes[(sizes.length - 1) >> 1] ?? 0) / 2 + (sizes[sizes.length >> 1] ?? 0) / 2
}

export class Residual {
  readonly scale: ResidualScale
  private readonly rarity: Rarity
  private unit = Number.NaN
  private size = Number.NaN
  private deviation = Number.NaN

  /** `overlap`: over how many values the residuals are means. */
  constructor(stepMinutes: number, overlap = 1) {
    this.scale = new ResidualScale(stepMinutes)
    this.rarity = new Rarity(overlap)
  }

  /**
   * Digits of rarity of a residual at a local minute; NaN where it is NaN or too little is known. The unit of
   * a deviation is at least `floor`. `learn` must follow.
   */
  digits(residual: number, minute: number, floor: number): number {
    const scale = this.scale.at(minute)
    this.size = Math.abs(residual)
    const isKnown = !Number.isNaN(scale) && !Number.isNaN(residual)
    this.unit = Math.max(scale, floor)
    this.deviation = isKnown ? boundedDeviation(residual / this.unit) : Number.NaN
    return isKnown ? this.rarity.digits(this.deviation) : Number.NaN
  }

  /** The usual values around the prediction that the last residual belongs to. */
  usualAround(centre: number): { readonly low: number; readonly high: number } {
    const { above, below } = this.rarity.usualReach()
    return { low: centre - below * this.unit, high: centre + above * this.unit }
  }

  learn(minute: number, isUsual: boolean): void {
    if (isUsual && !Number.isNaN(this.size)) this.scale.learn(minute, this.size)
    if (!Number.isNaN(this.deviation)) this.rarity.learn(this.deviation)
  }
}

/** Limited to the sizes that the histogram distinguishes. */
export function boundedDeviation(deviation: number): number {
  return Math.max(-mostDeviation, Math.min(mostDeviation, deviation))
}
