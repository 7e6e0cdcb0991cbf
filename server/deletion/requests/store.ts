// Every write to the deletion requests of all organisations. Three methods change a stored request: `move` its state, by
// compare-and-set; `countAttempt` and `saveProgress` what is known of the attempt under way; `countLateRows` a counter.
// No other file updates the table, and an update that changes no row returns null or throws. A move is one transaction: the
// new state, its ledger entry, for the moves that people care about an audit entry, and what readers and writers see of it
// (visibility.ts), so none of these can fall behind the others. Requests are counted as they come, and a completion notes
// the backups that exist, because clocks can't be trusted to say what was before what.

import type { Updateable } from 'kysely'
import { formatInstant } from '../../../contract/instant.ts'
import { hashOf } from '../../audit/chain.ts'
import { appendAudit, appendLedger } from '../../audit/log.ts'
import {
  type Control,
  type ControlTransaction,
  type DeletionRequestsTable,
  holdingStatuses,
} from '../../control/database.ts'
import { type Clock, instantText } from '../../core/clock.ts'
import { newId } from '../../core/ids.ts'
import { findExisting, nextSeq, refuseBesideAll, refuseTooMany, refuseTooManyRefusing } from './admission.ts'
import { type DeletionDraft, draftText } from './draft.ts'
import { requireRow } from './queries.ts'
import {
  columnsOf,
  type DeletionProgress,
  type MoveChanges,
  type NewRequest,
  newRow,
  type RecordedErasure,
  type RequestRow,
  type StoredDeletion,
  toStored,
} from './request.ts'
import type { DeletionSelection } from './selection.ts'
import { approvalWaitMs, type DeletionEvent, isFinal, transitions } from './states.ts'
import type { Visibility } from './visibility.ts'

interface Created {
  readonly row: RequestRow
  /** False where an identical active request, or one with the same Idempotency-Key, was there already. */
  readonly isNew: boolean
}

export interface RequestStoreDeps {
  readonly control: Control
  readonly clock: Clock
  readonly visibility: Visibility
  /**
   * Why a new request needs a second person; null where it needs none. Reads in the transaction that writes the request, so
   * that two can't both pass.
   */
  readonly secondPersonCause: (
    trx: ControlTransaction,
    asker: { readonly tenantId: string; readonly requester: string },
    selection: DeletionSelection,
    nowMs: number,
  ) => Promise<string | null>
}

export class RequestStore {
  readonly #control: Control
  readonly #clock: Clock
  readonly #visibility: Visibility
  readonly #secondPersonCause: RequestStoreDeps['secondPersonCause']

  constructor({ clock, control, secondPersonCause, visibility }: RequestStoreDeps) {
    this.#control = control
    this.#clock = clock
    this.#visibility = visibility
    this.#secondPersonCause = secondPersonCause
  }

