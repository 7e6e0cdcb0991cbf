// Finds how high a score must be before it is worth an alarm. The user states how many false alarms a week
// are tolerable, and the past of the series shows which score occurs that often. This is a quantile far out
// in the tail, beyond most of what was seen, so it cannot be counted; pareto-tail.ts extends the tail. Doing
// so for an alarm threshold on a stream is SPOT (Siffer et al. 2017). The details here:
//
// - What is counted are alarms, not scores. An alarm opens when n of the last m buckets violate, that is
//   when the n-th largest of the last m scores exceeds the threshold, so that number is followed here.
//   Exceedances close together are one alarm, hence one peak ("runs" declustering, Coles 2001, section 5.3).
//   Without both, scores that come in bursts would make the threshold far too high or the rate far too
//   large. Alarms are counted over all buckets, also those without a value: the budget is per week, however
//   little of it has data.
// - The budget is about future alarms, so the quantile is predictive: few peaks give a wide edge. A threshold
//   that is too low by chance costs more alarms than one that is too high saves, so the best single estimate
//   of the quantile would exceed the budget.
// - Each side of a band keeps to the budget too, with a tail of its own. In one tail for both, a frequent
//   side with a short tail hides a rare side with a long one: latencies are near the bottom of their range,
//   so all the largest distances from its middle would be those of small latencies.
// - Scores of counts come in steps, and any threshold between two steps lets the same values pass. So where
//   scores repeat, a score stands for its whole step up to the next score seen.
// - Of a peak that opened an episode only the beginning was learnt, so it counts as a lower bound.
// - Exceeding the budget lowers it: the distribution is that of a series that does not change, and few stay
//   the same. Where more alarms were raised than the budget allows so far, the budget for later ones shrinks
//   in proportion (the idea of adaptive conformal inference, Gibbs and Candès 2021: use the actual rate, not
//   only the intended one).
// - A tail of few peaks is uncertain, and scores of episodes that were not reported make it longer. Where
//   the distribution of a score is known beforehand, as for surprises, the edge moves out at most to
//   `mostThreshold`, and beyond that only as the budget is exceeded.
//
// The threshold never falls below `leastThreshold`: a budget is a maximum, and alarms raised only to use it
// up are mostly false. It is 1, the method's own edge, where the past has no tail at all, as in a series that
// never changed, and while the past is too short. It depends only on earlier scores, so a backtest cannot use
// the future. decisions/0009 has measurements of how well budgets are met.

import { at } from '../scoring/series.ts'
import { SortedWindow } from '../scoring/sorted-window.ts'
import { type Excess, type ParetoTail, plausibleTails, returnLevel } from './pareto-tail.ts'

const tailShare = 0.02
/** A short history uses more of its scores as the tail, so that this many exceed the level. */
const fewestExceedances = 32
/** At most this share of the history is the tail, also for bursts, which merge into few peaks. */
const thickestTailShare = 0.25
/** The fit is repeated when the history has grown by this factor. */
const refitGrowth = 1.25
/**
 * It is also repeated after an opening, which may show that the threshold is too low. A fit sorts the whole
 * history, and openings may come every few buckets for weeks. So the fits after openings sort at most this
 * many times as many scores as the history has. In any case an opening counts against the budget at once.
 */
const openingFits = 32
/** How much larger a score is that is ten times as rare (one digit of surprise), in units of the score. */
const scorePerDigit = 0.5
/** With fewer peaks than this no tail is fitted. */
const fewestPeaks = 3
/** With fewer scores than this, the method's own edge is used. */
export const fewestScores = 16

/** Scores for which there is room at first. */
const leastCapacity = 256

interface CalibrationPolicy {
  readonly violateN: number
  readonly windowM: number
  readonly clearN: number
  /** Tolerable alarms per bucket, between 0 and 1. */
  readonly budgetPerBucket: number
  /** In units of the method's score; at most 1. */
  readonly leastThreshold: number
  /**
   * Upper limit of the threshold while the budget is met, in the same units; Infinity where only the past
   * gives a limit. Where it equals `leastThreshold` nothing is learnt: the method knows its edge.
   */
  readonly mostThreshold: number
}

/** Whether a score belongs to a value above or below the expected one, or to neither side. */
export type Side = 'above' | 'below' | 'none'

