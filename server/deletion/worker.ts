// Moves everything that moves by itself: what may start, in its order; what nobody approved in time; what a hold has
// let go. At the start of the service it puts the gate back as it was, and undoes what a restore from an older copy
// has brought back, before anybody can read.

import { deletionStatuses } from '../../contract/deletion.ts'
import { onBehalfOf } from '../telemetry/engine.ts'
import { type AttemptDeps, Attempts, actor } from './attempt.ts'
import { hasBegun, hidingStatuses, includesSelection, queuesOf, workingStatuses } from './deletion.ts'
import type { RecordedErasure, StoredDeletion } from './deletion-record.ts'
import { carryOutDue, usualAttemptsAtOnce } from './fair-round.ts'
import { SwapRecovery } from './swap-recovery.ts'

export interface DeletionWorkerDeps extends Omit<AttemptDeps, 'swapRecovery'> {
  /** The time to start delayed requests by; null while the clock is in doubt: nobody loses the time to cancel. */
  readonly trustedNowMs: () => Promise<number | null>
  /** Erasures that began at any time, as written down outside the control plane. */
  readonly journalled: () => Promise<readonly RecordedErasure[]>
  /** Hash of the first audit entry of this name; null where it has none. */
  readonly foundingHash: (tenantId: string) => Promise<string | null>
  /** Requests that are carried out at once, each in another placement. */
  readonly attemptsAtOnce?: number
}

/** Ledger entries of what a restore made necessary name this actor. */
const guard = 'system:restore-guard'

/** States that a request can be in without an attempt; where the control plane is older, the journal may know of one. */
const notBegun = [
  'awaiting_approval',
  'scheduled',
  'held',
  'running',
  'cancelled',
  'rejected',
  'expired',
] as const

/** Pause between two rounds of the guard while something can't be erased yet. */
const guardPauseMs = 1000

export class DeletionWorker {
  readonly #deps: DeletionWorkerDeps
  readonly #attempts: Attempts
  readonly #swapRecovery: SwapRecovery
  #asked = Promise.withResolvers<void>()

  constructor(deps: DeletionWorkerDeps) {
    this.#deps = deps
    this.#swapRecovery = new SwapRecovery(deps)
    this.#attempts = new Attempts({ ...deps, swapRecovery: this.#swapRecovery })
  }

  /**
   * Rebuilds what is hidden, fenced and erased from the control plane; nothing may be read or written before.
   * A request whose attempt was ended by the end of the process is moved on, and the crash is counted, once.
   */
  async restore(): Promise<void> {
    const { doneMarks, requests, requestStore, visibility } = this.#deps
    await doneMarks.prepare()
    await this.#swapRecovery.run()
    for (const request of await requests.inStatus(hidingStatuses)) {
      visibility.restore(request)
      const wasAtWork = request.status === 'running' || request.status === 'verifying'
      // Without an attempt since it was asked for, or asked for again, nothing was at work.
      if (!wasAtWork || request.attempts <= request.attemptsForgiven) continue
      const reason = 'The process ended while this erasure was at work'
      const changes = { crashes: request.crashes + 1, blockedReason: reason, retryAtMs: null }
      await requestStore.move(request, 'interrupt', { actor, facts: { reason } }, changes)
    }
    for (const request of await requests.inStatus(['completed'])) visibility.restore(request)
    await this.#hideWhatCameBack()
    await this.#completeJournal()
  }

  /**
   * Erases again what a restore has brought back; the service must not be ready before this resolves. An erasure
   * that can't be carried out is tried until it can, is given up, or `signal` aborts; whatever it comes to, its
   * selection stays hidden.
   */
  async eraseWhatCameBack(signal: AbortSignal): Promise<void> {
    const { clock, logger, requests } = this.#deps
    const isOpen = (request: StoredDeletion) => request.cameBack
    for (;;) {
      const open = (await requests.inStatus(workingStatuses)).filter(isOpen)
      if (open.length === 0 || signal.aborted) return
      logger.info({ requests: open.length }, 'erasing what a restore brought back')
      await this.round(signal)
      if ((await requests.inStatus(workingStatuses)).some(isOpen)) await clock.sleep(guardPauseMs, signal)
    }
  }

