// Fixed limits. Exact on purpose: nothing is learnt, calibrated or widened, because a limit is a promise somebody
// made (a quota, a service level) and not an opinion about what is usual. A value equal to a limit keeps it.
//
// The score is the distance from the middle of the two limits in half-widths, so that 1 is the limit. With one
// limit only there is no middle; then a step as long as the limit itself counts as 1 (as 1 unit for limit 0), and
// the score keeps the same meaning on the other side of the limit: how far beyond.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import type { Method, Scores } from './method.ts'
import { blankScores, highestScore } from './method.ts'

export const threshold: Method<'threshold'> = {
  key: 'threshold',
  score(series: Series, params: MethodParams<'threshold'>): Scores {
    const lower = params.lower ?? Number.NEGATIVE_INFINITY
    const upper = params.upper ?? Number.POSITIVE_INFINITY
    const scale = scaleOf(lower, upper)
    const scores = blankScores(series.values.length)
    scores.lower.fill(lower)
    scores.upper.fill(upper)
    for (let i = 0; i < series.values.length; i++) {
      const beyond = Math.max(lower - at(series.values, i), at(series.values, i) - upper)
      scores.score[i] = Math.max(0, Math.min(highestScore, 1 + beyond / scale))
    }
    return scores
  },
}

function scaleOf(lower: number, upper: number): number {
  if (Number.isFinite(lower) && Number.isFinite(upper)) return (upper - lower) / 2 || Math.abs(upper) || 1
  return Math.abs(Number.isFinite(upper) ? upper : lower) || 1
}
