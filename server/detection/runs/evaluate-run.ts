// One run of a detector: judges the series that its course (detector-course.ts) has evaluated, and converts
// their episodes to findings. Scheduled runs, previews and files all use this code.

import { nsPerMinute } from '../../../contract/values/instant.ts'
import type { SeriesRequest, SeriesSet } from '../../series/series.ts'
import { labelsOf } from '../../series/series-statement.ts'
import type { TenantReader } from '../../telemetry/tenant-reader.ts'
import type { DetectorState } from '../alarms/alarm.ts'
import type { RunFound } from '../anomalies/anomaly-rows.ts'
import type { Tuning } from '../anomalies/feedback.ts'
import { type Finding, findingsOf, isBandLearnt } from '../anomalies/findings.ts'
import { type MuteRule, muteAt, mutesFor } from '../anomalies/mute.ts'
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
import { planRun, type RunPlan } from './run-plan.ts'
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
    ...{ endNs, isBorn, maxGroups, startNs },
  }
}

/** Whether a range has telemetry that a reader must not use. */
export function unknownFor(reader: TenantReader): Run['isUnknown'] {
  return (range, signals) =>
    signals.some((signal) => reader.gate.unknownTime(reader.place.tenantId, signal, range).length > 0)
}

/** Judges the evaluated series of a run. Returns its status and its findings. */
export function evaluateRun(run: Run, judged: JudgedRun): { summary: RunSummary; found: RunFound } {
  const { groups, learntFrom, plan, set } = judged
  const states: SeriesState[] = []
  const findings: Finding[] = []
  const peers = peersOf(
    groups.map(({ series }) => series),
    run.choice,
  )
  for (const [i, group] of groups.entries()) {
    const evaluated = evaluateGroup(run, judged, { ...group, peers: peers[i] ?? [] })
    states.push(evaluated.state)
    findings.push(...evaluated.findings)
  }
  return {
    summary: summariseRun(states, set.truncatedGroups, plan.stepMinutes),
    found: {
      findings,
      window: windowOf(run, judged),
      signals: set.signals,
      read: learntFrom,
      isLearnt: isBandLearnt(run.choice.params),
      isUnknown: (range) => run.isUnknown(range, set.signals),
    },
  }
}

interface GroupMember extends JudgedGroup {
  /** The other series of the group, where the method compares them. */
  readonly peers: readonly Series[]
}

function evaluateGroup(
  run: Run,
  { plan, set }: JudgedRun,
  { evaluation, group, groupKey, peers, series }: GroupMember,
): { state: SeriesState; findings: Finding[] } {
  const { choice, detector, tuning } = run
  const { metric_key, scope } = detector.definition
  const labels = Object.fromEntries(labelsOf(scope.group_by, group))
  const widening = tuning?.widenings.get(groupKey)
  const scoped =
    scope.service === undefined ? scope.attributes : { ...scope.attributes, service: scope.service }
  const mutes = mutesFor(tuning?.mutes ?? [], { ...scoped, ...labels })
  run.onJudged?.({ group, groupKey, series, evaluation })
  const subject = {
    ...describeMetric(metric_key),
    unit: set.unit,
    scope: labelOf(detector, group),
    peers,
  }
  const findings = findingsOf({
    series,
    evaluation,
    params: choice.params,
    groupKey,
    subject,
    widening,
    confirmed: (tuning?.confirmed.get(groupKey) ?? []).filter(({ startedNs }) => startedNs >= plan.startNs),
    mutes,
  })
  const isWidened = widening !== undefined && isBandLearnt(choice.params)
  return { state: { ...mutedState(evaluation.state, findings, mutes, plan), isWidened }, findings }
}

/**
 * The state of a series is muted, not anomalous, where a mute is active now or the open episode was muted.
 */
function mutedState(
  state: DetectorState,
  findings: readonly Finding[],
  mutes: readonly MuteRule[],
  plan: RunPlan,
): SeriesState {
  const mute = muteAt(mutes, plan.endNs - 1n)
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
