// The system detector of request rates compares with the same hour of other days instead of the recent past.
// Detectors of existing organisations are changed only where nobody has edited them, at their first revision.
// Its anomalies and its last run stay, so the new definition applies only to new telemetry.

import { type QueryExecutorProvider, sql } from 'kysely'

/** The defaults of the method at that time: a migration must not change with the program. */
const params = {
  season: 'auto',
  timezone: 'UTC',
  holidays: [],
  history_seasons: 14,
  k: 3,
  violate_n: 3,
  window_m: 4,
  clear_n: 3,
  cooldown_minutes: 30,
  missing: 'skip',
  min_volume: 0,
  direction: 'both',
  min_abs_dev: 0.02,
  min_rel_dev: 0.5,
  alarm_budget_per_week: 0.25,
  warmup_points: 672,
}

export const trafficByHour = {
  async up(db: QueryExecutorProvider): Promise<void> {
    await sql`
      update detectors
      set method_key = 'seasonal_band', params = ${JSON.stringify(params)},
        window_minutes = 20160, schedule_minutes = 15, revision = revision + 1
      where is_system = 1 and revision = 1
        and metric_key = 'spans.rate' and method_key = 'robust_band'
    `.execute(db)
  },
}
