// Anomalies in the order of lists: by start, which is a text of 19 digits. The index of an organisation has
// all that its list can be filtered by. No index is of an expression: PostgreSQL would collect its values,
// which come from telemetry, and keep them after an erasure.

import { type Kysely, sql } from 'kysely'

export const anomaliesByStart = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`create index anomalies_by_start on anomalies
      (tenant_id, started_at_ns, id, seen_until_ns, ended_at_ns, muted)`.execute(db)
    await sql`drop index anomalies_by_detector`.execute(db)
    await sql`create index anomalies_by_detector on anomalies (detector_id, started_at_ns, id)`.execute(db)
  },
}