  /** One pass over everything that can move by itself. */
  async round(signal: AbortSignal): Promise<void> {
    const {
      attemptsAtOnce = usualAttemptsAtOnce,
      clock,
      findPlace,
      gate,
      logger,
      requests,
      trustedNowMs,
    } = this.#deps
    if (gate.closedPlacements().length > 0) await this.#swapRecovery.run()
    await this.#expireUnanswered()
    await this.#releaseHeld()
    await carryOutDue(
      {
        queues: async () =>
          queuesOf(
            await requests.inStatus(['scheduled', ...workingStatuses]),
            clock.nowMs(),
            await trustedNowMs(),
          ),
        placementOf: async (tenantId) => (await findPlace(tenantId))?.placement ?? null,
        workOff: (request) => this.#workOff(request, signal),
        woken: () => this.#asked.promise,
        clock,
        logger,
        attemptsAtOnce,
      },
      signal,
    )
  }

  /** Something was asked for: a round under way looks for it now. */
  wake(): void {
    this.#asked.resolve()
    this.#asked = Promise.withResolvers()
  }

  /**
   * Counts again what a request selects. A given-up or incomplete request that is found clean is completed by it; no
   * count ever takes a completion back, because what arrives afterwards is new. Somebody waits for it: `signal` aborts when
   * nobody does.
   */
  async verifyAgain(request: StoredDeletion, requester: string, signal?: AbortSignal) {
    const share = { tenantId: request.tenantId, kind: 'asked', signal } as const
    const found = await this.#attempts.readBack(request, onBehalfOf(this.#deps.engine, share))
    await this.#deps.requestStore.recordReadBack(request, requester, found.rowsLeft)
    const mayComplete = request.status === 'failed' || request.status === 'incomplete'
    if (mayComplete && found.isClean && found.heldBy.length === 0) {
      await this.#attempts.completeIfClean(request, null)
    }
    return found
  }

