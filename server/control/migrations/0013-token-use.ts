// When each access token was last used. Tokens from before have none until they are used again.

import { type Kysely, sql } from 'kysely'

export const tokenUse = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table access_tokens add column last_used_at_ms bigint`.execute(db)
  },
}