  /**
   * Writes the request, its first ledger entry and its audit entry in one transaction. Throws `deletion_conflict` while a
   * full erasure of the same signals is at work, InvalidInput where the Idempotency-Key stands for another request.
   */
  async create(
    tenantId: string,
    draft: DeletionDraft,
    by: {
      requester: string
      idempotencyKey: string | null
      /** Throws where the reason for the request is gone; reads in the transaction that would write it. */
      precondition?: (trx: ControlTransaction) => Promise<void>
    },
  ): Promise<Created> {
    const nowMs = this.#clock.nowMs()
    const selectionHash = hashOf(draftText(draft))
    return this.#change(async (trx, announce) => {
      const existing = await findExisting(trx, tenantId, by.idempotencyKey, selectionHash)
      if (existing !== null) return { row: existing, isNew: false }
      await by.precondition?.(trx)
      await refuseTooManyDeletions(trx, tenantId)
      if (draft.refuseLate) await refuseTooManyRefusing(trx, tenantId)
      await refuseBesideAll(trx, tenantId, draft)
      const asker = { tenantId, requester: by.requester }
      const approvalCause = await this.#secondPersonCause(trx, asker, draft, nowMs)
      const waits = approvalCause !== null
      const request = await insertRequest(trx, {
        ...draft,
        requestId: newId('del', nowMs),
        tenantId,
        requestedBy: by.requester,
        idempotencyKey: by.idempotencyKey,
        selectionHash,
        createdAtMs: nowMs,
        status: waits ? 'awaiting_approval' : draft.delayMinutes > 0 ? 'scheduled' : 'running',
        hiddenAtMs: waits ? null : nowMs,
        startsAtMs: draft.delayMinutes > 0 ? nowMs + draft.delayMinutes * 60_000 : null,
        approveByMs: waits ? nowMs + approvalWaitMs : null,
      })
      await this.#record(trx, null, request, {
        actor: by.requester,
        action: 'deletion.requested',
        facts: {
          reason: draft.reason,
          refuse_late: draft.refuseLate,
          hidden_at: waits ? null : instantText(nowMs),
          starts_at: request.startsAtMs === null ? null : instantText(request.startsAtMs),
          approve_by: request.approveByMs === null ? null : instantText(request.approveByMs),
          ...(waits && { approval_cause: approvalCause }),
        },
      })
      const row = await requireRow(trx, tenantId, request.requestId)
      announce(request)
      return { row, isNew: true }
    })
  }

  /** Whether {@link create} would answer a request that is there; throws as it would. */
  async isRepeat(tenantId: string, draft: DeletionDraft, idempotencyKey: string | null): Promise<boolean> {
    const existing = await this.#control
      .transaction()
      .execute((trx) => findExisting(trx, tenantId, idempotencyKey, hashOf(draftText(draft))))
    return existing !== null
  }

  /**
   * Takes up an erasure that began after the control plane's present state was saved. One that this engine has
   * completed already is only put on record, with the time that the engine knows and without the clocks that nobody here
   * can vouch for.
   */
  async takeUp(erasure: RecordedErasure, actor: string, doneAtMs: number | null): Promise<StoredDeletion> {
    const nowMs = this.#clock.nowMs()
    const isDone = doneAtMs !== null
    return this.#change(async (trx, announce) => {
      const request = await insertRequest(trx, {
        ...erasure,
        idempotencyKey: null,
        // Who asks for the same meanwhile is answered with this one.
        selectionHash: hashOf(draftText({ ...erasure, delayMinutes: 0 })),
        note: null,
        status: isDone ? 'completed' : 'running',
        hiddenAtMs: isDone ? null : nowMs,
        startsAtMs: null,
        approveByMs: null,
        cameBack: !isDone,
        attempts: 1,
        finishedAtMs: doneAtMs,
      })
      const facts = {
        taken_up_after_restore: true,
        done_before: isDone,
        requested_at: instantText(erasure.createdAtMs),
      }
      await this.#record(trx, null, request, { actor, action: 'deletion.taken_up', facts })
      announce(request)
      return request
    })
  }

  /** An attempt to erase with a wrong confirmation leaves an audit entry and nothing else. */
  async recordRefusal(tenantId: string, actor: string, places: readonly string[]): Promise<void> {
    await this.#control.transaction().execute((trx) =>
      appendAudit(trx, tenantId, this.#clock.nowMs(), {
        actor,
        action: 'deletion.requested',
        target: null,
        outcome: 'refused',
        facts: { problems: places },
      }),
    )
  }

  /**
   * Moves a request by compare-and-set and records it. Returns the request as it then is, or null where it is no longer
   * in the state it was seen in, because somebody else moved it first. `isPersonal` asks for an audit entry although the
   * state isn't final.
   */
  async move(
    seen: StoredDeletion,
    event: DeletionEvent,
    by: { actor: string; facts?: Record<string, unknown>; isPersonal?: boolean },
    changes: MoveChanges = {},
  ): Promise<StoredDeletion | null> {
    const to = transitions[seen.status][event]
    if (to === null) throw new Error(`A deletion in state ${seen.status} does not take the event ${event}.`)
    const nowMs = this.#clock.nowMs()
    return this.#change(async (trx, announce) => {
      const columns = { ...columnsOf(changes), status: to, finished_at_ms: isFinal(to) ? nowMs : null }
      const request = await updateSeen(trx, seen, columns)
      if (request === null) return null
      if (to === 'completed') await noteBackups(trx, seen.requestId)
      await this.#record(trx, seen, request, {
        actor: by.actor,
        action: isFinal(to) ? `deletion.${to}` : by.isPersonal ? `deletion.${event}` : null,
        facts: { event, ...by.facts },
      })
      announce(request)
      return request
    })
  }

  /** Counts an attempt before it acts; not a move. Returns null as {@link move} does. */
  async countAttempt(seen: StoredDeletion): Promise<StoredDeletion | null> {
    return this.#control
      .transaction()
      .execute((trx) =>
        updateSeen(trx, seen, { attempts: seen.attempts + 1, retry_at_ms: null, blocked_reason: null }),
      )
  }

  /** Records progress of the attempt under way; not a move. Throws where the request has been moved since. */
  async saveProgress(seen: StoredDeletion, progress: DeletionProgress): Promise<void> {
    const saved = await this.#control
      .transaction()
      .execute((trx) => updateSeen(trx, seen, { progress: JSON.stringify(progress) }))
    if (saved === null) throw new Error(`${seen.requestId} was moved while an attempt was at work on it.`)
  }

  /** Somebody asked for another count of what a deletion erased. */
  async recordReadBack(
    request: StoredDeletion,
    actor: string,
    remaining: Readonly<Record<string, number>>,
  ): Promise<void> {
    await this.#control.transaction().execute((trx) =>
      appendAudit(trx, request.tenantId, this.#clock.nowMs(), {
        actor,
        action: 'deletion.read_back',
        target: request.requestId,
        outcome: 'accepted',
        facts: { remaining },
      }),
    )
  }

  /** Adds to the rows that came too late for a range that is refused for good. Throws where a request is unknown. */
  async countLateRows(counts: ReadonlyMap<string, number>): Promise<void> {
    if (counts.size === 0) return
    await this.#control.transaction().execute(async (trx) => {
      for (const [requestId, rows] of counts) {
        const { numUpdatedRows } = await trx
          .updateTable('deletion_requests')
          .set((columns) => ({ late_rows: columns('late_rows', '+', rows) }))
          .where('request_id', '=', requestId)
          .executeTakeFirstOrThrow()
        if (numUpdatedRows !== 1n)
          throw new Error(`Late rows were counted for ${requestId}, which is unknown.`)
      }
    })
  }

  /** Runs a transaction that decides what readers and writers see; see {@link Visibility.change}. */
  #change<T>(
    work: (trx: ControlTransaction, announce: (after: StoredDeletion) => void) => Promise<T>,
  ): Promise<T> {
    return this.#visibility.change((announce) =>
      this.#control.transaction().execute((trx) => work(trx, announce)),
    )
  }

  async #record(
    trx: ControlTransaction,
    before: StoredDeletion | null,
    after: StoredDeletion,
    by: { actor: string; action: string | null; facts: Record<string, unknown> },
  ): Promise<void> {
    const nowMs = this.#clock.nowMs()
    const facts = { ...selectionFacts(after), ...by.facts }
    await appendLedger(trx, after.tenantId, nowMs, {
      request_id: after.requestId,
      actor: by.actor,
      from_status: before?.status ?? null,
      to_status: after.status,
      facts,
    })
    if (by.action === null) return
    await appendAudit(trx, after.tenantId, nowMs, {
      actor: by.actor,
      action: by.action,
      target: after.requestId,
      outcome: after.status === 'failed' ? 'refused' : 'accepted',
      facts,
    })
  }
}

