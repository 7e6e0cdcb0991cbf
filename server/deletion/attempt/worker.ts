// The loop that moves requests without a person: it starts those that are due, expires those that were not
// approved in time, and continues those that a released hold had stopped. At the start of the service it
// shows every request as it is stored, and hides what a restore from an older copy has brought back, before
// anything can be read.

import { ErasedBytesKept } from '../../control/erased-flush.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError, storageRetrySeconds } from '../../core/app-error.ts'
import { compareStarts } from '../../core/time-range.ts'
import { onBehalfOf, withGrowingTimeouts } from '../../telemetry/engine.ts'
import { underLease } from '../../worker/lease.ts'
import { queuesOf } from '../requests/queue.ts'
import type { StoredDeletion } from '../requests/request.ts'
import { includesSelection } from '../requests/selection.ts'
import { hidingStatuses, workingStatuses } from '../requests/states.ts'
import { deletionActor } from '../requests/system-actors.ts'
import { type AttemptDeps, Attempts } from './attempt.ts'
import { RestoreGuard, type RestoreGuardDeps } from './restore-guard.ts'
import { carryOutDue, usualPlaces } from './scheduler.ts'
import { SwapRecovery } from './swap-recovery.ts'

export interface DeletionWorkerDeps extends Omit<AttemptDeps, 'swapRecovery'>, RestoreGuardDeps {
  /**
   * Returns the time that delayed requests start by; null while the clock is in doubt, so that nobody loses
   * the time to cancel.
   */
  readonly trustedNowMs: () => Promise<number | null>
  /**
   * How many requests are carried out at once, each in another placement, however new they are; absent:
   * {@link usualPlaces}. With 1 nothing else is done during an attempt either, so a test that pauses it sees
   * one order of events.
   */
  readonly attemptsAtOnce?: number
}

/** Pause between two rounds while something that a restore brought back can't be erased, milliseconds. */
const guardPauseMs = 1000

export class DeletionWorker {
  readonly #deps: DeletionWorkerDeps
  readonly #attempts: Attempts
  readonly #guard: RestoreGuard
  readonly #swapRecovery: SwapRecovery
  #asked = Promise.withResolvers<void>()
  /** Whether a request may have been completed without its line in the journal. */
  #isJournalBehind = false

  constructor(deps: DeletionWorkerDeps) {
    this.#deps = deps
    this.#guard = new RestoreGuard(deps)
    this.#swapRecovery = new SwapRecovery({ ...deps, engine: withGrowingTimeouts(deps.engine, deps.logger) })
    this.#attempts = new Attempts({ ...deps, swapRecovery: this.#swapRecovery })
  }

  /**
   * Shows every request as it is stored; nothing may be read or written before it resolves. A request whose
   * attempt was ended by the end of the process is moved to `incomplete`, and the crash is counted once.
   */
  async restore(): Promise<void> {
    const { completionMarks, requests, requestStore, visibility } = this.#deps
    await completionMarks.prepare()
    await this.#swapRecovery.run()
    for (const request of await requests.inStatus(hidingStatuses)) {
      await visibility.restore(request)
      const wasAtWork = request.status === 'running' || request.status === 'verifying'
      // Without an attempt since its creation or its last retry, the process did not end during one.
      if (!wasAtWork || request.attempts <= request.attemptsForgiven) continue
      const reason = 'The process ended while this erasure was in progress'
      const changes = { crashes: request.crashes + 1, blockedReason: reason, retryAtMs: null }
      await requestStore.move(request, 'interrupt', { actor: deletionActor, facts: { reason } }, changes)
    }
    const completed = await requests.completed()
    // In order of time, which is quick for the gate, also where there are a hundred thousand.
    const inOrder = completed.toSorted((a, b) => compareStarts(a.range.startNs, b.range.startNs))
    for (const request of inOrder) await visibility.restore(request)
    await this.#guard.hideWhatCameBack(completed)
  }

  /**
   * Erases again what a restore has brought back; the service must not be ready before it resolves. Tries
   * until everything is erased, held or given up, or `signal` aborts. The selections stay hidden until they
   * are erased.
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

  /**
   * One pass over all requests that can move without a person. `beside` is work that is repeated during the
   * pass and needs no attempt to end.
   */
  async round(signal: AbortSignal, beside: readonly (() => Promise<void>)[] = []): Promise<void> {
    const { attemptsAtOnce, clock, findPlace, logger } = this.#deps
    const places =
      attemptsAtOnce === undefined
        ? usualPlaces
        : { all: attemptsAtOnce, new: attemptsAtOnce, newBesideBusy: attemptsAtOnce }
    const isBeside = places.all > 1
    const openClosed = () => this.#openClosed(signal)
    if (!isBeside) {
      await this.#moveWaiting()
      await openClosed()
    }
    await carryOutDue(
      {
        queues: async () => {
          if (isBeside) await this.#moveWaiting()
          return this.#due()
        },
        placementOf: async (tenantId) => (await findPlace(tenantId))?.placement ?? null,
        workOff: (request) => this.#workOff(request, signal),
        beside: isBeside ? [openClosed, ...beside] : [],
        woken: () => this.#asked.promise,
        clock,
        logger,
        places,
      },
      signal,
    )
    if (!isBeside) for (const work of beside) await work()
  }

