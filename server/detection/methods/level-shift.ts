// Changes of level that last: two-sided CUSUM (Page 1954) on deviations from a slow robust baseline. Each side adds up
// what exceeds `k` standard deviations and forgets at zero; a single spike counts four deviations at most, so only a
// run of them gets to `h`. That finds a leak or a deploy that moved a metric by one deviation, which no band can.
//
// There is no band: the value itself may look ordinary. The score is the larger sum over `h`, `expected` the level
// before. Once the sum has passed `h` for `min_run` values the new level is adopted and the sums begin anew: one
// incident per shift. Baseline: median and MAD of the last `window_points` values accepted. About 1 microsecond per
// value; two numbers and the window.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { SortedWindow } from '../scoring/sorted-window.ts'
import type { Method, Scores } from './method.ts'
import { blankScores, highestScore } from './method.ts'

const sigmaPerMad = 1.4826
const mostPerValue = 4

export const levelShift: Method<'level_shift'> = {
  key: 'level_shift',
  score(series: Series, params: MethodParams<'level_shift'>): Scores {
    const scores = blankScores(series.values.length)
    const sums = new Sums(params)
    let seen = 0
    for (let i = 0; i < series.values.length; i++) {
      const value = at(series.values, i)
      if (seen >= params.warmup_points) scores.expected[i] = sums.level
      if (Number.isNaN(value)) continue
      const score = sums.take(value)
      if (seen >= params.warmup_points) scores.score[i] = score
      seen++
    }
    return scores
  },
}

class Sums {
  readonly #params: MethodParams<'level_shift'>
  #past: SortedWindow
  #since: number[] = []
  #up = 0
  #down = 0

  constructor(params: MethodParams<'level_shift'>) {
    this.#params = params
    this.#past = new SortedWindow(params.window_points)
  }

  get level(): number {
    return this.#past.median()
  }

  /** The score of the value, which is learnt. */
  take(value: number): number {
    const { k, h, min_run } = this.#params
    if (this.#past.size < 16) {
      this.#past.push(value)
      return 0
    }
    const deviation = this.#deviationOf(value)
    this.#up = Math.max(0, this.#up + deviation - k)
    this.#down = Math.max(0, this.#down - deviation - k)
    const sum = Math.max(this.#up, this.#down)
    // What may belong to a new level stays out of the baseline until that is decided.
    if (sum > h) this.#since.push(value)
    else {
      for (const each of this.#since) this.#past.push(each)
      this.#since = []
      this.#past.push(value)
    }
    if (this.#since.length >= min_run) this.#adopt()
    return Math.min(highestScore, sum / h)
  }

  #deviationOf(value: number): number {
    const centre = this.#past.median()
    const mad = this.#past.medianDistanceTo(centre)
    const sigma = mad > 0 ? sigmaPerMad * mad : this.#past.nearestOtherDistance(centre)
    const distance = value - centre
    const deviation = sigma > 0 ? distance / sigma : Math.sign(distance) * mostPerValue
    return Math.max(-mostPerValue, Math.min(mostPerValue, deviation))
  }

  #adopt(): void {
    this.#past.clear()
    for (const each of this.#since) this.#past.push(each)
    this.#since = []
    this.#up = 0
    this.#down = 0
  }
}
