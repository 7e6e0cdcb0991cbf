// A deletion request in its forms: the row of the table, the form that the room works with, and the wire
// form. Pure.

import type { Selectable } from 'kysely'
import {
  type DeletionRequest,
  DeletionStatus,
  type deletionReasons,
} from '../../../contract/deletion/requests.ts'
import {
  actorTextIn,
  actorValues,
  laterActorTextIn,
  readActor,
  readLaterActor,
} from '../../control/actor-columns.ts'
import type { DeletionRequestsTable } from '../../control/database.ts'
import type { Actor } from '../../core/actor.ts'
import { instantText } from '../../core/clock.ts'
import type { TimeRange } from '../../core/time-range.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { type DeletionSelection, wireBounds } from './selection.ts'

/** That a second person has approved a request. */
interface Approval {
  readonly by: Actor
  /** Null where it is not known. */
  readonly atMs: number | null
}

/** A request in the form that the room works with. */
export interface StoredDeletion extends DeletionSelection {
  readonly requestId: string
  readonly tenantId: string
  readonly status: DeletionStatus
  readonly attempts: number
  readonly crashes: number
  /** The number of the request in the order of creation. Order is decided by it, never by dates. */
  readonly seq: number
  readonly createdAtMs: number
  readonly finishedAtMs: number | null
  readonly retryAtMs: number | null
  /** The request does not start before this; null where it starts at once. */
  readonly startsAtMs: number | null
  readonly approveByMs: number | null
  readonly requestedBy: Actor
  /** Null where no second person has approved it. */
  readonly approval: Approval | null
  readonly reason: string | null
  readonly refuseLate: boolean
  /**
   * Attempts that don't count against the limit, because a person asked for a retry or the disk was the
   * cause.
   */
  readonly attemptsForgiven: number
  readonly removedAtMs: number | null
  /** Whether the engine has the mark of its completion. */
  readonly hasMark: boolean
  /** Whether a restore has brought back what it had erased. */
  readonly cameBack: boolean
  readonly progress: DeletionProgress
}

/** What a request does to readers and writers depends on this. */
export type ShownDeletion = Pick<
  StoredDeletion,
  'requestId' | 'tenantId' | 'status' | 'signals' | 'range' | 'finishedAtMs' | 'refuseLate'
>

/**
 * A completed request, without what only people and attempts read: an organisation may have hundreds of
 * thousands, and each start reads them all.
 */
export interface CompletedDeletion extends ShownDeletion, Pick<StoredDeletion, 'hasMark' | 'seq'> {
  /** The time of its mark in the engine; that of the completion in any other case. */
  readonly markedAtMs: number | null
}

/** Counts of what all attempts of a request have done. */
export interface DeletionProgress {
  readonly rows_erased: number
  readonly bytes_erased: number
  readonly partitions_dropped: number
  readonly partitions_rewritten: number
  readonly steps_done: number
  readonly steps_total: number
  /** Rows erased per store. */
  readonly stores: Readonly<Record<string, number>>
  /** Rows that the last read-back found per store; all zero once verified. */
  readonly left_over: Readonly<Record<string, number>> | null
  /** Legal holds that keep a part of the selection. */
  readonly held_by: readonly string[]
  /** The wider deletion that erased the selection; null where the request erased it itself. */
  readonly erased_by: string | null
}

export const noProgress: DeletionProgress = {
  rows_erased: 0,
  bytes_erased: 0,
  partitions_dropped: 0,
  partitions_rewritten: 0,
  steps_done: 0,
  steps_total: 0,
  stores: {},
  left_over: null,
  held_by: [],
  erased_by: null,
}

/** A row of the table. */
export type RequestRow = Selectable<DeletionRequestsTable>

export function readSignals(json: string): Signal[] {
  return JSON.parse(json)
}

/** Returns the range of a row; its bounds are nanoseconds as text. */
export function readRange(row: Pick<RequestRow, 'range_start_ns' | 'range_end_ns'>): TimeRange {
  return { startNs: readNs(row.range_start_ns), endNs: readNs(row.range_end_ns) }
}

function readNs(text: string | null): bigint | null {
  return text === null ? null : BigInt(text)
}

/** Columns of {@link toCompleted}. */
export const completedColumns = [
  'request_id',
  'tenant_id',
  'signals',
  'range_start_ns',
  'range_end_ns',
  'verified_at_ms',
  'finished_at_ms',
  'refuse_late',
  'has_mark',
  'seq',
] as const

