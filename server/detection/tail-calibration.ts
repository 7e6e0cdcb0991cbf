// How far must a score go before it is worth an alarm? Not a matter of taste: the user states how many false alarms
// a week are bearable, and the past of the series says how high its scores go that often. That is a quantile far
// out in the tail, beyond most of what was seen, so it can't be counted; extreme value theory extends the tail.
//
// - The law: excesses over a high level follow a generalised Pareto distribution (Pickands 1975; Balkema and
//   de Haan 1974). Using it as an alarm threshold on a stream is SPOT (Siffer et al. 2017).
// - What is counted: not scores but alarms. An alarm opens when n of the last m buckets violate, that is when the
//   n-th largest of the last m scores passes the threshold, so that is the number followed here. Exceedances close
//   together are one alarm, hence one peak ("runs" declustering, Coles 2001, section 5.3). Without both, scores
//   that come in bursts would make the threshold far too high or the rate far too large.
// - The fit: probability-weighted moments (Hosking and Wallis 1987), closed and good for few peaks, where SPOT's
//   maximum likelihood is a numeric search that may fail. The shape is kept within [0, 0.5]: a tail is never
//   believed to be bounded on the word of a dozen peaks, nor so heavy that it has no variance.
// - An incident that slipped in must teach little: a peak counts at most ten median excesses above the level. That
//   cuts one normal peak in a thousand, and a spike of any size then at most doubles the threshold of a short
//   history (500 exponential scores, mean of 20 seeds) and adds a quarter to that of a longer one (2,000).
//
// The threshold never falls below 1, the band as the method drew it, and stays 1 while the history is too short
// (see `fewestScores` and `fewestPeaks`): the band width the user chose is then the only judge. It depends on
// earlier scores only, so a backtest does not peek at the future.

import { at } from './series.ts'
import { SortedWindow } from './sorted-window.ts'

const tailShare = 0.02
/** A short history uses a thicker tail, so that at least this many scores exceed the level. */
const fewestExceedances = 16
/** Bursts merge into few peaks; then the tail is thickened further, up to this share of the history. */
const thickestTailShare = 0.25
/** Fewer peaks than this would leave the fit to chance. */
const fewestPeaks = 10
/** With 16 exceedances, at most a tenth of the history: still a tail. */
const fewestScores = 160
const refitGrowth = 1.25
const peakCapMedians = 10

export interface CalibrationPolicy {
  readonly violateN: number
  readonly windowM: number
  readonly clearN: number
  /** Alarms per bucket that are bearable, between 0 and 1. */
  readonly budgetPerBucket: number
}

/** Learns scores one by one, oldest first; `threshold` is valid for the next score. */
export class TailCalibration {
  readonly #policy: CalibrationPolicy
  readonly #recent: SortedWindow
  readonly #history: Float64Array
  #length = 0
  #nextFit = fewestScores
  #threshold = 1

  /** `capacity`: the most scores that will be learnt. */
  constructor(policy: CalibrationPolicy, capacity: number) {
    this.#policy = policy
    this.#recent = new SortedWindow(policy.windowM)
    this.#history = new Float64Array(capacity)
  }

  /** In units of the method's score; at least 1. */
  get threshold(): number {
    return this.#threshold
  }

  /** Takes a score (not NaN) of a bucket outside any incident. */
  learn(score: number): void {
    this.#recent.push(score)
    const opening = this.#recent.rank(this.#recent.size - this.#policy.violateN)
    this.#history[this.#length++] = Number.isNaN(opening) ? 0 : opening
    if (this.#length < this.#nextFit) return
    this.#threshold = thresholdFor(this.#history.subarray(0, this.#length), this.#policy)
    this.#nextFit = Math.ceil(this.#length * refitGrowth)
  }
}

/** The score that a history in order of time passes as often as the budget allows; 1 where that can't be told. */
export function thresholdFor(
  history: Float64Array,
  policy: Pick<CalibrationPolicy, 'clearN' | 'budgetPerBucket'>,
): number {
  if (history.length < fewestScores) return 1
  const sorted = history.slice().sort()
  let exceedances = Math.max(fewestExceedances, Math.floor(history.length * tailShare))
  for (; exceedances <= history.length * thickestTailShare; exceedances = Math.ceil(exceedances * 1.5)) {
    const level = at(sorted, history.length - 1 - exceedances)
    const peaks = clusterPeaks(history, level, policy.clearN)
    if (peaks.length < fewestPeaks) continue
    const rarity = peaks.length / history.length / policy.budgetPerBucket
    return Math.max(1, level + excessPassedOnceIn(rarity, fitPareto(cappedExcesses(peaks, level))))
  }
  return 1
}

/** Scale in units of the excesses; shape 0 is the exponential law, larger is heavier. */
export interface ParetoTail {
  readonly scale: number
  readonly shape: number
}

/** Hosking and Wallis (1987), equation 5 and its plotting positions, with shape = -k kept within [0, 0.5]. */
export function fitPareto(excesses: readonly number[]): ParetoTail {
  const sorted = Float64Array.from(excesses).sort()
  let mean = 0
  let weighted = 0
  for (let i = 0; i < sorted.length; i++) {
    const position = (i + 1 - 0.35) / sorted.length
    mean += at(sorted, i) / sorted.length
    weighted += ((1 - position) * at(sorted, i)) / sorted.length
  }
  const shape = Math.max(0, Math.min(0.5, 2 - mean / (mean - 2 * weighted)))
  return { shape, scale: mean * (1 - shape) }
}

/** The excess that one in `rarity` excesses passes; 0 for rarities up to 1. */
export function excessPassedOnceIn(rarity: number, tail: ParetoTail): number {
  if (rarity <= 1) return 0
  if (tail.shape < 1e-9) return tail.scale * Math.log(rarity)
  return (tail.scale / tail.shape) * (rarity ** tail.shape - 1)
}

/** The highest score of each run above the level; `calmScores` at or below it end a run. */
function clusterPeaks(history: Float64Array, level: number, calmScores: number): number[] {
  const peaks: number[] = []
  let calm = calmScores
  for (const score of history) {
    if (score <= level) calm++
    else {
      if (calm >= calmScores) peaks.push(score)
      else peaks.push(Math.max(score, peaks.pop() ?? score))
      calm = 0
    }
  }
  return peaks
}

function cappedExcesses(peaks: readonly number[], level: number): number[] {
  const excesses = peaks.map((peak) => peak - level)
  const cap = peakCapMedians * at(Float64Array.from(excesses).sort(), excesses.length >> 1)
  return excesses.map((excess) => Math.min(excess, cap))
}
