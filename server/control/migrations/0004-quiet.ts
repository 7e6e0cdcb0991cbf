// Feedback and mutes. Feedback is stored with the anomaly, so that an erasure removes both; mutes are
// settings and contain no telemetry.

import { type Kysely, sql } from 'kysely'

const statements = [
  'alter table anomalies add column muted integer not null default 0',
  'alter table anomalies add column edge_factor double precision',
  `alter table anomalies add column verdict text check (verdict in ('not_an_anomaly', 'real'))`,
  'alter table anomalies add column verdict_note text',
  'alter table anomalies add column verdict_by text',
  'alter table anomalies add column verdict_at_ms bigint',
  'create index anomalies_with_verdict on anomalies (detector_id) where verdict is not null',
  `create table detector_mutes (
    id text primary key,
    tenant_id text not null,
    detector_id text,
    group_key text,
    from_ns text,
    until_ns text,
    weekly text,
    note text,
    created_by text not null,
    created_at_ms bigint not null
  )`,
  'create index detector_mutes_by_tenant on detector_mutes (tenant_id, id)',
]

export const quiet = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(db)
  },
}
