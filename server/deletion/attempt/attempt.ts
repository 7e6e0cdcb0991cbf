// One attempt to carry out a request: wait for commits in progress, plan, erase, read back. Whatever fails
// leaves the request hidden, in a state that says so, and to be tried again. Only a read-back of zero
// completes a request. What a legal hold keeps is left out; then the request ends `held` instead of
// completed.

import type { FastifyBaseLogger } from 'fastify'
import { type Clock, instantText } from '../../core/clock.ts'
import type { StorageFault } from '../../core/storage-fault.ts'
import type { DerivedStore, RunAlone } from '../../telemetry/derived-store.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import type { LocalEngineFiles } from '../../telemetry/engine-files.ts'
import type { Fences } from '../../telemetry/fences.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import type { ErasureLocks, PlacementLock } from '../../telemetry/placement-locks.ts'
import type { WeighRows } from '../../telemetry/row-weights.ts'
import { LeaseLost, underLease } from '../../worker/lease.ts'
import { promised } from '../governance/hold-conflicts.ts'
import type { RequestQueries } from '../requests/queries.ts'
import { retryDelayMs } from '../requests/queue.ts'
import type { DeletionProgress, MoveChanges, ReadBack, StoredDeletion } from '../requests/request.ts'
import { keepsWhole } from '../requests/selection.ts'
import { attemptsMax, crashesMax } from '../requests/states.ts'
import type { RequestStore } from '../requests/store.ts'
import { deletionActor } from '../requests/system-actors.ts'
import type { Visibility } from '../requests/visibility.ts'
import { planAttempt } from './attempt-plan.ts'
import type { CompletionMarks } from './completion-marks.ts'
import { type ErasingLimits, type ErasureAction, erasePartitions, type Failpoint } from './eraser.ts'
import { ErasureError, ErasureStopped, reasonOf, waitsForDatabase } from './erasure-error.ts'
import { PartitionQueue } from './partition-queue.ts'
import { type Removal, removalOf, waitUntilErased } from './removed-parts.ts'
import type { StepStore, StoredStep } from './step-store.ts'
import { CopyEngines } from './survivor-copy.ts'
import type { SwapRecovery } from './swap-recovery.ts'
import { UnstoredAttempts } from './unstored-attempts.ts'
import { readBackOutsideHolds } from './verifier.ts'

export interface AttemptDeps extends ErasingLimits {
  readonly requestStore: RequestStore
  readonly requests: RequestQueries
  readonly steps: StepStore
  readonly completionMarks: CompletionMarks
  readonly engine: TelemetryEngine
  /** Null where the engine is on another machine. */
  readonly files: LocalEngineFiles | null
  readonly gate: TelemetryGate
  readonly fences: Fences
  readonly locks: ErasureLocks
  readonly visibility: Visibility
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error' | 'info' | 'warn'>
  readonly findPlace: (tenantId: string) => Promise<TenantPlace | null>
  /** Writes to the journal, outside the control plane, that this erasure is about to act. */
  readonly journal: (request: StoredDeletion, place: TenantPlace) => Promise<void>
  readonly activeHolds: (tenantId: string) => Promise<readonly ActiveHold[]>
  readonly weighRows: WeighRows
  readonly derivedStores: readonly DerivedStore[]
  /** Removes the bytes of deleted control-plane rows from the disk. */
  readonly flushControl: (tenantId: string | null) => Promise<void>
  readonly failpoint: Failpoint
  /** Returns which fault of the disk caused the error; null where the disk is not the cause. */
  readonly faultBehind: (error: unknown) => Promise<StorageFault | null>
  readonly swapRecovery: SwapRecovery
}

/** What an attempt acts with: where, under which lock, and until when. */
interface Acting {
  readonly place: TenantPlace
  readonly lock: PlacementLock
  readonly signal: AbortSignal
}

export class Attempts {
  readonly #deps: AttemptDeps
  readonly #copyEngines: CopyEngines
  readonly #partitions: PartitionQueue
  readonly #unstored = new UnstoredAttempts()

  constructor(deps: AttemptDeps) {
    this.#deps = deps
    this.#copyEngines = new CopyEngines(deps.engine)
    this.#partitions = new PartitionQueue(() => deps.clock.elapsedMs())
  }

