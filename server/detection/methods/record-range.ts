// New highest and lowest values. The band is the range of everything seen so far plus a tolerance; a value
// outside it has no precedent. It costs ten nanoseconds and two numbers of memory. Alone it beats half of
// the published detectors on NAB (bench/detection/nab.ts prints it as the control), because many anomalies
// that people report are simply farther out than anything before. HTM's detector contains the same rule with
// 5 % (Ahmad et al. 2017).
//
// Its limit: after one very large spike nothing is a record any more. `decay_days` makes
// the range shrink with time.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import type { Method, Scores } from './method.ts'
import { blankScores, scoreOf } from './method.ts'

const minutesPerDay = 1440

export const recordRange: Method<'record_range'> = {
  key: 'record_range',
  score(series: Series, params: MethodParams<'record_range'>): Scores {
    const scores = blankScores(series.values.length)
    const kept = params.decay_days === 0 ? 1 : 0.5 ** (series.stepMinutes / minutesPerDay / params.decay_days)
    let middle = Number.NaN
    let half = 0
    let seen = 0
    for (let i = 0; i < series.values.length; i++) {
      const value = at(series.values, i)
      half *= kept
      if (seen >= params.warmup_points) {
        const edge = half * (1 + 2 * params.tolerance)
        scores.expected[i] = middle
        scores.lower[i] = middle - edge
        scores.upper[i] = middle + edge
        scores.score[i] = scoreOf(Math.abs(value - middle), edge)
      }
      if (Number.isNaN(value)) continue
      const lowest = seen === 0 ? value : Math.min(value, middle - half)
      const highest = seen === 0 ? value : Math.max(value, middle + half)
      middle = lowest / 2 + highest / 2
      half = highest / 2 - lowest / 2
      seen++
    }
    return scores
  },
}
