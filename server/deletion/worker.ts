// Carries requests out, one at a time, oldest first: drain, plan, erase, read back. A request is hidden and fenced
// from the moment it is accepted until it is verified: what can't be seen must not be acknowledged either, or it
// would be erased with the next attempt. Whatever goes wrong leaves the request in a state that says so, hidden,
// and tried again; nothing here completes a request except a read-back of zero.

import type { FastifyBaseLogger } from 'fastify'
import { type Clock, instantText } from '../core/clock.ts'
import type { TelemetryGate } from '../telemetry/gate.ts'
import { EngineError, type TelemetryEngine, type TenantPlace } from '../telemetry/telemetry.ts'
import {
  attemptsMax,
  crashesMax,
  type DeletionSelection,
  erasedTime,
  hidingStatuses,
  includesSelection,
  retryDelayMaxMs,
  retryDelayMs,
  workingStatuses,
} from './deletion.ts'
import type { StoredDeletion } from './deletion-record.ts'
import {
  ErasureError,
  ErasureStopped,
  erasePartition,
  type Failpoint,
  settleSideTables,
  waitUntilRemoved,
} from './eraser.ts'
import type { DeletionLedger, MoveChanges } from './ledger.ts'
import { type PlannedStep, planErasure } from './planner.ts'
import { progressOf, type StepStore, type StoredStep } from './steps.ts'
import { type CountAnomalies, readBack } from './verifier.ts'

export interface DeletionWorkerDeps {
  readonly ledger: DeletionLedger
  readonly steps: StepStore
  readonly engine: TelemetryEngine
  readonly gate: TelemetryGate
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error' | 'info'>
  readonly findPlace: (tenantId: string) => Promise<TenantPlace | null>
  /** Anomalies are derived from telemetry and live in the control plane; these reach them. */
  readonly countAnomalies: CountAnomalies
  readonly removeAnomalies: (tenantId: string, selection: DeletionSelection) => Promise<number>
  /** Makes removed control-plane rows leave the disk. */
  readonly flushControl: () => Promise<void>
  readonly failpoint: Failpoint
}

/** Ledger entries of moves that nobody asked for name this actor. */
const actor = 'system:deletion'

const anomaliesStore = 'anomalies'

/** Ten seconds of trying to empty the control plane's log before the attempt counts as failed. */
const flushAttempts = 100
const flushPauseMs = 100

export class DeletionWorker {
  readonly #deps: DeletionWorkerDeps

  constructor(deps: DeletionWorkerDeps) {
    this.#deps = deps
  }

  /**
   * Rebuilds what is hidden, fenced and erased from the control plane; the service must not be ready before.
   * A request whose attempt was ended by the end of the process is moved on, and the crash is counted, once.
   */
  async restore(): Promise<void> {
    const { gate, ledger, clock } = this.#deps
    await this.#settle()
    for (const request of await ledger.inStatus(hidingStatuses)) {
      this.hide(request)
      const wasAtWork = request.status === 'running' || request.status === 'verifying'
      if (!wasAtWork || request.attempts === 0) continue
      const reason = 'The process ended while this erasure was at work'
      const changes = { crashes: request.crashes + 1, blockedReason: reason, retryAtMs: null }
      await ledger.move(request, 'interrupt', { actor, facts: { reason } }, changes)
    }
    for (const request of await ledger.inStatus(['completed'])) {
      const range = erasedTime(request, request.finishedAtMs ?? clock.nowMs())
      gate.markErased(request.tenantId, { ...selectionOf(request), range })
    }
  }

  /** From now on no reader sees the selection, no writer adds to it, and detectors take its time as unknown. */
  hide(request: StoredDeletion): void {
    this.#deps.gate.hide(request.tenantId, selectionOf(request))
    this.#deps.gate.fence(request.tenantId, selectionOf(request))
  }

  unhide(request: StoredDeletion): void {
    this.#deps.gate.unhide(request.tenantId, request.requestId)
    this.#deps.gate.unfence(request.tenantId, request.requestId)
  }

  /** One pass over everything that can move by itself. */
  async round(signal: AbortSignal): Promise<void> {
    const { clock, gate, ledger } = this.#deps
    if (gate.closedPlacements().length > 0) await this.#settle()
    for (const request of await ledger.inStatus(workingStatuses)) {
      if (signal.aborted) return
      const waitMs = (request.retryAtMs ?? 0) - clock.nowMs()
      // A wait longer than any that is ever set means that the clock was set back.
      if (waitMs > 0 && waitMs <= retryDelayMaxMs) continue
      await this.#attempt(request, signal)
    }
    await this.#completeGivenUp()
  }

