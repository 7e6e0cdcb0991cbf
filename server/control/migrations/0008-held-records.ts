// Legal holds apply in the control plane too: an anomaly about held time can't be removed while the hold is
// in force, not even by a statement without a check, and its earlier versions are stored beside it.

import { type Kysely, sql } from 'kysely'
import { dialectOf } from '../dialect.ts'

const statements = [
  // Counts changes by people outside the detector's definition: verdicts and mutes.
  'alter table detectors add column tuning_revision integer not null default 0',
  // The definition and tuning that judged the anomaly last; null for older anomalies.
  'alter table anomalies add column judged_by text',
  `create table held_anomaly_versions (
    anomaly_id text not null,
    version integer not null,
    tenant_id text not null,
    detector_id text not null,
    holds text not null,
    record text not null,
    replaced_at_ms bigint not null,
    replaced_by text not null,
    primary key (anomaly_id, version)
  )`,
  'create index held_anomaly_versions_by_tenant on held_anomaly_versions (tenant_id, anomaly_id)',
]

export const heldRecords = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(db)
    await dialectOf(db).schema.keepHeldAnomalies(db)
  },
}
