// Requests the erasures that retention rules call for, once a day each. They are requests like any other: in
// the ledger, read back and certified; only nobody has to approve them. Where nothing is old enough nothing
// is requested, and a request that has not begun is cancelled where a longer rule keeps a part of it. Each
// range between holds is a request of its own, so an organisation with hundreds of holds gets them by turns:
// others don't wait for it, and its people can still request deletions. What was handled is remembered until
// the day ends or the rule changes; a restart forgets it, and then the keys of requests prevent a second one.

import type { FastifyBaseLogger } from 'fastify'
import type { ApprovalRule } from '../../../contract/deletion/governance.ts'
import type { ControlTransaction } from '../../control/database.ts'
import { isSameActor } from '../../core/actor.ts'
import { allTime } from '../../core/time-range.ts'
import { mapInTurns, Pace } from '../../core/turns/pace.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import type { HeldPart } from '../../telemetry/held-part.ts'
import { weightless } from '../../telemetry/row-weights.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { planErasure } from '../attempt/planner.ts'
import { refusesBeside } from '../requests/admission.ts'
import type { DeletionDraft } from '../requests/draft.ts'
import type { RequestQueries } from '../requests/queries.ts'
import type { StoredDeletion } from '../requests/request.ts'
import { hasBegun, openOfPersonMax, openStatuses } from '../requests/states.ts'
import type { RequestStore } from '../requests/store.ts'
import { retentionRequester } from '../requests/system-actors.ts'
import { cutOffMs, keepsPart, type RetentionRule, retentionDrafts, retentionKey } from './retention.ts'
import { SettledTime } from './settled-time.ts'
import { type RetentionStore, readRule } from './store.ts'

interface RetentionWorkerDeps {
  readonly store: RetentionStore
  readonly requests: RequestQueries
  readonly requestStore: RequestStore
  readonly engine: TelemetryEngine
  /** Returns the time to erase by; null while the clock is in doubt, and then nothing is requested. */
  readonly trustedNowMs: () => Promise<number | null>
  readonly logger: Pick<FastifyBaseLogger, 'error'>
  readonly findPlace: (tenantId: string) => Promise<TenantPlace | null>
  /** Returns which deletions of the organisation need a second person. */
  readonly ruleOf: (tenantId: string) => Promise<ApprovalRule>
  /** Returns the holds in force and those that were released since an instant, milliseconds. */
  readonly holdsSince: (tenantId: string, sinceMs: number) => Promise<readonly HeldPart[]>
  /** Wakes the deletion loop. */
  readonly nudge: () => void
}

const minutesPerDay = 1440

const notCancelled = 'retention that a longer rule keeps could not be cancelled; it is tried again'

/** Whether it is a request of retention that has not begun. */
const isWaiting = (request: StoredDeletion) =>
  isSameActor(request.requestedBy, retentionRequester) && !hasBegun(request)

/**
 * How many ranges of an organisation are looked at in a round. Each is a statement of some milliseconds, and
 * 400 holds leave some 1,200 ranges for three signals; the other organisations would wait for all of them.
 */
const rangesInRound = 20

/**
 * How many requests of retention an organisation has open at most, also failed and held ones: half as many as
 * one person may have. Each adds a condition to every read of the organisation.
 */
const openMax = openOfPersonMax / 2

export class RetentionWorker {
  readonly #deps: RetentionWorkerDeps
  readonly #days = new Map<string, RetentionDay>()

  constructor(deps: RetentionWorkerDeps) {
    this.#deps = deps
  }

  async round(signal: AbortSignal): Promise<void> {
    const { logger, store } = this.#deps
    await this.#expireChanges()
    await this.#cancelKept()
    const tenants = await store.tenants()
    for (const tenantId of this.#days.keys()) if (!tenants.includes(tenantId)) this.#days.delete(tenantId)
    for (const tenantId of tenants) {
      if (signal.aborted) return
      try {
        await this.#eraseOld(tenantId)
      } catch (err) {
        logger.error(
          { err, tenantId },
          'retention of an organisation could not be carried out; it is tried again',
        )
      }
    }
  }

  /** Removing changes erases nothing, so retention continues where it fails. */
  async #expireChanges(): Promise<void> {
    try {
      await this.#deps.store.expire()
    } catch (err) {
      this.#deps.logger.error({ err }, 'changes of retention that nobody approved could not be dropped')
    }
  }

