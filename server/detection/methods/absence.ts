// Silence and standstill: a heartbeat that stopped, or a sensor that repeats its value. Exact like
// `threshold`, because the longest allowed silence is a promise of the sender. Silence is a run of buckets
// without data, after the first data; erased buckets count neither as silence nor as data.
//
// A bucket without a value cannot have a score in this catalogue, so the alarm layer handles silence: here
// the default for `missing` is "alert", and `violate_n` is the number of silent buckets that alarm. The score
// covers standstill: the number of equal values in a row, divided by `flatline_points`. A series that never
// changed scores 0. A score of 1 is still allowed. Ten nanoseconds per value.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { blankScores, methodOf, type Scorer, type Scores } from './method.ts'

export const absence = methodOf('absence', (params) => new AbsenceScorer(params))

class AbsenceScorer implements Scorer {
  private readonly flatlinePoints: number
  private last = Number.NaN
  private repeats = 0
  private hasChanged = false

  constructor(params: MethodParams<'absence'>) {
    this.flatlinePoints = params.flatline_points
  }

  score({ values }: Series): Scores {
    const scores = blankScores(values.length)
    for (let i = 0; i < values.length; i++) {
      const value = at(values, i)
      if (Number.isNaN(value)) continue
      if (value === this.last) this.repeats++
      else {
        this.hasChanged ||= !Number.isNaN(this.last)
        this.repeats = 1
      }
      this.last = value
      const isJudged = this.flatlinePoints > 0 && this.hasChanged
      scores.score[i] = isJudged ? this.repeats / this.flatlinePoints : 0
    }
    return scores
  }
}
