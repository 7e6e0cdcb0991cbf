// Members that do one thing at a time each, shared fairly between owners. Who waits is served by start-time
// fair queueing (Goyal, Vin and Cheng, 1996) over measured cost: each owner has a clock that advances by what
// its work has taken, divided by its weight, and the one whose clock is furthest behind goes first. So an
// owner that has used little is next whatever the others have queued, and one that was idle has no claim on
// the time in which it asked for nothing. No owner occupies every member, because work under way is not taken
// back: whoever comes next finds a member that is free or held by somebody who is entitled to it.

import assert from 'node:assert/strict'
import { AppError } from '../core/app-error.ts'

/** Work that somebody waits for, and work that can wait. An owner has a clock for each. */
export type WorkKind = 'asked' | 'background'

/** Whose work asks for a member, and of which kind it is. */
export interface LendRequest {
  readonly owner: string
  readonly kind: WorkKind
  /** Aborts when nobody wants the answer any more: then what waits leaves the queue. */
  readonly signal?: AbortSignal | undefined
}

interface KindRule {
  /** Cost is divided by it: of two that always wait, the one of double weight gets double the time. */
  readonly weight: number
  /** Members that one owner occupies at once. */
  readonly atOnceByOwner: number
  /** Members that all owners together occupy at once. */
  readonly atOnce: number
  /** What waits for one owner; past it {@link FairPool.lend} refuses. */
  readonly waitingByOwner: number
}

interface FairPoolOptions {
  readonly kinds: Readonly<Record<WorkKind, KindRule>>
  /** What waits in all; past it whatever an owner asks for is refused unless nothing of it waits. */
  readonly waiting: number
  /** A clock that never steps back, milliseconds. What work costs is the time it takes by it. */
  readonly nowMs: () => number
}

interface Waiting<Member> {
  readonly seq: number
  readonly resolve: (member: Member) => void
}

/** One owner's work of one kind. Costs and clocks are milliseconds. */
interface Flow<Member> {
  readonly rule: KindRule
  readonly kind: WorkKind
  readonly waiting: Waiting<Member>[]
  running: number
  /** Where its next work starts on the common clock. */
  clock: number
  /** What its work has cost lately: charged when it begins, and set right when it ends. */
  usualCost: number
}

/** Before anything was measured: a chart of an hour. */
const firstCostMs = 10

/** How much of the usual cost the latest measurement is. */
const latestShare = 0.25

/** Whoever is refused comes back when some of its own work has ended. */
const retrySeconds = 1

export class FairPool<Member> {
  readonly #options: FairPoolOptions
  readonly #free: Member[]
  readonly #flows = new Map<string, Flow<Member>>()
  readonly #running = { asked: 0, background: 0 }
  /** Start of the work that began last, on the common clock. */
  #clock = 0
  #waiting = 0
  #seq = 0

  constructor(members: readonly Member[], options: FairPoolOptions) {
    this.#free = [...members]
    this.#options = options
  }

  /** Pieces of work that wait now. */
  get waiting(): number {
    return this.#waiting
  }

  /**
   * Lends a member until the work has settled, however it does. Throws `too_many_requests` at once where too
   * much waits, and the reason of the signal where it aborts before the work has begun.
   */
  async lend<T>(request: LendRequest, work: (member: Member) => Promise<T>): Promise<T> {
    request.signal?.throwIfAborted()
    const key = `${request.kind} ${request.owner}`
    const flow = this.#flowOf(key, request.kind)
    this.#requireRoom(flow)
    const member = await this.#wait(flow, request.signal)
    const startedMs = this.#options.nowMs()
    const charged = flow.usualCost
    try {
      return await work(member)
    } finally {
      const cost = Math.max(0, this.#options.nowMs() - startedMs)
      flow.clock += (cost - charged) / flow.rule.weight
      flow.usualCost += (cost - flow.usualCost) * latestShare
      flow.running--
      this.#running[flow.kind]--
      this.#free.push(member)
      this.#dispatch()
      this.#forgetIdle(key, flow)
    }
  }

  #flowOf(key: string, kind: WorkKind): Flow<Member> {
    const known = this.#flows.get(key)
    if (known !== undefined) return known
    const rule = this.#options.kinds[kind]
    const flow = { rule, kind, waiting: [], running: 0, clock: this.#clock, usualCost: firstCostMs }
    this.#flows.set(key, flow)
    return flow
  }

  #requireRoom(flow: Flow<Member>): void {
    const isFull = this.#waiting >= this.#options.waiting && flow.waiting.length > 0
    if (!isFull && flow.waiting.length < flow.rule.waitingByOwner) return
    throw new AppError('too_many_requests', {
      sentence: `${flow.waiting.length} reads of your organisation are waiting; repeat after Retry-After.`,
      retryAfterSeconds: retrySeconds,
    })
  }

  #wait(flow: Flow<Member>, signal: AbortSignal | undefined): Promise<Member> {
    return new Promise<Member>((resolve, reject) => {
      const leave = () => {
        flow.waiting.splice(flow.waiting.indexOf(waiting), 1)
        this.#waiting--
        reject(signal?.reason)
      }
      const waiting: Waiting<Member> = {
        seq: this.#seq++,
        resolve: (member) => {
          signal?.removeEventListener('abort', leave)
          resolve(member)
        },
      }
      signal?.addEventListener('abort', leave, { once: true })
      flow.waiting.push(waiting)
      this.#waiting++
      this.#dispatch()
    })
  }

  /** Lends every free member that somebody may have. */
  #dispatch(): void {
    for (let flow = this.#next(); flow !== undefined; flow = this.#next()) {
      const first = flow.waiting.shift()
      const member = this.#free.pop()
      assert(first !== undefined && member !== undefined)
      this.#waiting--
      this.#clock = this.#startOf(flow)
      flow.clock = this.#clock + flow.usualCost / flow.rule.weight
      flow.running++
      this.#running[flow.kind]++
      first.resolve(member)
    }
  }

  /** Of those that may have a member the one furthest behind; of several, whoever came first. */
  #next(): Flow<Member> | undefined {
    if (this.#free.length === 0) return undefined
    let best: Flow<Member> | undefined
    for (const flow of this.#flows.values()) {
      if (this.#mayBegin(flow) && (best === undefined || this.#isBefore(flow, best))) best = flow
    }
    return best
  }

  #mayBegin({ kind, rule, running, waiting }: Flow<Member>): boolean {
    return waiting.length > 0 && running < rule.atOnceByOwner && this.#running[kind] < rule.atOnce
  }

  #isBefore(a: Flow<Member>, b: Flow<Member>): boolean {
    const ahead = this.#startOf(a) - this.#startOf(b)
    return ahead === 0 ? (a.waiting[0]?.seq ?? 0) < (b.waiting[0]?.seq ?? 0) : ahead < 0
  }

  #startOf(flow: Flow<Member>): number {
    return Math.max(this.#clock, flow.clock)
  }

  /** An idle owner whose clock is not ahead of the common one is as good as a new one. */
  #forgetIdle(key: string, flow: Flow<Member>): void {
    const isIdle = flow.running === 0 && flow.waiting.length === 0
    if (isIdle && flow.clock <= this.#clock) this.#flows.delete(key)
  }
}
