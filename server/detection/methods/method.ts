// The interface of every detection method: a deterministic function from a series to a score and a band per
// bucket. A scorer computes it piece by piece: what it learnt from one piece is the start of the next, so
// that a run scores only what is new. This state is in memory only, and is dropped as soon as anything is
// erased. It can always be computed again from the series: the same data gives the same scores, however it
// was divided into pieces, and a backtest runs the production code.
//
// A property test checks this contract for each method of the catalogue: a method is *causal* (row i
// depends only on earlier buckets, except for the judged value), tolerates NaN, is finite for every value
// within ±1e300, and gives the same scores in one piece as in many, and from a copy of its state.

import type { MethodKey, MethodParams } from '../../../contract/detection/methods.ts'
import type { Comparison } from '../scoring/comparison.ts'
import type { Series } from '../scoring/series.ts'
import type { ConfirmedStarts } from './confirmed.ts'

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

/** What a scorer returns for a piece. */
export interface Scored extends Scores {
  /**
   * For methods without a band: what a bucket was compared with, by its row in the piece. Each row with a
   * score above 1 has one, and no other.
   */
  readonly compared?: ReadonlyMap<number, Comparison>
}

/**
 * Scores one series, oldest piece first. Its state must be in ordinary fields (`private`, no `#`) and in no
 * closure, because runs continue from copies of it (`copyState`), and its size must be bounded.
 */
export interface Scorer {
  /**
   * Scores the next buckets. A piece begins where the one before ended, with the same step; its length is up
   * to the caller and must not change any score. The columns of the result have the buckets of the piece.
   *
   * `piece.values` is NaN wherever there is nothing to judge or to learn from, for whatever reason.
   * `peers` are the same buckets of the other series of its group, also with NaN. Only methods for
   * which `comparesPeers` is true use them; for those the score of a bucket may also depend on the
   * peers' values in that bucket.
   */
  score(piece: Series, peers?: readonly Series[]): Scored
  /**
   * How many more values are needed at least before the next one is judged; 0 once it is judged. Absent where
   * only the warm-up decides.
   */
  pointsNeeded?(): number
}

/** What a piece costs at most, in the time that `auto` needs for a bucket, about 12 microseconds. */
export interface PieceCost {
  readonly perBucket: number
  /** Buckets that are scored again in each task, whole numbers: 0 where a scorer only scores what is new. */
  readonly again: number
}

export interface Method<K extends MethodKey> {
  readonly key: K
  /** Absent: at most one for each bucket. */
  cost?(params: MethodParams<K>): PieceCost
  /**
   * A scorer that has learnt nothing yet. All pieces of its series have this step. `confirmed` is for methods
   * that learn their edge themselves.
   */
  start(params: MethodParams<K>, stepMinutes: number, confirmed: ConfirmedStarts): Scorer
  /** Scores a whole series from nothing, as one piece. */
  score(series: Series, params: MethodParams<K>, peers?: readonly Series[]): Scored
}

/** A method that consists of its scorer only. */
export function methodOf<K extends MethodKey>(key: K, start: Method<K>['start']): Method<K> {
  const score: Method<K>['score'] = (series, params, peers) =>
    start(params, series.stepMinutes, []).score(series, peers)
  return { key, start, score }
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
