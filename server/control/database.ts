// Row types of the control-plane database: organisations, access tokens, detectors, deletions, ledger and
// audit log. Small, transactional, and the same for every dialect. Control-plane instants are milliseconds;
// telemetry instants are nanoseconds as decimal text, because 64-bit SQL integers lose precision as
// JavaScript numbers. Only the columns of `anomalies` and of their kept versions contain telemetry, and
// erasures visit both.

import type { ColumnType, Generated, Kysely, Transaction } from 'kysely'
import type { ActorColumns, LaterActorColumns } from './actor-columns.ts'
import type { Fixed } from './column-types.ts'
import type { SessionsTable, SignInCodesTable } from './session-tables.ts'

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
  /** SHA-256 of the secret, hexadecimal. The secret itself is not stored. */
  secret_hash: Fixed<string>
  created_at_ms: Fixed<number>
  expires_at_ms: Fixed<number | null>
  revoked_at_ms: number | null
  /** The token that created it; null where the operator created it. */
  made_with: Fixed<string | null>
  /**
   * The first token of its line; the token itself where the operator created it; null where that is unknown.
   */
  root_id: Fixed<string | null>
  /** The earliest expiry in its line, including its own; null where nothing in it expires. */
  line_expires_at_ms: Fixed<number | null>
  last_used_at_ms: number | null
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
  /** Hash of the selection; distinguishes a repeated request from a different one with the same key. */
  selection_hash: Fixed<string>
  status: string
  hidden_at_ms: number | null
  removed_at_ms: number | null
  verified_at_ms: number | null
  finished_at_ms: number | null
  attempts: number
  /** Attempts during which the process crashed. */
  crashes: number
  /** When a failed attempt may be retried; null while no retry is planned. */
  retry_at_ms: number | null
  blocked_reason: string | null
  /** Counts found by planning, erasing and verifying. */
  progress: Json
  /** Not carried out before this time; null without a delay. */
  starts_at_ms: Fixed<number | null>
  /** When a request that waits for a second person expires; null where no approval is required. */
  approve_by_ms: number | null
  approved_at_ms: number | null
  /** 1 where late telemetry for the erased time is always refused. */
  refuse_late: Fixed<number>
  /** Rows refused because of `refuse_late`. */
  late_rows: number
  /** Attempts that no longer count towards giving up, because a person has retried the request since. */
  attempts_forgiven: number
  /** 1 where the engine has a mark of the completion; requests completed by older versions have none. */
  has_mark: number
  /** 1 after a restore has brought its telemetry back, until that is erased again. */
  came_back: number
  /**
   * Numbers the requests of all organisations in the order in which they were stored. A clock can be set
   * back; this number cannot.
   */
  seq: ColumnType<number, number | undefined, never>
}

/** Counts of previews that a deletion may name; counts only, no telemetry. */
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
  /** A looser rule that was requested and is not in force yet. */
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

/** A shorter retention of a signal that waits for a second person. */
export interface RetentionChangesTable extends ActorColumns<'requested_by'> {
  tenant_id: Fixed<string>
  signal: Fixed<string>
  /** Shared by the signals of one change. */
  change_id: Fixed<string>
  days: Fixed<number>
  requested_at_ms: Fixed<number>
  approve_by_ms: Fixed<number>
}

