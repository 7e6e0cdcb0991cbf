// Hides what a restore from an older copy has brought back, so that the next round erases it again. At each
// start it compares three records: the requests in the control plane, the completion marks in the engine, and
// the journal beside the backups. Whatever the newest of them knows as erased must not become readable,
// neither telemetry nor what an older control plane derived from it.

import type { FastifyBaseLogger } from 'fastify'
import { deletionStatuses } from '../../../contract/deletion/requests.ts'
import type { Clock } from '../../core/clock.ts'
import type { DerivedStore } from '../../telemetry/derived-store.ts'
import type { TenantPlace } from '../../telemetry/engine.ts'
import type { RequestQueries } from '../requests/queries.ts'
import type { CompletedDeletion, RecordedErasure, StoredDeletion } from '../requests/request.ts'
import { hasBegun } from '../requests/states.ts'
import type { RequestStore } from '../requests/store.ts'
import { restoreGuardActor } from '../requests/system-actors.ts'
import type { CompletionMark, CompletionMarks } from './completion-marks.ts'
import { flushUntilEmpty } from './removed-parts.ts'

export interface RestoreGuardDeps {
  readonly requestStore: RequestStore
  readonly requests: RequestQueries
  readonly completionMarks: CompletionMarks
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error' | 'info' | 'warn'>
  readonly findPlace: (tenantId: string) => Promise<TenantPlace | null>
  /** Writes to the journal, outside the control plane, that this erasure is about to act. */
  readonly journal: (request: StoredDeletion, place: TenantPlace) => Promise<void>
  /** Returns every erasure in the journal. */
  readonly journalled: () => Promise<readonly RecordedErasure[]>
  /** Returns the hash of the organisation's first audit entry; null where there is none. */
  readonly foundingHash: (tenantId: string) => Promise<string | null>
  readonly derivedStores: readonly DerivedStore[]
  /** Removes the bytes of deleted control-plane rows from the disk. */
  readonly flushControl: (tenantId: string | null) => Promise<void>
}

/**
 * Statuses that a request can have without an attempt. If the journal has an attempt, the control plane is
 * older.
 */
const notBegun = [
  'awaiting_approval',
  'scheduled',
  'held',
  'running',
  'cancelled',
  'rejected',
  'expired',
] as const

const notCompleted = deletionStatuses.filter((status) => status !== 'completed')

/** Every request; of the completed ones, which may be very many, only some columns. */
interface AllRequests {
  readonly completed: readonly CompletedDeletion[]
  readonly others: readonly StoredDeletion[]
}

export class RestoreGuard {
  readonly #deps: RestoreGuardDeps

  constructor(deps: RestoreGuardDeps) {
    this.#deps = deps
  }

  /**
   * Reapplies completed erasures whose completion the engine does not know although it was stored there (the
   * engine's data is older), and those that the journal knows while the control plane has no request, or one
   * that has not begun (the control plane is older). From then on both are hidden and fenced. Then writes
   * what the journal lacks. Nothing else may change requests or the journal meanwhile: both are read once,
   * because an organisation may have completed hundreds of thousands.
   *
   * @param completed every completed request
   */
  async hideWhatCameBack(completed: readonly CompletedDeletion[]): Promise<void> {
    const { journalled, requests } = this.#deps
    const others = await requests.inStatus(notCompleted)
    const erasures = await journalled()
    await this.#hideAll({ completed, others }, erasures)
    await this.#writeLacking({ completed, others }, erasures)
  }

