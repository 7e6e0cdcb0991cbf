// What proving an erasure needs besides the requests: delay and approval, previews, policy, legal holds,
// retention, signing keys, certificates and the register of backups. A preview has only counts, so an erasure
// need not visit these tables.

import { type Kysely, sql } from 'kysely'

const statements = [
  'alter table deletion_requests add column starts_at_ms bigint',
  'alter table deletion_requests add column approve_by_ms bigint',
  'alter table deletion_requests add column approved_by text',
  'alter table deletion_requests add column approved_at_ms bigint',
  'alter table deletion_requests add column refuse_late integer not null default 0',
  'alter table deletion_requests add column late_rows bigint not null default 0',
  'alter table deletion_requests add column attempts_forgiven integer not null default 0',
  'alter table deletion_requests add column has_mark integer not null default 0',
  'alter table deletion_requests add column came_back integer not null default 0',
  `create table deletion_previews (
    preview_id text primary key,
    tenant_id text not null,
    selection_hash text not null,
    row_counts text not null,
    created_at_ms bigint not null,
    expires_at_ms bigint not null
  )`,
  'create index deletion_previews_by_expiry on deletion_previews (expires_at_ms)',
  `create table deletion_policies (
    tenant_id text primary key,
    approval text not null check (approval in ('none', 'all', 'always')),
    pending_approval text check (pending_approval in ('none', 'all', 'always')),
    pending_from_ms bigint
  )`,
  `create table legal_holds (
    hold_id text primary key,
    tenant_id text not null,
    signals text not null,
    range_start_ns text,
    range_end_ns text,
    case_ref text not null,
    review_at_ms bigint,
    placed_by text not null,
    placed_at_ms bigint not null,
    released_by text,
    released_at_ms bigint
  )`,
  'create index legal_holds_by_tenant on legal_holds (tenant_id, hold_id)',
  `create table retention_policies (
    tenant_id text not null,
    signal text not null,
    days integer not null,
    primary key (tenant_id, signal)
  )`,
  `create table signing_keys (
    kid text primary key,
    public_jwk text not null,
    private_jwk text not null,
    created_at_ms bigint not null,
    retired_at_ms bigint
  )`,
  `create table certificates (
    request_id text primary key,
    tenant_id text not null,
    jws text not null,
    issued_at_ms bigint not null
  )`,
  `create table backups (
    backup_id text primary key,
    folder text not null,
    status text not null check (status in ('requested', 'running', 'ready', 'failed', 'removed')),
    requested_by text not null,
    requested_at_ms bigint not null,
    taken_at_ms bigint,
    expires_at_ms bigint not null,
    bytes bigint,
    error text,
    removed_at_ms bigint
  )`,
  'alter table anomalies add column read_from_ns text',
  'alter table anomalies add column unread_ns text',
]

export const proof = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(db)
  },
}
