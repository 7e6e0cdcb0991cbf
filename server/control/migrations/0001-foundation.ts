// The first schema of the control plane. The database itself keeps the ledger and the audit log append-only:
// our own code cannot change or remove an entry either, without changing the schema first. Databases that are
// older than this text have `real` instead of `double precision`; SQLite stores both in the same way.

import { type Kysely, sql } from 'kysely'
import { dialectOf } from '../dialect.ts'

const statements = [
  `create table organisations (
    tenant_id text primary key,
    name text not null,
    placement integer not null,
    created_at_ms bigint not null
  )`,
  `create table access_tokens (
    id text primary key,
    tenant_id text not null references organisations (tenant_id),
    name text not null,
    role text not null check (role in ('owner', 'admin', 'member', 'viewer', 'ingest')),
    prefix text not null,
    secret_hash text not null unique,
    created_at_ms bigint not null,
    created_by text not null,
    expires_at_ms bigint,
    revoked_at_ms bigint
  )`,
  'create index access_tokens_by_tenant on access_tokens (tenant_id, id)',
  `create table deletion_requests (
    request_id text primary key,
    tenant_id text not null,
    scope text not null check (scope in ('range', 'all')),
    signals text not null,
    range_start_ns text,
    range_end_ns text,
    reason text,
    note text,
    requested_by text not null,
    created_at_ms bigint not null,
    idempotency_key text,
    selection_hash text not null,
    status text not null,
    hidden_at_ms bigint,
    removed_at_ms bigint,
    verified_at_ms bigint,
    finished_at_ms bigint,
    attempts integer not null,
    crashes integer not null,
    retry_at_ms bigint,
    blocked_reason text,
    progress text not null,
    unique (tenant_id, idempotency_key)
  )`,
  'create index deletion_requests_by_tenant on deletion_requests (tenant_id, request_id)',
  'create index deletion_requests_by_status on deletion_requests (status)',
  `create table deletion_steps (
    request_id text not null references deletion_requests (request_id),
    ordinal integer not null,
    store text not null,
    action text not null,
    partition_id text,
    rows bigint not null,
    bytes bigint not null,
    done_at_ms bigint,
    primary key (request_id, ordinal)
  )`,
  `create table ledger_entries (
    tenant_id text not null,
    seq integer not null,
    entry text not null,
    hash text not null,
    primary key (tenant_id, seq)
  )`,
  `create table audit_entries (
    tenant_id text not null,
    seq integer not null,
    entry text not null,
    hash text not null,
    primary key (tenant_id, seq)
  )`,
  `create table detectors (
    id text primary key,
    tenant_id text not null references organisations (tenant_id),
    name text not null,
    metric_key text not null,
    method_key text not null,
    params text not null,
    scope text not null,
    window_minutes integer not null,
    schedule_minutes integer not null,
    enabled integer not null,
    is_system integer not null,
    last_run_at_ms bigint,
    last_status text,
    last_note text,
    next_run_at_ms bigint not null,
    created_at_ms bigint not null,
    revision integer not null
  )`,
  'create index detectors_by_tenant on detectors (tenant_id, id)',
  'create index detectors_by_due on detectors (enabled, next_run_at_ms)',
  `create table anomalies (
    id text primary key,
    tenant_id text not null,
    detector_id text not null,
    group_key text not null,
    metric_key text not null,
    signal text not null,
    started_at_ns text not null,
    ended_at_ns text,
    seen_until_ns text not null,
    peak_at_ns text not null,
    value double precision,
    expected double precision,
    lower double precision,
    upper double precision,
    score double precision not null,
    reason text not null,
    created_at_ms bigint not null,
    updated_at_ms bigint not null
  )`,
  'create index anomalies_by_tenant on anomalies (tenant_id, id)',
  'create index anomalies_by_detector on anomalies (detector_id, group_key)',
  'create table leases (name text primary key, holder text not null, until_ms bigint not null)',
  'create table instance (key text primary key, value text not null)',
]

export const foundation = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(db)
    for (const table of ['ledger_entries', 'audit_entries']) {
      await dialectOf(db).schema.makeAppendOnly(db, table)
    }
  },
}
