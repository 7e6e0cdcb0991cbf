// Robust random cut forest over shingles of the series (cut-forest.ts), the method that AWS and OpenSearch detectors are
// built on: a few values in a row are one point, and a point is as odd as random cuts set it apart early from a fading
// sample of the past. It sees what is sudden, whatever the shape; it does not know the time of day.
//
// No forest is stored. It grows over the window at each run with cuts from fixed seeds, so the same series always gets
// the same scores, and what was erased is in no tree. The score is the surprise of the forest's own (surprise.ts) over 2;
// no band. Cost per value: a way down each tree, 20 to 50 microseconds with 30 trees of 256 points of 8 values, and some
// times that where values span so many magnitudes that the trees become lists: a tree is never deeper than its sample.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import { forestScores } from '../scoring/cut-forest.ts'
import { type DenseValues, denseValuesOf, spreadOut } from '../scoring/dense-values.ts'
import type { Series } from '../scoring/series.ts'
import { surprisesOf } from '../scoring/surprise.ts'
import type { Method, Scores } from './method.ts'
import { blankScores } from './method.ts'

const edgeSurprise = 2

export const rcf: Method<'rcf'> = {
  key: 'rcf',
  score(series: Series, params: MethodParams<'rcf'>): Scores {
    const length = series.values.length
    const dense = denseValuesOf(series.values)
    const score = forestSurprises(dense, params).map((surprise, i) =>
      i < params.warmup_points ? Number.NaN : surprise / edgeSurprise,
    )
    return { ...blankScores(length), score: spreadOut(dense, score, length) }
  },
}

type ForestParams = Pick<MethodParams<'rcf'>, 'trees' | 'sample_points' | 'shingle_points' | 'history_points'>

/** One per dense value, each against the values before it; 0 where a long gap cuts the shingle. */
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
