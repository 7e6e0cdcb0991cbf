// Which legal holds a step of an erasure kept when it began. Holds are placed and released until the next
// attempt looks at a step that was interrupted, so those in force then do not tell what it was to erase.

import { type Kysely, sql } from 'kysely'

export const keptHolds = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table deletion_steps add column kept_holds text not null default '[]'`.execute(db)
  },
}
