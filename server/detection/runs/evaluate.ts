// One evaluation of one series: policies on missing data, then the method, then the alarm layer. Scheduled
// runs, previews and benchmarks all call this function, so a preview shows what a run will do.

import { comparesPeers, type MethodParams } from '../../../contract/detection-methods.ts'
import type { AlarmPolicy, Evaluation } from '../alarms/alarm.ts'
import { raiseAlarms } from '../alarms/alarm.ts'
import { evidenceOf } from '../alarms/evidence.ts'
import { stateAmongPeers } from '../alarms/peer-state.ts'
import type { MethodChoice } from '../methods/catalogue.ts'
import { scoreSeries } from '../methods/catalogue.ts'
import type { Series } from '../scoring/series.ts'

const minutesPerWeek = 7 * 24 * 60

/**
 * Evaluates a series. Pure: the same series and parameters give the same result. An empty series gives
 * `no_data`. The series must end with a complete bucket. Early buckets of a window have little history before
 * them and are judged by the method's own band. So a caller with a moving window must treat as *new* only
 * episodes whose `openedIndex` is in the buckets added since the last run; the others were decided when they
 * were new, with more history.
 *
 * `peers` are the other series of its group as {@link peersOf} makes them. A method that compares peers
 * judges nothing without them.
 */
export function evaluateSeries(
  series: Series,
  choice: MethodChoice,
  widening?: AlarmPolicy['widening'],
  peers: readonly Series[] = [],
): Evaluation {
  const evidence = evidenceOf(series, choice.params)
  const scores = scoreSeries(choice.method_key, evidence.series, choice.params, peers)
  const policy = alarmPolicy(choice.params, series.stepMinutes)
  const evaluation = raiseAlarms(evidence, scores, widening === undefined ? policy : { ...policy, widening })
  if (choice.method_key !== 'peer_outlier') return evaluation
  const judged = { peers, score: scores.score, series: evidence.series }
  return { ...evaluation, state: stateAmongPeers(evaluation.state, judged, choice.params) }
}

/**
 * For each series of a group, the other series as a method that compares them may see them; empty lists for
 * all other methods. All series have the same buckets.
 */
export function peersOf(group: readonly Series[], choice: MethodChoice): readonly (readonly Series[])[] {
  if (!comparesPeers(choice.method_key)) return group.map(() => [])
  const evidence = group.map((series) => evidenceOf(series, choice.params).series)
  return evidence.map((own) => evidence.filter((other) => other !== own))
}

/**
 * The series of one call: a whole group where its method compares the series, otherwise any number of series.
 */
export interface EvaluationTask {
  readonly series: readonly Series[]
  readonly choice: MethodChoice
  /** One per series; undefined where there is no feedback. */
  readonly widenings: readonly AlarmPolicy['widening'][]
}

/**
 * Evaluates the series of a task. The results are in the order of the series. Pure, and the same in any
 * thread.
 */
export function evaluateTask({ choice, series, widenings }: EvaluationTask): Evaluation[] {
  const peers = peersOf(series, choice)
  return series.map((one, i) => evaluateSeries(one, choice, widenings[i], peers[i]))
}

/** Points of one task: many small series make few tasks, and a long series is a task of its own. */
const taskPoints = 8192

/** Divides a group of series into tasks. A group that its method compares is one task. */
export function tasksOf({ choice, series, widenings }: EvaluationTask): EvaluationTask[] {
  if (comparesPeers(choice.method_key)) return [{ choice, series, widenings }]
  const tasks: { choice: MethodChoice; series: Series[]; widenings: AlarmPolicy['widening'][] }[] = []
  let room = 0
  for (const [i, one] of series.entries()) {
    const last = tasks.at(-1)
    if (last === undefined || room < one.values.length) {
      tasks.push({ choice, series: [one], widenings: [widenings[i]] })
      room = taskPoints - one.values.length
    } else {
      last.series.push(one)
      last.widenings.push(widenings[i])
      room -= one.values.length
    }
  }
  return tasks
}

/** Converts parameters from minutes and weeks to buckets. Exact where the method has no budget. */
export function alarmPolicy(params: MethodParams, stepMinutes: number): AlarmPolicy {
  const shared = {
    violateN: params.violate_n,
    windowM: params.window_m,
    clearN: params.clear_n,
    cooldownBuckets: Math.ceil(params.cooldown_minutes / stepMinutes),
    silenceAlarms: params.missing === 'alert',
  }
  if (!('alarm_budget_per_week' in params)) {
    return {
      ...shared,
      direction: 'both',
      minAbsDev: 0,
      minRelDev: 0,
      warmupPoints: 0,
      waitsForScores: false,
      budgetPerBucket: null,
      leastThreshold: 1,
      mostThreshold: Number.POSITIVE_INFINITY,
    }
  }
  return {
    ...shared,
    direction: 'direction' in params ? params.direction : 'both',
    minAbsDev: 'min_abs_dev' in params ? params.min_abs_dev : 0,
    minRelDev: 'min_rel_dev' in params ? params.min_rel_dev : 0,
    warmupPoints: params.warmup_points,
    // A series that joins its peers late is judged by their past.
    waitsForScores: !('min_peers' in params),
    budgetPerBucket: (params.alarm_budget_per_week * stepMinutes) / minutesPerWeek,
    leastThreshold: 'k' in params || 'tolerance' in params ? 1 : leastFor(params.alarm_budget_per_week),
    mostThreshold:
      'memory_points' in params ? mostFor(params.alarm_budget_per_week) : Number.POSITIVE_INFINITY,
  }
}

/**
 * Where no edge width is configured, the edge of score 1 is for one alarm a week. A budget ten times as large
 * allows scores that are ten times as common: one digit of surprise less, about half a score. The limit is
 * 0.5, because lower scores are very common.
 */
function leastFor(budgetPerWeek: number): number {
  return Math.max(0.5, Math.min(1, 1 - Math.log10(budgetPerWeek) / 2))
}

/**
 * Surprises that are reported once have a similar distribution in every series, with the edge for one alarm a
 * week near a score of 1. The past of a series may move it out by a quarter, to surprises that are three
 * times as rare; a tenth of the budget moves it by half a score more.
 */
function mostFor(budgetPerWeek: number): number {
  return 1.25 - Math.log10(budgetPerWeek) / 2
}
