// Row types of the control-plane database: organisations, access tokens, detectors, deletions, ledger and
// audit log. Small, transactional, and the same on every dialect. Control-plane instants are milliseconds;
// telemetry instants are nanoseconds as decimal text, because SQL integers of 64 bits don't survive
// JavaScript numbers. No column holds telemetry except those of `anomalies` and of their kept versions,
// which an erasure visits.

import type { ColumnType, Generated, Kysely, Transaction } from 'kysely'
import type { ActorColumns, LaterActorColumns } from './actor-columns.ts'

/** Written once; an update of it doesn't type-check. */
type Fixed<T> = ColumnType<T, T, never>

/** JSON text. */
type Json = string

interface OrganisationsTable {
  tenant_id: Fixed<string>
  name: string
  placement: Fixed<number>
  created_at_ms: Fixed<number>
}

export interface AccessTokensTable extends ActorColumns<'created_by'> {
  id: Fixed<string>
  tenant_id: Fixed<string>
  name: Fixed<string>
  role: Fixed<string>
  prefix: Fixed<string>
  /** SHA-256 of the secret, hexadecimal. The secret itself is nowhere. */
  secret_hash: Fixed<string>
  created_at_ms: Fixed<number>
  expires_at_ms: Fixed<number | null>
  revoked_at_ms: number | null
  /** The token it was made with; null where the operator made it. */
  made_with: Fixed<string | null>
  /** The first token of its line, itself where the operator made it; null where that is not known. */
  root_id: Fixed<string | null>
  /** The earliest expiry in its line, itself included; null where nothing in it expires. */
  line_expires_at_ms: Fixed<number | null>
}

export interface DeletionRequestsTable
  extends ActorColumns<'requested_by'>,
    LaterActorColumns<'approved_by'> {
  request_id: Fixed<string>
  tenant_id: Fixed<string>
  scope: Fixed<string>
  signals: Fixed<Json>
  range_start_ns: Fixed<string | null>
  range_end_ns: Fixed<string | null>
  reason: Fixed<string | null>
  note: Fixed<string | null>
  created_at_ms: Fixed<number>
  idempotency_key: Fixed<string | null>
  /** Hash of what was asked for; tells a repeated request from a different one under the same key. */
  selection_hash: Fixed<string>
  status: string
  hidden_at_ms: number | null
  removed_at_ms: number | null
  verified_at_ms: number | null
  finished_at_ms: number | null
  attempts: number
  /** Attempts during which the whole process ended. */
  crashes: number
  /** When a failed attempt may be repeated; null while nothing waits. */
  retry_at_ms: number | null
  blocked_reason: string | null
  /** Counts found by planning, erasing and verifying. */
  progress: Json
  /** Not before this; null where nothing was to be waited for. */
  starts_at_ms: Fixed<number | null>
  /** When a request that waits for a second person expires; null where none is asked. */
  approve_by_ms: Fixed<number | null>
  approved_at_ms: number | null
  /** 1 where what arrives for the erased time later is refused for good. */
  refuse_late: Fixed<number>
  /** Rows refused because of `refuse_late`. */
  late_rows: number
  /** Attempts made before a person asked for another try; they no longer count towards giving up. */
  attempts_forgiven: number
  /**
   * 1 where the engine was told of the completion; requests completed by older versions have none to miss.
   */
  has_mark: number
  /** 1 from a restore that brought its telemetry back until that is erased again. */
  came_back: number
  /**
   * Counts requests in the order they were put on record, of all organisations. Clocks
   * are set back, this is not.
   */
  seq: ColumnType<number, number | undefined, never>
}

/** What was counted for somebody who is about to erase; counts only, no telemetry. */
interface DeletionPreviewsTable {
  preview_id: Fixed<string>
  tenant_id: Fixed<string>
  selection_hash: Fixed<string>
  /** Rows by signal. */
  row_counts: Fixed<Json>
  created_at_ms: Fixed<number>
  expires_at_ms: Fixed<number>
}

interface DeletionPoliciesTable {
  tenant_id: Fixed<string>
  /** Which requests need a second person: `none`, `all` (full erasures) or `always`. */
  approval: string
  /** A looser rule that was asked for and is not in force yet. */
  pending_approval: string | null
  pending_from_ms: number | null
}

