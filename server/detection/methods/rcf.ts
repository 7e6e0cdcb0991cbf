// Robust random cut forest over shingles of the series (cut-forest.ts), the method behind the detectors
// of AWS and OpenSearch: a few values in a row are one point, and a point is unusual if random cuts
// separate it early from a fading sample of the past. It notices sudden changes of any shape; it does
// not know the time of day.
//
// No forest is stored, because it would take megabytes. It is built over a tail of the series for each piece,
// with cuts from fixed seeds: the same series always gets the same scores, and erased values are in no tree.
// The score is the surprise of the forest's score (surprise.ts) divided by 2; there is no band. Cost per
// value: one descent of each tree, 10 to 25 microseconds with 30 trees of 256 points of 8 values. It is
// several times that where values span many magnitudes, so that the trees become lists; a tree is never
// deeper than its sample size.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import { forestScores } from '../scoring/cut-forest.ts'
import { type DenseValues, denseValuesOf, toSparse } from '../scoring/dense-values.ts'
import type { Series } from '../scoring/series.ts'
import { scoresOf, surprisesOf } from '../scoring/surprise.ts'
import type { Method, Scores } from './method.ts'
import { blankScores } from './method.ts'
import { TailScorer } from './tail-scorer.ts'

/** Cost of the tail that is built again for each piece, in buckets of `auto`: about 0.1 seconds. */
const tailCost = 10_000

type Params = MethodParams<'rcf'>

export const rcf: Method<'rcf'> = {
  key: 'rcf',
  cost: (params) => ({ perBucket: costPerBucket(params), again: 2 * tailBucketsOf(params) }),
  start: (params) => new TailScorer((series) => rcf.score(series, params), tailBucketsOf(params)),
  score(series: Series, params: Params): Scores {
    const length = series.values.length
    const dense = denseValuesOf(series.values)
    const score = scoresOf(forestSurprises(dense, params), params.warmup_points)
    return { ...blankScores(length), score: toSparse(dense, score, length) }
  },
}

/** A descent of a tree costs its depth times its dimensions. */
function costPerBucket({ sample_points, shingle_points, trees }: Params): number {
  return (trees / 30) * ((8 + shingle_points) / 16) * (sample_points / 256)
}

/** Half of the history, or less where a forest is so expensive that this would take too long. */
function tailBucketsOf(params: Params): number {
  return Math.ceil(Math.min(params.history_points / 2, tailCost / costPerBucket(params)))
}

type ForestParams = Pick<Params, 'trees' | 'sample_points' | 'shingle_points' | 'history_points'>

/** One surprise per dense value, given the values before it; 0 where a long gap interrupts the shingle. */
function forestSurprises(dense: DenseValues, params: ForestParams): Float64Array {
  return surprisesOf(
    forestScores(dense, {
      trees: params.trees,
      samplePoints: params.sample_points,
      shinglePoints: params.shingle_points,
      historyPoints: params.history_points,
    }),
  )
}
