// The alarm layer, which all methods share: it converts scores to episodes to report. With a fixed limit,
// even a method that ranks buckets well raises too many alarms. So methods only score:
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
// The decisions continue from one piece of the series to the next, and do not depend on how it was divided.
// Of an episode the calibration learns only the score that opened it: its length must not make its scores
// usual. Of one that people confirmed it learns nothing, because the budget is for false alarms. Feedback
// that an anomaly was none widens the edge on its side after the budget has.

import { type ConfirmedStarts, isConfirmed } from '../methods/confirmed.ts'
import { type Scored, type Scores, scoreOf } from '../methods/method.ts'
import type { Comparison } from '../scoring/comparison.ts'
import { at, minuteOf, type Series } from '../scoring/series.ts'
import type { Episode } from './episode.ts'
import { type EpisodePolicy, EpisodeTracker, type Violation } from './episode-tracker.ts'
import { bucketKind, type Evidence } from './evidence.ts'
import { fewestScores, type Side, TailCalibration } from './tail-calibration.ts'

export interface AlarmPolicy extends EpisodePolicy {
  readonly direction: 'both' | 'up' | 'down'
  readonly minAbsDev: number
  readonly minRelDev: number
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
  /** Episodes that do not count against the budget. */
  readonly confirmed?: ConfirmedStarts
}

interface Widened {
  readonly above: number
  readonly below: number
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
  /** How many episodes were left out (newest-episodes.ts); absent where none was. */
  readonly leftOut?: number
  readonly state: DetectorState
  /** The scores that decided: a score of 1 and the band are the edges of alarm. NaN in erased buckets. */
  readonly scores: Scores
  /** What buckets with a score above 1 were compared with, where the method says it. */
  readonly compared?: ReadonlyMap<number, Comparison>
}

/** Decides over a whole series, oldest bucket first. The scores have the same buckets as the evidence. */
export function raiseAlarms(evidence: Evidence, scores: Scored, policy: AlarmPolicy): Evaluation {
  const alarms = new AlarmLayer(policy)
  const edges = alarms.judge(evidence, scores)
  const lately = countLately(evidence.kinds, edges.score, policy)
  const state = alarms.stateAfter({ ...lately, spanBuckets: evidence.kinds.length })
  return { episodes: alarms.episodes, state, scores: edges }
}

/** What the state of a series depends on beside what the alarm layer remembers. */
interface Lately {
  /** Buckets of the judged window that were judged, and of those that had a value, or too few events. */
  readonly judged: number
  readonly values: number
  readonly thin: number
  /** How many buckets the detector looks at in all, once there is data for all of them. */
  readonly spanBuckets: number
  /** How many more values the method needs before it judges anything; 1 where that is unknown. */
  readonly pointsNeeded?: number
}

/** Counts the buckets of a judged window. */
export function countLately(
  kinds: Uint8Array,
  score: Float64Array,
  { silenceAlarms }: Pick<AlarmPolicy, 'silenceAlarms'>,
): Pick<Lately, 'judged' | 'values' | 'thin'> {
  const lately = { judged: 0, values: 0, thin: 0 }
  for (let i = 0; i < kinds.length; i++) {
    const kind = kinds[i]
    if (kind === bucketKind.value) lately.values++
    if (kind === bucketKind.thin) lately.thin++
    if (!Number.isNaN(at(score, i)) || (kind === bucketKind.missing && silenceAlarms)) lately.judged++
  }
  return lately
}

/** Judges one series piece by piece, oldest first. */
export class AlarmLayer {
  private readonly policy: AlarmPolicy
  private readonly tracker: EpisodeTracker
  private readonly scoresNeeded: number
  /** From the first score on; null for methods without a budget. */
  private tail: TailCalibration | null = null
  private buckets = 0
  private judged = 0
  private seen = 0
  private thin = 0
  /** Buckets since the first value that are not unknown. */
  private known = 0
  /** Missing buckets since the last that was neither missing nor unknown. */
  private silent = 0

  constructor(policy: AlarmPolicy) {
    this.policy = policy
    this.tracker = new EpisodeTracker(policy)
    this.scoresNeeded = policy.budgetPerBucket !== null && policy.waitsForScores ? fewestScores : 0
  }

  /** In order of time; only the last one may be open. */
  get episodes(): readonly Episode[] {
    return this.newestEpisodes(Number.POSITIVE_INFINITY)
  }

  /** The newest episodes that have ended, as many as `ended`, and the open one, in order of time. */
  newestEpisodes(ended: number): Episode[] {
    const open = this.tracker.reportedOpen
    return [...this.tracker.ended.newest(ended), ...(open === null ? [] : [open])]
  }

  /** How many episodes ended in or after a bucket. */
  endedSince(bucket: number): number {
    return this.tracker.ended.countSince(bucket)
  }

  /** The last buckets of the episodes that ended in or after a bucket, in ascending order. */
  lastBucketsSince(bucket: number): Float64Array {
    return this.tracker.ended.lastIndexesSince(bucket)
  }

  /** Forgets episodes that ended before a bucket, counted from the start of the series. */
  forgetBefore(bucket: number): void {
    this.tracker.ended.forgetBefore(bucket)
  }

  /** Judges the next buckets. Returns their edges and scores on the scale on which 1 is the edge of alarm. */
  judge(evidence: Evidence, scores: Scored): Scores {
    const edges = copyOf(scores)
    for (let i = 0; i < evidence.kinds.length; i++) this.judgeBucket(evidence, scores, edges, i)
    this.buckets += evidence.kinds.length
    return edges
  }

