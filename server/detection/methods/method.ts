// The port every detection method implements: a pure, deterministic function from a series to a score and a band
// per bucket. There is no stored model. The baseline is recomputed from the window at each run, so telemetry that
// was erased is forgotten by construction, the same data always gives the same answer, and a backtest is the
// production code itself. The alternative, a model saved between runs, is faster per point, but it remembers
// erased data and can't say why it changed its mind.
//
// Contract, held by a property test for each method of the catalogue: *causal* (row i depends only on buckets
// before i, but for the value being judged), NaN-tolerant, and finite for every value within ±1e300.

import type { MethodKey, MethodParams } from '../../../contract/detection-methods.ts'
import type { Series } from '../scoring/series.ts'

/** Scores are cut off here: beyond it, "how many times the band" has no meaning and would overflow. */
export const highestScore = 1e9

/** One element per bucket of the series in every array. */
export interface Scores {
  /** 0 at the expected value, 1 at the edge of the band, at most `highestScore`; NaN where nothing was judged. */
  readonly score: Float64Array
  /**
   * For methods that say a thing once: the part of the score that was not said before, else 0; NaN with the score.
   * Where given, only news opens an incident, and the score keeps it open.
   */
  readonly news?: Float64Array
  /**
   * What the method expected; NaN during warm-up, for methods that expect nothing in particular, and, for those
   * without a band, in buckets without a value.
   */
  readonly expected: Float64Array
  /**
   * Edges of the band, also in buckets without a value. An absent edge is infinite. Both are NaN during warm-up, and
   * always for a method without a band: then the score alone decides.
   */
  readonly lower: Float64Array
  readonly upper: Float64Array
}

export interface Method<K extends MethodKey> {
  readonly key: K
  /**
   * `series.values` is NaN wherever there is nothing to judge or to learn from, for whatever reason. `peers` are the other
   * series of its group, row for row and NaN in the same way; only methods that `comparesPeers` names look at them, and
   * of them the score of a bucket may use that bucket too.
   */
  score(series: Series, params: MethodParams<K>, peers?: readonly Series[]): Scores
}

/** All NaN, as before warm-up. */
export function blankScores(length: number): Scores {
  const blank = () => new Float64Array(length).fill(Number.NaN)
  return { score: blank(), expected: blank(), lower: blank(), upper: blank() }
}

/** A distance measured in half-widths of the band; without width any distance is the highest score. NaN stays NaN. */
export function scoreOf(distance: number, halfWidth: number): number {
  if (distance === 0 || Number.isNaN(distance)) return distance
  return halfWidth > 0 ? Math.min(highestScore, distance / halfWidth) : highestScore
}
