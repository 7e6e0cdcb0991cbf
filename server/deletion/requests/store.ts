// Writes deletion requests. Four methods change a stored request: `move` changes its state, `countAttempt`
// begins an attempt or moves the request because a rule has changed before the first one, `saveProgress`
// changes the attempt in progress, and `countLateRows` a counter. Nothing else updates the table
// (request-table.ts), and an update that changes no row returns null or throws. A move is one transaction:
// the new state by compare-and-set, its entries in ledger and audit log (record-move.ts), and the change of
// visibility (visibility.ts). So none of them can lag behind the others. Each request gets a number, and a
// completion records the backups that exist (backups-with-copy.ts), because clocks don't reliably show the
// order of events.

import { hashOf } from '../../audit/chain.ts'
import { type AuditEvent, appendAudit } from '../../audit/log.ts'
import { lockForActNow } from '../../control/acting.ts'
import type { Control, ControlTransaction } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'
import { transact, transactOnce, tryAgain } from '../../control/transaction.ts'
import { type Actor, actorText } from '../../core/actor.ts'
import { type Clock, instantText } from '../../core/clock.ts'
import { newId } from '../../core/ids.ts'
import { readingOf } from '../../worker/clock-watch.ts'
import {
  findExisting,
  type RequestedBy,
  refuseDuringFullErasure,
  refuseTooManyDeletions,
  refuseTooManyRefusing,
} from './admission.ts'
import { noteBackups } from './backups-with-copy.ts'
import { type DeletionDraft, draftText } from './draft.ts'
import { findRow, requireRow } from './queries.ts'
import { recordMove } from './record-move.ts'
import {
  changedColumns,
  type DeletionProgress,
  type MoveChanges,
  noProgress,
  type RecordedErasure,
  type RequestRow,
  type StoredDeletion,
  toStored,
} from './request.ts'
import { addLateRows, insertRequest, updateSeen } from './request-table.ts'
import {
  approvalWaitMs,
  type DeletionEvent,
  hasBegun,
  hidingStatuses,
  isFinal,
  transitions,
} from './states.ts'
import type { RequestStoreDeps } from './store-deps.ts'
import { deletionActor } from './system-actors.ts'

interface Created {
  /** The new row, or the existing one. */
  readonly row: RequestRow
  /** False where an identical open request, or one with the same Idempotency-Key, existed already. */
  readonly isNew: boolean
}

/** Who moves a request, and what the ledger records of it. */
interface MovedBy {
  readonly actor: Actor
  readonly facts?: Record<string, unknown>
  readonly isPersonal?: boolean
}

/** Returns the changes of a move at the time at which it has the lock of its organisation. */
export type ChangesAt = (nowMs: number) => MoveChanges

type Announce = (after: StoredDeletion) => Promise<void>

export class RequestStore {
  readonly #deps: RequestStoreDeps
  readonly #control: Control
  readonly #clock: Clock

  constructor(deps: RequestStoreDeps) {
    this.#deps = deps
    this.#control = deps.control
    this.#clock = deps.clock
  }

  /**
   * Creates a request with its first ledger entry and its audit entry in one transaction, or returns the
   * existing one. Throws `deletion_conflict` while a full erasure of the same signals is running,
   * `too_many_requests` above the limits of open requests, `overloaded` where others prevent the look at
   * what it would leave, and InvalidInput where the Idempotency-Key belongs to another request. Then nothing
   * is stored or hidden. Every time in the request is from after that look.
   */
  async create(
    tenantId: string,
    draft: DeletionDraft,
    by: {
      requester: Actor
      idempotencyKey: string | null
      /**
       * Throws where the reason for the request is no longer given. Reads in the transaction that writes the
       * request.
       */
      precondition?: (trx: ControlTransaction) => Promise<void>
    },
  ): Promise<Created> {
    const selectionHash = hashOf(draftText(draft))
    const asker = { tenantId, requester: by.requester }
    // Also for a client that disconnects: behind a proxy that gives up early no try would ever succeed.
    const causeIn = await this.#deps.secondPersonTest(asker, draft, readingOf(this.#clock))
    return this.#change(async (trx, announce) => {
      // Not the reading from before the look, which may have waited: nothing was hidden then.
      const nowMs = await lockForActNow(trx, { tenantId, actor: by.requester }, this.#clock)
      const existing = await findExisting(trx, tenantId, by, selectionHash)
      if (existing !== null) return { row: existing, isNew: false }
      await by.precondition?.(trx)
      await refuseTooManyDeletions(trx, this.#deps.findRelated, asker)
      if (draft.refuseLate) await refuseTooManyRefusing(trx, this.#deps.findRelated, asker)
      await refuseDuringFullErasure(trx, tenantId, draft)
      const approvalCause = await causeIn(trx)
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
      await announce(request)
      return { row, isNew: true }
    })
  }

  /**
   * Whether {@link create} would return an existing request. Throws where the Idempotency-Key belongs to
   * another request.
   */
  async isRepeat(tenantId: string, draft: DeletionDraft, by: RequestedBy): Promise<boolean> {
    const existing = await transact(this.#control, async (trx) => {
      await lockForActNow(trx, { tenantId, actor: by.requester }, this.#clock)
      return findExisting(trx, tenantId, by, hashOf(draftText(draft)))
    })
    return existing !== null
  }

  /**
   * Inserts a request from the journal that an older control plane does not have. `doneAtMs` is when this
   * engine completed it: then it is only recorded as completed at that time, without the other clocks, which
   * are not known. Null where it is to be carried out again.
   */
  async takeUp(erasure: RecordedErasure, actor: Actor, doneAtMs: number | null): Promise<StoredDeletion> {
    const isDone = doneAtMs !== null
    return this.#change(async (trx, announce) => {
      await lock(trx, erasure)
      const nowMs = this.#clock.nowMs()
      const request = await insertRequest(trx, {
        ...erasure,
        idempotencyKey: null,
        // A request for the same is answered with this one meanwhile.
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
        approved_by: erasure.approval === null ? null : actorText(erasure.approval.by),
      }
      await this.#record(trx, null, request, { actor, action: 'deletion.taken_up', facts })
      await announce(request)
      return request
    })
  }