  private judgeBucket({ kinds, series }: Evidence, scores: Scored, edges: Scores, i: number): void {
    const { policy, tracker } = this
    const kind = kinds[i]
    const value = at(series.values, i)
    this.count(kind)
    if (kind === bucketKind.unknown) blankRow(edges, i)
    else if (policy.budgetPerBucket !== null) {
      widenRow(edges, i, value, this.tail ?? ownEdges, policy)
      if (policy.widening !== undefined) applyWidening(edges, i, value, policy.widening)
    }
    if (kind === bucketKind.missing && policy.silenceAlarms && this.seen > 0) {
      tracker.judge(
        this.buckets + i,
        violationOf('silent', this.buckets, edges, i, { score: 1, value: null }),
      )
    } else if (!Number.isNaN(at(edges.score, i))) {
      if (++this.judged >= this.scoresNeeded) tracker.startReporting()
      const isCounted = !tracker.isAlarming
      const how = violationAt(edges, i, value, policy, tracker.isOpen)
      const found = { score: at(edges.score, i), value, compared: scores.compared?.get(i) }
      tracker.judge(this.buckets + i, how && violationOf(how, this.buckets, edges, i, found))
      const learnt = scores.unreported ? at(scores.unreported, i) : directedScore(scores, i, value, policy)
      if (!isCounted) return
      if (tracker.isAlarming && this.isConfirmedAt(series, i)) this.tail?.addEmptyBucket()
      else this.learn(learnt, sideFor(value, at(scores.expected, i)), scores, i)
    } else if (kind !== bucketKind.unknown && !tracker.isAlarming) this.tail?.addEmptyBucket()
  }

  private isConfirmedAt(series: Series, i: number): boolean {
    const { stepMinutes } = series
    const openedMinute = minuteOf(series, i)
    const episode = { openedMinute, lastMinute: openedMinute, stepMinutes }
    return isConfirmed(this.policy.confirmed ?? [], episode)
  }

  private count(kind: number | undefined): void {
    if (kind === bucketKind.value) this.seen++
    if (kind === bucketKind.thin) this.thin++
    if (kind !== bucketKind.unknown && this.seen > 0) this.known++
    if (kind === bucketKind.missing) this.silent++
    else if (kind !== bucketKind.unknown) this.silent = 0
  }

  /** Whether both sides of a band have a tail of their own is known at the first score. */
  private learn(score: number, side: Side, scores: Scores, i: number): void {
    const { budgetPerBucket, direction } = this.policy
    if (budgetPerBucket === null) return
    const hasSides = direction === 'both' && !Number.isNaN(at(scores.upper, i))
    this.tail ??= new TailCalibration({ ...this.policy, budgetPerBucket }, hasSides)
    this.tail.learn(score, this.tracker.isAlarming, side)
  }

  /** The state after the last bucket. A window in which nothing was judged is never `ok`. */
  stateAfter({ judged, pointsNeeded = 1, spanBuckets, thin, values }: Lately): DetectorState {
    const { policy, tracker } = this
    if (tracker.isUnreported && this.judged < this.scoresNeeded)
      return { status: 'learning', pointsNeeded: this.scoresNeeded - this.judged }
    if (this.seen === 0 && this.thin === 0) return { status: 'no_data' }
    if (!policy.silenceAlarms && this.silent >= policy.windowM) return { status: 'no_data' }
    if (tracker.isOpen && !tracker.isUnreported)
      return { status: tracker.isRecovering ? 'recovering' : 'anomalous' }
    if (tracker.isMuted) return { status: 'muted' }
    const needed = Math.max(1, policy.warmupPoints)
    if (this.seen < needed) {
      const whenFull = this.known === 0 ? 0 : (this.seen / this.known) * spanBuckets
      return {
        status: whenFull < needed ? 'insufficient_data' : 'learning',
        pointsNeeded: needed - this.seen,
      }
    }
    if (judged > 0) return { status: 'ok' }
    if (values > 0) return { status: 'learning', pointsNeeded }
    return thin > 0 ? { status: 'insufficient_data', pointsNeeded } : { status: 'no_data' }
  }
}

/** Before anything was learnt the edges are those of the method. */
const ownEdges = { threshold: 1, above: 1, below: 1 }

interface Found {
  readonly score: number
  /** Null for silence. */
  readonly value: number | null
  readonly compared?: Comparison | undefined
}

/** `first` is the number of the bucket in row 0. */
function violationOf(
  kind: Episode['kind'],
  first: number,
  edges: Scores,
  i: number,
  found: Found,
): Violation {
  const { compared, score, value } = found
  const finite = (x: number) => (Number.isFinite(x) ? x : null)
  return {
    kind,
    peakIndex: first + i,
    peakValue: value,
    expected: finite(at(edges.expected, i)),
    lower: finite(at(edges.lower, i)),
    upper: finite(at(edges.upper, i)),
    score,
    ...(compared === undefined ? {} : { compared }),
  }
}

function violationAt(
  edges: Scores,
  i: number,
  value: number,
  policy: AlarmPolicy,
  isOpen: boolean,
): Episode['kind'] | null {
  if (Number.isNaN(at(edges.upper, i))) {
    const decides = isOpen || !edges.unreported ? at(edges.score, i) : at(edges.unreported, i)
    return decides > 1 ? sideOf(value, at(edges.expected, i)) : null
  }
  if (policy.direction !== 'down' && value > at(edges.upper, i)) return 'high'
  return policy.direction !== 'up' && value < at(edges.lower, i) ? 'low' : null
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
function widenRow(
  edges: Scores,
  i: number,
  value: number,
  tail: Readonly<typeof ownEdges>,
  policy: AlarmPolicy,
): void {
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
