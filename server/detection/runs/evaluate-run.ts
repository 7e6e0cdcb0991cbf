// One run of a detector: judges the series that its course (detector-course.ts) has evaluated, and converts
// their episodes to findings. Scheduled runs, previews and files all use this code.

import { nsPerMinute } from '../../../contract/values/instant.ts'
import { Pace } from '../../core/turns/pace.ts'
import type { SeriesRequest, SeriesSet } from '../../series/series.ts'
import { labelsOf } from '../../series/series-statement.ts'
import type { TenantReader } from '../../telemetry/tenant-reader.ts'
import type { DetectorState } from '../alarms/alarm.ts'
import type { Episode } from '../alarms/episode.ts'
import { newestEpisodes } from '../alarms/newest-episodes.ts'
import type { RunFound } from '../anomalies/anomaly-rows.ts'
import type { Tuning } from '../anomalies/feedback.ts'
import {
  type EvaluatedSeries,
  endedBucketsOf,
  type Finding,
  findingsOf,
  groupBytesMax,
  isBandLearnt,
  knownEpisodesOf,
} from '../anomalies/findings.ts'
import { type MuteRule, muteAt, mutesFor } from '../anomalies/mute.ts'
import { MutedTime } from '../anomalies/muted-time.ts'
import { isTooDivided } from '../anomalies/read-time.ts'
import { describeMetric } from '../anomalies/reason.ts'
import type { RunWindow } from '../anomalies/reconcile.ts'
import {
  type RunSummary,
  type SeriesState,
  summariseRun,
  unjudgedStatuses,
} from '../anomalies/run-summary.ts'
import type { DetectorDefinition, StoredDetector } from '../detectors/detector.ts'
import type { MethodChoice } from '../methods/catalogue.ts'
import type { Series } from '../scoring/series.ts'
import type { JudgedGroup } from './course-in-progress.ts'
import type { CourseRun, LearntSpan, SeriesRead, SeriesSource } from './course-run.ts'
import type { JudgedRun } from './detector-course.ts'
import { peersOf } from './evaluate.ts'
import type { EvaluationShare } from './evaluation-pool.ts'
import { planRun } from './run-plan.ts'
import type { SeriesFeedback } from './series-course.ts'

/** The input of a run of a detector, beside its series. */
export interface Run {
  readonly detector: StoredDetector
  readonly choice: MethodChoice
  /** Feedback and mutes; null where the run does not use them. */
  readonly tuning: Tuning | null
  readonly isUnknown: (range: LearntSpan, signals: SeriesSet['signals']) => boolean
  /** Called with each judged series, so that a caller can draw it. */
  readonly onJudged?: (judged: JudgedGroup) => void
}

/** What the course of a detector needs to know of a run. */
export function courseRunOf(
  { choice, detector, tuning }: Pick<Run, 'detector' | 'choice' | 'tuning'>,
  rest: {
    readonly nowMs: number
    readonly source: SeriesSource
    readonly share: EvaluationShare
    readonly mayBeLate: boolean
  },
): CourseRun {
  return {
    ...rest,
    detectorId: detector.id,
    version: String(detector.revision),
    definition: detector.definition,
    choice,
    feedback: feedbackOf(tuning),
    judgedNothing: judgedNothing(detector),
  }
}

/** By `groupKey`. */
function feedbackOf(tuning: Tuning | null): Map<string, SeriesFeedback> {
  const feedback = new Map<string, SeriesFeedback>()
  for (const [key, { above, below }] of tuning?.widenings ?? [])
    feedback.set(key, { widening: { above, below } })
  for (const [key, anomalies] of tuning?.confirmed ?? []) {
    const confirmed = anomalies.map(({ startedNs }) => Number(startedNs / nsPerMinute))
    feedback.set(key, { ...feedback.get(key), confirmed })
  }
  return feedback
}