  /**
   * Records a deletion that was refused because of a wrong confirmation; writes an audit entry and nothing
   * else.
   */
  async recordRefusal(tenantId: string, actor: Actor, locations: readonly string[]): Promise<void> {
    const facts = { problems: locations }
    const event = { actor, action: 'deletion.requested', target: null, facts }
    await this.#note(tenantId, { ...event, outcome: 'refused' })
  }

  /**
   * Moves a request to the state that `event` leads to and records it. Returns the request after the move, or
   * null where it is no longer as it was seen, because somebody else moved it first. `isPersonal` adds an
   * audit entry where the new state isn't final; final states always have one. Changes that name the time of
   * the move are a function of it. Null too where a completion is refused for lack of approval.
   */
  async move(
    seen: StoredDeletion,
    event: DeletionEvent,
    by: MovedBy,
    changes: MoveChanges | ChangesAt = {},
  ): Promise<StoredDeletion | null> {
    if (event === 'verified' && seen.refuseLate && !isSettled(seen)) {
      return this.#completeUnbegun(seen, by, changes)
    }
    return this.#change((trx, announce) => this.#moveIn(trx, announce, seen, { event, by, changes }))
  }

  /**
   * Completes a request that has made no attempt and refuses late telemetry. That takes effect for good, so
   * the rules are applied again as in {@link countAttempt}. Where it needs approval it is cancelled, since
   * nothing is left to erase; then null.
   */
  async #completeUnbegun(
    seen: StoredDeletion,
    by: MovedBy,
    changes: MoveChanges | ChangesAt,
  ): Promise<StoredDeletion | null> {
    const causeIn = await this.#deps.secondPersonRetest(seen, readingOf(this.#clock))
    return this.#change(async (trx, announce) => {
      await lock(trx, seen)
      const cause = await causeIn(trx)
      if (cause === null) return this.#moveIn(trx, announce, seen, { event: 'verified', by, changes })
      const facts = { approval_cause: cause, superseded_by: by.facts?.erased_by ?? null }
      const withdrawn = { actor: deletionActor, facts }
      await this.#moveIn(trx, announce, seen, { event: 'withdraw', by: withdrawn, changes: {} })
      return null
    })
  }

  async #moveIn(
    trx: ControlTransaction,
    announce: Announce,
    seen: StoredDeletion,
    { by, changes, event }: { event: DeletionEvent; by: MovedBy; changes: MoveChanges | ChangesAt },
  ): Promise<StoredDeletion | null> {
    const to = transitions[seen.status][event]
    if (to === null) throw new Error(`A deletion in state ${seen.status} does not take the event ${event}.`)
    const nowMs = await lockForActNow(trx, { tenantId: seen.tenantId, actor: by.actor }, this.#clock)
    const finishedAtMs = isFinal(to) ? nowMs : null
    const changed = typeof changes === 'function' ? changes(nowMs) : changes
    const columns = { ...changedColumns(changed), status: to, finished_at_ms: finishedAtMs }
    const request = await updateSeen(trx, seen, columns)
    if (request === null) return null
    if (to === 'completed') await noteBackups(trx, seen.requestId)
    await this.#record(trx, seen, request, {
      actor: by.actor,
      action: isFinal(to) ? `deletion.${to}` : by.isPersonal ? `deletion.${event}` : null,
      facts: { event, ...by.facts },
    })
    await announce(request)
    return request
  }

  /** Records the move, and clears what was derived from telemetry that it hides. */
  async #record(
    trx: ControlTransaction,
    before: StoredDeletion | null,
    after: StoredDeletion,
    by: Parameters<typeof recordMove>[4],
  ): Promise<void> {
    await recordMove(trx, this.#clock.nowMs(), before, after, by)
    const wasHidden = before !== null && hidingStatuses.includes(before.status)
    if (!wasHidden && hidingStatuses.includes(after.status)) {
      await this.#deps.clearDerived(trx, after.tenantId)
    }
  }

  /**
   * Finds out whether changes are stored whose commit the database did not answer, and shows their requests
   * as they are. Returns whether there were any. Throws where the database still does not answer; then the
   * rest stays in doubt.
   */
  async settleDoubts(): Promise<boolean> {
    const doubts = this.#deps.visibility.doubts()
    for (const { end, request } of doubts) {
      await this.#change(async (trx, announce) => {
        // The transaction in doubt has this lock until it has ended.
        await lock(trx, request)
        const row = await findRow(trx, request.tenantId, request.requestId)
        if (row !== null) await announce(toStored(row))
      })
      await end()
    }
    return doubts.length > 0
  }

  /**
   * Counts an attempt, before it acts, and how many are forgiven; not a move. Null as {@link move}. Before
   * the first one the rules are applied again, because they may have changed since the creation: a person's
   * request may need approval then, and one of retention may be withdrawn; null too. Throws where a rule
   * can't be applied; then nothing has changed.
   */
  async countAttempt(seen: StoredDeletion, attemptsForgiven = seen.attemptsForgiven) {
    const columns = {
      attempts: seen.attempts + 1,
      attempts_forgiven: attemptsForgiven,
      retry_at_ms: null,
      blocked_reason: null,
    }
    if (isSettled(seen)) return transact(this.#control, (trx) => updateSeen(trx, seen, columns))
    const isOfRetention = seen.requestedBy.kind === 'system'
    const causeIn = isOfRetention
      ? await this.#deps.retentionRetest(seen)
      : await this.#deps.secondPersonRetest(seen, readingOf(this.#clock))
    return this.#change(async (trx, announce) => {
      await lock(trx, seen)
      const cause = await causeIn(trx)
      if (cause === null) return updateSeen(trx, seen, columns)
      if (isOfRetention) {
        const by = { actor: seen.requestedBy, facts: { cause } }
        await this.#moveIn(trx, announce, seen, { event: 'withdraw', by, changes: {} })
      } else await this.#askApproval(trx, announce, seen, cause)
      return null
    })
  }

  /** Its telemetry can be read again: to hide it any longer would be the act of one person. */
  #askApproval(trx: ControlTransaction, announce: Announce, seen: StoredDeletion, cause: string) {
    const approveByMs = this.#clock.nowMs() + approvalWaitMs
    const facts = { approval_cause: cause, approve_by: instantText(approveByMs), hidden_at: null }
    return this.#moveIn(trx, announce, seen, {
      event: 'ask_approval',
      by: { actor: deletionActor, facts, isPersonal: true },
      changes: { hiddenAtMs: null, approveByMs, retryAtMs: null, blockedReason: null, progress: noProgress },
    })
  }

  /** Saves the progress of the attempt in progress; not a move. Throws where the request was moved since. */
  async saveProgress(seen: StoredDeletion, progress: DeletionProgress): Promise<void> {
    const saved = await transact(this.#control, (trx) =>
      updateSeen(trx, seen, { progress: JSON.stringify(progress) }),
    )
    if (saved === null) throw new Error(`${seen.requestId} was moved during an attempt.`)
  }

  /** Writes an audit entry for a read-back that a person asked for. */
  async recordReadBack(
    request: StoredDeletion,
    actor: Actor,
    remaining: Readonly<Record<string, number>>,
  ): Promise<void> {
    const event = { actor, action: 'deletion.read_back', target: request.requestId, facts: { remaining } }
    await this.#note(request.tenantId, { ...event, outcome: 'accepted' })
  }

  /** Records an act that changes nothing else. */
  async #note(tenantId: string, event: AuditEvent): Promise<void> {
    await transact(this.#control, async (trx) => {
      const nowMs = await lockForActNow(trx, { tenantId, actor: event.actor }, this.#clock)
      await appendAudit(trx, tenantId, nowMs, event)
    })
  }

  /**
   * Adds rows that arrived too late for ranges whose late telemetry is refused. Throws where a request is
   * unknown.
   */
  async countLateRows(counts: ReadonlyMap<string, number>): Promise<void> {
    if (counts.size > 0) await transact(this.#control, (trx) => addLateRows(trx, counts))
  }

  /** Runs a transaction that changes the visibility of requests; see {@link Visibility.change}. */
  #change<T>(work: (trx: ControlTransaction, announce: Announce) => Promise<T>): Promise<T> {
    // Around all of it, so that what a try has announced ends with that try.
    return tryAgain(this.#control, () =>
      this.#deps.visibility.change((announce) => transactOnce(this.#control, (trx) => work(trx, announce))),
    )
  }
}

/** Whether the rules about a second person and about retention are no longer applied to the request. */
function isSettled(request: StoredDeletion): boolean {
  return hasBegun(request) || request.approval !== null
}