interface SigningKeysTable {
  kid: Fixed<string>
  public_jwk: Fixed<Json>
  /** Encrypted: see audit/key-seal.ts. Empty after the key is retired. */
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

/** The register of backups: which ones may have copies of telemetry, and until when. */
export interface BackupsTable extends ActorColumns<'requested_by'> {
  backup_id: Fixed<string>
  folder: string
  status: string
  requested_at_ms: Fixed<number>
  /** Everything committed before this time is in the backup. */
  taken_at_ms: number | null
  expires_at_ms: Fixed<number>
  bytes: number | null
  error: string | null
  removed_at_ms: number | null
  /**
   * 1 where `erasure_backups` says of every completed erasure whether this backup may have the erased
   * telemetry; 0: it may.
   */
  order_known: ColumnType<number, number | undefined, number>
}

/** States of a backup whose folder contains telemetry, or will. */
export const statusesWithTelemetry = ['requested', 'running', 'ready'] as const

/**
 * Pairs of an erasure and a backup that was not taken after it was completed; removed backups have no row.
 */
export interface ErasureBackupsTable {
  request_id: Fixed<string>
  backup_id: Fixed<string>
}

interface DeletionStepsTable {
  request_id: Fixed<string>
  ordinal: Fixed<number>
  /** The store of the step: a telemetry table, or `anomalies`. */
  store: Fixed<string>
  action: string
  partition_id: Fixed<string | null>
  /** The last count: at planning, or by the step itself before it acted. */
  rows: number
  bytes: number
  done_at_ms: number | null
  /** Ids of the legal holds that a step kept when it began, a JSON array; empty once it is done. */
  kept_holds: Generated<string>
}

interface LedgerEntriesTable {
  tenant_id: Fixed<string>
  seq: Fixed<number>
  /** The whole entry in RFC 8785 form, without `hash`. */
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
  /** A sentence with the status: progress of learning, the error, what was left out. */
  last_note: string | null
  next_run_at_ms: number
  created_at_ms: Fixed<number>
  /** Number of changes by clients; the ETag. */
  revision: number
  /** Number of changes by people outside its definition: verdicts and mutes. */
  tuning_revision: Generated<number>
}

export interface AnomaliesTable extends LaterActorColumns<'verdict_by'> {
  id: Fixed<string>
  tenant_id: Fixed<string>
  detector_id: Fixed<string>
  /** The series: `{"service":"checkout"}`; telemetry, so an erasure visits it. */
  group_key: Fixed<string>
  metric_key: Fixed<string>
  /** Signal that the values were computed from. */
  signal: Fixed<string>
  started_at_ns: Fixed<string>
  ended_at_ns: string | null
  /**
   * End of the last bucket that was read, exclusive. An erasure compares the range from `started_at_ns` to
   * here.
   */
  seen_until_ns: string
  peak_at_ns: string
  /** Null where the anomaly is that no data arrived. */
  value: number | null
  expected: number | null
  lower: number | null
  upper: number | null
  score: number
  reason: string
  /** Start of the window that band and score were computed from; null where nothing of them is stored. */
  read_from_ns: string | null
  /** Parts of that window that were already erased or hidden, and so not read: pairs of instants. */
  unread_ns: Json | null
  created_at_ms: Fixed<number>
  updated_at_ms: number
  /** 1 while all of it is inside mutes, so that it did not alarm. */
  muted: Generated<number>
  /** Factor by which feedback moved the edge out; null without feedback. */
  edge_factor: number | null
  /** The verdict of a person: `not_an_anomaly` or `real`; null without one. */
  verdict: string | null
  /** Free text about telemetry, so it is removed with it. */
  verdict_note: string | null
  verdict_at_ms: number | null
  /**
   * `<revision>.<tuning_revision>` of its detector in the run that wrote it last; null where that is unknown.
   */
  judged_by: string | null
}

/**
 * Earlier versions of an anomaly that a legal hold keeps. Telemetry, so an erasure visits them; stored only
 * while a hold covers the anomaly.
 */
interface HeldAnomalyVersionsTable extends ActorColumns<'replaced_by'> {
  anomaly_id: Fixed<string>
  /** Counted from 1. */
  version: Fixed<number>
  tenant_id: Fixed<string>
  detector_id: Fixed<string>
  /** Ids of the holds that covered the anomaly at that time. */
  holds: Fixed<Json>
  /** The whole row of `anomalies`. */
  record: Fixed<Json>
  replaced_at_ms: Fixed<number>
}

/** When detectors don't alarm. Settings, like a scope: names of series as people typed them. */
export interface DetectorMutesTable extends ActorColumns<'created_by'> {
  id: Fixed<string>
  tenant_id: Fixed<string>
  /** Null for all detectors of the organisation. */
  detector_id: Fixed<string | null>
  /** Labels that a series must have; null for every series. */
  group_key: Fixed<Json | null>
  from_ns: Fixed<string | null>
  until_ns: Fixed<string | null>
  /** Days, times and time zone; null where the mute does not recur. */
  weekly: Fixed<Json | null>
  note: Fixed<string | null>
  created_at_ms: Fixed<number>
}

/** Limits that the operator sets for an organisation. Null is the default of the settings, 0 is no limit. */
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

/** The mark of a move to or from another database; see move-mark.ts. */
interface ControlMovesTable {
  state: Fixed<string>
  other: Fixed<string>
  installation: Fixed<string>
}

export interface Database {
  organisations: OrganisationsTable
  access_tokens: AccessTokensTable
  sessions: SessionsTable
  sign_in_codes: SignInCodesTable
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
  control_moves: ControlMovesTable
}

export type Control = Kysely<Database>
export type ControlTransaction = Transaction<Database>