export function requestOf(
  { metric_key, scope }: DetectorDefinition,
  { endNs, isBorn, maxGroups, startNs, stepMinutes }: SeriesRead,
): SeriesRequest {
  return {
    metricKey: metric_key,
    service: scope.service,
    attributes: scope.attributes,
    groupBy: scope.group_by,
    aggregation: scope.aggregation,
    stepSeconds: stepMinutes * 60,
    groupBytesMax,
    ...{ endNs, isBorn, maxGroups, startNs },
  }
}

/** Whether a range has telemetry that a reader must not use. */
export function unknownFor(reader: TenantReader): Run['isUnknown'] {
  return (range, signals) =>
    signals.some((signal) => reader.gate.unknownTime(reader.place.tenantId, signal, range).length > 0)
}

/**
 * Judges the evaluated series of a run. Returns its status and its findings, as many as
 * {@link newestEpisodes} keeps. A run may have many series and mutes, so other work of the event loop runs
 * in between.
 */
export async function evaluateRun(
  run: Run,
  judged: JudgedRun,
  pace = new Pace(),
): Promise<{ summary: RunSummary; found: RunFound }> {
  const isLearnt = isBandLearnt(run.choice.params)
  const { groups, learntFrom, plan, set } = judged
  const peers = peersOf(
    groups.map(({ series }) => series),
    run.choice,
  )
  const members = groups.map((group, i) => memberOf(run, judged, { ...group, peers: peers[i] ?? [] }))
  const known = members.map(({ evaluated }) => knownEpisodesOf(evaluated))
  const newest = newestEpisodes(
    members.map(({ evaluated: { series } }, i) => ({ series, episodes: known[i] ?? [] })),
  )
  const reported = members.map((member, i) => ({ ...member, episodes: newest[i] ?? [] }))
  const mutes = await mutesOf(run, judged, reported, pace)
  const states: SeriesState[] = []
  const findings: Finding[] = []
  for (const { episodes, evaluated, group, labels } of reported) {
    if (pace.isOver()) await pace.turn()
    run.onJudged?.(group)
    const own = mutesFor(run.tuning?.mutes ?? [], labels)
    const found = findingsOf({ ...evaluated, muted: mutes.time.of(own) }, episodes)
    const active = own.find((mute) => mutes.active.has(mute)) ?? null
    const isWidened = evaluated.widening !== undefined && isLearnt
    states.push({ ...mutedState(evaluated.evaluation.state, found, active), isWidened })
    findings.push(...found)
  }
  const episodes = known.reduce((sum, { length }) => sum + length, 0)
  const leftBefore = groups.reduce((sum, { evaluation: { leftOut = 0 } }) => sum + leftOut, 0)
  const leftOut = leftBefore + episodes - findings.length
  return {
    summary: summariseRun(states, set.truncatedGroups, plan.stepMinutes, {
      leftOut,
      longGroups: set.longGroups,
      isTooDivided: isLearnt && isTooDivided(learntFrom),
    }),
    found: {
      findings,
      window: windowOf(run, judged),
      signals: set.signals,
      read: learntFrom,
      isLearnt,
      isUnknown: (range) => run.isUnknown(range, set.signals),
    },
  }
}

/** A judged series of a run. */
interface RunMember {
  readonly group: JudgedGroup
  readonly labels: Readonly<Record<string, string>>
  readonly evaluated: EvaluatedSeries
}

interface GroupMember extends JudgedGroup {
  /** The other series of the group, where the method compares them. */
  readonly peers: readonly Series[]
}