/**
 * Updates a request where it is still as it was seen; returns null otherwise. The same state may have been left and entered
 * again since, and an attempt in between always counts.
 */
async function updateSeen(
  trx: ControlTransaction,
  seen: StoredDeletion,
  columns: Updateable<DeletionRequestsTable>,
): Promise<StoredDeletion | null> {
  const { numUpdatedRows } = await trx
    .updateTable('deletion_requests')
    .set(columns)
    .where('request_id', '=', seen.requestId)
    .where('status', '=', seen.status)
    .where('attempts', '=', seen.attempts)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) return null
  return toStored(await requireRow(trx, seen.tenantId, seen.requestId))
}

async function insertRequest(trx: ControlTransaction, request: NewRequest): Promise<StoredDeletion> {
  const seq = await nextSeq(trx)
  await trx.insertInto('deletion_requests').values(newRow(request, seq)).execute()
  if (request.status === 'completed') await noteBackups(trx, request.requestId)
  return toStored(await requireRow(trx, request.tenantId, request.requestId))
}

/**
 * Every backup that is there, or asked for, when an erasure completes may hold what it erased; one that is asked for
 * afterwards can't. One of an erasure that a restore brought back stays noted.
 */
async function noteBackups(trx: ControlTransaction, requestId: string): Promise<void> {
  await trx
    .insertInto('erasure_backups')
    .columns(['request_id', 'backup_id'])
    .expression((from) =>
      from
        .selectFrom('backups')
        .select(({ val }) => [val(requestId).as('request_id'), 'backup_id'])
        .where('status', 'in', holdingStatuses),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

function selectionFacts({ scope, signals, range }: DeletionSelection): Record<string, unknown> {
  return {
    scope,
    signals: [...signals],
    range_start: range.startNs === null ? null : formatInstant(range.startNs),
    range_end: range.endNs === null ? null : formatInstant(range.endNs),
  }
}
