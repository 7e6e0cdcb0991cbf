// Silence and standstill: a heartbeat that stopped, a sensor that repeats itself. Exact like `threshold`, because how
// long is too long is a promise of whoever sends the data. Silence means buckets without data, once there was some;
// erased buckets are neither silence nor data, they are simply not counted.
//
// A bucket without a value can't have a score in this catalogue, so silence is the alarm layer's: the default for
// `missing` is "alert" here, and `violate_n` says how many silent buckets are too many. What is scored is standstill:
// how many values in a row are the same, over `flatline_points`; a series that never moved has nothing to stop.
// The score is a share of what is allowed and 1 is still allowed. Ten nanoseconds per value.

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
    let hasMoved = false
    for (let i = 0; i < series.values.length; i++) {
      const value = at(series.values, i)
      if (Number.isNaN(value)) continue
      if (value === last) repeats++
      else {
        hasMoved ||= !Number.isNaN(last)
        repeats = 1
      }
      last = value
      const isJudged = params.flatline_points > 0 && hasMoved
      scores.score[i] = isJudged ? repeats / params.flatline_points : 0
    }
    return scores
  },
}
