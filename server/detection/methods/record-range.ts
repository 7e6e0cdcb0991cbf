// New highest and lowest values. The band is the range of everything seen so far plus a tolerance; a value
// outside it has no precedent. It costs ten nanoseconds and two numbers of memory. Alone it beats half of
// the published detectors on NAB (bench/detection/nab.ts prints it as the control), because many anomalies
// that people report are simply farther out than anything before. HTM's detector contains the same rule with
// 5 % (Ahmad et al. 2017).
//
// Its limit: after one very large spike no value is outside the range any more. `decay_days` makes the range
// shrink with time.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { blankScores, methodOf, type Scorer, type Scores, scoreOf } from './method.ts'

const minutesPerDay = 1440

export const recordRange = methodOf('record_range', (params, step) => new RecordScorer(params, step))

class RecordScorer implements Scorer {
  private readonly params: MethodParams<'record_range'>
  /** The share of the range that is left after one bucket. */
  private readonly kept: number
  private middle = Number.NaN
  private half = 0
  private seen = 0

  constructor(params: MethodParams<'record_range'>, stepMinutes: number) {
    this.params = params
    this.kept = params.decay_days === 0 ? 1 : 0.5 ** (stepMinutes / minutesPerDay / params.decay_days)
  }

  score({ values }: Series): Scores {
    const { tolerance, warmup_points } = this.params
    const scores = blankScores(values.length)
    for (let i = 0; i < values.length; i++) {
      const value = at(values, i)
      this.half *= this.kept
      if (this.seen >= warmup_points) {
        const edge = this.half * (1 + 2 * tolerance)
        scores.expected[i] = this.middle
        scores.lower[i] = this.middle - edge
        scores.upper[i] = this.middle + edge
        scores.score[i] = scoreOf(Math.abs(value - this.middle), edge)
      }
      if (!Number.isNaN(value)) this.learn(value)
    }
    return scores
  }

  private learn(value: number): void {
    const lowest = this.seen === 0 ? value : Math.min(value, this.middle - this.half)
    const highest = this.seen === 0 ? value : Math.max(value, this.middle + this.half)
    this.middle = lowest / 2 + highest / 2
    this.half = highest / 2 - lowest / 2
    this.seen++
  }
}
