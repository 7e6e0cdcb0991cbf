// One run of a detector on the series that it read: judges each series and converts its episodes to
// findings. Scheduled runs and replayed runs both use this code.

import assert from 'node:assert/strict'
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { type Ns, nsPerSecond } from '../../../contract/instant.ts'
import type { SeriesGroup, SeriesRequest, SeriesSet } from '../../series/series.ts'
import { labelsOf } from '../../series/series-statement.ts'
import type { TenantReader } from '../../telemetry/tenant-reader.ts'
import type { DetectorState, Evaluation } from '../alarms/alarm.ts'
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
import type { StoredDetector } from '../detectors/detector.ts'
import type { MethodChoice } from '../methods/catalogue.ts'
import { largestValue, type Series } from '../scoring/series.ts'
import { peersOf, tasksOf } from './evaluate.ts'
import type { Evaluate } from './evaluation-pool.ts'
import { planRun, type RunPlan } from './run-plan.ts'

/** Series per detector. A detector with more has the status `degraded` and a note about it. */
const groupsMax = 50

/** Everything that a run needs. */
export interface Run {
  readonly detector: StoredDetector
  readonly choice: MethodChoice
  readonly reader: TenantReader
  readonly plan: RunPlan
  readonly evaluate: Evaluate
  /** Feedback and mutes; null where the run does not use them. */
  readonly tuning: Tuning | null
  /** Called with each judged series, so that a caller can draw it. */
  readonly onJudged?: (judged: JudgedSeries) => void
}

export interface JudgedSeries {
  readonly groupKey: string
  readonly series: Series
  readonly evaluation: Evaluation
}

export function requestOf({ detector, plan }: Pick<Run, 'detector' | 'plan'>): SeriesRequest {
  const { metric_key, scope } = detector.definition
  return {
    metricKey: metric_key,
    service: scope.service,
    attributes: scope.attributes,
    groupBy: scope.group_by,
    aggregation: scope.aggregation,
    startNs: plan.startNs,
    endNs: plan.endNs,
    stepSeconds: plan.stepMinutes * 60,
    maxGroups: groupsMax,
  }
}

/** Judges the series of a run. Returns its status and its findings. */
export async function evaluateRun(
  run: Run,
  set: SeriesSet,
): Promise<{ summary: RunSummary; found: RunFound }> {
  const { plan, reader } = run
  const states: SeriesState[] = []
  const findings: Finding[] = []
  const members = set.groups.map((group) => ({ group, series: seriesOf(set, group) }))
  const peers = peersOf(
    members.map(({ series }) => series),
    run.choice,
  )
  const evaluations = await judgeMembers(run, members)
  for (const [i, member] of members.entries()) {
    const evaluation = evaluations[i]
    assert(evaluation !== undefined)
    const evaluated = evaluateGroup(run, set, { ...member, peers: peers[i] ?? [], evaluation })
    states.push(evaluated.state)
    findings.push(...evaluated.findings)
  }
  const isUnknown: RunFound['isUnknown'] = (range) =>
    set.signals.some((signal) => reader.gate.unknownTime(reader.place.tenantId, signal, range).length > 0)
  return {
    summary: summariseRun(states, set.truncatedGroups, plan.stepMinutes),
    found: {
      findings,
      window: windowOf(run, set),
      signals: set.signals,
      read: readStretches(set),
      isLearnt: isBandLearnt(run.choice.params),
      isUnknown,
    },
  }
}

/**
 * Evaluates all members, in their order. Yields to the event loop between two tasks, because
 * `evaluate` may run in this thread.
 */
async function judgeMembers(
  run: Run,
  members: readonly Pick<GroupMember, 'group' | 'series'>[],
): Promise<Evaluation[]> {
  const { choice, evaluate, reader, tuning } = run
  const series = members.map((member) => member.series)
  const widenings = members.map(({ group }) => tuning?.widenings.get(groupKeyOf(run, group)))
  const evaluations: Evaluation[] = []
  for (const task of tasksOf({ choice, series, widenings })) {
    evaluations.push(...(await evaluate(task, reader.share)))
    await yieldToOthers()
  }
  return evaluations
}

/** JSON of the labels of `group_by`. */
function groupKeyOf({ detector }: Run, { group }: SeriesGroup): string {
  return JSON.stringify(Object.fromEntries(labelsOf(detector.definition.scope.group_by, group)))
}

/** The stretches of time that are not unknown, in order. */
function readStretches(set: SeriesSet): { startNs: Ns; endNs: Ns }[] {
  const stepNs = BigInt(set.stepSeconds) * nsPerSecond
  const stretches: { startNs: Ns; endNs: Ns }[] = []
  let startNs = set.startNs
  for (let i = 0; i <= set.steps; i++) {
    if (i < set.steps && set.unknown[i] === 0) continue
    const endNs = set.startNs + BigInt(i) * stepNs
    if (startNs < endNs) stretches.push({ startNs, endNs })
    startNs = endNs + stepNs
  }
  return stretches
}

interface GroupMember {
  readonly group: SeriesGroup
  readonly series: Series
  /** The other series of the group, where the method compares them. */
  readonly peers: readonly Series[]
  readonly evaluation: Evaluation
}

function evaluateGroup(
  run: Run,
  set: SeriesSet,
  { group, peers, series, evaluation }: GroupMember,
): { state: SeriesState; findings: Finding[] } {
  const { choice, detector, tuning } = run
  const { metric_key, scope } = detector.definition
  const labels = Object.fromEntries(labelsOf(scope.group_by, group.group))
  const groupKey = groupKeyOf(run, group)
  const widening = tuning?.widenings.get(groupKey)
  const scoped =
    scope.service === undefined ? scope.attributes : { ...scope.attributes, service: scope.service }
  const mutes = mutesFor(tuning?.mutes ?? [], { ...scoped, ...labels })
  run.onJudged?.({ groupKey, series, evaluation })
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
    mutes,
  })
  const isWidened = widening !== undefined && isBandLearnt(choice.params)
  return { state: { ...mutedState(evaluation.state, findings, mutes, run.plan), isWidened }, findings }
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

function seriesOf(set: SeriesSet, group: SeriesGroup): Series {
  return {
    startNs: set.startNs,
    stepMinutes: set.stepSeconds / 60,
    values: group.values.map((value) => Math.max(-largestValue, Math.min(largestValue, value))),
    unknown: set.unknown,
    volumes: group.volume,
  }
}

/** `checkout`, `host=a7`, `checkout host=a7`; empty for the only series of a metric. */
function labelOf(detector: StoredDetector, group: SeriesGroup): string {
  const { service, group_by } = detector.definition.scope
  const parts = service === undefined ? [] : [service]
  for (const [key, value] of labelsOf(group_by, group.group)) {
    parts.push(key === 'service' ? value || '(no service)' : `${key}=${value}`)
  }
  return parts.join(' ')
}

/**
 * The window of a run, and which part of it is new: everything at the first run and after a run that judged
 * nothing (history may have been loaded since); otherwise what came since the run before.
 */
function windowOf({ detector, plan }: Run, set: SeriesSet): RunWindow {
  const { definition, lastRunAtMs, lastStatus } = detector
  const judgedNothing = lastRunAtMs === null || unjudgedStatuses.some((status) => status === lastStatus)
  return {
    startNs: plan.startNs,
    windowStartNs: plan.windowStartNs,
    judgedUntilNs: judgedNothing ? null : planRun(definition, lastRunAtMs).endNs,
    isTruncated: set.truncatedGroups > 0,
  }
}
