// The alarm layer, which all methods share: it turns scores into episodes that somebody should hear of.
// With a fixed limit, even a method that ranks buckets well raises too many alarms. So methods only score:
// 1. Edges. The method's band is widened by the threshold that keeps to the alarm budget
//    (tail-calibration.ts), and at least to the smallest deviations that the user cares about. A value
//    outside these edges violates. A chart shows the same edges, so what it shows is what alarms. Methods
//    without a budget are exact: their edges stay. A method without a band is judged by its score, on the
//    same scale; if it marks unreported scores, only those open an episode.
// 2. n of m. `violateN` violations in the last `windowM` judged buckets open an episode; `clearN` calm
//    buckets in a row close it.
// 3. Alert once. An episode is one anomaly however long it lasts; only its peak and its length are updated.
//    After it has closed, the cool-down mutes violations that are not clearly worse. Until sixteen buckets
//    were judged, the usual scores are not known: an episode that ends before is not reported, one that
//    lasts is reported at its first violation from then on. The calibration learns from both.
// 4. Silence is a violation under the policy "alert", once the series has had data. Buckets that are
//    erased, thin or merely missing give no evidence: they count neither for nor against an episode,
//    and are not among the m.
//
//             n of m violate                  calm bucket
//    ok ------------------------> anomalous ---------------> recovering
//     ^ ^                             ^                        |    |
//     | '-- muted (same, but within   '------- violation ------'    |
//     |      the cool-down)                                         |
//     '------------------------- clearN calm buckets ---------------'
//
// The result is computed over the whole window, without memory between runs, so erased data has no
// influence. Of an episode the calibration learns only the score that opened it: its length must not make
// its scores usual. Feedback that an anomaly was none widens the edge on its side after the budget has.

import { type Scores, scoreOf } from '../methods/method.ts'
import { at } from '../scoring/series.ts'
import { bucketKind, type Evidence } from './evidence.ts'
import { fewestScores, type Side, TailCalibration } from './tail-calibration.ts'

/** During a cool-down, only a peak this many times the last one opens an episode. */
const clearlyWorse = 1.5

export interface AlarmPolicy {
  readonly direction: 'both' | 'up' | 'down'
  readonly minAbsDev: number
  readonly minRelDev: number
  readonly violateN: number
  readonly windowM: number
  readonly clearN: number
  readonly cooldownBuckets: number
  readonly silenceAlarms: boolean
  /** Values needed before the first bucket is judged; 0 for methods that learn nothing. */
  readonly warmupPoints: number
  /**
   * Whether episodes that end before sixteen buckets were judged are not reported, because the usual
   * scores are not known yet.
   */
  readonly waitsForScores: boolean
  /** Tolerated alarms per bucket; null for exact methods, whose edges are never widened. */
  readonly budgetPerBucket: number | null
  /** The edge is never moved further in than to this multiple of the method's own edge; at most 1. */
  readonly leastThreshold: number
  /**
   * Nor further out than to this multiple, as long as the budget is met; Infinity where
   * only the past gives a limit.
   */
  readonly mostThreshold: number
  /** Factors by which feedback widens each side; 1 where absent. */
  readonly widening?: Widened | undefined
}

interface Widened {
  readonly above: number
  readonly below: number
}

/** Indexes are buckets of the series. */
export interface Episode {
  /** At the peak: above or below the expected value, odd where there is none, or silent without data. */
  readonly kind: 'high' | 'low' | 'odd' | 'silent'
  /** First of the violating buckets that opened the episode. */
  readonly startIndex: number
  /** The bucket after which the alarm was raised; `openedIndex - startIndex` is the delay. */
  readonly openedIndex: number
  /** The last violating bucket so far. */
  readonly lastIndex: number
  /** Equal to `lastIndex` once closed, null while open. */
  readonly endIndex: number | null
  readonly peakIndex: number
  /** Null for silence. */
  readonly peakValue: number | null
  /** Expected value at the peak; null for methods without one, and before warm-up. */
  readonly expected: number | null
  /** Edges at the peak; null where the method has none. */
  readonly lower: number | null
  readonly upper: number | null
  /** At the peak. 1 is the edge of alarm, also for silence. */
  readonly score: number
}

