// One residual of a prediction as a look: how many robust standard deviations it is (residual-scale.ts), and
// how rare that is in its own past (rarity.ts). What belongs to an incident counts as rare, and is not learnt
// as usual.

import { Rarity } from './rarity.ts'
import { ResidualScale } from './residual-scale.ts'

const mostDeviation = 1e9

export class Residual {
  readonly scale: ResidualScale
  private readonly rarity: Rarity
  private size = Number.NaN
  private deviation = Number.NaN

  /** `overlap`: over how many values the residuals are means. */
  constructor(stepMinutes: number, overlap = 1) {
    this.scale = new ResidualScale(stepMinutes)
    this.rarity = new Rarity(overlap)
  }

  /**
   * Digits of rarity of a residual at a local minute; NaN where it is NaN or too little is known. A deviation
   * is never told in units smaller than `floor`. `learn` must follow.
   */
  digits(residual: number, minute: number, floor: number): number {
    const scale = this.scale.at(minute)
    this.size = Math.abs(residual)
    const isKnown = !Number.isNaN(scale) && !Number.isNaN(residual)
    this.deviation = isKnown ? boundedDeviation(residual / Math.max(scale, floor)) : Number.NaN
    return isKnown ? this.rarity.digits(this.deviation) : Number.NaN
  }

  learn(minute: number, isUsual: boolean): void {
    if (isUsual && !Number.isNaN(this.size)) this.scale.learn(minute, this.size)
    if (!Number.isNaN(this.deviation)) this.rarity.learn(this.deviation)
  }
}

/** Within what a histogram of sizes can tell apart. */
export function boundedDeviation(deviation: number): number {
  return Math.max(-mostDeviation, Math.min(mostDeviation, deviation))
}