  /** Runs an attempt. A failure of the erasure is not thrown; the state of the request shows it. */
  async run(found: StoredDeletion, signal: AbortSignal): Promise<void> {
    const { requestStore } = this.#deps
    const attemptsForgiven = found.attemptsForgiven + (this.#unstored.isLast(found) ? 1 : 0)
    const failed = found.attempts - attemptsForgiven
    if (found.crashes > crashesMax || failed >= attemptsMax) return this.#giveUp(found, failed)
    let request: StoredDeletion | null = found
    // If the end of an attempt could not be stored, the request is still running or verifying; continue from
    // there.
    if (found.status !== 'running' && found.status !== 'verifying') {
      request = await requestStore.move(found, 'start', { actor: deletionActor })
    }
    // Another process or person moved it first, such as by a cancellation.
    if (request === null) return
    const holds = await this.#deps.activeHolds(request.tenantId)
    const wholeHold = holds.find((hold) => keepsWhole(hold, found))
    if (wholeHold !== undefined) {
      // Before the attempt is counted and journalled: nothing has begun, so the request can still be
      // cancelled.
      return this.#hold(request, { ...request.progress, held_by: [wholeHold.holdId] })
    }
    const seen = request
    const counted = await this.#unstored.noting(seen.requestId, seen.attempts + 1, () =>
      requestStore.countAttempt(seen, attemptsForgiven),
    )
    this.#unstored.forget(seen.requestId)
    if (counted === null) return
    try {
      await this.#carryOut(counted, signal)
    } catch (error) {
      // A lock that was waited for was not taken, because the lease was lost meanwhile.
      const isLost = error instanceof LeaseLost
      const end = isLost ? new ErasureStopped({ reason: error }) : error
      await this.#unstored.noting(seen.requestId, counted.attempts, () => this.#interrupted(counted, end))
    }
  }

  /** Counts what the request selects and no hold keeps, and returns which holds keep a part. */
  async readBack(
    request: StoredDeletion,
    engine: TelemetryEngine = this.#deps.engine,
  ): Promise<ReadBack & { readonly heldBy: readonly string[] }> {
    const { activeHolds, derivedStores } = this.#deps
    return readBackOutsideHolds(engine, derivedStores, request, await activeHolds(request.tenantId))
  }

  /**
   * Completes a request without an attempt of its own, where a read-back finds nothing: a wider request
   * erased it, or a person had it verified again. Returns whether it was completed. The request is fenced
   * meanwhile, because rows that arrive between the count and the completion would be neither erased nor new.
   */
  completeIfClean(request: StoredDeletion, erasedBy: string | null): Promise<boolean> {
    return this.#deps.visibility.whileFenced(request, () => this.#completeFenced(request, erasedBy))
  }

  async #completeFenced(request: StoredDeletion, erasedBy: string | null): Promise<boolean> {
    const { clock, fences, findPlace, journal, steps } = this.#deps
    const place = await findPlace(request.tenantId)
    if (place === null) return false
    await fences.drain(request.tenantId, request)
    const { heldBy, isClean, rowsLeft } = await this.readBack(request)
    if (!isClean || heldBy.length > 0) return false
    const { signal } = new AbortController()
    await waitUntilErased(this.#deps, place, removalOf(request), signal)
    // With an empty plan, steps that were acting when their attempt ended are recorded as done.
    await steps.replan(request.requestId, [], clock.nowMs())
    const progress = { ...(await steps.progress(request.requestId, rowsLeft)), erased_by: erasedBy }
    const facts = erasedBy === null ? {} : { erased_by: erasedBy }
    const removedAtMs = request.removedAtMs ?? clock.nowMs()
    const isCompleted = await this.#complete(request, progress, facts, { removedAtMs, retryAtMs: null })
    // No attempt wrote it to the journal, and after a restore an older control plane would not know it. Not
    // earlier: a request in the journal counts as begun, and a failed completion must change nothing.
    if (isCompleted) await journal(request, place)
    return isCompleted
  }

  /**
   * Erases and verifies while no other attempt is in progress in the placement, because side tables are named
   * by placement, and while no backup is copied.
   */
  async #carryOut(request: StoredDeletion, signal: AbortSignal): Promise<void> {
    const place = await this.#deps.findPlace(request.tenantId)
    if (place === null) throw new ErasureError('The organisation is unknown')
    const { attempts } = this.#deps.locks
    await underLease(signal, (lease) =>
      attempts.exclusively([place.placement], (lock) => this.#act(request, { place, lock, signal }), lease),
    )
  }

