// The index of anomalies by detector without the group: an entry of a PostgreSQL index has room for some
// 2,700 bytes, and the labels of a group can have more. No query looks for a group.

import { type Kysely, sql } from 'kysely'

export const longGroups = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`drop index anomalies_by_detector`.execute(db)
    await sql`create index anomalies_by_detector on anomalies (detector_id)`.execute(db)
  },
}
