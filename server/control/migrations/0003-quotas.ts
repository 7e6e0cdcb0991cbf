// What an organisation may send and what it has sent, a row for each UTC day. Numbers only, so an erasure
// need not visit these tables.

import { type Kysely, sql } from 'kysely'

const statements = [
  `create table ingest_quotas (
    tenant_id text primary key,
    rows_per_second bigint check (rows_per_second >= 0),
    bytes_per_day bigint check (bytes_per_day >= 0)
  )`,
  `create table ingest_usage (
    tenant_id text not null,
    day text not null,
    bytes bigint not null default 0,
    rows_accepted bigint not null default 0,
    rows_rejected bigint not null default 0,
    requests_refused bigint not null default 0,
    primary key (tenant_id, day)
  )`,
]

export const quotas = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(db)
  },
}
