// What a deletion request does to readers and writers of the telemetry that it selects. Its visibility is
// one of four states and follows from its status (`visibilityOf` in states.ts). SPEC.md has the same tables,
// and a test compares them.
//
//   state    readers                       writers                             time for charts and detectors
//   open     see the selection             add to it                              as stored
//   hidden   do not see it                 add to it                              unknown
//   fenced   do not see it                 are refused with a 503                 unknown
//   erased   see what arrived afterwards   add to it; with `refuse_late`,         unknown up to completion
//                                          late rows are left out
//
//   from \ to   open      hidden      fenced                      erased
//   (none)      create    create      create, take up             take up, where it was done
//   open                  approve     reapply
//   hidden      cancel                release, start, reapply     verified
//   fenced                hold                                    verified
//   erased                            reapply
//
// Invariant: the gate is never looser than the stored status. A stricter state is told to the gate before the
// transaction that stores it commits, a looser one after it has committed. While several changes of a request
// are in progress, the gate has the strictest of the stored state and of theirs. A change that fails only
// ends its own demand, so nothing else has to be undone.

import type { Clock } from '../../core/clock.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import type { StoredDeletion } from './request.ts'
import { erasedTime } from './selection.ts'
import { type VisibilityState, visibilityOf } from './states.ts'

/** What a change in progress demands. */
interface Demand {
  readonly request: StoredDeletion
  readonly state: VisibilityState
  /** Place in the order of the transactions; the change with the higher number was stored later. */
  readonly order: number
}

/** A request that is hidden, or that a change is in progress for. */
interface Shown {
  stored: VisibilityState
  /** `order` of the change that stored it. */
  storedBy: number
  /** Strictness that the gate has been told. */
  strictness: number
  readonly demands: Set<Demand>
}

const strictnessOf = { open: 0, erased: 0, hidden: 1, fenced: 2 } as const satisfies Record<
  VisibilityState,
  number
>

/** Tells the gate what requests hide, fence and have erased. Nothing else does. */
export class Visibility {
  readonly #gate: TelemetryGate
  readonly #clock: Clock
  readonly #shown = new Map<string, Shown>()
  #changes = 0

  constructor(gate: TelemetryGate, clock: Clock) {
    this.#gate = gate
    this.#clock = clock
  }

  /**
   * Shows a request as it is stored. Called at the start of the service, before anything is read or written.
   */
  restore(request: StoredDeletion): void {
    const demand = this.#demand(request, visibilityOf[request.status])
    this.#store(demand)
    this.#end(demand)
  }

  /**
   * Runs a transaction that changes requests. The transaction calls `announce` with each request as it will
   * be stored, after everything else that can fail. From then on the request is at least as strict as its new
   * status; once the promise resolves it is exactly that. Throws what the transaction throws, and then the
   * request is shown as before.
   */
  async change<T>(transaction: (announce: (after: StoredDeletion) => void) => Promise<T>): Promise<T> {
    const demands: Demand[] = []
    try {
      const result = await transaction((after) => {
        demands.push(this.#demand(after, visibilityOf[after.status]))
      })
      for (const demand of demands) this.#store(demand)
      return result
    } finally {
      for (const demand of demands) this.#end(demand)
    }
  }

  /** Fences the request while `work` runs, whatever its status is. */
  async whileFenced<T>(request: StoredDeletion, work: () => Promise<T>): Promise<T> {
    const demand = this.#demand(request, 'fenced')
    try {
      return await work()
    } finally {
      this.#end(demand)
    }
  }

  #demand(request: StoredDeletion, state: VisibilityState): Demand {
    const demand = { request, state, order: ++this.#changes }
    this.#of(request).demands.add(demand)
    this.#show(request)
    return demand
  }

  #end(demand: Demand): void {
    this.#of(demand.request).demands.delete(demand)
    this.#show(demand.request)
  }

  #store({ order, request, state }: Demand): void {
    const shown = this.#of(request)
    // The promises of two transactions may resolve in another order than they were committed in.
    if (order < shown.storedBy) return
    shown.stored = state
    shown.storedBy = order
    // The demand still hides the selection, so its time is unknown at every moment.
    if (state === 'erased') this.#markErased(request)
    else this.#unmarkErased(request)
  }

  #of({ requestId }: StoredDeletion): Shown {
    const known = this.#shown.get(requestId)
    if (known !== undefined) return known
    const shown: Shown = { stored: 'open', storedBy: 0, strictness: 0, demands: new Set() }
    this.#shown.set(requestId, shown)
    return shown
  }

  /** Tells the gate the strictest of what is stored and what changes in progress demand. */
  #show(request: StoredDeletion): void {
    const { requestId, tenantId } = request
    const shown = this.#of(request)
    const states = [shown.stored, ...[...shown.demands].map(({ state }) => state)]
    const before = shown.strictness
    const after = Math.max(...states.map((state) => strictnessOf[state]))
    const { fenced, hidden } = strictnessOf
    const selection = { id: requestId, signals: request.signals, range: request.range }
    if (before < hidden && after >= hidden) this.#gate.hide(tenantId, selection)
    if (before < fenced && after >= fenced) this.#gate.fence(tenantId, selection)
    // Readers first: what nobody can see must not be acknowledged.
    if (before >= hidden && after < hidden) this.#gate.unhide(tenantId, requestId)
    if (before >= fenced && after < fenced) this.#gate.unfence(tenantId, requestId)
    shown.strictness = after
    if (after === 0 && shown.demands.size === 0) this.#shown.delete(requestId)
  }

  #markErased(request: StoredDeletion): void {
    const { finishedAtMs, refuseLate, requestId, signals, tenantId } = request
    const range = erasedTime(request, finishedAtMs ?? this.#clock.nowMs())
    if (range === null) return
    const erased = { id: requestId, signals, range }
    this.#gate.markErased(tenantId, erased)
    if (refuseLate) this.#gate.refuseLate(tenantId, erased)
  }

  #unmarkErased({ requestId, tenantId }: StoredDeletion): void {
    this.#gate.acceptLate(tenantId, requestId)
    this.#gate.unmarkErased(tenantId, requestId)
  }
}