export interface LegalHoldsTable extends ActorColumns<'placed_by'>, LaterActorColumns<'released_by'> {
  hold_id: Fixed<string>
  tenant_id: Fixed<string>
  signals: Fixed<Json>
  range_start_ns: Fixed<string | null>
  range_end_ns: Fixed<string | null>
  case_ref: Fixed<string>
  review_at_ms: Fixed<number | null>
  placed_at_ms: Fixed<number>
  released_at_ms: number | null
}

interface RetentionPoliciesTable {
  tenant_id: Fixed<string>
  signal: Fixed<string>
  days: number
}

/** Shorter retention of a signal that waits for a second person. */
export interface RetentionChangesTable extends ActorColumns<'requested_by'> {
  tenant_id: Fixed<string>
  signal: Fixed<string>
  /** Shared by the signals that were asked for together. */
  change_id: Fixed<string>
  days: Fixed<number>
  requested_at_ms: Fixed<number>
  approve_by_ms: Fixed<number>
}

interface SigningKeysTable {
  kid: Fixed<string>
  public_jwk: Fixed<Json>
  /** Sealed: see audit/key-seal.ts. Empty once the key is retired. */
  private_jwk: string
  created_at_ms: Fixed<number>
  retired_at_ms: number | null
}

interface CertificatesTable {
  request_id: Fixed<string>
  tenant_id: Fixed<string>
  jws: Fixed<string>
  issued_at_ms: Fixed<number>
}

/** The register of backups: what is known to hold copies of telemetry, and until when. */
export interface BackupsTable extends ActorColumns<'requested_by'> {
  backup_id: Fixed<string>
  folder: Fixed<string>
  status: string
  requested_at_ms: Fixed<number>
  /** What was committed before this is in it. */
  taken_at_ms: number | null
  expires_at_ms: Fixed<number>
  bytes: number | null
  error: string | null
  removed_at_ms: number | null
  /**
   * 1 where `erasure_backups` says of every completed erasure whether this may hold what it erased; 0: it
   * may.
   */
  order_known: ColumnType<number, number | undefined, number>
}

/** States of a backup whose folder holds telemetry, or will. */
export const holdingStatuses = ['requested', 'running', 'ready'] as const

/**
 * Backups that were not taken after an erasure was completed, by erasure; those that are gone have no row.
 */
interface ErasureBackupsTable {
  request_id: Fixed<string>
  backup_id: Fixed<string>
}

interface DeletionStepsTable {
  request_id: Fixed<string>
  ordinal: Fixed<number>
  /** Store the step works on: a telemetry table, or `anomalies`. */
  store: Fixed<string>
  action: string
  partition_id: Fixed<string | null>
  /** As counted last: when it was planned, or by the step itself before it acted. */
  rows: number
  bytes: number
  done_at_ms: number | null
}

interface LedgerEntriesTable {
  tenant_id: Fixed<string>
  seq: Fixed<number>
  /** The whole entry in RFC 8785 form, `hash` excepted. */
  entry: Fixed<Json>
  hash: Fixed<string>
}

interface AuditEntriesTable {
  tenant_id: Fixed<string>
  seq: Fixed<number>
  entry: Fixed<Json>
  hash: Fixed<string>
}

export interface DetectorsTable {
  id: Fixed<string>
  tenant_id: Fixed<string>
  name: string
  metric_key: string
  method_key: string
  params: Json
  scope: Json
  window_minutes: number
  schedule_minutes: number
  enabled: number
  is_system: Fixed<number>
  last_run_at_ms: number | null
  last_status: string | null
  /** A sentence beside the status: progress of learning, the error, what was cut. */
  last_note: string | null
  next_run_at_ms: number
  created_at_ms: Fixed<number>
  /** Counts changes a client made; the ETag. */
  revision: number
  /** Counts what people did to it beside its definition: verdicts and mutes. */
  tuning_revision: Generated<number>
}

