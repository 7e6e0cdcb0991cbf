// Lasting changes of level: two-sided CUSUM (Page 1954) on deviations from a slow robust baseline. Each side
// adds up the excess over `k` standard deviations and never falls below zero. One value counts at most four
// deviations, so only a run of values reaches `h`. This finds a leak, or a deployment that moved a metric by
// one deviation; no band can.
//
// There is no band, because the value itself may look ordinary. The score is the larger sum divided by `h`;
// `expected` is the level before. When the sum has exceeded `h` for `min_run` values, the new level becomes
// the baseline and the sums restart: one episode per shift. The baseline is the median and MAD of the last
// `window_points` accepted values. About 1 microsecond per value; the state is two numbers and the window.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { SortedWindow } from '../scoring/sorted-window.ts'
import { blankScores, highestScore, methodOf, type Scorer, type Scores } from './method.ts'

const sigmaPerMad = 1.4826
const mostPerValue = 4

export const levelShift = methodOf('level_shift', (params) => new LevelShiftScorer(params))

class LevelShiftScorer implements Scorer {
  private readonly warmupPoints: number
  private readonly sums: Sums
  private seen = 0

  constructor(params: MethodParams<'level_shift'>) {
    this.warmupPoints = params.warmup_points
    this.sums = new Sums(params)
  }

  score({ values }: Series): Scores {
    const scores = blankScores(values.length)
    for (let i = 0; i < values.length; i++) {
      const value = at(values, i)
      if (this.seen >= this.warmupPoints) scores.expected[i] = this.sums.level
      if (Number.isNaN(value)) continue
      const score = this.sums.add(value)
      if (this.seen >= this.warmupPoints) scores.score[i] = score
      this.seen++
    }
    return scores
  }
}

class Sums {
  private readonly params: MethodParams<'level_shift'>
  private past: SortedWindow
  private since: number[] = []
  private up = 0
  private down = 0

  constructor(params: MethodParams<'level_shift'>) {
    this.params = params
    this.past = new SortedWindow(params.window_points)
  }

  get level(): number {
    return this.past.median()
  }

  /** Adds the value to the sums and the baseline, and returns its score. */
  add(value: number): number {
    const { k, h, min_run } = this.params
    if (this.past.size < 16) {
      this.past.push(value)
      return 0
    }
    const deviation = this.deviationOf(value)
    this.up = Math.max(0, this.up + deviation - k)
    this.down = Math.max(0, this.down - deviation - k)
    const sum = Math.max(this.up, this.down)
    // Values that may belong to a new level stay out of the baseline until it is decided.
    if (sum > h) this.since.push(value)
    else {
      for (const each of this.since) this.past.push(each)
      this.since = []
      this.past.push(value)
    }
    if (this.since.length >= min_run) this.adopt()
    return Math.min(highestScore, sum / h)
  }

  private deviationOf(value: number): number {
    const centre = this.past.median()
    const mad = this.past.medianDistanceTo(centre)
    const sigma = mad > 0 ? sigmaPerMad * mad : this.past.nearestOtherDistance(centre)
    const distance = value - centre
    const deviation = sigma > 0 ? distance / sigma : Math.sign(distance) * mostPerValue
    return Math.max(-mostPerValue, Math.min(mostPerValue, deviation))
  }

  private adopt(): void {
    this.past.clear()
    for (const each of this.since) this.past.push(each)
    this.since = []
    this.up = 0
    this.down = 0
  }
}
