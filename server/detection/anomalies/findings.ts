// Converts the episodes of a series, which are about buckets, to findings, which are about time and may be
// recorded as anomalies. Erased time is unknown to the methods, and it must not be inside an anomaly
// either. So an episode that continues across erased time is divided into one finding before it and one
// after, each with its own peak. Otherwise the record would claim to have seen erased time, and the next
// verification would count it.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import type { Ns } from '../../../contract/values/instant.ts'
import { partitionPoint } from '../../core/partition-point.ts'
import { type Evaluation, sideOf } from '../alarms/alarm.ts'
import type { Episode } from '../alarms/episode.ts'
import { holidayTest } from '../scoring/holidays.ts'
import { localClock } from '../scoring/local-clock.ts'
import { at, bucketStartNs, minuteOf, type Series } from '../scoring/series.ts'
import { isOfLevel } from './comparison-text.ts'
import { type ConfirmedAnomaly, mergedTime, noWidening, type Widening } from './feedback.ts'
import { type EndedBuckets, type MutedSpans, neverMuted } from './muted-time.ts'
import { type ReasonSubject, reasonFor } from './reason.ts'

/**
 * The most bytes that the values of the labels of a series may take as JSON; a URL or a statement of 2 kB
 * fits. They are in each of the thousand anomalies of a detector and in every list of them, so a series with
 * more is not judged.
 */
export const groupBytesMax = 4096

export interface Finding {
  /** JSON of the labels of `group_by`: `{"service":"checkout"}`, or `{}`. */
  readonly groupKey: string
  readonly startedNs: Ns
  /** End of the last violating bucket. `[startedNs, seenUntilNs)` is the finding's own time. */
  readonly seenUntilNs: Ns
  /** End of the bucket at which the alarm was raised. */
  readonly raisedNs: Ns
  readonly isOpen: boolean
  readonly peakNs: Ns
  /** At the peak; null for silence. */
  readonly value: number | null
  readonly expected: number | null
  readonly lower: number | null
  readonly upper: number | null
  readonly score: number
  readonly reason: string
  /** Whether every bucket since the alarm was raised is inside a mute. */
  readonly isMuted: boolean
  /** The factor by which feedback widened the edge on the side of the peak; 1 without feedback. */
  readonly edgeFactor: number
  /**
   * The time that feedback was derived from, in addition to the window, disjoint and in order. Findings with
   * the same time share one array.
   */
  readonly alsoRead: Widening['learntFrom']
}

/** An evaluated series, and what its findings depend on beside it. */
export interface EvaluatedSeries {
  readonly series: Series
  readonly evaluation: Evaluation
  readonly params: MethodParams
  readonly groupKey: string
  readonly subject: ReasonSubject
  readonly widening?: Widening | undefined
  /** Those in the time that was learnt from, in order of time. */
  readonly confirmed?: readonly ConfirmedAnomaly[]
  readonly muted?: MutedSpans
}

/** The episodes of a series in order of time, divided so that none contains an unknown bucket. */
export function knownEpisodesOf(evaluated: EvaluatedSeries): readonly Episode[] {
  const { evaluation, series } = evaluated
  if (!series.unknown.includes(1)) return evaluation.episodes
  return evaluation.episodes.flatMap((episode) => divideAtUnknown(episode, evaluated))
}

/**
 * The findings of a series, in order of time. None overlaps another or an unknown bucket. `episodes` are
 * those of {@link knownEpisodesOf} that are reported.
 */
export function findingsOf(
  evaluated: EvaluatedSeries,
  episodes: readonly Episode[] = knownEpisodesOf(evaluated),
): Finding[] {
  if (episodes.length === 0) return []
  const firstNegative = evaluated.series.values.findIndex((value) => value < 0)
  // Only up to the peak: a finding must not depend on later time, or an erasure there
  // would have to change it.
  const isNeverNegative = (episode: Episode) => firstNegative < 0 || firstNegative > episode.peakIndex
  const isLearnt = isBandLearnt(evaluated.params)
  const seasonAt = seasonReader(evaluated)
  const alsoReadBefore = feedbackReader(evaluated)
  return episodes
    .map((episode) => (isLearnt && isNeverNegative(episode) ? withoutNegativeBand(episode) : episode))
    .map((episode) => findingOf(episode, evaluated, { season: seasonAt(episode.peakIndex), alsoReadBefore }))
}

type FeedbackReader = (startedNs: Ns) => Finding['alsoRead']

/**
 * Returns the time that feedback on findings from an instant on was derived from: what the widening learnt
 * from, and what confirmed anomalies before the instant did. Fast where the instants ascend.
 */
function feedbackReader({ confirmed = [], widening = noWidening }: EvaluatedSeries): FeedbackReader {
  const none = { count: 0, ranges: widening.learntFrom }
  let last = none
  return (startedNs) => {
    const count = partitionPoint(confirmed.length, (i) => (confirmed[i]?.startedNs ?? startedNs) >= startedNs)
    if (count < last.count) last = none
    if (count > last.count) {
      const added = confirmed.slice(last.count, count).flatMap(({ read }) => read)
      last = { count, ranges: mergedTime([...last.ranges, ...added]) }
    }
    return last.ranges
  }
}

/** Whether the band is learnt from the history of the series; otherwise it is configured. */
export function isBandLearnt(params: MethodParams): boolean {
  return 'warmup_points' in params
}

/**
 * A band is symmetric, but many metrics are never negative. A reason must not say that fewer than
 * zero errors were expected.
 */
