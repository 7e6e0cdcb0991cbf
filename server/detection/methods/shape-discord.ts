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
import { DenseReader, toSparse } from '../scoring/dense-values.ts'
import { LeftProfile } from '../scoring/left-profile.ts'
import { clockChanges } from '../scoring/local-clock.ts'
import type { Series } from '../scoring/series.ts'
import { combinedSurprise, Surprises, scoresOf } from '../scoring/surprise.ts'
import type { Method, Scorer, Scores } from './method.ts'
import { blankScores } from './method.ts'
import { RestartedScorer } from './restarted-scorer.ts'

/** Additions, per lag and length, that cost as much as a bucket of `auto`. */
const costlyOperations = 12_288

type Params = MethodParams<'shape_discord'>

export const shapeDiscord: Method<'shape_discord'> = {
  key: 'shape_discord',
  cost: ({ history_points, lengths }) => ({
    perBucket: (2 * history_points * lengths.length) / costlyOperations,
    // Each part compares the squares of the longest stretch before it again.
    again: Math.max(...lengths),
  }),
  start: (params) => {
    const block = params.history_points
    return new RestartedScorer(() => new DiscordScorer(params, 2 * block), block)
  },
  score: (series, params) => new DiscordScorer(params, series.values.length).score(series),
}

class DiscordScorer implements Scorer {
  private readonly params: Params
  private readonly dense = new DenseReader()
  private readonly profile: LeftProfile
  /** One per length. */
  private readonly surprises: readonly Surprises[]
  private values = 0

  constructor(params: Params, bucketsMax: number) {
    this.params = params
    const lengths = params.lengths.toSorted((a, b) => a - b)
    this.profile = new LeftProfile(lengths, params.history_points)
    this.surprises = lengths.map(() => new Surprises(bucketsMax))
  }

  score(piece: Series): Scores {
    const length = piece.values.length
    const dense = this.dense.read(piece.values, clockChanges(piece, this.params.timezone))
    const { distances, expected } = this.profile.add(dense)
    const none = new Float64Array(0)
    const surprises = combinedSurprise(this.surprises.map((each, i) => each.of(distances[i] ?? none)))
    const score = scoresOf(surprises, this.params.warmup_points - this.values)
    this.values += dense.values.length
    return {
      ...blankScores(length),
      score: toSparse(dense, score, length),
      expected: toSparse(dense, expected, length),
    }
  }
}