/** Learns scores one by one, oldest first. The thresholds apply to the next score. */
export class TailCalibration {
  private readonly policy: CalibrationPolicy
  private readonly allTail: ScoreTail
  private readonly aboveTail: ScoreTail | null
  private readonly belowTail: ScoreTail | null
  private scores = 0
  private emptyBuckets = 0
  private openings = 0

  /** `hasSides`: for bands of which both sides can alarm. */
  constructor(policy: CalibrationPolicy, hasSides = false) {
    this.policy = policy
    this.allTail = new ScoreTail(policy)
    this.aboveTail = hasSides ? new ScoreTail(policy) : null
    this.belowTail = hasSides ? new ScoreTail(policy) : null
  }

  /** In units of the method's score; at least `leastThreshold`. */
  get threshold(): number {
    return this.allTail.threshold
  }

  /** The same for the score of a value above the expected one. */
  get above(): number {
    return Math.max(this.allTail.threshold, this.aboveTail?.threshold ?? 0)
  }

  get below(): number {
    return Math.max(this.allTail.threshold, this.belowTail?.threshold ?? 0)
  }

  /** Learns the score (not NaN) of a bucket outside any episode, or of the bucket that `opens` one. */
  learn(score: number, opens = false, side: Side = 'none'): void {
    if (this.policy.mostThreshold <= this.policy.leastThreshold) return
    this.scores++
    if (opens) this.openings++
    const buckets = this.scores + this.emptyBuckets
    const { budgetPerBucket } = this.policy
    const allowed = budgetPerBucket * buckets
    const left = Math.min(1, (1 + allowed) / (1 + this.openings))
    // Until the budget allows a whole alarm, little is known about this series, so the limit is further out.
    const mostThreshold = this.policy.mostThreshold - scorePerDigit * Math.log10(left * Math.min(1, allowed))
    const time = { buckets, budgetPerBucket: budgetPerBucket * left, mostThreshold }
    this.allTail.learn(score, opens, time)
    this.aboveTail?.learn(side === 'above' ? score : 0, opens && side === 'above', time)
    this.belowTail?.learn(side === 'below' ? score : 0, opens && side === 'below', time)
  }

  /** Counts a bucket without a score; the budget is for its time too. */
  addEmptyBucket(): void {
    if (this.scores > 0) this.emptyBuckets++
  }
}

type Limits = Pick<CalibrationPolicy, 'budgetPerBucket' | 'mostThreshold'>

/** The tail of one sequence of scores. */
class ScoreTail {
  threshold = 1
  private readonly policy: CalibrationPolicy
  private readonly recent: SortedWindow
  private history = new Float64Array(leastCapacity)
  private isOpening = new Uint8Array(leastCapacity)
  private length = 0
  private nextFit = fewestScores
  private hasOpened = false
  private isBudgetSpent = false
  /** Scores in all fits after openings. */
  private refitted = 0
  private fitted: FittedTail | null = null

  constructor(policy: CalibrationPolicy) {
    this.policy = policy
    this.recent = new SortedWindow(policy.windowM)
  }

  learn(score: number, opens: boolean, { buckets, ...limits }: Limits & { buckets: number }): void {
    this.recent.push(score)
    const opening = this.recent.rank(this.recent.size - this.policy.violateN)
    if (this.length === this.history.length) this.grow()
    this.isOpening[this.length] = opens ? 1 : 0
    this.history[this.length++] = Number.isNaN(opening) ? 0 : opening
    // An episode keeps the edge it began with; what it shows applies to later episodes.
    if (opens) this.hasOpened = this.isBudgetSpent = true
    if (opens || this.length < fewestScores) return
    const mayRefit = this.hasOpened && this.refitted < (openingFits - 1) * this.length
    if (mayRefit || this.length >= this.nextFit) this.fit(buckets)
    else if (!this.isBudgetSpent) return
    this.isBudgetSpent = false
    this.threshold = thresholdOf(this.fitted, { ...this.policy, ...limits })
  }

  private fit(buckets: number): void {
    const { length } = this
    const scores = this.history.subarray(0, length)
    const isOpening = this.isOpening.subarray(0, length)
    this.fitted = fitTail({ scores, isOpening, buckets }, this.policy.clearN)
    this.nextFit = Math.ceil(length * refitGrowth)
    if (this.hasOpened) this.refitted += length
    this.hasOpened = false
  }

