// The interface of every detection method: a pure, deterministic function from a series to a score and a band
// per bucket. No model is stored. The baseline is computed anew from the window at each run. So erased
// telemetry is forgotten by construction, the same data always gives the same result, and a backtest runs the
// production code. The alternative, a model saved between runs, is faster per point, but it keeps traces of
// erased data and cannot explain why its result changed.
//
// A property test checks this contract for each method of the catalogue: a method is *causal* (row i
// depends only on earlier buckets, except for the judged value), tolerates NaN, and is finite for
// every value within ±1e300.

import type { MethodKey, MethodParams } from '../../../contract/detection-methods.ts'
import type { Series } from '../scoring/series.ts'

/** Scores are limited to this value: beyond it, a multiple of the band has no meaning and could overflow. */
export const highestScore = 1e9

/** One element per bucket of the series in every array. */
export interface Scores {
  /**
   * 0 at the expected value, 1 at the edge of the band, at most `highestScore`; NaN in
   * buckets that are not judged.
   */
  readonly score: Float64Array
  /**
   * For methods that report a thing once: the score where it was not reported before, else 0; NaN where the
   * score is. Where this is given, only an unreported score opens an episode, and the score keeps it open.
   */
  readonly unreported?: Float64Array
  /**
   * The expected value. NaN during warm-up, for methods without one, and, for methods without a band, in
   * buckets without a value.
   */
  readonly expected: Float64Array
  /**
   * Edges of the band, also in buckets without a value. An edge that does not exist is infinite. Both are NaN
   * during warm-up, and always for a method without a band; there only the score decides.
   */
  readonly lower: Float64Array
  readonly upper: Float64Array
}

export interface Method<K extends MethodKey> {
  readonly key: K
  /**
   * `series.values` is NaN wherever there is nothing to judge or to learn from, for whatever reason.
   * `peers` are the other series of its group, with the same buckets and also with NaN. Only methods for
   * which `comparesPeers` is true use them; for those the score of a bucket may also depend on the
   * peers' values in that bucket.
   */
  score(series: Series, params: MethodParams<K>, peers?: readonly Series[]): Scores
}

/** All NaN, as during warm-up. */
export function blankScores(length: number): Scores {
  const blank = () => new Float64Array(length).fill(Number.NaN)
  return { score: blank(), expected: blank(), lower: blank(), upper: blank() }
}

/**
 * Converts a distance to half-widths of the band. Without a width, any distance gets the
 * highest score. NaN stays NaN.
 */
export function scoreOf(distance: number, halfWidth: number): number {
  if (distance === 0 || Number.isNaN(distance)) return distance
  return halfWidth > 0 ? Math.min(highestScore, distance / halfWidth) : highestScore
}
