// The detectors every organisation starts with: errors, slowness, traffic and error logs of each of its services.
// They have to be right for organisations nobody has looked at, so they are slow to speak: one false alarm per
// series in a month, and never about a deviation that would not matter to a person, however unusual it is. A service
// with two requests a minute has no percentile, and a third error a week is no incident.

import type { ControlTransaction } from '../control/database.ts'
import { type DetectorDefinition, type Draft, readDraft } from './detector.ts'
import { insertDetector } from './store.ts'

/** Four days of five minutes, learnt from the day before each. */
const windowMinutes = 4 * 1440
const scheduleMinutes = 5

/** 15 of 20 minutes: long enough that somebody who looks still finds something to see. */
const patient = { violate_n: 3, window_m: 4, clear_n: 3, alarm_budget_per_week: 0.25, k: 5 }

const drafts: readonly Draft[] = [
  {
    name: 'Error ratio by service',
    metric_key: 'spans.error_ratio',
    params: { ...patient, direction: 'up', min_abs_dev: 0.05, min_rel_dev: 0.5, min_volume: 20 },
  },
  {
    name: 'Latency (p95) by service',
    metric_key: 'spans.latency_p95',
    params: { ...patient, direction: 'up', min_abs_dev: 50, min_rel_dev: 0.5, min_volume: 20 },
  },
  {
    name: 'Request rate by service',
    metric_key: 'spans.rate',
    params: { ...patient, direction: 'both', min_abs_dev: 0.5, min_rel_dev: 0.5 },
  },
  {
    name: 'Error logs by service',
    metric_key: 'logs.error_count',
    params: { ...patient, direction: 'up', min_abs_dev: 20, min_rel_dev: 1 },
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
  const result = readDraft({
    ...draft,
    method_key: 'robust_band',
    scope: { group_by: 'service' },
    window_minutes: windowMinutes,
    schedule_minutes: scheduleMinutes,
    enabled: true,
  })
  if ('problems' in result)
    throw new Error(`A system detector is invalid: ${JSON.stringify(result.problems)}`)
  return result.definition
}
