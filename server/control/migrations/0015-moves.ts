// The mark of a control plane that is being moved to another database: on the target while it is incomplete,
// on the source once the target is complete. Neither may be used then.

import { type Kysely, sql } from 'kysely'

export const moves = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`create table control_moves (
      state text primary key check (state in ('arriving', 'left')),
      other text not null,
      installation text not null
    )`.execute(db)
  },
}
