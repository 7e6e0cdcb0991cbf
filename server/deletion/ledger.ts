// The deletion requests of all organisations and every move in their lives. A move is one transaction: the new
// state by compare-and-set, its ledger entry, and for the moves people care about an audit entry. Nothing here
// updates a request any other way, so the ledger can't fall behind the truth.

import type { DeletionRequest, DeletionStatus } from '../../contract/deletion.ts'
import { formatInstant } from '../../contract/instant.ts'
import { hashOf } from '../audit/chain.ts'
import { appendAudit, appendLedger } from '../audit/log.ts'
import type { Control, ControlTransaction } from '../control/database.ts'
import { AppError, InvalidInput, problem } from '../core/app-error.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import {
  type DeletionDraft,
  type DeletionEvent,
  type DeletionSelection,
  hidingStatuses,
  isFinal,
  openRequestsMax,
  selectionText,
  transitions,
  workingStatuses,
} from './deletion.ts'
import {
  type DeletionProgress,
  noProgress,
  type RequestRow,
  readSignals,
  type StoredDeletion,
  toRequest,
  toStored,
} from './deletion-record.ts'

export interface Created {
  readonly request: DeletionRequest
  /** False where an identical active request, or one with the same Idempotency-Key, was there already. */
  readonly isNew: boolean
}

/** What a move changes beside the status. */
export interface MoveChanges {
  readonly hiddenAtMs?: number
  /** Null where a read-back showed that it had been said too early. */
  readonly removedAtMs?: number | null
  readonly verifiedAtMs?: number
  readonly attempts?: number
  readonly crashes?: number
  readonly retryAtMs?: number | null
  readonly blockedReason?: string | null
  readonly progress?: DeletionProgress
}

export class DeletionLedger {
  readonly #control: Control
  readonly #clock: Clock

  constructor(control: Control, clock: Clock) {
    this.#control = control
    this.#clock = clock
  }