function memberOf(run: Run, { plan, set }: JudgedRun, { peers, ...judged }: GroupMember): RunMember {
  const { choice, detector, tuning } = run
  const { evaluation, group, groupKey, series } = judged
  const { metric_key, scope } = detector.definition
  const scoped =
    scope.service === undefined ? scope.attributes : { ...scope.attributes, service: scope.service }
  const subject = {
    ...describeMetric(metric_key),
    unit: set.unit,
    scope: labelOf(detector, group),
    peers,
  }
  const confirmed = tuning?.confirmed.get(groupKey) ?? []
  return {
    group: judged,
    labels: { ...scoped, ...Object.fromEntries(labelsOf(scope.group_by, group)) },
    evaluated: {
      series,
      evaluation,
      params: choice.params,
      groupKey,
      subject,
      widening: tuning?.widenings.get(groupKey),
      confirmed: confirmed.filter(({ startedNs }) => startedNs >= plan.startNs),
    },
  }
}

/**
 * What the mutes of a detector do in a run: those that are active at its end, and when series with episodes
 * are muted. Mutes of other series or of other time are not looked at.
 */
async function mutesOf(
  { tuning }: Run,
  { plan }: JudgedRun,
  reported: readonly (RunMember & { readonly episodes: readonly Episode[] })[],
  pace: Pace,
): Promise<{ readonly active: ReadonlySet<MuteRule>; readonly time: MutedTime }> {
  const mutes = tuning?.mutes ?? []
  const active = new Set<MuteRule>()
  const needed = new Set<MuteRule>()
  const range = { from: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY }
  for (const mute of mutes) {
    if (pace.isOver()) await pace.turn()
    if (muteAt([mute], plan.endNs - 1n) !== null) active.add(mute)
  }
  for (const { episodes, evaluated, labels } of mutes.length === 0 ? [] : reported) {
    if (episodes.length === 0) continue
    if (pace.isOver()) await pace.turn()
    for (const mute of mutesFor(mutes, labels)) needed.add(mute)
    for (const episode of episodes) {
      const { firstEnd, lastEnd } = endedBucketsOf(episode, evaluated.series)
      range.from = Math.min(range.from, firstEnd)
      range.until = Math.max(range.until, firstEnd + 1, lastEnd + 1)
    }
  }
  return { active, time: await MutedTime.of([...needed], range, pace) }
}

/**
 * The state of a series is muted, not anomalous, where a mute is active now or the open episode was muted.
 */
function mutedState(state: DetectorState, findings: readonly Finding[], mute: MuteRule | null): SeriesState {
  const isAlarming = state.status === 'anomalous' || state.status === 'recovering'
  const isMutedEpisode = isAlarming && findings.some((finding) => finding.isOpen && finding.isMuted)
  if (isMutedEpisode || (mute !== null && (isAlarming || state.status === 'ok'))) {
    return { status: 'muted', ...(mute === null ? {} : { muteId: mute.id }) }
  }
  return state
}

/** `checkout`, `host=a7`, `checkout host=a7`; empty for the only series of a metric. */
function labelOf(detector: StoredDetector, group: string | null): string {
  const { service, group_by } = detector.definition.scope
  const parts = service === undefined ? [] : [service]
  for (const [key, value] of labelsOf(group_by, group)) {
    parts.push(key === 'service' ? value || '(no service)' : `${key}=${value}`)
  }
  return parts.join(' ')
}

/**
 * The window of a run, and which part of it is new: everything at the first run and after a run that judged
 * nothing (history may have been loaded since); otherwise what came since the run before.
 */
function windowOf({ detector }: Run, { plan, set }: JudgedRun): RunWindow {
  const { definition, lastRunAtMs } = detector
  const isAllNew = lastRunAtMs === null || judgedNothing(detector)
  return {
    startNs: plan.windowStartNs,
    windowStartNs: plan.windowStartNs,
    judgedUntilNs: isAllNew ? null : planRun(definition, plan.stepMinutes, lastRunAtMs).endNs,
    isTruncated: set.truncatedGroups > 0,
  }
}

function judgedNothing({ lastRunAtMs, lastStatus }: StoredDetector): boolean {
  return lastRunAtMs === null || unjudgedStatuses.some((status) => status === lastStatus)
}