export function toCompleted(row: Pick<RequestRow, (typeof completedColumns)[number]>): CompletedDeletion {
  return {
    requestId: row.request_id,
    tenantId: row.tenant_id,
    status: 'completed',
    signals: readSignals(row.signals),
    range: readRange(row),
    finishedAtMs: row.finished_at_ms,
    refuseLate: row.refuse_late === 1,
    hasMark: row.has_mark === 1,
    // Where a restart took it up as completed, it was not verified here; it has the time of the mark.
    markedAtMs: row.verified_at_ms ?? row.finished_at_ms,
    seq: row.seq,
  }
}

export function toStored(row: RequestRow): StoredDeletion {
  return {
    requestId: row.request_id,
    tenantId: row.tenant_id,
    scope: row.scope === 'all' ? 'all' : 'range',
    signals: readSignals(row.signals),
    range: readRange(row),
    status: DeletionStatus.parse(row.status),
    attempts: row.attempts,
    crashes: row.crashes,
    seq: row.seq,
    createdAtMs: row.created_at_ms,
    finishedAtMs: row.finished_at_ms,
    retryAtMs: row.retry_at_ms,
    startsAtMs: row.starts_at_ms,
    approveByMs: row.approve_by_ms,
    requestedBy: readActor('requested_by', row),
    approval: readApproval(row),
    reason: row.reason,
    refuseLate: row.refuse_late === 1,
    attemptsForgiven: row.attempts_forgiven,
    removedAtMs: row.removed_at_ms,
    hasMark: row.has_mark === 1,
    cameBack: row.came_back === 1,
    progress: { ...noProgress, ...JSON.parse(row.progress) },
  }
}

function readApproval(row: RequestRow): Approval | null {
  const by = readLaterActor('approved_by', row)
  return by === null ? null : { by, atMs: row.approved_at_ms }
}

/** What a move changes besides the status. */
export interface MoveChanges {
  /** Null where it is visible again, because a second person has to approve it. */
  readonly hiddenAtMs?: number | null
  /** Null takes the time back, because a read-back found something or a restore brought it back. */
  readonly removedAtMs?: number | null
  readonly verifiedAtMs?: number | null
  readonly attempts?: number
  readonly crashes?: number
  readonly attemptsForgiven?: number
  readonly retryAtMs?: number | null
  readonly blockedReason?: string | null
  readonly approveByMs?: number
  readonly approval?: Approval
  readonly hasMark?: boolean
  readonly cameBack?: boolean
  readonly progress?: DeletionProgress
}

/** A request as the erasure journal beside the backups has it. */
export interface RecordedErasure extends DeletionSelection {
  readonly requestId: string
  readonly tenantId: string
  readonly requestedBy: Actor
  readonly createdAtMs: number
  readonly refuseLate: boolean
  readonly reason: string | null
  /** Null where nobody approved it, and in older lines of the journal. */
  readonly approval: Approval | null
  /** Hash of the first audit entry of its organisation; null where the journal has none. */
  readonly foundingHash: string | null
}

/** A request that is about to be inserted. */
export interface NewRequest extends Omit<RecordedErasure, 'approval' | 'foundingHash'> {
  /** None where absent. */
  readonly approval?: Approval | null
  readonly idempotencyKey: string | null
  readonly selectionHash: string
  readonly note: string | null
  readonly status: 'awaiting_approval' | 'scheduled' | 'running' | 'completed'
  readonly hiddenAtMs: number | null
  readonly startsAtMs: number | null
  readonly approveByMs: number | null
  readonly finishedAtMs?: number | null
  readonly cameBack?: boolean
  /** Attempts that an older journal shows; they don't count against the limit. None where absent. */
  readonly attempts?: number
}

/** Returns the row of a new request with this number. */
export function newRow(request: NewRequest, seq: number): RequestRow {
  return {
    request_id: request.requestId,
    tenant_id: request.tenantId,
    scope: request.scope,
    signals: JSON.stringify(request.signals),
    range_start_ns: request.range.startNs?.toString() ?? null,
    range_end_ns: request.range.endNs?.toString() ?? null,
    reason: request.reason,
    note: request.note,
    ...actorValues('requested_by', request.requestedBy),
    created_at_ms: request.createdAtMs,
    idempotency_key: request.idempotencyKey,
    selection_hash: request.selectionHash,
    status: request.status,
    hidden_at_ms: request.hiddenAtMs,
    removed_at_ms: null,
    verified_at_ms: null,
    finished_at_ms: request.finishedAtMs ?? null,
    attempts: request.attempts ?? 0,
    crashes: 0,
    retry_at_ms: null,
    blocked_reason: null,
    progress: JSON.stringify(noProgress),
    starts_at_ms: request.startsAtMs,
    approve_by_ms: request.approveByMs,
    ...approvalValues(request.approval ?? null),
    refuse_late: request.refuseLate ? 1 : 0,
    late_rows: 0,
    attempts_forgiven: request.attempts ?? 0,
    has_mark: request.status === 'completed' ? 1 : 0,
    came_back: request.cameBack === true ? 1 : 0,
    seq,
  }
}

