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
//   from \ to   open                     hidden    fenced                    erased
//   (none)      create                   create    create, take up           take up, where it was done
//   open                                 approve   reapply
//   hidden      cancel, withdraw                   release, start, reapply   verified
//   fenced      ask_approval, withdraw   hold                                verified
//   erased                                         reapply
//
// Invariant: no node is ever looser than the stored status. A stricter state is acknowledged by every node
// (telemetry/fences.ts) before the transaction that stores it commits, a looser one is published after it has
// committed. While several changes of a request are in progress, the fences have the strictest of the stored
// state and of theirs. A change that fails only ends its own demand, so nothing else has to be undone. Where
// the database does not say whether a change is stored, its demand stays until that is known.

import { isOutcomeUnknown } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import type { Fences } from '../../telemetry/fences.ts'
import type { FenceChange } from '../../telemetry/gate.ts'
import type { ShownDeletion } from './request.ts'
import { erasedTime } from './selection.ts'
import { type VisibilityState, visibilityOf } from './states.ts'

/** What a change in progress demands. */
interface Demand {
  readonly request: ShownDeletion
  readonly state: VisibilityState
  /** Position in the order of the transactions; the change with the higher number was stored later. */
  readonly order: number
}

/** A request that is hidden, or that a change is in progress for. */
interface Shown {
  /** Null where it is not known here: the request was neither hidden nor fenced. */
  stored: VisibilityState | null
  /** `order` of the change that stored it. */
  storedBy: number
  /** Strictness that was published. */
  strictness: number
  readonly demands: Set<Demand>
}

const strictnessOf = { open: 0, erased: 0, hidden: 1, fenced: 2 } as const satisfies Record<
  VisibilityState,
  number
>

/** Publishes what requests hide, fence and have erased. Nothing else does. */
export class Visibility {
  readonly #fences: Fences
  readonly #clock: Clock
  readonly #shown = new Map<string, Shown>()
  readonly #doubts = new Set<Demand>()
  #changes = 0

  constructor(fences: Fences, clock: Clock) {
    this.#fences = fences
    this.#clock = clock
  }

  /**
   * Shows a request as it is stored. Called at the start of the service; nothing may be read or written
   * before it resolves.
   */
  async restore(request: ShownDeletion): Promise<void> {
    const demand = { request, state: visibilityOf[request.status], order: ++this.#changes }
    await this.#publish([...this.#store(demand), ...this.#show(request)])
  }

  /**
   * Runs a transaction that changes requests. The transaction calls `announce` with each request as it will
   * be stored, after everything else that can fail, and awaits it: then every node is at least as strict as
   * the new status. Once the promise resolves the request is shown as exactly that. Throws what the
   * transaction throws, also where a node does not acknowledge; then the request is shown as before. Where
   * the error is `outcome_unknown` it is shown as the stricter of both, and is among {@link doubts}.
   */
  async change<T>(
    transaction: (announce: (after: ShownDeletion) => Promise<void>) => Promise<T>,
  ): Promise<T> {
    const demands: Demand[] = []
    let [isStored, isInDoubt] = [false, false]
    try {
      const result = await transaction((after) => {
        const demand = { request: after, state: visibilityOf[after.status], order: ++this.#changes }
        demands.push(demand)
        return this.#begin(demand)
      })
      isStored = true
      return result
    } catch (error) {
      isInDoubt = isOutcomeUnknown(error)
      throw error
    } finally {
      const stored = isStored ? demands.flatMap((demand) => this.#store(demand)) : []
      if (isInDoubt) for (const demand of demands) this.#doubts.add(demand)
      else await this.#publish([...stored, ...demands.flatMap((demand) => this.#end(demand))])
    }
  }

  /**
   * Changes of requests that may be stored or not. For each one its request is to be shown as it is stored,
   * and then `end` called.
   */
  doubts(): { readonly request: ShownDeletion; readonly end: () => Promise<void> }[] {
    return [...this.#doubts].map((demand) => ({
      request: demand.request,
      end: async () => {
        this.#doubts.delete(demand)
        await this.#publish(this.#end(demand))
      },
    }))
  }

  /** Fences the request while `work` runs, whatever its status is. */
  async whileFenced<T>(request: ShownDeletion, work: () => Promise<T>): Promise<T> {
    const demand: Demand = { request, state: 'fenced', order: ++this.#changes }
    try {
      await this.#begin(demand)
      return await work()
    } finally {
      await this.#publish(this.#end(demand))
    }
  }

  #begin(demand: Demand): Promise<void> {
    this.#of(demand.request).demands.add(demand)
    return this.#publish(this.#show(demand.request))
  }

  #end(demand: Demand): FenceChange[] {
    this.#of(demand.request).demands.delete(demand)
    return this.#show(demand.request)
  }

  /** Called without an await between the changes that are returned and this, so that their order is kept. */
  async #publish(changes: readonly FenceChange[]): Promise<void> {
    if (changes.length > 0) await this.#fences.publish(changes)
  }

  #store({ order, request, state }: Demand): FenceChange[] {
    const shown = this.#of(request)
    // The promises of two transactions may resolve in another order than they were committed in.
    if (order < shown.storedBy) return []
    const before = shown.stored
    shown.stored = state
    shown.storedBy = order
    if (state === 'erased') return this.#erased(request)
    return before === null || before === 'erased' ? unerased(request) : []
  }

  #of({ requestId }: ShownDeletion): Shown {
    const known = this.#shown.get(requestId)
    if (known !== undefined) return known
    const shown: Shown = { stored: null, storedBy: 0, strictness: 0, demands: new Set() }
    this.#shown.set(requestId, shown)
    return shown
  }

  /** Returns what changes so that the strictest of what is stored and what is demanded is shown. */
  #show(request: ShownDeletion): FenceChange[] {
    const { requestId, tenantId } = request
    const shown = this.#of(request)
    const states = [shown.stored ?? 'open', ...[...shown.demands].map(({ state }) => state)]
    const before = shown.strictness
    const after = Math.max(...states.map((state) => strictnessOf[state]))
    shown.strictness = after
    if (after === 0 && shown.demands.size === 0) this.#shown.delete(requestId)
    const selection = { id: requestId, signals: request.signals, range: request.range }
    const changes: FenceChange[] = []
    // Readers first, both ways: what nobody can see must not be acknowledged.
    for (const kind of ['hidden', 'fenced'] as const) {
      const [wasShown, isShown] = [before >= strictnessOf[kind], after >= strictnessOf[kind]]
      if (!wasShown && isShown) changes.push({ kind, tenantId, set: selection })
      if (wasShown && !isShown) changes.push({ kind, tenantId, end: requestId })
    }
    return changes
  }

  /** Returned before what ends the hiding, so that the time is unknown at every moment. */
  #erased(request: ShownDeletion): FenceChange[] {
    const { finishedAtMs, refuseLate, requestId, signals, tenantId } = request
    const range = erasedTime(request, finishedAtMs ?? this.#clock.nowMs())
    if (range === null) return []
    const set = { id: requestId, signals, range }
    return [
      { kind: 'erased', tenantId, set },
      ...(refuseLate ? [{ kind: 'late', tenantId, set } as const] : []),
    ]
  }
}

function unerased({ requestId, tenantId }: ShownDeletion): FenceChange[] {
  return [
    { kind: 'late', tenantId, end: requestId },
    { kind: 'erased', tenantId, end: requestId },
  ]
}
