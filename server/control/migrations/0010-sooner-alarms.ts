// The system detectors of error logs and of latency alarm after two of three buckets instead of three of
// four. Detectors of existing organisations are changed only where nobody has edited them, at their first
// revision.

import { type QueryExecutorProvider, sql } from 'kysely'

/** As the params were written at that time: a migration must not change with the program. */
const [before, after] = ['"violate_n":3,"window_m":4', '"violate_n":2,"window_m":3']

export const soonerAlarms = {
  async up(db: QueryExecutorProvider): Promise<void> {
    await sql`
      update detectors
      set params = replace(params, ${before}, ${after}), revision = revision + 1
      where is_system = 1 and revision = 1 and method_key = 'robust_band'
        and metric_key in ('logs.error_count', 'spans.latency_p95') and params like ${`%${before}%`}
    `.execute(db)
  },
}