/** The state after the last bucket. */
export type DetectorState =
  /**
   * Insufficient: at this rate of data the window never has enough values to judge. A longer window
   * or coarser buckets help.
   */
  | { readonly status: 'learning' | 'insufficient_data'; readonly pointsNeeded: number }
  /** How many more series of the group need data at the same time. */
  | { readonly status: 'insufficient_data'; readonly peersNeeded: number }
  | { readonly status: 'ok' | 'anomalous' | 'recovering' | 'no_data' | 'muted' }

export interface Evaluation {
  /** In order of time; only the last one may be open. */
  readonly episodes: readonly Episode[]
  readonly state: DetectorState
  /** The scores that decided: a score of 1 and the band are the edges of alarm. NaN in erased buckets. */
  readonly scores: Scores
}

/** Decides over a whole window, oldest bucket first. The scores have the same buckets as the evidence. */
export function raiseAlarms(evidence: Evidence, scores: Scores, policy: AlarmPolicy): Evaluation {
  const edges = copyOf(scores)
  const budget = policy.budgetPerBucket
  const length = evidence.kinds.length
  const hasSides = policy.direction === 'both' && scores.upper.some((edge) => !Number.isNaN(edge))
  const tail =
    budget === null ? null : new TailCalibration({ ...policy, budgetPerBucket: budget }, length, hasSides)
  const tracker = new EpisodeTracker(policy)
  let hasHadValue = false
  let judged = 0
  const scoresNeeded = tail !== null && policy.waitsForScores ? fewestScores : 0
  for (let i = 0; i < length; i++) {
    const kind = evidence.kinds[i]
    const value = at(evidence.series.values, i)
    if (kind === bucketKind.value) hasHadValue = true
    if (kind === bucketKind.unknown) blankRow(edges, i)
    else if (tail) {
      widenRow(edges, i, value, tail, policy)
      if (policy.widening !== undefined) applyWidening(edges, i, value, policy.widening)
    }

    if (kind === bucketKind.missing && policy.silenceAlarms && hasHadValue) {
      tracker.judge(i, { kind: 'silent', value: null, score: 1 }, edges)
    } else if (!Number.isNaN(at(edges.score, i))) {
      if (++judged >= scoresNeeded) tracker.startReporting()
      const isCounted = !tracker.isAlarming
      tracker.judge(i, violationAt(edges, i, value, policy, tracker.isOpen), edges)
      const learnt = scores.unreported ? at(scores.unreported, i) : directedScore(scores, i, value, policy)
      if (isCounted) tail?.learn(learnt, tracker.isAlarming, sideFor(value, at(scores.expected, i)))
    } else if (kind !== bucketKind.unknown && !tracker.isAlarming) tail?.addEmptyBucket()
  }
  const state: DetectorState =
    tracker.isUnreported && judged < scoresNeeded
      ? { status: 'learning', pointsNeeded: scoresNeeded - judged }
      : stateAfter(evidence, tracker, policy)
  return { episodes: tracker.episodes, state, scores: edges }
}

interface Violation {
  readonly kind: Episode['kind']
  readonly value: number | null
  readonly score: number
}

/**
 * Combines violations into episodes. Episodes that end before `startReporting` are
 * left out, except silence.
 */
class EpisodeTracker {
  readonly episodes: Episode[] = []
  private readonly policy: AlarmPolicy
  /** The violating buckets among the last `windowM` judged ones, with ordinals among all judged ones. */
  private recent: { ordinal: number; index: number; violation: Violation }[] = []
  private judged = 0
  private open: Episode | null = null
  private isReporting = false
  private calm = 0
  private mutedUntil = -1
  private mutedBelow = 0
  isMuted = false

  constructor(policy: AlarmPolicy) {
    this.policy = policy
  }

  get isOpen(): boolean {
    return this.open !== null
  }

  get isUnreported(): boolean {
    return this.open !== null && this.episodes.at(-1) !== this.open
  }

  get isRecovering(): boolean {
    return this.open !== null && this.calm > 0
  }

  get isAlarming(): boolean {
    return this.isOpen || this.isMuted
  }

  /** From the next judged bucket on, episodes are reported. */
  startReporting(): void {
    this.isReporting = true
  }

