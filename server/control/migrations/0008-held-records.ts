// What a legal hold keeps survives in the control plane as well: an anomaly about held time can't be removed while the
// hold stands, not even by a statement that forgot to ask, and what it said before it was changed is kept beside it.

import { type Kysely, sql } from 'kysely'

const statements = [
  // Counts what people did to a detector beside its definition: verdicts and mutes.
  'alter table detectors add column tuning_revision integer not null default 0',
  // By which definition and tuning the anomaly was judged last; null for anomalies of before.
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
  `create trigger held_anomalies_stay before delete on anomalies
   when exists (
     select 1 from legal_holds as hold
     where hold.tenant_id = old.tenant_id and hold.released_at_ms is null
       and (hold.range_start_ns is null
         or cast(old.seen_until_ns as integer) > cast(hold.range_start_ns as integer))
       and (hold.range_end_ns is null
         or cast(old.started_at_ns as integer) < cast(hold.range_end_ns as integer))
       and exists (
         select 1 from json_each(hold.signals) as held
         where ',' || old.signal || ',' like '%,' || held.value || ',%')
   )
   begin select raise(abort, 'a legal hold keeps this anomaly'); end`,
]

export const heldRecords = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(db)
  },
}