  private grow(): void {
    const [history, isOpening] = [this.history, this.isOpening]
    this.history = new Float64Array(2 * history.length)
    this.isOpening = new Uint8Array(2 * history.length)
    this.history.set(history)
    this.isOpening.set(isOpening)
  }
}

interface ScoreHistory {
  /** In order of time. */
  readonly scores: Float64Array
  /** 1 where an episode opened: the score is then a lower bound of its peak. */
  readonly isOpening: Uint8Array
  /** Length of the history, including buckets without a score. */
  readonly buckets: number
}

/** The tail of a history above a level. */
interface FittedTail {
  readonly level: number
  readonly peaksPerBucket: number
  /** Scale, shape and weight of each plausible tail: numbers in one array, because runs copy this state. */
  readonly tails: Float64Array
}

type ThresholdPolicy = Omit<CalibrationPolicy, 'violateN' | 'windowM' | 'clearN'>

/** The score that is exceeded as often as the budget allows; 1 without a tail. */
function thresholdOf(fitted: FittedTail | null, policy: ThresholdPolicy): number {
  if (fitted === null) return 1
  const rarity = fitted.peaksPerBucket / policy.budgetPerBucket
  const excess = returnLevel(rarity, unpacked(fitted.tails))
  return Math.max(policy.leastThreshold, Math.min(policy.mostThreshold, fitted.level + excess))
}

/** Null where the history is too short to tell. */
function fitTail(history: ScoreHistory, clearN: number): FittedTail | null {
  if (history.scores.length < fewestScores) return null
  const tail = tailOf(history, clearN)
  if (tail === null) return null
  const { level, peaks } = tail
  return { level, peaksPerBucket: peaks.length / history.buckets, tails: packed(plausibleTails(peaks)) }
}

function packed(tails: readonly ParetoTail[]): Float64Array {
  return Float64Array.from(tails.flatMap(({ scale, shape, weight }) => [scale, shape, weight]))
}

function unpacked(numbers: Float64Array): ParetoTail[] {
  return Array.from({ length: numbers.length / 3 }, (_, i) => ({
    scale: at(numbers, 3 * i),
    shape: at(numbers, 3 * i + 1),
    weight: at(numbers, 3 * i + 2),
  }))
}

/**
 * The score that will be exceeded as often as the budget allows; 1 where the history is too short to tell.
 */
export function thresholdFor(history: ScoreHistory, policy: ThresholdPolicy & { clearN: number }): number {
  return thresholdOf(fitTail(history, policy.clearN), policy)
}

/**
 * Finds a level with enough peaks above it; null without one. Where there are so few runs that each
 * exceedance counts as a peak of its own, the estimated rate is too large, which errs towards fewer alarms.
 */
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

/** The next step above `own`, and `own` itself unless it is the lowest step. */
function levelsFrom(steps: Float64Array, own: number): number[] {
  const next = nextStep(steps, own)
  return own > at(steps, 0) ? [next, own] : [next]
}

/** Whether most scores above a rank occur more than once; those equal to the lowest score are left out. */
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

/** The next larger step. Above the largest step: as much larger as that step is than the one before it. */
function nextStep(steps: Float64Array, score: number): number {
  const next = at(steps, countUpTo(steps, score))
  if (!Number.isNaN(next)) return next
  return 2 * score - (steps.at(-2) ?? 0)
}

/** How many of the sorted scores are not larger than `score`. */
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
 * The score of a rank. Where most of the history has that same score, the median of the scores above
 * it: the Pareto distribution applies to a level that many scores nearly reach, and above a mass of
 * zeros there may be none near.
 */
function aboveAtom(sorted: Float64Array, rank: number): number {
  const level = at(sorted, rank)
  if (level > at(sorted, 0)) return level
  const above = sorted.findIndex((score) => score > level)
  return above < 0 ? level : at(sorted, (above + sorted.length) >> 1)
}

interface Clustering {
  readonly level: number
  /** This many scores in a row that do not exceed the level end a run. */
  readonly calmScores: number
  /**
   * The distinct scores in ascending order, where scores come in steps. The level is then one of them, and a
   * score equal to it exceeds it. Null where scores do not repeat.
   */
  readonly steps: Float64Array | null
}

/** The highest score of each run above the level. */
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
      before === undefined || size > before.size ? { size, below, isCensored: isOpening[i] === 1 } : before,
    )
    calm = 0
  }
  return peaks
}
