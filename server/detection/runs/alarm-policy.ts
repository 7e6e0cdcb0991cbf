// The alarm policy of a detector: its parameters in minutes and weeks, converted to buckets.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import type { AlarmPolicy } from '../alarms/alarm.ts'

const minutesPerWeek = 7 * 24 * 60

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
  // `auto` learns an edge for the budget by itself: its scores are in units of that edge.
  const learnsEdge = 'memory_points' in params
  return {
    ...shared,
    direction: 'direction' in params ? params.direction : 'both',
    minAbsDev: 'min_abs_dev' in params ? params.min_abs_dev : 0,
    minRelDev: 'min_rel_dev' in params ? params.min_rel_dev : 0,
    warmupPoints: params.warmup_points,
    // A series that joins its peers late is judged by their past.
    waitsForScores: !('min_peers' in params),
    budgetPerBucket: (params.alarm_budget_per_week * stepMinutes) / minutesPerWeek,
    leastThreshold:
      'k' in params || 'tolerance' in params || learnsEdge ? 1 : leastFor(params.alarm_budget_per_week),
    mostThreshold: learnsEdge ? 1 : Number.POSITIVE_INFINITY,
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
