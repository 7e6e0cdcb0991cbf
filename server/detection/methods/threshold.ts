// Fixed limits. This method is exact on purpose: it learns, calibrates and widens nothing, because a
// limit is a promise (a quota, a service level) and not an estimate of what is usual. A value equal
// to a limit is within it.
//
// The score is the distance from the middle of the two limits in half-widths, so 1 is the limit. One limit
// alone has no middle: there the absolute value of the limit is the unit (1 for limit 0), counted from the
// limit, where the score is
// 1. In both cases the score says how far the value is beyond the limit.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { blankScores, highestScore, methodOf, type Scorer, type Scores } from './method.ts'

export const threshold = methodOf('threshold', (params) => new ThresholdScorer(params))

/** Has no state but its limits. */
class ThresholdScorer implements Scorer {
  private readonly lower: number
  private readonly upper: number

  constructor(params: MethodParams<'threshold'>) {
    this.lower = params.lower ?? Number.NEGATIVE_INFINITY
    this.upper = params.upper ?? Number.POSITIVE_INFINITY
  }

  score({ values }: Series): Scores {
    const { lower, upper } = this
    const scale = scaleOf(lower, upper)
    const scores = blankScores(values.length)
    scores.lower.fill(lower)
    scores.upper.fill(upper)
    for (let i = 0; i < values.length; i++) {
      const beyond = Math.max(lower - at(values, i), at(values, i) - upper)
      scores.score[i] = Math.max(0, Math.min(highestScore, 1 + beyond / scale))
    }
    return scores
  }
}

function scaleOf(lower: number, upper: number): number {
  if (Number.isFinite(lower) && Number.isFinite(upper)) return (upper - lower) / 2 || Math.abs(upper) || 1
  return Math.abs(Number.isFinite(upper) ? upper : lower) || 1
}
