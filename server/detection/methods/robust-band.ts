// A band of k robust standard deviations around the rolling median: the Hampel identifier (Hampel 1974;
// Davies and Gather 1993). The scale is the median absolute deviation; 1.4826 MAD estimates sigma under a
// normal distribution (Rousseeuw and Croux 1993). Up to half of the window may be wrong before median and MAD
// are. Mean and standard deviation are moved by a single extreme value, which then hides the next one.
//
// Two details make it work on telemetry.
// - A flat series has MAD 0, and a band without width alarms on the smallest change. Then the distance to
//   the nearest other value in the window is the width, so a value that was seen before does not alarm.
//   If there is no other value, any change scores high, and the least deviations of the alarm layer
//   decide whether it matters.
// - An episode must not change the baseline, but a lasting new level must. So values outside the band are on
//   trial as long as they stay on one side. A trial of one or two values was the tail of ordinary noise and
//   is accepted afterwards. A longer one was an episode and is dropped. One that lasts half a window
//   replaces the baseline: it is the new level. Two alternatives were rejected. Leaving out *every* value
//   outside the band cuts the tails off, so the band shrinks and cuts more. Clipping values to the edge lets
//   the baseline follow a level shift only slowly.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { SortedWindow } from '../scoring/sorted-window.ts'
import { blankScores, methodOf, type Scorer, type Scores, scoreOf } from './method.ts'

const sigmaPerMad = 1.4826
const longestTail = 2

export const robustBand = methodOf('robust_band', (params) => new RobustBandScorer(params))

class RobustBandScorer implements Scorer {
  private readonly params: MethodParams<'robust_band'>
  private readonly baseline: Baseline
  private seen = 0

  constructor(params: MethodParams<'robust_band'>) {
    this.params = params
    this.baseline = new Baseline(params.window_points)
  }

  score({ values }: Series): Scores {
    const { k, warmup_points } = this.params
    const scores = blankScores(values.length)
    for (let i = 0; i < values.length; i++) {
      const value = at(values, i)
      let side = 0
      if (this.seen >= warmup_points) {
        const expected = this.baseline.centre()
        const halfWidth = this.baseline.halfWidth(expected, k)
        scores.expected[i] = expected
        scores.lower[i] = expected - halfWidth
        scores.upper[i] = expected + halfWidth
        const distance = Math.abs(value - expected)
        scores.score[i] = scoreOf(distance, halfWidth)
        if (distance > halfWidth) side = Math.sign(value - expected)
      }
      if (Number.isNaN(value)) continue
      this.seen++
      this.baseline.learn(value, side)
    }
    return scores
  }
}

/** The present baseline: the accepted values, and the values on trial. */
class Baseline {
  private readonly accepted: SortedWindow
  private readonly adoptAfter: number
  private trial: number[] = []
  private trialSide = 0

  constructor(windowPoints: number) {
    this.accepted = new SortedWindow(windowPoints)
    this.adoptAfter = windowPoints >> 1
  }

  centre(): number {
    return this.accepted.median()
  }

  halfWidth(centre: number, k: number): number {
    const mad = this.accepted.medianDistanceTo(centre)
    return mad > 0 ? k * sigmaPerMad * mad : this.accepted.nearestOtherDistance(centre)
  }

  /** `side` is -1 below the band, 1 above it, 0 inside. */
  learn(value: number, side: number): void {
    if (side !== this.trialSide) {
      if (this.trial.length <= longestTail) this.acceptTrial()
      this.trial = []
      this.trialSide = side
    }
    if (side === 0) this.accepted.push(value)
    else this.trial.push(value)
    if (this.trial.length >= this.adoptAfter) this.adoptTrial()
  }

  private acceptTrial(): void {
    for (const value of this.trial) this.accepted.push(value)
  }

  private adoptTrial(): void {
    this.accepted.clear()
    this.acceptTrial()
    this.trial = []
    this.trialSide = 0
  }
}