  /** Adds the next judged bucket: its violation, or null for a calm bucket. */
  judge(index: number, violation: Violation | null, edges: Scores): void {
    this.judged++
    if (this.open) this.goOn(this.open, index, violation, edges)
    else this.openIfDue(index, violation, edges)
  }

  private openIfDue(index: number, violation: Violation | null, edges: Scores): void {
    if (violation) this.recent.push({ ordinal: this.judged, index, violation })
    const oldest = this.judged - this.policy.windowM
    if (this.recent[0] && this.recent[0].ordinal <= oldest) this.recent.shift()
    this.isMuted = false
    const first = this.recent[0]
    if (!first || this.recent.length < this.policy.violateN) return
    const worst = this.recent.reduce((a, b) => (b.violation.score > a.violation.score ? b : a))
    if (index <= this.mutedUntil && worst.violation.score < this.mutedBelow) {
      this.isMuted = true
      return
    }
    const lastIndex = this.recent.at(-1)?.index ?? index
    const span = { startIndex: first.index, openedIndex: index, lastIndex, endIndex: null }
    this.write({ ...span, ...peakAt(worst.index, worst.violation, edges) }, this.mayReport(violation))
    this.calm = 0
  }

  private goOn(episode: Episode, index: number, violation: Violation | null, edges: Scores): void {
    if (violation) {
      this.calm = 0
      const worse = violation.score > episode.score ? peakAt(index, violation, edges) : {}
      const isFirstReport = this.isUnreported && this.mayReport(violation)
      const opened = isFirstReport ? { openedIndex: index } : {}
      this.write({ ...episode, ...worse, ...opened, lastIndex: index }, isFirstReport)
    } else if (++this.calm >= this.policy.clearN) {
      this.write({ ...episode, endIndex: episode.lastIndex }, false)
      this.recent = []
      this.mutedUntil = index + this.policy.cooldownBuckets
      this.mutedBelow = episode.score * clearlyWorse
    }
  }

  private mayReport(violation: Violation | null): boolean {
    return this.isReporting || violation?.kind === 'silent'
  }

  private write(episode: Episode, isFirstReport: boolean): void {
    const isReported = this.isOpen && !this.isUnreported
    if (isReported) this.episodes.pop()
    if (isReported || isFirstReport) this.episodes.push(episode)
    this.open = episode.endIndex === null ? episode : null
  }
}

type Peak = Omit<Episode, 'startIndex' | 'openedIndex' | 'lastIndex' | 'endIndex'>

function peakAt(peakIndex: number, violation: Violation, edges: Scores): Peak {
  const finite = (x: number) => (Number.isFinite(x) ? x : null)
  return {
    kind: violation.kind,
    peakIndex,
    peakValue: violation.value,
    expected: finite(at(edges.expected, peakIndex)),
    lower: finite(at(edges.lower, peakIndex)),
    upper: finite(at(edges.upper, peakIndex)),
    score: violation.score,
  }
}

function violationAt(
  edges: Scores,
  i: number,
  value: number,
  policy: AlarmPolicy,
  isOpen: boolean,
): Violation | null {
  const score = at(edges.score, i)
  if (Number.isNaN(at(edges.upper, i))) {
    const decides = isOpen || !edges.unreported ? score : at(edges.unreported, i)
    return decides > 1 ? { kind: sideOf(value, at(edges.expected, i)), value, score } : null
  }
  if (policy.direction !== 'down' && value > at(edges.upper, i)) return { kind: 'high', value, score }
  if (policy.direction !== 'up' && value < at(edges.lower, i)) return { kind: 'low', value, score }
  return null
}

/** On which side of the expected value a value lies, for methods without edges. */
export function sideOf(value: number, expected: number): 'high' | 'low' | 'odd' {
  if (value === expected || Number.isNaN(expected)) return 'odd'
  return value < expected ? 'low' : 'high'
}

/**
 * The method's own score, or 0 on a side that cannot alarm, so that only scores that could alarm are counted.
 */
function directedScore(scores: Scores, i: number, value: number, policy: AlarmPolicy): number {
  const isOtherSide =
    (policy.direction === 'up' && value < at(scores.expected, i)) ||
    (policy.direction === 'down' && value > at(scores.expected, i))
  return isOtherSide ? 0 : at(scores.score, i)
}

