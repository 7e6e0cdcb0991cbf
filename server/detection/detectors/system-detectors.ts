// The detectors that every organisation starts with: error ratio, latency, traffic and error logs of each of
// its services. They must suit organisations that nobody has tuned them for, so they raise few alarms: one
// false alarm per series in a month, and none about a deviation that is too small to matter to a person,
// however unusual it is. Percentiles of two requests a minute mean nothing, and a third error in a week is
// not an incident.
//
// Traffic follows the hours at which people work, so it is compared with the same time of other days, in
// buckets wide enough for useful counts, and it is not judged before a week is known. docs/decisions/0026 has
// the measurements. A change here applies to new organisations. Organisations with the old definition get it
// by a migration of the control plane, unless somebody changed theirs.

import type { ControlTransaction } from '../../control/database.ts'
import { type DetectorDefinition, type Draft, readDraft } from './detector.ts'
import { insertDetector } from './detector-rows.ts'

const minutesPerDay = 1440

/** Four days in buckets of five minutes; the band is learnt from the day before. */
const recent = { method_key: 'robust_band', window_minutes: 4 * minutesPerDay, schedule_minutes: 5 }

/** Two weeks in buckets of 15 minutes; the band is learnt from the week before. */
const seasonal = { method_key: 'seasonal_band', window_minutes: 14 * minutesPerDay, schedule_minutes: 15 }

/** 3 of 4 buckets: long enough that a person who looks still sees the incident. */
const slowToAlarm = { violate_n: 3, window_m: 4, clear_n: 3, alarm_budget_per_week: 0.25 }

const recentParams = { ...slowToAlarm, k: 5 }

/**
 * 2 of 3 buckets, so that an incident is reported within a quarter of an hour. A ratio of few requests is by
 * chance high in two buckets too often; counts and latencies are not, once they differ enough to matter.
 */
const soonParams = { ...recentParams, violate_n: 2, window_m: 3 }

/**
 * With two or three days, the width of a band is uncertain, and its errors would widen the edge of alarm for
 * weeks; so a week is needed. With a narrow band (k 3) the past scores of the series set the edge of alarm.
 */
const seasonalParams = { ...slowToAlarm, k: 3, warmup_points: 7 * 96 }

const drafts: readonly Draft[] = [
  {
    ...recent,
    name: 'Error ratio by service',
    metric_key: 'spans.error_ratio',
    params: { ...recentParams, direction: 'up', min_abs_dev: 0.05, min_rel_dev: 0.5, min_volume: 20 },
  },
  {
    ...recent,
    name: 'Latency (p95) by service',
    metric_key: 'spans.latency_p95',
    params: { ...soonParams, direction: 'up', min_abs_dev: 50, min_rel_dev: 0.5, min_volume: 20 },
  },
  {
    ...seasonal,
    name: 'Request rate by service',
    metric_key: 'spans.rate',
    // 0.02 per second is 18 requests in 15 minutes; smaller counts vary too much.
    params: { ...seasonalParams, direction: 'both', min_abs_dev: 0.02, min_rel_dev: 0.5 },
  },
  {
    ...recent,
    name: 'Error logs by service',
    metric_key: 'logs.error_count',
    params: { ...soonParams, direction: 'up', min_abs_dev: 20, min_rel_dev: 1 },
  },
]

/** In the order in which they are created. */
export const systemDetectors: readonly DetectorDefinition[] = drafts.map(systemDetector)

/** Creates the system detectors, due at once. Call it in the transaction that creates the organisation. */
export async function createSystemDetectors(
  trx: ControlTransaction,
  tenantId: string,
  nowMs: number,
): Promise<void> {
  for (const definition of systemDetectors) {
    await insertDetector(trx, { tenantId, definition, isSystem: true, nowMs })
  }
}

function systemDetector(draft: Draft): DetectorDefinition {
  const result = readDraft({ ...draft, scope: { group_by: 'service' }, enabled: true })
  if ('problems' in result)
    throw new Error(`A system detector is invalid: ${JSON.stringify(result.problems)}`)
  return result.value
}
