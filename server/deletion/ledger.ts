// The deletion requests of all organisations and every change of their status. A change is one transaction: the new
// state by compare-and-set, its ledger entry, and an audit entry where people care. Order goes by numbers, not clocks.

import { formatInstant } from '../../contract/instant.ts'
import { hashOf } from '../audit/chain.ts'
import { appendAudit, appendLedger } from '../audit/log.ts'
import { actorValues } from '../control/actor-columns.ts'
import { type Control, type ControlTransaction, holdingStatuses } from '../control/database.ts'
import type { Actor } from '../core/actor.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import {
  findExisting,
  nextSeq,
  refuseBesideAll,
  refuseTooManyDeletions,
  refuseTooManyRefusing,
} from './admission.ts'
import { type FindRelated, secondPersonCause } from './asked-alone.ts'
import {
  approvalWaitMs,
  type DeletionDraft,
  type DeletionEvent,
  type DeletionSelection,
  draftText,
  isFinal,
  transitions,
} from './deletion.ts'
import {
  type DeletionProgress,
  noProgress,
  type RequestRow,
  type StoredDeletion,
  toStored,
} from './deletion-record.ts'
import { requireRow } from './requests.ts'

interface Created {
  readonly row: RequestRow
  /** False where an identical active request, or one with the same Idempotency-Key, was there already. */
  readonly isNew: boolean
}

/** What a move changes beside the status. */
export interface MoveChanges {
  readonly hiddenAtMs?: number
  /** Null where a read-back showed that it had been said too early. */
  readonly removedAtMs?: number | null
  readonly verifiedAtMs?: number | null
  readonly attempts?: number
  readonly crashes?: number
  readonly attemptsForgiven?: number
  readonly retryAtMs?: number | null
  readonly blockedReason?: string | null
  readonly approvedBy?: Actor
  readonly approvedAtMs?: number
  readonly hasMark?: boolean
  readonly cameBack?: boolean
  readonly progress?: DeletionProgress
}

/** A request as it is known from outside the control plane: from the journal beside the backups. */
export interface RecordedErasure extends DeletionSelection {
  readonly requestId: string
  readonly tenantId: string
  readonly requestedBy: Actor
  readonly createdAtMs: number
  readonly refuseLate: boolean
  readonly reason: string | null
  /** Hash of the first audit entry of the organisation that asked; null where nobody wrote it down. */
  readonly foundingHash: string | null
}

export class DeletionLedger {
  readonly #control: Control
  readonly #clock: Clock
  readonly #findRelated: FindRelated

  constructor(control: Control, clock: Clock, findRelated: FindRelated) {
    this.#control = control
    this.#clock = clock
    this.#findRelated = findRelated
  }

  /**
   * Writes the request, its first ledger entry and its audit entry in one transaction. `beforeCommit` hides the
   * selection while the transaction can still fail. Throws `deletion_conflict` while a full erasure of the same
   * signals is at work, InvalidInput where the Idempotency-Key stands for another request.
   */
  async create(
    tenantId: string,
    draft: DeletionDraft,
    by: {
      requester: Actor
      idempotencyKey: string | null
      /** Throws where the reason for the request is gone; reads in the transaction that would write it. */
      precondition?: (trx: ControlTransaction) => Promise<void>
    },
    beforeCommit: (request: StoredDeletion) => void,
  ): Promise<Created> {
    const nowMs = this.#clock.nowMs()
    const selectionHash = hashOf(draftText(draft))
    return this.#control.transaction().execute(async (trx) => {
      const existing = await findExisting(trx, tenantId, by.idempotencyKey, selectionHash)
      if (existing !== null) return { row: existing, isNew: false }
      await by.precondition?.(trx)
      await refuseTooManyDeletions(trx, tenantId)
      if (draft.refuseLate) await refuseTooManyRefusing(trx, tenantId)
      await refuseBesideAll(trx, tenantId, draft)
      const asker = { tenantId, requester: by.requester }
      const approvalCause = await secondPersonCause(trx, this.#findRelated, asker, draft, nowMs)
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
      beforeCommit(request)
      return { row: await requireRow(trx, tenantId, request.requestId), isNew: true }
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
  async takeUp(erasure: RecordedErasure, actor: Actor, doneAtMs: number | null): Promise<StoredDeletion> {
    const nowMs = this.#clock.nowMs()
    const isDone = doneAtMs !== null
    return this.#control.transaction().execute(async (trx) => {
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
      return request
    })
  }