  /** Answers whether its organisation may go on with the next one. */
  async #workOff({ requestId, tenantId }: StoredDeletion, signal: AbortSignal): Promise<boolean> {
    const { requests } = this.#deps
    const request = await requests.stored(tenantId, requestId)
    if (request.status !== 'scheduled' && !workingStatuses.some((status) => status === request.status)) {
      return true
    }
    await this.#attempts.run(request, signal)
    const after = await requests.stored(tenantId, requestId)
    if (after.status === 'completed') await this.#completeCovered(after)
    return after.status !== 'incomplete'
  }

  /**
   * What a completed request has erased for others that were asked for before it: they need only be read back. One
   * that still waits for approval is withdrawn, since there is nothing left to approve.
   */
  async #completeCovered(wide: StoredDeletion): Promise<void> {
    const { requests, requestStore } = this.#deps
    const open = await requests.inStatus(
      ['awaiting_approval', 'scheduled', 'running', 'incomplete', 'failed'],
      wide.tenantId,
    )
    for (const request of open) {
      if (request.seq > wide.seq || !includesSelection(wide, request)) continue
      if (request.status === 'awaiting_approval') {
        await requestStore.move(request, 'cancel', { actor, facts: { superseded_by: wide.requestId } })
      } else await this.#attempts.completeIfClean(request, wide.requestId)
    }
  }

  async #expireUnanswered(): Promise<void> {
    const { clock, requests, requestStore } = this.#deps
    for (const request of await requests.inStatus(['awaiting_approval'])) {
      if ((request.approveByMs ?? Number.POSITIVE_INFINITY) > clock.nowMs()) continue
      await requestStore.move(request, 'expire', { actor, facts: { reason: 'Nobody approved it in time' } })
    }
  }

  /** A request goes on as soon as one of the holds that stopped it is released; it stops again at the others. */
  async #releaseHeld(): Promise<void> {
    const { activeHolds, requests, requestStore } = this.#deps
    for (const request of await requests.inStatus(['held'])) {
      const active = new Set((await activeHolds(request.tenantId)).map(({ holdId }) => holdId))
      const released = request.progress.held_by.filter((holdId) => !active.has(holdId))
      if (released.length === 0 && request.progress.held_by.length > 0) continue
      const by = { actor, facts: { released }, isPersonal: true }
      await requestStore.move(request, 'release', by, { blockedReason: null, retryAtMs: null })
    }
  }

  /**
   * An erasure that the engine was told of and has never heard of: the engine's data is older. One that the journal
   * knows and the ledger doesn't, or doesn't know to have begun: the control plane is older. Both are hidden here.
   */
  async #hideWhatCameBack(): Promise<void> {
    const { doneMarks, journalled, requests } = this.#deps
    const done = await doneMarks.all()
    for (const request of await requests.inStatus(['completed'])) {
      if (!request.hasMark || done.has(request.requestId)) continue
      await this.#reapply(
        request,
        'The telemetry store does not know this erasure; it was restored from an older copy',
      )
    }
    for (const erasure of await journalled()) {
      const known = await requests.find(erasure.requestId)
      if (known === null) await this.#takeUp(erasure, done.get(erasure.requestId) ?? null)
      else if (!hasBegun(known) && notBegun.some((status) => status === known.status)) {
        await this.#reapply(
          known,
          'The journal shows that this erasure had begun; the control plane is older',
        )
      }
    }
  }

  async #reapply(request: StoredDeletion, reason: string): Promise<void> {
    const { clock, requestStore } = this.#deps
    const changes = {
      hiddenAtMs: clock.nowMs(),
      verifiedAtMs: null,
      removedAtMs: null,
      retryAtMs: null,
      crashes: 0,
      // At least one attempt was made, also where this control plane is older than it: it can't be cancelled any more.
      attempts: Math.max(1, request.attempts),
      attemptsForgiven: Math.max(1, request.attempts),
      cameBack: true,
    }
    const by = { actor: guard, facts: { reason }, isPersonal: true }
    await requestStore.move(request, 'reapply', by, changes)
  }

  /**
   * An organisation with another first audit entry is another one that bears the name. Where one of the two isn't
   * known, it counts as the one that asked.
   */
  async #takeUp(erasure: RecordedErasure, doneAtMs: number | null): Promise<void> {
    const { findPlace, foundingHash, logger, requestStore } = this.#deps
    const founded = await foundingHash(erasure.tenantId)
    const isOther = founded !== null && erasure.foundingHash !== null && founded !== erasure.foundingHash
    if ((await findPlace(erasure.tenantId)) === null || isOther) {
      logger.error(
        { requestId: erasure.requestId },
        'the journal has an erasure of an organisation that is unknown here; nothing of it can be stored',
      )
      return
    }
    await requestStore.takeUp(erasure, guard, doneAtMs)
  }

  /** A journal that was lost, or is younger than the requests, is filled up: the next restore relies on it. */
  async #completeJournal(): Promise<void> {
    const { findPlace, journal, journalled, logger, requests } = this.#deps
    const written = new Set((await journalled()).map(({ requestId }) => requestId))
    for (const request of await requests.inStatus(deletionStatuses)) {
      const isToBeKnown = hasBegun(request) || request.status === 'completed'
      if (!isToBeKnown || written.has(request.requestId)) continue
      const place = await findPlace(request.tenantId)
      if (place === null) continue
      logger.error({ requestId: request.requestId }, 'the journal lacked an erasure; it was written again')
      await journal(request, place)
    }
  }
}
