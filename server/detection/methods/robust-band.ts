// A band of k robust standard deviations around the rolling median: the Hampel identifier (Hampel 1974; Davies
// and Gather 1993), with the median absolute deviation as scale, 1.4826 MAD estimating sigma under a normal law
// (Rousseeuw and Croux 1993). Up to half of the window may be wrong before median or MAD are; a mean and a
// standard deviation are moved by a single wild value, which then hides the next one.
//
// Two details decide whether it works on telemetry.
// - A flat series has MAD 0, and a band without width alarms on dust. Then the distance to the nearest other value
//   seen in the window is the width: what was seen is not news. If there is no other value, any change is news,
//   and the least deviations of the alarm layer decide whether it matters.
// - An incident must not teach the baseline, but a new level must in the end. So values outside the band are on
//   trial for as long as they keep to one side. A trial of one or two values was the tail of ordinary noise and is
//   accepted afterwards; a longer one was an incident and is dropped; one that lasts half a window replaces the
//   baseline: this is the new normal. Leaving out *every* value outside the band is the rejected alternative: it
//   cuts the tails off, so the band shrinks, so it cuts more. Clipping them to the edge, another, lets a level
//   shift only creep in.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { SortedWindow } from '../scoring/sorted-window.ts'
import type { Method, Scores } from './method.ts'
import { blankScores, scoreOf } from './method.ts'

const sigmaPerMad = 1.4826
const longestTail = 2

export const robustBand: Method<'robust_band'> = {
  key: 'robust_band',
  score(series: Series, params: MethodParams<'robust_band'>): Scores {
    const scores = blankScores(series.values.length)
    const baseline = new Baseline(params.window_points)
    let valuesSeen = 0
    for (let i = 0; i < series.values.length; i++) {
      const value = at(series.values, i)
      let side = 0
      if (valuesSeen >= params.warmup_points) {
        const expected = baseline.centre()
        const halfWidth = baseline.halfWidth(expected, params.k)
        scores.expected[i] = expected
        scores.lower[i] = expected - halfWidth
        scores.upper[i] = expected + halfWidth
        const distance = Math.abs(value - expected)
        scores.score[i] = scoreOf(distance, halfWidth)
        if (distance > halfWidth) side = Math.sign(value - expected)
      }
      if (Number.isNaN(value)) continue
      valuesSeen++
      baseline.learn(value, side)
    }
    return scores
  },
}

/** What is normal at present: the accepted values, and those on trial. */
class Baseline {
  readonly #accepted: SortedWindow
  readonly #adoptAfter: number
  #trial: number[] = []
  #trialSide = 0

  constructor(windowPoints: number) {
    this.#accepted = new SortedWindow(windowPoints)
    this.#adoptAfter = windowPoints >> 1
  }

  centre(): number {
    return this.#accepted.median()
  }

  halfWidth(centre: number, k: number): number {
    const mad = this.#accepted.medianDistanceTo(centre)
    return mad > 0 ? k * sigmaPerMad * mad : this.#accepted.nearestOtherDistance(centre)
  }

  /** `side` is -1 below the band, 1 above it, 0 inside. */
  learn(value: number, side: number): void {
    if (side !== this.#trialSide) {
      if (this.#trial.length <= longestTail) this.#acceptTrial()
      this.#trial = []
      this.#trialSide = side
    }
    if (side === 0) this.#accepted.push(value)
    else this.#trial.push(value)
    if (this.#trial.length >= this.#adoptAfter) this.#adoptTrial()
  }

  #acceptTrial(): void {
    for (const value of this.#trial) this.#accepted.push(value)
  }

  #adoptTrial(): void {
    this.#accepted.clear()
    this.#acceptTrial()
    this.#trial = []
    this.#trialSide = 0
  }
}
