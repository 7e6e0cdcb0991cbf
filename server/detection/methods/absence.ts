// Silence and standstill: a heartbeat that stopped, or a sensor that repeats its value. Exact like
// `threshold`, because the longest allowed silence is a promise of the sender. Silence is a run of buckets
// without data after there was some; erased buckets count neither as silence nor as data.
//
// A bucket without a value cannot have a score in this catalogue, so the alarm layer handles silence: here
// the default for `missing` is "alert", and `violate_n` is the number of silent buckets that alarm. The score
// covers standstill: the number of equal values in a row, divided by `flatline_points`. A series that never
// changed scores 0. A score of 1 is still allowed. Ten nanoseconds per value.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import type { Method, Scores } from './method.ts'
import { blankScores } from './method.ts'

export const absence: Method<'absence'> = {
  key: 'absence',
  score(series: Series, params: MethodParams<'absence'>): Scores {
    const scores = blankScores(series.values.length)
    let last = Number.NaN
    let repeats = 0
    let hasChanged = false
    for (let i = 0; i < series.values.length; i++) {
      const value = at(series.values, i)
      if (Number.isNaN(value)) continue
      if (value === last) repeats++
      else {
        hasChanged ||= !Number.isNaN(last)
        repeats = 1
      }
      last = value
      const isJudged = params.flatline_points > 0 && hasChanged
      scores.score[i] = isJudged ? repeats / params.flatline_points : 0
    }
    return scores
  },
}