  /** A swap that can't be made keeps its own placement closed and nothing else. */
  async #settle(): Promise<void> {
    for (const [placement, err] of await settleSideTables(this.#deps)) {
      this.#deps.logger.error(
        { err, placement },
        'a promised swap could not be made; its placement stays closed',
      )
    }
  }

  async #attempt(found: StoredDeletion, signal: AbortSignal): Promise<void> {
    const { ledger } = this.#deps
    if (found.crashes > crashesMax || found.attempts >= attemptsMax) return this.#giveUp(found)
    let request: StoredDeletion | null = found
    if (request.status === 'incomplete') request = await ledger.move(request, 'start', { actor })
    if (request === null) return
    request = await ledger.saveProgress(request, {
      attempts: request.attempts + 1,
      retryAtMs: null,
      blockedReason: null,
    })
    try {
      await this.#carryOut(request, signal)
    } catch (error) {
      await this.#interrupted(request.requestId, error)
    }
  }

  async #carryOut(found: StoredDeletion, signal: AbortSignal): Promise<void> {
    const { clock, failpoint, gate, ledger, steps } = this.#deps
    let request = found
    await gate.drain(request.tenantId)
    await failpoint('fenced')
    if (request.status === 'running') {
      await this.#erase(request, signal)
      const progress = progressOf(await steps.list(request.requestId), null)
      const removed = await ledger.move(
        request,
        'removed',
        { actor, facts: { ...progress } },
        {
          removedAtMs: clock.nowMs(),
          progress,
        },
      )
      if (removed === null) return
      request = removed
    }
    await failpoint('before read-back')
    await this.#verify(request)
  }

  async #erase(request: StoredDeletion, signal: AbortSignal): Promise<void> {
    const { clock, failpoint, findPlace, gate, ledger, steps } = this.#deps
    const place = await findPlace(request.tenantId)
    if (place === null) throw new ErasureError('The organisation is unknown')
    await this.#settle()
    if (gate.isClosed(place.placement))
      throw new ErasureError('An unfinished swap keeps the placement closed')
    const undone = await steps.replan(request.requestId, await this.#plan(place, request), clock.nowMs())
    await failpoint('planned')
    for (const step of undone) {
      if (signal.aborted) throw new ErasureStopped()
      await steps.begin(request.requestId, step.ordinal)
      const action = await this.#eraseStep(place, request, step)
      await steps.done(request.requestId, step.ordinal, action, clock.nowMs())
      await ledger.saveProgress(request, { progress: progressOf(await steps.list(request.requestId), null) })
      await failpoint('step recorded')
    }
    // Also where this attempt found no anomaly: one before it may have removed them and ended before this.
    await this.#deps.removeAnomalies(request.tenantId, request)
    await this.#flushControl(signal)
    await waitUntilRemoved(this.#deps, place, request.signals, signal)
    await failpoint('removed from disk')
  }

  /** Another process reading the control plane, such as a backup, can hold its log up for a moment. */
  async #flushControl(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#deps.flushControl()
      } catch (error) {
        if (attempt === flushAttempts) throw error
        if (signal.aborted) throw new ErasureStopped()
        await this.#deps.clock.sleep(flushPauseMs, signal)
      }
    }
  }

  async #plan(place: TenantPlace, request: StoredDeletion): Promise<PlannedStep[]> {
    const plan = await planErasure(this.#deps.engine, place, request)
    const anomalies = await this.#deps.countAnomalies(request.tenantId, request)
    if (anomalies === 0) return plan
    return [...plan, { store: anomaliesStore, partitionId: null, rows: anomalies, bytes: 0 }]
  }

  async #eraseStep(place: TenantPlace, request: StoredDeletion, step: StoredStep): Promise<string> {
    if (step.partitionId !== null) {
      return erasePartition(this.#deps, place, request, { store: step.store, partitionId: step.partitionId })
    }
    await this.#deps.removeAnomalies(request.tenantId, request)
    await this.#deps.failpoint('anomalies removed')
    return 'removed'
  }

  async #verify(request: StoredDeletion): Promise<void> {
    const { clock, countAnomalies, engine, gate, ledger, logger, steps } = this.#deps
    const { rowsLeft, isClean } = await readBack(engine, countAnomalies, request.tenantId, request)
    const progress = progressOf(await steps.list(request.requestId), rowsLeft)
    const nowMs = clock.nowMs()
    if (!isClean) {
      const changes = this.#waitBeforeRetry(request, 'The read-back still found rows', nowMs)
      await ledger.move(
        request,
        'left_over',
        { actor, facts: { left_over: rowsLeft } },
        { ...changes, removedAtMs: null, progress },
      )
      return
    }
    const facts = { ...progress, verified_at: instantText(nowMs) }
    const done = await ledger.move(request, 'verified', { actor, facts }, { verifiedAtMs: nowMs, progress })
    if (done === null) return
    gate.markErased(request.tenantId, { ...selectionOf(request), range: erasedTime(request, nowMs) })
    this.unhide(request)
    logger.info({ requestId: request.requestId, rows: progress.rows_erased }, 'deletion completed')
  }

  /**
   * A request that was given up still hides its selection. When a later one has erased at least as much, the
   * read-back that lets any request complete is all the earlier one was missing.
   */
  async #completeGivenUp(): Promise<void> {
    const { ledger } = this.#deps
    const failed = await ledger.inStatus(['failed'])
    if (failed.length === 0) return
    const completed = await ledger.inStatus(['completed'])
    for (const request of failed) {
      const erasedBy = completed.find(
        (other) =>
          other.tenantId === request.tenantId &&
          other.createdAtMs >= request.createdAtMs &&
          includesSelection(other, request),
      )
      if (erasedBy !== undefined) await this.#completeAs(request, erasedBy)
    }
  }

  async #completeAs(request: StoredDeletion, erasedBy: StoredDeletion): Promise<void> {
    const { clock, countAnomalies, engine, gate, ledger } = this.#deps
    const { rowsLeft, isClean } = await readBack(engine, countAnomalies, request.tenantId, request)
    if (!isClean) return
    const nowMs = clock.nowMs()
    const facts = { erased_by: erasedBy.requestId }
    const progress = { ...request.progress, left_over: rowsLeft }
    const changes = { verifiedAtMs: nowMs, removedAtMs: nowMs, blockedReason: null, progress }
    if ((await ledger.move(request, 'verified', { actor, facts }, changes)) === null) return
    gate.markErased(request.tenantId, { ...selectionOf(request), range: erasedTime(request, nowMs) })
    this.unhide(request)
  }

  async #interrupted(requestId: string, error: unknown): Promise<void> {
    const { clock, ledger, logger } = this.#deps
    logger.error({ err: error, requestId }, 'an attempt to erase was interrupted')
    const request = (await ledger.inStatus(['running', 'verifying'])).find(
      (found) => found.requestId === requestId,
    )
    if (request === undefined) return
    const reason = reasonOf(error)
    if (error instanceof ErasureStopped) {
      const changes = { attempts: request.attempts - 1, blockedReason: reason, retryAtMs: null }
      await ledger.move(request, 'interrupt', { actor, facts: { reason } }, changes)
      return
    }
    await ledger.move(
      request,
      'interrupt',
      { actor, facts: { reason } },
      this.#waitBeforeRetry(request, reason, clock.nowMs()),
    )
  }

  #waitBeforeRetry(request: StoredDeletion, reason: string, nowMs: number): MoveChanges {
    return { blockedReason: reason, retryAtMs: nowMs + retryDelayMs(request.attempts) }
  }

  /** Stays hidden: a person has to look, and until then nobody should see what was to be erased. */
  async #giveUp(request: StoredDeletion): Promise<void> {
    const reason =
      request.crashes > crashesMax
        ? `The process ended ${request.crashes} times while this erasure was at work`
        : `${request.attempts} attempts failed`
    await this.#deps.ledger.move(
      request,
      'give_up',
      { actor, facts: { reason } },
      { blockedReason: reason, retryAtMs: null },
    )
    this.#deps.logger.error({ requestId: request.requestId, reason }, 'a deletion was given up')
  }
}

function selectionOf(request: StoredDeletion) {
  return { id: request.requestId, signals: request.signals, range: request.range }
}

/** A sentence for the request's detail: which kind of thing failed, without SQL or telemetry. */
function reasonOf(error: unknown): string {
  if (error instanceof ErasureError) return error.message
  if (error instanceof EngineError)
    return `The telemetry engine refused a step (code ${error.code ?? 'unknown'})`
  return 'A step failed unexpectedly; the log names the cause'
}
