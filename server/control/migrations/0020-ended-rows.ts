// Indexes by which the tokens that work and the legal holds in force are found without reading those that
// have ended. Ended ones stay stored, and an organisation may have hundreds of thousands.

import { type Kysely, sql } from 'kysely'

const statements = [
  'create index legal_holds_by_release on legal_holds (tenant_id, released_at_ms, hold_id)',
  'drop index access_tokens_not_revoked',
  `create index access_tokens_not_revoked on access_tokens (tenant_id, expires_at_ms)
    where revoked_at_ms is null`,
]

export const endedRows = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(db)
  },
}