  /** An attempt to erase with a wrong confirmation leaves an audit entry and nothing else. */
  async recordRefusal(tenantId: string, actor: Actor, places: readonly string[]): Promise<void> {
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
   * Moves a request by compare-and-set and records it. Answers the request as it then is, or null where it is
   * no longer in the state it was seen in: the lost race of two movers. `beforeCommit` runs while the move can
   * still fail. `isPersonal` asks for an audit entry although the state isn't final.
   */
  async move(
    seen: StoredDeletion,
    event: DeletionEvent,
    by: { actor: Actor; facts?: Record<string, unknown>; isPersonal?: boolean },
    changes: MoveChanges = {},
    beforeCommit: (request: StoredDeletion) => void = () => {},
  ): Promise<StoredDeletion | null> {
    const to = transitions[seen.status][event]
    if (to === null) throw new Error(`A deletion in state ${seen.status} does not take the event ${event}.`)
    const nowMs = this.#clock.nowMs()
    return this.#control.transaction().execute(async (trx) => {
      const { numUpdatedRows } = await trx
        .updateTable('deletion_requests')
        .set({ ...columnsOf(changes), status: to, finished_at_ms: isFinal(to) ? nowMs : null })
        .where('request_id', '=', seen.requestId)
        .where('status', '=', seen.status)
        // The same state may have been left and entered again since; an attempt in between always counts.
        .where('attempts', '=', seen.attempts)
        .executeTakeFirst()
      if (numUpdatedRows === 0n) return null
      if (to === 'completed') await noteBackups(trx, seen.requestId)
      const request = toStored(await requireRow(trx, seen.tenantId, seen.requestId))
      await this.#record(trx, seen, request, {
        actor: by.actor,
        action: isFinal(to) ? `deletion.${to}` : by.isPersonal ? `deletion.${event}` : null,
        facts: { event, ...by.facts },
      })
      beforeCommit(request)
      return request
    })
  }

  /** Records progress within a state; not a move, so no ledger entry. */
  async saveProgress(seen: StoredDeletion, changes: MoveChanges): Promise<StoredDeletion> {
    await this.#control
      .updateTable('deletion_requests')
      .set(columnsOf(changes))
      .where('request_id', '=', seen.requestId)
      .where('status', '=', seen.status)
      .execute()
    return toStored(await requireRow(this.#control, seen.tenantId, seen.requestId))
  }

  /** Somebody asked for another count of what a deletion erased. */
  async recordReadBack(
    request: StoredDeletion,
    actor: Actor,
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

  /** Adds to the rows that came too late for a range that is refused for good. */
  async countLateRows(counts: ReadonlyMap<string, number>): Promise<void> {
    if (counts.size === 0) return
    await this.#control.transaction().execute(async (trx) => {
      for (const [requestId, rows] of counts) {
        await trx
          .updateTable('deletion_requests')
          .set((columns) => ({ late_rows: columns('late_rows', '+', rows) }))
          .where('request_id', '=', requestId)
          .execute()
      }
    })
  }

  async #record(
    trx: ControlTransaction,
    before: StoredDeletion | null,
    after: StoredDeletion,
    by: { actor: Actor; action: string | null; facts: Record<string, unknown> },
  ): Promise<void> {
    const nowMs = this.#clock.nowMs()
    const shared = { actor: by.actor, facts: { ...selectionFacts(after), ...by.facts } }
    await appendLedger(trx, after.tenantId, nowMs, {
      ...shared,
      request_id: after.requestId,
      from_status: before?.status ?? null,
      to_status: after.status,
    })
    if (by.action === null) return
    await appendAudit(trx, after.tenantId, nowMs, {
      ...shared,
      action: by.action,
      target: after.requestId,
      outcome: after.status === 'failed' ? 'refused' : 'accepted',
    })
  }
}

interface NewRequest extends Omit<RecordedErasure, 'foundingHash'> {
  readonly idempotencyKey: string | null
  readonly selectionHash: string
  readonly note: string | null
  readonly status: 'awaiting_approval' | 'scheduled' | 'running' | 'completed'
  readonly hiddenAtMs: number | null
  readonly startsAtMs: number | null
  readonly approveByMs: number | null
  readonly finishedAtMs?: number | null
  readonly cameBack?: boolean
  /** Made before this control plane knew of it, and forgiven; none where absent. */
  readonly attempts?: number
}

async function insertRequest(trx: ControlTransaction, request: NewRequest): Promise<StoredDeletion> {
  const seq = await nextSeq(trx)
  await trx
    .insertInto('deletion_requests')
    .values({
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
      approved_at_ms: null,
      refuse_late: request.refuseLate ? 1 : 0,
      late_rows: 0,
      attempts_forgiven: request.attempts ?? 0,
      has_mark: request.status === 'completed' ? 1 : 0,
      came_back: request.cameBack === true ? 1 : 0,
      seq,
    })
    .execute()
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

function columnsOf(changes: MoveChanges) {
  return {
    ...(changes.hiddenAtMs !== undefined && { hidden_at_ms: changes.hiddenAtMs }),
    ...(changes.removedAtMs !== undefined && { removed_at_ms: changes.removedAtMs }),
    ...(changes.verifiedAtMs !== undefined && { verified_at_ms: changes.verifiedAtMs }),
    ...(changes.attempts !== undefined && { attempts: changes.attempts }),
    ...(changes.crashes !== undefined && { crashes: changes.crashes }),
    ...(changes.attemptsForgiven !== undefined && { attempts_forgiven: changes.attemptsForgiven }),
    ...(changes.retryAtMs !== undefined && { retry_at_ms: changes.retryAtMs }),
    ...(changes.blockedReason !== undefined && { blocked_reason: changes.blockedReason }),
    ...(changes.approvedBy !== undefined && actorValues('approved_by', changes.approvedBy)),
    ...(changes.approvedAtMs !== undefined && { approved_at_ms: changes.approvedAtMs }),
    ...(changes.hasMark !== undefined && { has_mark: changes.hasMark ? 1 : 0 }),
    ...(changes.cameBack !== undefined && { came_back: changes.cameBack ? 1 : 0 }),
    ...(changes.progress !== undefined && { progress: JSON.stringify(changes.progress) }),
  }
}
