// An index of the completed erasures of everything, by which the removal of an organisation finds the newest
// one without reading all its deletion requests. There may be a hundred thousand of them.

import { type Kysely, sql } from 'kysely'

export const fullErasures = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`create index deletion_requests_full on deletion_requests (tenant_id, signals, seq)
      where status = 'completed' and scope = 'all'`.execute(db)
  },
}