export interface AnomaliesTable extends LaterActorColumns<'verdict_by'> {
  id: Fixed<string>
  tenant_id: Fixed<string>
  detector_id: Fixed<string>
  /** What was evaluated: `{"service":"checkout"}`; telemetry, so an erasure visits it. */
  group_key: Fixed<string>
  metric_key: Fixed<string>
  /** Signal the values came from. */
  signal: Fixed<string>
  started_at_ns: Fixed<string>
  ended_at_ns: string | null
  /** Last bucket the values were read from, exclusive: with `started_at_ns` the time an erasure compares. */
  seen_until_ns: string
  peak_at_ns: string
  /** Null where the anomaly is that nothing came. */
  value: number | null
  expected: number | null
  lower: number | null
  upper: number | null
  score: number
  reason: string
  /** Where the window began that band and score were computed from; null where nothing of them is left. */
  read_from_ns: string | null
  /** Stretches of that window that were erased or hidden already, and so not read: pairs of instants. */
  unread_ns: Json | null
  created_at_ms: Fixed<number>
  updated_at_ms: number
  /** 1 while all of it lies inside mutes, so that nobody was told. */
  muted: Generated<number>
  /** How many times wider than its own the edge was, by feedback; null where it was not. */
  edge_factor: number | null
  /** What a person said of it: `not_an_anomaly` or `real`; null where nobody did. */
  verdict: string | null
  /** Free text about telemetry, and so removed with it. */
  verdict_note: string | null
  verdict_at_ms: number | null
  /**
   * `<revision>.<tuning_revision>` of its detector in the run that wrote it last; null where that is unknown.
   */
  judged_by: string | null
}

/**
 * What an anomaly that a legal hold keeps said before it was changed. Telemetry, so an erasure visits it;
 * kept no longer than a hold covers the anomaly.
 */
interface HeldAnomalyVersionsTable extends ActorColumns<'replaced_by'> {
  anomaly_id: Fixed<string>
  /** From 1. */
  version: Fixed<number>
  tenant_id: Fixed<string>
  detector_id: Fixed<string>
  /** Ids of the holds that covered the anomaly then. */
  holds: Fixed<Json>
  /** The whole row of `anomalies`. */
  record: Fixed<Json>
  replaced_at_ms: Fixed<number>
}

/** When detectors are not to alarm. Settings, as a scope is: names of series as people typed them. */
export interface DetectorMutesTable extends ActorColumns<'created_by'> {
  id: Fixed<string>
  tenant_id: Fixed<string>
  /** Null for all detectors of the organisation. */
  detector_id: Fixed<string | null>
  /** Labels a series must have; null for every series. */
  group_key: Fixed<Json | null>
  from_ns: Fixed<string | null>
  until_ns: Fixed<string | null>
  /** Days, times and time zone; null where the mute does not recur. */
  weekly: Fixed<Json | null>
  note: Fixed<string | null>
  created_at_ms: Fixed<number>
}

/** What the operator allows an organisation to send. Null is the default of the settings, 0 is no limit. */
interface IngestQuotasTable {
  tenant_id: Fixed<string>
  rows_per_second: number | null
  bytes_per_day: number | null
}

/** Counts of what an organisation sent on one UTC day; no telemetry. */
interface IngestUsageTable {
  tenant_id: Fixed<string>
  /** `2026-11-21`. */
  day: Fixed<string>
  bytes: number
  rows_accepted: number
  rows_rejected: number
  requests_refused: number
}

interface LeasesTable {
  name: Fixed<string>
  holder: string
  until_ms: number
}

interface InstanceTable {
  key: Fixed<string>
  value: string
}

export interface Database {
  organisations: OrganisationsTable
  access_tokens: AccessTokensTable
  deletion_requests: DeletionRequestsTable
  deletion_steps: DeletionStepsTable
  deletion_previews: DeletionPreviewsTable
  deletion_policies: DeletionPoliciesTable
  legal_holds: LegalHoldsTable
  retention_policies: RetentionPoliciesTable
  retention_changes: RetentionChangesTable
  signing_keys: SigningKeysTable
  certificates: CertificatesTable
  backups: BackupsTable
  erasure_backups: ErasureBackupsTable
  ledger_entries: LedgerEntriesTable
  audit_entries: AuditEntriesTable
  detectors: DetectorsTable
  anomalies: AnomaliesTable
  held_anomaly_versions: HeldAnomalyVersionsTable
  ingest_quotas: IngestQuotasTable
  ingest_usage: IngestUsageTable
  detector_mutes: DetectorMutesTable
  leases: LeasesTable
  instance: InstanceTable
}

export type Control = Kysely<Database>
export type ControlTransaction = Transaction<Database>
