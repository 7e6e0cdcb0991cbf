// Indexes by which the requests of an organisation that are not finished, those of retention, and those that
// refuse late rows are found without reading all that are completed. There may be a hundred thousand of them.

import { type Kysely, sql } from 'kysely'

const statements = [
  'create index deletion_requests_by_tenant_status on deletion_requests (tenant_id, status, request_id)',
  `create index deletion_requests_of_system on deletion_requests (tenant_id, seq)
    where requested_by_kind = 'system'`,
  'create index deletion_requests_refusing on deletion_requests (tenant_id) where refuse_late = 1',
]

export const manyErasures = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(db)
  },
}