function withoutNegativeBand(episode: Episode): Episode {
  const { compared, lower, upper } = episode
  const atLeastZero = (edge: number | null) => (edge === null ? null : Math.max(0, edge))
  const band = { lower: atLeastZero(lower), upper: atLeastZero(upper) }
  if (compared === undefined || !isOfLevel(compared)) return { ...episode, ...band }
  return { ...episode, ...band, compared: { ...compared, low: Math.max(0, compared.low) } }
}

function findingOf(
  episode: Episode,
  evaluated: EvaluatedSeries,
  { alsoReadBefore, season }: { readonly season: PeakSeason; readonly alsoReadBefore: FeedbackReader },
): Finding {
  const { groupKey, muted = neverMuted, series, subject, widening = noWidening } = evaluated
  const startedNs = bucketStartNs(series, episode.startIndex)
  const seenUntilNs = bucketStartNs(series, episode.lastIndex + 1)
  const edgeFactor = episode.kind === 'silent' ? 1 : episode.kind === 'low' ? widening.below : widening.above
  return {
    groupKey,
    startedNs,
    seenUntilNs,
    raisedNs: bucketStartNs(series, episode.openedIndex + 1),
    isMuted: muted.hasAll(endedBucketsOf(episode, series)),
    edgeFactor,
    alsoRead: alsoReadBefore(startedNs),
    isOpen: episode.endIndex === null,
    peakNs: bucketStartNs(series, episode.peakIndex),
    value: episode.peakValue,
    expected: episode.expected,
    lower: episode.lower,
    upper: episode.upper,
    score: episode.score,
    reason: reasonFor(episode, { ...subject, ...season, edgeFactor }, series),
  }
}

/** The buckets since the alarm was raised. */
export function endedBucketsOf({ lastIndex, openedIndex }: Episode, series: Series): EndedBuckets {
  const endOf = (i: number) => minuteOf(series, i + 1)
  return { firstEnd: endOf(openedIndex), lastEnd: endOf(lastIndex), stepMinutes: series.stepMinutes }
}

type PeakSeason = Pick<ReasonSubject, 'isSeasonal' | 'isHoliday'>

/**
 * Whether the expected value depends on the time of the day or week, and whether a peak is on a holiday.
 */
function seasonReader({ params, series }: EvaluatedSeries): (peakIndex: number) => PeakSeason {
  if (!('season' in params)) return () => ({})
  const localTimeAt = localClock(series, params.timezone)
  const isHoliday = holidayTest(params.holidays)
  return (peakIndex) => ({ isSeasonal: true, isHoliday: isHoliday(localTimeAt(peakIndex).day) })
}

/**
 * The episode itself if none of its buckets is unknown; otherwise one part for each
 * stretch that still violates.
 */
function divideAtUnknown(episode: Episode, evaluated: EvaluatedSeries): Episode[] {
  const { unknown } = evaluated.series
  // An episode may have begun before the series.
  const from = Math.max(0, episode.startIndex)
  if (!unknown.subarray(from, episode.lastIndex + 1).includes(1)) return [episode]
  const stretches: number[][] = []
  let isAfterHole = true
  for (let i = from; i <= episode.lastIndex; i++) {
    if (unknown[i] === 1) isAfterHole = true
    else if (violationAt(evaluated, i) !== null) {
      if (isAfterHole) stretches.push([])
      stretches.at(-1)?.push(i)
      isAfterHole = false
    }
  }
  return stretches.map((violating) => partOf(episode, violating, evaluated))
}

function partOf(episode: Episode, violating: readonly number[], evaluated: EvaluatedSeries): Episode {
  const first = violating[0] ?? episode.startIndex
  const last = violating.at(-1) ?? first
  const span = {
    startIndex: first,
    lastIndex: last,
    openedIndex: Math.max(first, Math.min(last, episode.openedIndex)),
    endIndex: last === episode.lastIndex ? episode.endIndex : last,
  }
  if (episode.peakIndex >= first && episode.peakIndex <= last) return { ...episode, ...span }
  return { ...episode, ...span, ...peakOf(violating, evaluated) }
}

function peakOf(violating: readonly number[], evaluated: EvaluatedSeries) {
  const { score, expected, lower, upper } = evaluated.evaluation.scores
  const scoreAt = (i: number) => (Number.isNaN(at(score, i)) ? 1 : at(score, i))
  const peakIndex = violating.reduce((worst, i) => (scoreAt(i) > scoreAt(worst) ? i : worst))
  const value = valueAt(evaluated, peakIndex)
  const compared = evaluated.evaluation.compared?.get(peakIndex)
  return {
    kind: violationAt(evaluated, peakIndex) ?? 'odd',
    peakIndex,
    peakValue: finiteOrNull(value),
    expected: finiteOrNull(at(expected, peakIndex)),
    lower: finiteOrNull(at(lower, peakIndex)),
    upper: finiteOrNull(at(upper, peakIndex)),
    score: scoreAt(peakIndex),
    ...(compared === undefined ? {} : { compared }),
  }
}

/** Repeats the decision of the alarm layer for one bucket, from the edges that it returned. */
function violationAt(evaluated: EvaluatedSeries, i: number): Episode['kind'] | null {
  const { params, evaluation } = evaluated
  const direction = 'direction' in params ? params.direction : 'both'
  const value = valueAt(evaluated, i)
  if (Number.isNaN(value)) return params.missing === 'alert' ? 'silent' : null
  const { expected, lower, score, upper } = evaluation.scores
  if (Number.isNaN(at(upper, i))) return at(score, i) > 1 ? sideOf(value, at(expected, i)) : null
  if (direction !== 'down' && value > at(upper, i)) return 'high'
  return direction !== 'up' && value < at(lower, i) ? 'low' : null
}

function valueAt({ series, params }: EvaluatedSeries, i: number): number {
  const value = at(series.values, i)
  return Number.isNaN(value) && params.missing === 'zero' ? 0 : value
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null
}
