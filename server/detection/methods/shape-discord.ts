// Discords: stretches of the series unlike any earlier stretch (left-profile.ts), at several lengths at once,
// because an unusual minute, an unusual hour and an unusual day are different things (MERLIN, Nakamura et al.
// 2020, searches all lengths for the same reason). The score is the quadratic mean of the surprises of all
// lengths (surprise.ts), so it has no unit. 1 is a mean surprise of 2 (one stretch in a hundred); the alarm
// layer widens that to meet the budget.
//
// There is no band: whether a value fits depends on the shape it completes. `expected` is the value that
// followed the most similar past of the shortest length. Cost per value: one multiplication and addition per
// length and value of history, about 20 microseconds at 4,096 values and three lengths.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import { denseValuesOf, toSparse } from '../scoring/dense-values.ts'
import { leftProfile } from '../scoring/left-profile.ts'
import { clockChanges } from '../scoring/local-clock.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { combinedSurprise, surprisesOf } from '../scoring/surprise.ts'
import type { Method, Scores } from './method.ts'
import { blankScores } from './method.ts'
import { TailScorer } from './tail-scorer.ts'

/** A mean surprise of this scores 1. */
const edgeSurprise = 2

export const shapeDiscord: Method<'shape_discord'> = {
  key: 'shape_discord',
  start: (params) => new TailScorer((series) => shapeDiscord.score(series, params), params.history_points),
  score(series: Series, params: MethodParams<'shape_discord'>): Scores {
    const length = series.values.length
    const dense = denseValuesOf(series.values, clockChanges(series, params.timezone))
    const lengths = params.lengths.toSorted((a, b) => a - b)
    const { distances, expected } = leftProfile(dense, lengths, params.history_points)
    const surprise = combinedSurprise(distances.map(surprisesOf))
    for (let i = 0; i < surprise.length; i++) {
      surprise[i] = i < params.warmup_points ? Number.NaN : at(surprise, i) / edgeSurprise
    }
    return {
      ...blankScores(length),
      score: toSparse(dense, surprise, length),
      expected: toSparse(dense, expected, length),
    }
  },
}