function sideFor(value: number, expected: number): Side {
  if (value === expected || Number.isNaN(expected)) return 'none'
  return value > expected ? 'above' : 'below'
}

/** Moves both edges of row i to where an alarm begins, and converts the score to that scale. */
function widenRow(edges: Scores, i: number, value: number, tail: TailCalibration, policy: AlarmPolicy): void {
  const expected = at(edges.expected, i)
  if (Number.isNaN(at(edges.upper, i))) {
    edges.score[i] = at(edges.score, i) / tail.threshold
    if (edges.unreported) edges.unreported[i] = at(edges.unreported, i) / tail.threshold
    return
  }
  const least = Math.max(policy.minAbsDev, policy.minRelDev * Math.abs(expected))
  const above = Math.max(least, tail.above * (at(edges.upper, i) - expected))
  const below = Math.max(least, tail.below * (expected - at(edges.lower, i)))
  edges.upper[i] = expected + above
  edges.lower[i] = expected - below
  edges.score[i] = scoreOf(Math.abs(value - expected), value > expected ? above : below)
}

/**
 * Moves the edges of row i out by the factor of each side. Without a band, divides the
 * scores by the factor instead.
 */
function applyWidening(edges: Scores, i: number, value: number, { above, below }: Widened): void {
  const { expected: expectedValues, lower, upper, ...measures } = edges
  const expected = at(expectedValues, i)
  const factor = value < expected ? below : above
  if (Number.isNaN(at(upper, i))) {
    for (const measure of Object.values(measures)) measure[i] = at(measure, i) / factor
    return
  }
  upper[i] = expected + above * (at(upper, i) - expected)
  lower[i] = expected - below * (expected - at(lower, i))
  edges.score[i] = scoreOf(
    Math.abs(value - expected),
    Math.abs(at(value > expected ? upper : lower, i) - expected),
  )
}

function blankRow(edges: Scores, i: number): void {
  const columns = [
    edges.score,
    edges.expected,
    edges.lower,
    edges.upper,
    ...(edges.unreported ? [edges.unreported] : []),
  ]
  for (const column of columns) column[i] = Number.NaN
}

function copyOf(scores: Scores): Scores {
  return {
    score: scores.score.slice(),
    expected: scores.expected.slice(),
    lower: scores.lower.slice(),
    upper: scores.upper.slice(),
    ...(scores.unreported ? { unreported: scores.unreported.slice() } : {}),
  }
}

function stateAfter(evidence: Evidence, tracker: EpisodeTracker, policy: AlarmPolicy): DetectorState {
  const seen = countKind(evidence, bucketKind.value)
  const thin = countKind(evidence, bucketKind.thin)
  if (seen === 0 && thin === 0) return { status: 'no_data' }
  if (!policy.silenceAlarms && trailingMissing(evidence) >= policy.windowM) return { status: 'no_data' }
  if (tracker.isOpen && !tracker.isUnreported)
    return { status: tracker.isRecovering ? 'recovering' : 'anomalous' }
  if (tracker.isMuted) return { status: 'muted' }
  const needed = Math.max(1, policy.warmupPoints)
  if (seen >= needed) return { status: 'ok' }
  const status = seenByFullWindow(evidence, seen) < needed ? 'insufficient_data' : 'learning'
  return { status, pointsNeeded: needed - seen }
}

/** How many values the whole window would have, at the rate since its first value. */
function seenByFullWindow(evidence: Evidence, seen: number): number {
  const first = evidence.kinds.indexOf(bucketKind.value)
  if (first < 0) return 0
  const known = evidence.kinds
    .subarray(first)
    .reduce((sum, kind) => sum + (kind === bucketKind.unknown ? 0 : 1), 0)
  return (seen / known) * evidence.kinds.length
}

function trailingMissing(evidence: Evidence): number {
  let missing = 0
  for (let i = evidence.kinds.length - 1; i >= 0; i--) {
    if (evidence.kinds[i] === bucketKind.missing) missing++
    else if (evidence.kinds[i] !== bucketKind.unknown) break
  }
  return missing
}

function countKind(evidence: Evidence, kind: number): number {
  return evidence.kinds.reduce((count, each) => (each === kind ? count + 1 : count), 0)
}
