// How far must a score go before it is worth an alarm? Not a matter of taste: the user states how many false alarms
// a week are bearable, and the past of the series says how high its scores go that often. That is a quantile far
// out in the tail, beyond most of what was seen, so it can't be counted; pareto-tail.ts extends the tail. Doing so for an
// alarm threshold on a stream is SPOT (Siffer et al. 2017). What is particular here:
//
// - What is counted: not scores but alarms. An alarm opens when n of the last m buckets violate, that is when the
//   n-th largest of the last m scores passes the threshold, so that is the number followed here. Exceedances close
//   together are one alarm, hence one peak ("runs" declustering, Coles 2001, section 5.3). Without both, scores
//   that come in bursts would make the threshold far too high or the rate far too large. Alarms are counted over
//   all buckets, also those without a value: a budget is for a week, however little of it has data.
// - The promise is about alarms to come, so the quantile is predictive: few peaks, wide edge. A threshold that is too
//   low by chance costs more alarms than one too high saves, so the best guess of a quantile would keep no promise.
// - Each side of a band keeps to the budget too, by a tail of its own. In one tail for both, the side that is everyday and
//   ends soon hides the one that is rare and goes far: of latencies, which lie near the bottom of their range, all
//   the largest distances from its middle are those of the small ones.
// - Counts score in steps, and between two steps every threshold lets the same values pass. So where scores repeat, a
//   score is taken for all of its step up to the next one seen.
// - Of a peak that opened an incident only the beginning was learnt, so it counts as "at least that".
// - What is overspent is saved again: the law holds for a series that stays as it is, and few do. Where more alarms
//   were raised than the budget allows so far, the budget for those to come shrinks in proportion (the idea of adaptive
//   conformal inference, Gibbs and Candès 2021: follow the rate that was had, not only the one that was promised).
// - A tail of few peaks can't tell how far is far, and incidents that nobody was told of make it longer. Where the law of a
//   score is known beforehand, as that of surprises is, the edge goes out no further than `mostThreshold`, and from there on
//   only as the budget is overspent.
//
// The threshold never falls below `leastThreshold`: a budget is a ceiling, and alarms spent only to reach it are mostly
// false. It is 1, the edge as the method drew it, where the past has no tail at all, as in a series that never moved, and
// while it is too short to speak. It depends on earlier scores only, so a backtest does not peek at the future. decisions/0009 has what it keeps to, measured.

import { at } from '../scoring/series.ts'
import { SortedWindow } from '../scoring/sorted-window.ts'
import { type Excess, excessPassedOnceIn, plausibleTails } from './pareto-tail.ts'

const tailShare = 0.02
/** A short history uses a thicker tail, so that this many scores exceed the level. */
const fewestExceedances = 32
/** Up to this share of the history; bursts, which merge into few peaks, thicken it as far too. */
const thickestTailShare = 0.25
/** The fit is repeated as the history grows by this factor, and after each incident, which says that it may be too low. */
const refitGrowth = 1.25
/** How much further out a surprise has to be to be ten times as rare: a digit of it, in units of the score. */
const scorePerDigit = 0.5
/** From fewer peaks than this nothing is concluded. */
const fewestPeaks = 3
/** From fewer scores than this there is no edge but the method's own. */
export const fewestScores = 16

interface CalibrationPolicy {
  readonly violateN: number
  readonly windowM: number
  readonly clearN: number
  /** Alarms per bucket that are bearable, between 0 and 1. */
  readonly budgetPerBucket: number
  /** In units of the method's score; at most 1. */
  readonly leastThreshold: number
  /** The same for a budget of which nothing is overspent; Infinity where scores follow no law known beforehand. */
  readonly mostThreshold: number
}

/** Where a score lies of what was expected: above, below, or of no side. */
export type Side = 'above' | 'below' | 'none'

/** Learns scores one by one, oldest first; thresholds are valid for the next score. */
export class TailCalibration {
  readonly #policy: CalibrationPolicy
  readonly #all: ScoreTail
  readonly #above: ScoreTail | null
  readonly #below: ScoreTail | null
  #scores = 0
  #emptyBuckets = 0
  #openings = 0

