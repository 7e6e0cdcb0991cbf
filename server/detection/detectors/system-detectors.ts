// The detectors every organisation starts with: errors, slowness, traffic and error logs of each of its services.
// They have to be right for organisations nobody has looked at, so they are slow to speak: one false alarm per
// series in a month, and never about a deviation that would not matter to a person, however unusual it is. A service
// with two requests a minute has no percentile, and a third error a week is no incident.
//
// Traffic follows people's days, so it is compared with the same hour of other days, in buckets wide enough to count
// in, and nothing is said of it before a week is known. docs/decisions/0026 has the measurements. A change here
// is for new organisations; those that have the old definition get it by a migration of the control plane, unless
// somebody changed theirs.

import type { ControlTransaction } from '../../control/database.ts'
import { type DetectorDefinition, type Draft, readDraft } from './detector.ts'
import { insertDetector } from './detector-rows.ts'

const minutesPerDay = 1440

/** Four days of five minutes, learnt from the day before each. */
const recent = { method_key: 'robust_band', window_minutes: 4 * minutesPerDay, schedule_minutes: 5 }

/** Two weeks of quarters of an hour, learnt from the week before. */
const seasonal = { method_key: 'seasonal_band', window_minutes: 14 * minutesPerDay, schedule_minutes: 15 }

/** 3 of 4 buckets: long enough that somebody who looks still finds something to see. */
const patient = { violate_n: 3, window_m: 4, clear_n: 3, alarm_budget_per_week: 0.25 }

const recentParams = { ...patient, k: 5 }

/**
 * Of two or three days the width of a band is guesswork, whose errors would widen the edge of alarm for weeks. A narrow
 * band leaves it to the past of the series how far its values go.
 */
const seasonalParams = { ...patient, k: 3, warmup_points: 7 * 96 }

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
    params: { ...recentParams, direction: 'up', min_abs_dev: 50, min_rel_dev: 0.5, min_volume: 20 },
  },
  {
    ...seasonal,
    name: 'Request rate by service',
    metric_key: 'spans.rate',
    // 0.02 a second are 18 requests in a quarter of an hour: below, a count says little.
    params: { ...seasonalParams, direction: 'both', min_abs_dev: 0.02, min_rel_dev: 0.5 },
  },
  {
    ...recent,
    name: 'Error logs by service',
    metric_key: 'logs.error_count',
    params: { ...recentParams, direction: 'up', min_abs_dev: 20, min_rel_dev: 1 },
  },
]

/** In the order in which they are created. */
export const systemDetectors: readonly DetectorDefinition[] = drafts.map(systemDetector)

/** Creates them, due at once; to be called in the transaction that creates the organisation. */
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