  /**
   * Cancels requests that have not begun and would erase what the rule keeps by now; then their telemetry is
   * visible again, and what is still too old is requested anew. It is tried again in the next round. One
   * whose turn comes before is withdrawn by the transaction that counts its first attempt.
   */
  async #cancelKept(): Promise<void> {
    const { logger, requests, trustedNowMs } = this.#deps
    try {
      const waiting = (await requests.inStatus(['scheduled', 'held', 'running'])).filter(isWaiting)
      if (waiting.length === 0) return
      const nowMs = await trustedNowMs()
      for (const [tenantId, own] of Map.groupBy(waiting, (request) => request.tenantId)) {
        await this.#cancelKeptOf(tenantId, own, nowMs).catch((err: unknown) => {
          logger.error({ err, tenantId }, notCancelled)
        })
      }
    } catch (err) {
      logger.error({ err }, notCancelled)
    }
  }

  async #cancelKeptOf(
    tenantId: string,
    waiting: readonly StoredDeletion[],
    nowMs: number | null,
  ): Promise<void> {
    const { requestStore, store } = this.#deps
    const rule = await store.rule(tenantId)
    // At an unknown time only what has no limit is known to be kept.
    const isKept = (request: StoredDeletion) =>
      nowMs === null ? request.signals.some((signal) => !rule.has(signal)) : keepsPart(rule, request, nowMs)
    for (const request of waiting.filter(isKept)) {
      const by = { actor: retentionRequester, facts: { cause: 'retention_changed' } }
      this.#days.delete(tenantId)
      await requestStore.move(request, 'withdraw', by)
    }
  }

  async #eraseOld(tenantId: string): Promise<void> {
    const { engine, findPlace, requests, ruleOf, store, trustedNowMs } = this.#deps
    const place = await findPlace(tenantId)
    const nowMs = await trustedNowMs()
    if (place === null || nowMs === null) return
    const rule = await store.rule(tenantId)
    const day = this.#dayOf(tenantId, rule, nowMs)
    const isSettled = () => retentionDrafts(rule, day.settled, nowMs).next().done === true
    if (isSettled()) return
    await this.#settleHeld(tenantId, day, nowMs)
    if (isSettled()) return
    // Nobody has to approve, but where every deletion needs two people the second one has a day to cancel.
    const delayMinutes = (await ruleOf(tenantId)) === 'every_deletion' ? minutesPerDay : 0
    const open = await requests.inStatus(openStatuses, tenantId)
    let room = openMax - open.filter(({ requestedBy }) => isSameActor(requestedBy, retentionRequester)).length
    for (const draft of firstOf(retentionDrafts(possibleOf(rule, open), day.settled, nowMs), rangesInRound)) {
      if (room <= 0) return
      const plan = await planErasure(engine, place, { ...draft, held: [] }, weightless)
      if (plan.length > 0) {
        await this.#request(tenantId, { ...draft, delayMinutes }, nowMs)
        room--
      }
      day.settled.add(draft)
    }
  }

  #dayOf(tenantId: string, rule: RetentionRule, nowMs: number): RetentionDay {
    const startMs = cutOffMs(nowMs, 0)
    const known = this.#days.get(tenantId)
    const ruleText = JSON.stringify([...rule])
    if (known?.startMs === startMs && known.ruleText === ruleText) return known
    const day = { startMs, ruleText, settled: new SettledTime(), readMs: null }
    this.#days.set(tenantId, day)
    return day
  }

  /**
   * Settles what holds keep. What a hold has kept until today is erased in the night, so that a release can
   * be noticed and mended. So one that was in force at an earlier look of the day is settled too.
   */
  async #settleHeld(tenantId: string, day: RetentionDay, nowMs: number): Promise<void> {
    const sinceMs = day.readMs === null ? day.startMs : Math.max(day.startMs, day.readMs - readAgainMs)
    const held = await this.#deps.holdsSince(tenantId, sinceMs)
    await mapInTurns(held, new Pace(), (part) => day.settled.add(part))
    day.readMs = nowMs
  }

  async #request(tenantId: string, draft: DeletionDraft, nowMs: number): Promise<void> {
    await this.#deps.requestStore.create(tenantId, draft, {
      requester: retentionRequester,
      idempotencyKey: retentionKey(draft, nowMs),
      precondition: (trx: ControlTransaction) => requireRule(trx, tenantId, draft, nowMs),
    })
    this.#deps.nudge()
  }
}

/** What is known of an organisation on a UTC day under a rule. */
interface RetentionDay {
  readonly startMs: number
  readonly ruleText: string
  readonly settled: SettledTime
  /** When holds were read; null before the first time. */
  readMs: number | null
}

/**
 * Releases are read again for this long before the last look: they have the time at which they began, and are
 * visible when they were committed.
 */
const readAgainMs = 60_000

/**
 * The part of the rule that may be requested now. A full erasure in progress refuses drafts of its signals;
 * they are looked at again when it has ended.
 */
function possibleOf(rule: RetentionRule, open: readonly StoredDeletion[]): RetentionRule {
  const isRefused = (signal: Signal) =>
    open.some((request) => refusesBeside(request, { scope: 'range', signals: [signal], range: allTime }))
  return new Map([...rule].filter(([signal]) => !isRefused(signal)))
}

function firstOf<T>(all: Iterable<T>, count: number): T[] {
  const first: T[] = []
  for (const one of all) {
    first.push(one)
    if (first.length === count) break
  }
  return first
}

/** Throws where the rule was changed since it was read. */
async function requireRule(
  trx: ControlTransaction,
  tenantId: string,
  draft: DeletionDraft,
  nowMs: number,
): Promise<void> {
  if (!keepsPart(await readRule(trx, tenantId), draft, nowMs)) return
  throw new Error('The retention rule was changed while it was carried out.')
}