  /** `capacity`: the most scores that will be learnt. Sides are of use for a band of which both can alarm. */
  constructor(policy: CalibrationPolicy, capacity: number, hasSides = false) {
    this.#policy = policy
    this.#all = new ScoreTail(policy, capacity)
    this.#above = hasSides ? new ScoreTail(policy, capacity) : null
    this.#below = hasSides ? new ScoreTail(policy, capacity) : null
  }

  /** In units of the method's score; at least `leastThreshold`. */
  get threshold(): number {
    return this.#all.threshold
  }

  /** The same for a score of one side. */
  get above(): number {
    return Math.max(this.#all.threshold, this.#above?.threshold ?? 0)
  }

  get below(): number {
    return Math.max(this.#all.threshold, this.#below?.threshold ?? 0)
  }

  /** Takes a score (not NaN) of a bucket outside any incident, or of the one that `opens` an incident. */
  learn(score: number, opens = false, side: Side = 'none'): void {
    this.#scores++
    if (opens) this.#openings++
    const buckets = this.#scores + this.#emptyBuckets
    const { budgetPerBucket } = this.#policy
    const allowed = budgetPerBucket * buckets
    const left = Math.min(1, (1 + allowed) / (1 + this.#openings))
    // Before a whole alarm is allowed, little is known of what this series does.
    const mostThreshold = this.#policy.mostThreshold - scorePerDigit * Math.log10(left * Math.min(1, allowed))
    const time = { buckets, budgetPerBucket: budgetPerBucket * left, mostThreshold }
    this.#all.learn(score, opens, time)
    this.#above?.learn(side === 'above' ? score : 0, opens && side === 'above', time)
    this.#below?.learn(side === 'below' ? score : 0, opens && side === 'below', time)
  }

  /** Takes a bucket that has no score but belongs to the time the budget is for. */
  pass(): void {
    if (this.#scores > 0) this.#emptyBuckets++
  }
}

type Limits = Pick<CalibrationPolicy, 'budgetPerBucket' | 'mostThreshold'>

/** The tail of one stream of scores. */
class ScoreTail {
  threshold = 1
  readonly #policy: CalibrationPolicy
  readonly #recent: SortedWindow
  readonly #history: Float64Array
  readonly #isOpening: Uint8Array
  #length = 0
  #nextFit = fewestScores
  #hasOpened = false

  constructor(policy: CalibrationPolicy, capacity: number) {
    this.#policy = policy
    this.#recent = new SortedWindow(policy.windowM)
    this.#history = new Float64Array(capacity)
    this.#isOpening = new Uint8Array(capacity)
  }

  learn(score: number, opens: boolean, { buckets, ...limits }: Limits & { buckets: number }): void {
    this.#recent.push(score)
    const opening = this.#recent.rank(this.#recent.size - this.#policy.violateN)
    this.#isOpening[this.#length] = opens ? 1 : 0
    this.#history[this.#length++] = Number.isNaN(opening) ? 0 : opening
    // An incident ends by the edge it began with: what it teaches is for those after it.
    if (opens) this.#hasOpened = true
    if (opens || this.#length < (this.#hasOpened ? fewestScores : this.#nextFit)) return
    this.#hasOpened = false
    const scores = this.#history.subarray(0, this.#length)
    const isOpening = this.#isOpening.subarray(0, this.#length)
    this.threshold = thresholdFor({ scores, isOpening, buckets }, { ...this.#policy, ...limits })
    this.#nextFit = Math.ceil(this.#length * refitGrowth)
  }
}

interface ScoreHistory {
  /** In order of time. */
  readonly scores: Float64Array
  /** 1 where an incident opened: the score is then the least that its peak was. */
  readonly isOpening: Uint8Array
  /** How long it took. */
  readonly buckets: number
}

/** The score that will be passed as often as the budget allows; 1 where that can't be told. */
export function thresholdFor(
  history: ScoreHistory,
  policy: Omit<CalibrationPolicy, 'violateN' | 'windowM'>,
): number {
  const { scores, buckets } = history
  if (scores.length < fewestScores) return 1
  const tail = tailOf(history, policy.clearN)
  if (tail === null) return 1
  const rarity = tail.peaks.length / buckets / policy.budgetPerBucket
  const excess = rarity <= 1 ? 0 : excessPassedOnceIn(rarity, plausibleTails(tail.peaks))
  return Math.max(policy.leastThreshold, Math.min(policy.mostThreshold, tail.level + excess))
}

/** Where runs are so few that each exceedance counts for itself, the rate is too large: that errs on the quiet side. */
function tailOf(history: ScoreHistory, clearN: number): { level: number; peaks: Excess[] } | null {
  const { scores } = history
  const sorted = scores.slice().sort()
  const most = Math.max(fewestPeaks, scores.length * thickestTailShare)
  const different = sorted.filter((score, i) => score !== sorted[i - 1])
  const least = Math.floor(Math.min(most, Math.max(fewestExceedances, scores.length * tailShare)))
  for (const calmScores of [clearN, 0]) {
    for (let exceedances = least; exceedances <= most; exceedances = Math.ceil(exceedances * 1.5)) {
      const rank = scores.length - 1 - exceedances
      const steps = haveSteps(sorted, rank) ? different : null
      const own = at(sorted, rank)
      for (const level of steps === null ? [aboveAtom(sorted, rank)] : levelsFrom(steps, own)) {
        const peaks = clusterPeaks(history, { level, calmScores, steps })
        if (peaks.length >= fewestPeaks) return { level, peaks }
      }
    }
  }
  return null
}

/** The next step, and the own one unless it is the lowest. */
function levelsFrom(steps: Float64Array, own: number): number[] {
  const next = nextStep(steps, own)
  return own > at(steps, 0) ? [next, own] : [next]
}

/** Whether of the scores above a rank, those of the lowest kind apart, most are not the only ones of their size. */
function haveSteps(sorted: Float64Array, rank: number): boolean {
  let different = 0
  let above = 0
  for (let i = rank + 1; i < sorted.length; i++) {
    if (at(sorted, i) === at(sorted, 0)) continue
    above++
    if (at(sorted, i) !== at(sorted, i - 1)) different++
  }
  return above > 0 && 2 * different <= above
}

/** The next larger step; above the largest, as far again as that is from the one before it. */
function nextStep(steps: Float64Array, score: number): number {
  const next = at(steps, countUpTo(steps, score))
  if (!Number.isNaN(next)) return next
  return 2 * score - (steps.at(-2) ?? 0)
}

/** How many of the sorted scores are not larger. */
function countUpTo(sorted: Float64Array, score: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (at(sorted, middle) <= score) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * The score of a rank; or, where that is the one that most of the history has, the median of those above it. The law is
 * about what exceeds a level among many that nearly do, and above zeros nothing needs to be near.
 */
function aboveAtom(sorted: Float64Array, rank: number): number {
  const level = at(sorted, rank)
  if (level > at(sorted, 0)) return level
  const above = sorted.findIndex((score) => score > level)
  return above < 0 ? level : at(sorted, (above + sorted.length) >> 1)
}

interface Clustering {
  readonly level: number
  /** So many scores that do not exceed the level end a run. */
  readonly calmScores: number
  /** The different scores in order of size where they are steps, of which the level is one: to meet it is to exceed it. */
  readonly steps: Float64Array | null
}

/** The highest score of each run beyond the level. */
function clusterPeaks(
  { scores, isOpening }: ScoreHistory,
  { calmScores, level, steps }: Clustering,
): Excess[] {
  const peaks: Excess[] = []
  let calm = calmScores
  for (let i = 0; i < scores.length; i++) {
    const score = at(scores, i)
    if (steps === null ? score <= level : score < level) {
      calm++
      continue
    }
    const size = score - level
    const before = calm < calmScores ? peaks.pop() : undefined
    const below = steps === null ? size : nextStep(steps, score) - level
    peaks.push(
      before === undefined || size > before.size ? { size, below, isLeast: isOpening[i] === 1 } : before,
    )
    calm = 0
  }
  return peaks
}