/** Returns the columns that a move changes besides the status. */
export function changedColumns(changes: MoveChanges) {
  return {
    ...(changes.hiddenAtMs !== undefined && { hidden_at_ms: changes.hiddenAtMs }),
    ...(changes.removedAtMs !== undefined && { removed_at_ms: changes.removedAtMs }),
    ...(changes.verifiedAtMs !== undefined && { verified_at_ms: changes.verifiedAtMs }),
    ...(changes.attempts !== undefined && { attempts: changes.attempts }),
    ...(changes.crashes !== undefined && { crashes: changes.crashes }),
    ...(changes.attemptsForgiven !== undefined && { attempts_forgiven: changes.attemptsForgiven }),
    ...(changes.retryAtMs !== undefined && { retry_at_ms: changes.retryAtMs }),
    ...(changes.blockedReason !== undefined && { blocked_reason: changes.blockedReason }),
    ...(changes.approveByMs !== undefined && { approve_by_ms: changes.approveByMs }),
    ...(changes.approval !== undefined && approvalValues(changes.approval)),
    ...(changes.hasMark !== undefined && { has_mark: changes.hasMark ? 1 : 0 }),
    ...(changes.cameBack !== undefined && { came_back: changes.cameBack ? 1 : 0 }),
    ...(changes.progress !== undefined && { progress: JSON.stringify(changes.progress) }),
  }
}

const notApproved = {
  approved_by_kind: null,
  approved_by_id: null,
  approved_by_name: null,
  approved_at_ms: null,
}

function approvalValues(approval: Approval | null) {
  if (approval === null) return notApproved
  return { ...actorValues('approved_by', approval.by), approved_at_ms: approval.atMs }
}

/** What a read-back found. */
export interface ReadBack {
  /** Rows found per store; every selected store is present, also at zero. */
  readonly rowsLeft: Readonly<Record<string, number>>
  readonly isClean: boolean
}

/** A backup that may have a copy of what was stored when it was taken. */
export interface KnownBackup {
  readonly backup_id: string
  /** Null while it is requested and not taken. */
  readonly taken_at_ms: number | null
  readonly expires_at_ms: number
}

/** The known backups, from the register of backups. */
export interface KnownBackups {
  /** All that exist or are requested. */
  readonly all: readonly KnownBackup[]
  /** Those that may have a copy of what this erasure erased, once it is completed. */
  fromBefore(requestId: string): readonly KnownBackup[]
}

/**
 * States in which nothing is erased, now or later: a backup has no copy of anything that readers can't see.
 */
const givenBack: readonly DeletionStatus[] = ['cancelled', 'rejected', 'expired']

/** Returns when the last backup that may have a copy expires; null where there is none. */
function backupsClearByMs(row: RequestRow, backups: KnownBackups): number | null {
  if (givenBack.some((status) => status === row.status)) return null
  const withCopy = row.status === 'completed' ? backups.fromBefore(row.request_id) : backups.all
  return withCopy.length === 0 ? null : Math.max(...withCopy.map(({ expires_at_ms }) => expires_at_ms))
}

/** Returns the wire form. */
export function toRequest(row: RequestRow, backups: KnownBackups): DeletionRequest {
  const stored = toStored(row)
  const at = (ms: number | null) => (ms === null ? null : instantText(ms))
  return {
    request_id: stored.requestId,
    id: stored.requestId,
    scope: stored.scope,
    status: stored.status,
    ...wireBounds(stored.range),
    detail: {
      ...stored.progress,
      attempts: stored.attempts,
      crashes: stored.crashes,
      blocked_reason: row.blocked_reason,
      next_attempt_at: at(row.retry_at_ms),
    },
    created_at: instantText(row.created_at_ms),
    finished_at: at(row.finished_at_ms),
    requested_by: actorTextIn('requested_by', row),
    signals: [...stored.signals],
    reason: row.reason as (typeof deletionReasons)[number] | null,
    note: row.note,
    hidden_at: at(row.hidden_at_ms),
    removed_at: at(row.removed_at_ms),
    verified_at: at(row.verified_at_ms),
    backups_clear_by: at(backupsClearByMs(row, backups)),
    starts_at: at(row.starts_at_ms),
    approve_by: at(row.approve_by_ms),
    approved_by: laterActorTextIn('approved_by', row),
    refuse_late: stored.refuseLate,
    late_rows: row.late_rows,
  }
}