  async #hideAll({ completed, others }: AllRequests, erasures: readonly RecordedErasure[]): Promise<void> {
    const { completionMarks, logger, requests } = this.#deps
    const marks = await completionMarks.all()
    const unconfirmed: CompletionMark[] = []
    for (const { hasMark, markedAtMs, requestId, tenantId } of completed) {
      if (!hasMark) continue
      // A mark of another time may be of a completion that failed, and rows may have arrived since.
      const mark = marks.get(requestId)?.find(({ doneAtMs }) => doneAtMs === markedAtMs)
      if (mark === undefined) {
        await this.#reapply(
          await requests.stored(tenantId, requestId),
          'The telemetry store does not know this erasure; it was restored from an older copy',
        )
      } else if (!mark.isConfirmed) unconfirmed.push(mark)
    }
    await completionMarks.confirm(unconfirmed, logger)
    const isCompleted = new Set(completed.map(({ requestId }) => requestId))
    const byId = new Map(others.map((request) => [request.requestId, request]))
    const unknown: RecordedErasure[] = []
    for (const erasure of erasures) {
      if (isCompleted.has(erasure.requestId)) continue
      const known = byId.get(erasure.requestId)
      if (known === undefined) unknown.push(erasure)
      else if (!hasBegun(known) && notBegun.some((status) => status === known.status)) {
        await this.#reapply(
          known,
          'The journal shows that this erasure had begun; the control plane is older',
          erasure.approval,
        )
      }
    }
    await this.#takeUpAll(unknown, marks)
  }

  /** `approval` is that of the journal; it counts where this control plane has none. */
  async #reapply(
    request: StoredDeletion,
    reason: string,
    approval: RecordedErasure['approval'] = null,
  ): Promise<void> {
    const { clock, requestStore } = this.#deps
    const changes = {
      hiddenAtMs: clock.nowMs(),
      verifiedAtMs: null,
      removedAtMs: null,
      retryAtMs: null,
      crashes: 0,
      // At least one attempt was made, also where this older control plane has none: the request can't be
      // cancelled.
      attempts: Math.max(1, request.attempts),
      attemptsForgiven: Math.max(1, request.attempts),
      cameBack: true,
      ...(request.approval === null && approval !== null && { approval }),
    }
    const by = { actor: restoreGuardActor, facts: { reason }, isPersonal: true }
    if ((await requestStore.move(request, 'reapply', by, changes)) !== null) return
    throw new Error(
      `${request.requestId} was moved while the service started; what it erased may be there again.`,
    )
  }

  /**
   * Records erasures that this control plane does not have. One with a confirmed mark in the engine is
   * recorded as completed, because telemetry that arrived since is new; but all that this control plane
   * derived from the selection is older than the erasure, so it is removed first. Where a legal hold keeps a
   * part of that, the erasure is carried out like one that is not done.
   */
  async #takeUpAll(
    unknown: readonly RecordedErasure[],
    marks: ReadonlyMap<string, readonly CompletionMark[]>,
  ): Promise<void> {
    const { clock, flushControl, requestStore } = this.#deps
    const taken: { erasure: RecordedErasure; doneAtMs: number | null }[] = []
    for (const erasure of unknown) {
      if (!(await this.#isOfHere(erasure))) continue
      const confirmed = marks.get(erasure.requestId)?.filter(({ isConfirmed }) => isConfirmed) ?? []
      const doneAtMs = confirmed.length > 0 ? Math.max(...confirmed.map((mark) => mark.doneAtMs)) : null
      const isDone = doneAtMs !== null && (await this.#removeDerived(erasure))
      taken.push({ erasure, doneAtMs: isDone ? doneAtMs : null })
    }
    // Before any of them is recorded: the next start would no longer look at it.
    const isRemoved = taken.some(({ doneAtMs }) => doneAtMs !== null)
    if (isRemoved) await flushUntilEmpty({ clock, flushControl }, null, new AbortController().signal)
    for (const { doneAtMs, erasure } of taken) await requestStore.takeUp(erasure, restoreGuardActor, doneAtMs)
  }

  /** Returns whether nothing is left of what was derived from the selection. */
  async #removeDerived(erasure: RecordedErasure): Promise<boolean> {
    let left = 0
    for (const store of this.#deps.derivedStores) {
      // Nothing writes yet at the start.
      await store.remove(erasure.tenantId, erasure, (work) => work())
      left += await store.count(erasure.tenantId, erasure, [])
    }
    return left === 0
  }

  /**
   * An organisation of this name with another first audit entry is another organisation. Where one of the two
   * entries isn't known, the organisation counts as the one that asked.
   */
  async #isOfHere({ foundingHash: recorded, requestId, tenantId }: RecordedErasure): Promise<boolean> {
    const { findPlace, foundingHash, logger } = this.#deps
    const founded = await foundingHash(tenantId)
    const isOther = founded !== null && recorded !== null && founded !== recorded
    if ((await findPlace(tenantId)) !== null && !isOther) return true
    logger.error(
      { requestId },
      'the journal has an erasure of an organisation that is unknown here; nothing of it can be stored',
    )
    return false
  }

  /**
   * Writes again what the journal lacks of completed requests. Safe while attempts are in progress: an
   * attempt writes its own line.
   */
  async completeJournal(): Promise<void> {
    const { journalled, requests } = this.#deps
    const erasures = await journalled()
    await this.#writeLacking({ completed: await requests.completed(), others: [] }, erasures)
  }

  /**
   * Writes again what the journal lacks of these requests, because it was lost or began later: the next
   * restore relies on it.
   */
  async #writeLacking(
    { completed, others }: AllRequests,
    erasures: readonly RecordedErasure[],
  ): Promise<void> {
    const { findPlace, journal, logger, requests } = this.#deps
    const written = new Set(erasures.map(({ requestId }) => requestId))
    const lacking = [...completed, ...others.filter(hasBegun)].filter(
      ({ requestId }) => !written.has(requestId),
    )
    for (const { requestId, tenantId } of lacking.sort((a, b) => a.seq - b.seq)) {
      const place = await findPlace(tenantId)
      if (place === null) continue
      logger.error({ requestId }, 'the journal lacked an erasure; it was written again')
      await journal(await requests.stored(tenantId, requestId), place)
    }
  }
}