  async #act(found: StoredDeletion, acting: Acting): Promise<void> {
    const { activeHolds, clock, failpoint, fences, journal, requestStore, steps } = this.#deps
    let request = found
    await journal(request, acting.place)
    await fences.drain(request.tenantId, request)
    await failpoint('fenced')
    if (request.status === 'running') {
      await this.#erase(request, acting)
      const progress = await steps.progress(request.requestId, null)
      const isWhole = (await activeHolds(request.tenantId)).length === 0
      const changes = { removedAtMs: isWhole ? clock.nowMs() : null, progress }
      const removed = await requestStore.move(
        request,
        'removed',
        { actor: deletionActor, facts: { ...progress } },
        changes,
      )
      if (removed === null) return
      request = removed
    }
    await failpoint('before read-back')
    await this.#verify(request)
  }

  async #erase(request: StoredDeletion, acting: Acting): Promise<void> {
    const { lock, place, signal } = acting
    const { clock, failpoint, gate, steps, swapRecovery } = this.#deps
    await swapRecovery.run(place.placement)
    if (gate.isClosed(place.placement))
      throw new ErasureError('An unfinished swap keeps the placement closed')
    const { leftOutside, plan } = await planAttempt(this.#deps, place, request)
    const undone = await steps.replan(request.requestId, plan, clock.nowMs(), leftOutside)
    await failpoint('planned')
    const record = {
      begin: (rows: ReadonlyMap<StoredStep, number>, holds: readonly ActiveHold[]) =>
        steps.begin(request, rows, holds),
      promise: (step: StoredStep, rows: number, holds: readonly ActiveHold[]) =>
        steps.begin(request, new Map([[step, rows]]), holds, promised),
      done: (done: readonly StoredStep[], action: ErasureAction) => this.#recordDone(request, done, action),
    }
    const deps = { ...this.#deps, copyEngines: this.#copyEngines, attempt: lock }
    await this.#partitions.during(request, (turns) =>
      erasePartitions({ ...deps, turns }, place, request, undone.filter(hasPartition), record, signal),
    )
    for (const store of this.#deps.derivedStores) await this.#eraseDerived(request, acting, store, undone)
    await waitUntilErased(this.#deps, place, await this.#removalBy(request, undone), signal)
    await failpoint('removed from disk')
  }

  /**
   * Usually only this attempt has changed tables, those of its steps. An attempt that ended early may have
   * removed rows without waiting for their parts, and a restore brings back parts of before.
   */
  async #removalBy(request: StoredDeletion, steps: readonly StoredStep[]): Promise<Removal> {
    const isFirst = request.attempts === 1 && !request.cameBack
    if (!isFirst || (await this.#deps.requests.hasBegunAnother(request))) return removalOf(request)
    return removalOf(
      request,
      steps.map(({ store }) => store),
    )
  }

  /**
   * Removes what a derived store has of the selection, under the lock of the placement as every step is: a
   * hold that was placed before keeps what it covers. The lock is taken for each transaction, so that
   * commits don't wait for all of them. Also called where no step is planned, because an earlier attempt may
   * have been interrupted after removing a part.
   */
  async #eraseDerived(
    request: StoredDeletion,
    { lock, place }: Acting,
    store: DerivedStore,
    undone: readonly StoredStep[],
  ): Promise<void> {
    const { activeHolds, failpoint, locks, steps } = this.#deps
    const step = undone.find((one) => !hasPartition(one) && one.store === store.name)
    if (step !== undefined) {
      const holds = await activeHolds(request.tenantId)
      // Counted again, because a hold may have been placed since the plan.
      const rows = await store.count(request.tenantId, request, holds)
      await steps.begin(request, new Map([[step, rows]]), holds)
    }
    const alone: RunAlone = (work) => locks.writes.exclusively([place.placement], work, lock.signal)
    await store.remove(request.tenantId, request, alone)
    if (step === undefined) return
    await failpoint(`${store.name} removed`)
    await this.#recordDone(request, [step], 'removed')
    await failpoint('step recorded')
  }

  async #recordDone(
    request: StoredDeletion,
    done: readonly StoredStep[],
    action: ErasureAction | 'removed',
  ): Promise<void> {
    const { clock, requestStore, steps } = this.#deps
    await steps.done(request.requestId, done, action, clock.nowMs())
    await requestStore.saveProgress(request, await steps.progress(request.requestId, null))
  }

  async #verify(request: StoredDeletion): Promise<void> {
    const { clock, logger, requestStore, steps } = this.#deps
    const { heldBy, isClean, rowsLeft } = await this.readBack(request)
    const progress = await steps.progress(request.requestId, rowsLeft, heldBy)
    if (!isClean) {
      const changes = this.#waitBeforeRetry(request, 'The read-back still found rows', clock.nowMs())
      await requestStore.move(
        request,
        'left_over',
        { actor: deletionActor, facts: { left_over: rowsLeft } },
        { ...changes, removedAtMs: null, progress },
      )
      return
    }
    if (heldBy.length > 0) return this.#hold(request, progress)
    // The time of removal is not set yet where there was a hold that turned out to keep nothing.
    const changes = { removedAtMs: request.removedAtMs ?? clock.nowMs() }
    if (await this.#complete(request, progress, { ...progress }, changes)) {
      logger.info({ requestId: request.requestId, rows: progress.rows_erased }, 'deletion completed')
    }
  }

  async #complete(
    request: StoredDeletion,
    progress: DeletionProgress,
    facts: Record<string, unknown>,
    changes: MoveChanges,
  ): Promise<boolean> {
    const { clock, completionMarks, failpoint, logger, requestStore } = this.#deps
    const nowMs = clock.nowMs()
    await completionMarks.mark(request.requestId, nowMs)
    await failpoint('marked done')
    const by = { actor: deletionActor, facts: { ...facts, verified_at: instantText(nowMs) } }
    const all = {
      ...changes,
      verifiedAtMs: nowMs,
      blockedReason: null,
      progress,
      hasMark: true,
      cameBack: false,
    }
    if ((await requestStore.move(request, 'verified', by, all)) === null) return false
    await completionMarks.confirm([{ requestId: request.requestId, doneAtMs: nowMs }], logger)
    return true
  }

  /**
   * Ends the attempt as held. The selection stays hidden, and new telemetry is accepted again, because a hold
   * may last for years.
   */
  async #hold(request: StoredDeletion, progress: DeletionProgress): Promise<void> {
    const blockedReason = `Held by ${progress.held_by.join(', ')}; continues when released`
    const facts = { held_by: progress.held_by, rows_erased: progress.rows_erased }
    // Nothing failed, so attempts from before don't count after the release.
    const changes = { blockedReason, retryAtMs: null, progress, attemptsForgiven: request.attempts }
    await this.#deps.requestStore.move(
      request,
      'hold',
      { actor: deletionActor, facts, isPersonal: true },
      changes,
    )
  }

  async #interrupted(attempted: StoredDeletion, error: unknown): Promise<void> {
    const { clock, findPlace, gate, logger, requests, requestStore, steps } = this.#deps
    const { requestId } = attempted
    logger.error({ err: error, requestId }, 'an attempt to erase was interrupted')
    const request = await requests.stored(attempted.tenantId, requestId)
    if (request.status !== 'running' && request.status !== 'verifying') return
    // A swap that was completed before the failure need not be repeated; one that was not keeps its placement
    // closed. Other placements may have swaps in progress.
    const place = await findPlace(attempted.tenantId)
    if (place !== null) await steps.keptPromises(gate.closedPlacements(), place.placement)
    const isStopped = error instanceof ErasureStopped
    // Where the right to work was lost, steps of another process may be acting.
    if (!isStopped) await steps.interrupted(requestId)
    const fault = isStopped ? null : await this.#deps.faultBehind(error)
    const reason = reasonOf(error, fault)
    const nowMs = clock.nowMs()
    const isForgiven = isStopped || fault !== null || waitsForDatabase(error)
    // A stopped attempt continues at the next start. Otherwise the pause grows, because each try writes to
    // the ledger.
    const forgiven = {
      attemptsForgiven: request.attemptsForgiven + 1,
      blockedReason: reason,
      retryAtMs: isStopped ? null : nowMs + retryDelayMs(request.attempts),
    }
    // The attempt stays counted: the selection may be half erased, so the request can't be cancelled.
    const changes = isForgiven ? forgiven : this.#waitBeforeRetry(request, reason, nowMs)
    await requestStore.move(request, 'interrupt', { actor: deletionActor, facts: { reason } }, changes)
  }

  #waitBeforeRetry(request: StoredDeletion, reason: string, nowMs: number): MoveChanges {
    const attempts = request.attempts - request.attemptsForgiven
    return { blockedReason: reason, retryAtMs: nowMs + retryDelayMs(attempts) }
  }

  /** Gives up. The selection stays hidden until a person has looked at the request. */
  async #giveUp(request: StoredDeletion, failed: number): Promise<void> {
    const reason =
      request.crashes > crashesMax
        ? `The process ended ${request.crashes} times while this erasure was in progress`
        : `${failed} attempts failed`
    await this.#deps.requestStore.move(
      request,
      'give_up',
      { actor: deletionActor, facts: { reason } },
      { blockedReason: reason, retryAtMs: null },
    )
    this.#deps.logger.error({ requestId: request.requestId, reason }, 'a deletion was given up')
  }
}

function hasPartition(step: StoredStep): step is StoredStep & { readonly partitionId: string } {
  return step.partitionId !== null
}