  async #due(): Promise<StoredDeletion[][]> {
    const { clock, requests, trustedNowMs } = this.#deps
    const waiting = await requests.inStatus(['scheduled', ...workingStatuses])
    return queuesOf(waiting, clock.nowMs(), await trustedNowMs())
  }

  /**
   * Moves requests that only wait for a date or for the release of a hold. Safe beside attempts: they are in
   * states in which a request has no attempt, and each move is a compare-and-set.
   */
  async #moveWaiting(): Promise<void> {
    if (await this.#deps.requestStore.settleDoubts()) this.#isJournalBehind = true
    await this.#completeJournal()
    await this.#expireUnanswered()
    await this.#releaseHeld()
  }

  /** A completion without an attempt is journalled after it is stored, and the journal may fail. */
  async #completeJournal(): Promise<void> {
    if (!this.#isJournalBehind) return
    // Cleared before, because another completion may fail meanwhile.
    this.#isJournalBehind = false
    try {
      await this.#guard.completeJournal()
    } catch (err) {
      this.#isJournalBehind = true
      this.#deps.logger.error({ err }, 'the journal may lack a completed erasure; it is tried again')
    }
  }

  async #completeIfClean(request: StoredDeletion, erasedBy: string | null): Promise<void> {
    try {
      await this.#attempts.completeIfClean(request, erasedBy)
    } catch (error) {
      this.#isJournalBehind = true
      throw error
    }
  }

  /**
   * Makes the promised swaps that keep placements closed: a closed placement refuses telemetry of all its
   * organisations. Where an attempt is in progress it has closed the placement itself, or will fail on it.
   */
  async #openClosed(signal: AbortSignal): Promise<void> {
    const { gate, locks } = this.#deps
    for (const placement of gate.closedPlacements()) {
      if (signal.aborted || locks.attempts.isTaken(placement)) continue
      // Under the lock of attempts, because an attempt that begins must not find its side tables removed.
      const open = async () => {
        if (gate.isClosed(placement)) await this.#swapRecovery.run(placement)
      }
      await underLease(signal, (lease) => locks.attempts.exclusively([placement], open, lease))
    }
  }

  /** Notifies a round in progress that a request was created or moved. */
  wake(): void {
    this.#asked.resolve()
    this.#asked = Promise.withResolvers()
  }

  /**
   * Counts again what a request selects, and completes a failed or incomplete request of which nothing is
   * left. It never takes a completion back, because what arrives afterwards is new. `signal` aborts when
   * nobody waits for the result.
   */
  async verifyAgain(request: StoredDeletion, requester: Actor, signal?: AbortSignal) {
    const share = { tenantId: request.tenantId, kind: 'asked', signal } as const
    const found = await this.#attempts.readBack(request, onBehalfOf(this.#deps.engine, share))
    await this.#deps.requestStore.recordReadBack(request, requester, found.rowsLeft)
    const mayComplete = request.status === 'failed' || request.status === 'incomplete'
    if (mayComplete && found.isClean && found.heldBy.length === 0) {
      await this.#completeIfClean(request, null).catch(refuseKept)
    }
    return found
  }

  /** Carries out a request. Returns whether its organisation may continue with the next one. */
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
   * Completes earlier requests whose selection the completed one includes: they only need a read-back. One
   * that still waits for approval is cancelled, since nothing is left to approve; and so is one that would
   * need it by now to refuse late telemetry (`RequestStore.move`).
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
        await requestStore.move(request, 'cancel', {
          actor: deletionActor,
          facts: { superseded_by: wide.requestId },
        })
      } else await this.#completeIfClean(request, wide.requestId)
    }
  }

  async #expireUnanswered(): Promise<void> {
    const { clock, requests, requestStore } = this.#deps
    for (const request of await requests.inStatus(['awaiting_approval'])) {
      if ((request.approveByMs ?? Number.POSITIVE_INFINITY) > clock.nowMs()) continue
      await requestStore.move(request, 'expire', {
        actor: deletionActor,
        facts: { reason: 'Nobody approved it in time' },
      })
    }
  }

  /**
   * Continues a request as soon as one of the holds that stopped it is released; the others stop it again.
   */
  async #releaseHeld(): Promise<void> {
    const { activeHolds, requests, requestStore } = this.#deps
    const held = Map.groupBy(await requests.inStatus(['held']), ({ tenantId }) => tenantId)
    for (const [tenantId, own] of held) {
      const active = new Set((await activeHolds(tenantId)).map(({ holdId }) => holdId))
      for (const request of own) {
        const released = request.progress.held_by.filter((holdId) => !active.has(holdId))
        if (released.length === 0 && request.progress.held_by.length > 0) continue
        const by = { actor: deletionActor, facts: { released }, isPersonal: true }
        await requestStore.move(request, 'release', by, { blockedReason: null, retryAtMs: null })
      }
    }
  }
}

/** Throws the refusal for a person who waits while erased bytes can't be removed from the disk. */
function refuseKept(error: unknown): never {
  if (!(error instanceof ErasedBytesKept)) throw error
  throw new AppError('overloaded', {
    sentence: `No row is left, but erased bytes are still on the disk. ${error.message}; repeat after Retry-After.`,
    retryAfterSeconds: storageRetrySeconds,
    cause: error,
  })
}