  /**
   * Writes the request, its first ledger entry and its audit entry in one transaction. `beforeCommit` hides the
   * selection while the transaction can still fail. Throws `deletion_conflict` while a full erasure of the same
   * signals is at work, InvalidInput where the Idempotency-Key stands for another request.
   */
  async create(
    tenantId: string,
    draft: DeletionDraft,
    by: { requester: string; idempotencyKey: string | null },
    beforeCommit: (request: StoredDeletion) => void,
  ): Promise<Created> {
    const nowMs = this.#clock.nowMs()
    const selectionHash = hashOf(selectionText(draft))
    return this.#control.transaction().execute(async (trx) => {
      const existing = await this.#findExisting(trx, tenantId, by.idempotencyKey, selectionHash)
      if (existing !== null) return { request: toRequest(existing), isNew: false }
      await refuseTooMany(trx, tenantId)
      await refuseBesideAll(trx, tenantId, draft)
      const requestId = newId('del', nowMs)
      await trx
        .insertInto('deletion_requests')
        .values({
          request_id: requestId,
          tenant_id: tenantId,
          scope: draft.scope,
          signals: JSON.stringify(draft.signals),
          range_start_ns: draft.range.startNs?.toString() ?? null,
          range_end_ns: draft.range.endNs?.toString() ?? null,
          reason: draft.reason,
          note: draft.note,
          requested_by: by.requester,
          created_at_ms: nowMs,
          idempotency_key: by.idempotencyKey,
          selection_hash: selectionHash,
          status: 'running',
          hidden_at_ms: nowMs,
          removed_at_ms: null,
          verified_at_ms: null,
          finished_at_ms: null,
          attempts: 0,
          crashes: 0,
          retry_at_ms: null,
          blocked_reason: null,
          progress: JSON.stringify(noProgress),
        })
        .execute()
      const facts = { ...selectionFacts(draft), reason: draft.reason, hidden_at: instantText(nowMs) }
      await appendLedger(trx, tenantId, nowMs, {
        request_id: requestId,
        actor: by.requester,
        from_status: null,
        to_status: 'running',
        facts,
      })
      await appendAudit(trx, tenantId, nowMs, {
        actor: by.requester,
        action: 'deletion.requested',
        target: requestId,
        outcome: 'accepted',
        facts,
      })
      const row = await requireRow(trx, tenantId, requestId)
      beforeCommit(toStored(row))
      return { request: toRequest(row), isNew: true }
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
   * Moves a request by compare-and-set and records it. Answers the request as it then is, or null where it is
   * no longer in the state it was seen in: the lost race of two movers.
   */
  async move(
    seen: StoredDeletion,
    event: DeletionEvent,
    by: { actor: string; facts?: Record<string, unknown> },
    changes: MoveChanges = {},
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
        .executeTakeFirst()
      if (numUpdatedRows === 0n) return null
      const facts = { event, ...selectionFacts(seen), ...by.facts }
      await appendLedger(trx, seen.tenantId, nowMs, {
        request_id: seen.requestId,
        actor: by.actor,
        from_status: seen.status,
        to_status: to,
        facts,
      })
      if (isFinal(to)) {
        await appendAudit(trx, seen.tenantId, nowMs, {
          actor: by.actor,
          action: `deletion.${to}`,
          target: seen.requestId,
          outcome: to === 'failed' ? 'refused' : 'accepted',
          facts,
        })
      }
      return toStored(await requireRow(trx, seen.tenantId, seen.requestId))
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

  /** Throws `not_found` alike for an unknown id and another organisation's. */
  async get(tenantId: string, requestId: string): Promise<DeletionRequest> {
    return toRequest(await requireRow(this.#control, tenantId, requestId))
  }

  /** Newest first, from before `beforeId` where given. */
  async list(
    tenantId: string,
    page: { limit: number; beforeId: string | null; status: DeletionStatus | null },
  ): Promise<DeletionRequest[]> {
    let query = this.#control
      .selectFrom('deletion_requests')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .orderBy('request_id', 'desc')
      .limit(page.limit)
    if (page.beforeId !== null) query = query.where('request_id', '<', page.beforeId)
    if (page.status !== null) query = query.where('status', '=', page.status)
    return (await query.execute()).map(toRequest)
  }

  /** Requests of every organisation in the given states, oldest first. */
  async inStatus(statuses: readonly DeletionStatus[]): Promise<StoredDeletion[]> {
    const rows = await this.#control
      .selectFrom('deletion_requests')
      .selectAll()
      .where('status', 'in', [...statuses])
      .orderBy('created_at_ms')
      .orderBy('request_id')
      .execute()
    return rows.map(toStored)
  }

  async #findExisting(
    trx: ControlTransaction,
    tenantId: string,
    idempotencyKey: string | null,
    selectionHash: string,
  ): Promise<RequestRow | null> {
    const own = trx.selectFrom('deletion_requests').selectAll().where('tenant_id', '=', tenantId)
    if (idempotencyKey !== null) {
      const same = await own.where('idempotency_key', '=', idempotencyKey).executeTakeFirst()
      if (same !== undefined && same.selection_hash !== selectionHash) throw reusedKey(idempotencyKey)
      if (same !== undefined) return same
    }
    const active = await own
      .where('selection_hash', '=', selectionHash)
      .where('status', 'in', ['awaiting_approval', 'scheduled', 'held', ...workingStatuses])
      .executeTakeFirst()
    return active ?? null
  }
}

function reusedKey(key: string): InvalidInput {
  return new InvalidInput([
    problem(
      ['header', 'Idempotency-Key'],
      'value_error',
      'This key was used for another deletion; take a new key for a new request',
      key,
    ),
  ])
}

async function refuseTooMany(trx: ControlTransaction, tenantId: string): Promise<void> {
  const { open } = await trx
    .selectFrom('deletion_requests')
    .select((select) => select.fn.countAll<number>().as('open'))
    .where('tenant_id', '=', tenantId)
    .where('status', 'in', [...hidingStatuses])
    .executeTakeFirstOrThrow()
  if (Number(open) < openRequestsMax) return
  throw new AppError('too_many_requests', {
    sentence: `${open} deletions of your organisation are not finished; wait until some are.`,
    retryAfterSeconds: 5,
  })
}

async function refuseBesideAll(
  trx: ControlTransaction,
  tenantId: string,
  draft: DeletionDraft,
): Promise<void> {
  const running = await trx
    .selectFrom('deletion_requests')
    .select(['request_id', 'signals'])
    .where('tenant_id', '=', tenantId)
    .where('scope', '=', 'all')
    .where('status', 'in', ['running', 'verifying'])
    .execute()
  const conflict = running.find(({ signals }) =>
    readSignals(signals).some((signal) => draft.signals.includes(signal)),
  )
  if (conflict !== undefined) {
    throw new AppError('deletion_conflict', {
      sentence: `The full erasure ${conflict.request_id} is running; nothing is left to select until it ends.`,
    })
  }
}

async function requireRow(
  control: Control | ControlTransaction,
  tenantId: string,
  requestId: string,
): Promise<RequestRow> {
  const row = await control
    .selectFrom('deletion_requests')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('request_id', '=', requestId)
    .executeTakeFirst()
  if (row === undefined) throw new AppError('not_found')
  return row
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
    ...(changes.retryAtMs !== undefined && { retry_at_ms: changes.retryAtMs }),
    ...(changes.blockedReason !== undefined && { blocked_reason: changes.blockedReason }),
    ...(changes.progress !== undefined && { progress: JSON.stringify(changes.progress) }),
  }
}
