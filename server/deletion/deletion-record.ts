// A deletion request at rest and in its other forms: the row of the table, what the room works with, and what goes
// over the wire. Pure.

import type { Selectable } from 'kysely'
import { type DeletionRequest, DeletionStatus, type deletionReasons } from '../../contract/deletion.ts'
import { formatInstant } from '../../contract/instant.ts'
import type { DeletionRequestsTable } from '../control/database.ts'
import { instantText } from '../core/clock.ts'
import type { Signal } from '../telemetry/schema/tables.ts'
import type { DeletionSelection } from './deletion.ts'

/** A request as the rest of the room sees it. */
export interface StoredDeletion extends DeletionSelection {
  readonly requestId: string
  readonly tenantId: string
  readonly status: DeletionStatus
  readonly attempts: number
  readonly crashes: number
  readonly createdAtMs: number
  readonly finishedAtMs: number | null
  readonly retryAtMs: number | null
  readonly progress: DeletionProgress
}

/** Counts of a request's work, over all its attempts. */
export interface DeletionProgress {
  readonly rows_erased: number
  readonly bytes_erased: number
  readonly partitions_dropped: number
  readonly partitions_rewritten: number
  readonly steps_done: number
  readonly steps_total: number
  /** Rows erased per store. */
  readonly stores: Readonly<Record<string, number>>
  /** Rows the last read-back found per store; all zero once verified. */
  readonly left_over: Readonly<Record<string, number>> | null
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
}

/** A row of the table, as it is read. */
export type RequestRow = Selectable<DeletionRequestsTable>

export function readSignals(json: string): Signal[] {
  return JSON.parse(json)
}

function readNs(text: string | null): bigint | null {
  return text === null ? null : BigInt(text)
}

export function toStored(row: RequestRow): StoredDeletion {
  return {
    requestId: row.request_id,
    tenantId: row.tenant_id,
    scope: row.scope === 'all' ? 'all' : 'range',
    signals: readSignals(row.signals),
    range: { startNs: readNs(row.range_start_ns), endNs: readNs(row.range_end_ns) },
    status: DeletionStatus.parse(row.status),
    attempts: row.attempts,
    crashes: row.crashes,
    createdAtMs: row.created_at_ms,
    finishedAtMs: row.finished_at_ms,
    retryAtMs: row.retry_at_ms,
    progress: JSON.parse(row.progress),
  }
}

/** The wire form. */
export function toRequest(row: RequestRow): DeletionRequest {
  const stored = toStored(row)
  const at = (ms: number | null) => (ms === null ? null : instantText(ms))
  return {
    request_id: stored.requestId,
    scope: stored.scope,
    status: stored.status,
    range_start: stored.range.startNs === null ? null : formatInstant(stored.range.startNs),
    range_end: stored.range.endNs === null ? null : formatInstant(stored.range.endNs),
    detail: {
      ...stored.progress,
      attempts: stored.attempts,
      blocked_reason: row.blocked_reason,
      next_attempt_at: at(row.retry_at_ms),
    },
    created_at: instantText(row.created_at_ms),
    finished_at: at(row.finished_at_ms),
    requested_by: row.requested_by,
    signals: [...stored.signals],
    reason: row.reason as (typeof deletionReasons)[number] | null,
    note: row.note,
    hidden_at: at(row.hidden_at_ms),
    removed_at: at(row.removed_at_ms),
    verified_at: at(row.verified_at_ms),
  }
}
