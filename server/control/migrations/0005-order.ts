// The order of requests and backups, by counters instead of clocks. Older requests are numbered as they were
// inserted. The order between older backups and erasures was not recorded, so such a backup counts as having
// what they erased.

import { type Kysely, sql } from 'kysely'
import { dialectOf } from '../dialect.ts'

const statements = [
  'alter table deletion_requests add column seq integer not null default 0',
  'create index deletion_requests_by_seq on deletion_requests (seq)',
  'alter table backups add column order_known integer not null default 0',
  `create table erasure_backups (
    request_id text not null,
    backup_id text not null,
    primary key (request_id, backup_id)
  )`,
  'create index erasure_backups_by_backup on erasure_backups (backup_id)',
]

export const order = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(db)
    await dialectOf(db).schema.numberAsInserted(db, 'deletion_requests', 'seq')
  },
}
