// A band of k robust standard deviations around the rolling median: the Hampel identifier (Hampel 1974; Davies
// and Gather 1993), with the median absolute deviation as scale, 1.4826 MAD estimating sigma under a normal law
// (Rousseeuw and Croux 1993). Up to half of the window may be wrong before median or MAD are; a mean and a
// standard deviation are moved by a single wild value, which then hides the next one.
//
// Two details decide whether it works on telemetry.
// - A flat series has MAD 0, and a band without width alarms on dust. Then the distance to the nearest other value
//   seen in the window is the width: what was seen is not news. If there is no other value, any change is news,
//   and the least deviations of the alarm layer decide whether it matters.
// - An incident must not teach the baseline, but a new level must in the end. So from the third value in a row on
//   the same side outside the band, values are held aside. If the run ends, they are dropped; if it lasts for half
//   a window, they replace the baseline: this is the new normal. One or two values outside are the tail of
//   ordinary noise and are kept. Leaving out *every* value outside the band is the rejected alternative: it cuts
//   the tails off, so the band shrinks, so it cuts more; clipping them to the edge, another, lets a level shift
//   only creep in.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import type { Series } from '../series.ts'
import { at } from '../series.ts'
import { SortedWindow } from '../sorted-window.ts'
import type { Method, Scores } from './method.ts'
import { blankScores, scoreOf } from './method.ts'

const sigmaPerMad = 1.4826
const keptOutsideRun = 2

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

/** What is normal at present: the accepted values, and the run outside the band that is still on trial. */
class Baseline {
  readonly #accepted: SortedWindow
  readonly #adoptAfter: number
  #run: number[] = []
  #runSide = 0

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
    if (side !== this.#runSide) {
      this.#run = []
      this.#runSide = side
    }
    if (side !== 0) this.#run.push(value)
    if (this.#run.length <= keptOutsideRun) this.#accepted.push(value)
    else if (this.#run.length >= this.#adoptAfter) this.#adoptRun()
  }

  #adoptRun(): void {
    this.#accepted.clear()
    for (const value of this.#run) this.#accepted.push(value)
    this.#run = []
    this.#runSide = 0
  }
}
