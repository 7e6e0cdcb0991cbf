// Members that do one thing at a time each, shared fairly between owners. Waiting work is served by
// start-times.ts over measured cost, at two levels: first between owners, then between the kinds of work of
// an owner. So an owner that has used little is next, however much the others have queued, and however many
// they are: its background work is not behind the work of their clients. Turns don't interrupt running work,
// so no owner may occupy every member: the next owner finds a member that is free or used by an owner that
// was entitled to it. An owner may have more at once while no other has asked for anything lately. Against
// several owners with long work a pool can have the rules of long-work.ts.

import assert from 'node:assert/strict'
import { AppError } from '../app-error.ts'
import { type LongRoom, LongWork, type LongWorkRule, type RunningWork } from './long-work.ts'
import { Presence } from './presence.ts'
import { type Sharer, StartTimes } from './start-times.ts'

/** `asked`: a client waits for the result; `background`: work that can wait. */
export type WorkKind = 'asked' | 'background'

/** The owner of the work that needs a member, and its kind. */
export interface LendRequest {
  readonly owner: string
  readonly kind: WorkKind
  /** Aborts when the result is no longer needed: waiting work then leaves the queue. */
  readonly signal?: AbortSignal | undefined
}

interface KindRule {
  /** Of two kinds of an owner's work that always wait, the one of double weight gets double the time. */
  readonly weight: number
  /** The same of two owners' work. Default: 1, so each owner gets the same time, whatever it does with it. */
  readonly weightAmongOwners?: number
  /** Members that one owner may occupy at once, while it is alone. */
  readonly atOnceByOwner: number
  /** The same while others ask for work too. Default: the same number. */
  readonly atOnceBesideOthers?: number
  /** Members that all owners together may occupy at once. */
  readonly atOnce: number
  /** The most that may wait for one owner; above it {@link FairPool.lend} refuses. */
  readonly waitingByOwner: number
}

/** What a piece of work should know of the others when it begins. */
export interface Turn {
  /** No other owner has asked for work lately. */
  readonly isAlone: boolean
  /** Others ask or work elsewhere, and more work of this owner waits: it wants more than its share. */
  readonly isCrowding: boolean
  /** Aborts where the work must end, because it takes long; absent where it may always continue. */
  readonly end?: AbortSignal
}

interface FairPoolOptions {
  readonly kinds: Readonly<Record<WorkKind, KindRule>>
  /** The most that may wait in all; above it an owner is refused unless nothing of it waits. */
  readonly waiting: number
  /** A clock that never goes back, milliseconds. The cost of work is the time it takes by this clock. */
  readonly nowMs: () => number
  /** Pauses between what an owner asks for, while it crowds others; absent: none. */
  readonly pauses?: {
    /** Returns the milliseconds of a pause after work of this cost; 0 for none. */
    readonly afterMs: (costMs: number) => number
    readonly sleep: (ms: number) => Promise<void>
  }
  /** What applies to work that takes long; absent: nothing. */
  readonly longWork?: LongWorkRule
}

/** A member that is lent, and what is known of its work; null where the pool has no rule for long work. */
interface Lent<Member> {
  readonly member: Member
  readonly running: RunningWork | null
}

interface Waiting<Member> {
  readonly seq: number
  readonly sinceMs: number
  /** Whether it did not begin because its flow was long. It then stays so, however long it waits. */
  isLong: boolean
  readonly resolve: (lent: Lent<Member>) => void
}

/** An owner, with its place among the others, and the times by which its kinds of work share that. */
interface Owner<Member> {
  readonly name: string
  readonly times: StartTimes
  readonly flows: Flow<Member>[]
  clock: number
}

/** One owner's work of one kind. Costs and clocks are in milliseconds. */
interface Flow<Member> {
  readonly key: string
  readonly owner: Owner<Member>
  readonly rule: KindRule
  readonly kind: WorkKind
  readonly waiting: Waiting<Member>[]
  running: number
  clock: number
  /** The recent cost of its work: charged when work begins, and corrected when it ends. */
  usualCost: number
  /** When its last work ended. */
  endedMs: number
  /** Pauses that have not ended: until then none of its work begins. */
  pauses: number
}

/** Who would be charged for it, and the flow that would begin. */
type Candidate<Member> = readonly [Sharer, Flow<Member>]

/** The assumed cost before anything was measured: that of a chart of an hour. */
const firstCostMs = 10

/** Weight of the latest measurement in the usual cost. */
const latestShare = 0.25

/** A refused owner can retry when some of its own work has ended. */
const retrySeconds = 1

export class FairPool<Member> {
  readonly #options: FairPoolOptions
  readonly #free: Member[]
  readonly #owners = new Map<string, Owner<Member>>()
  readonly #times = new StartTimes()
  readonly #running = { asked: 0, background: 0 }
  #waiting = 0
  #seq = 0
  readonly #long: LongWork | null
  /** Ends the watch over waiting work; null where there is none. */
  #watch: AbortController | null = null
  readonly #askers: Presence
  /** Askers, and owners whose other work uses the same cores. */
  readonly #present: Presence

  constructor(members: readonly Member[], options: FairPoolOptions) {
    this.#free = [...members]
    this.#options = options
    const { longWork, nowMs } = options
    this.#long = longWork === undefined ? null : new LongWork(longWork, members.length, nowMs)
    this.#askers = new Presence(options.nowMs)
    this.#present = new Presence(options.nowMs)
  }

  /** Number of owners that are remembered. */
  get owners(): number {
    return this.#owners.size
  }

  /** Number of waiting pieces of work. */
  get waiting(): number {
    return this.#waiting
  }

  /**
   * The owner does something that needs no member, such as sending: who crowds the pool crowds it too. It
   * takes no members from others.
   */
  noteOther(owner: string): void {
    this.#present.note(owner)
  }

  /**
   * Lends a member until the work has settled. Throws `too_many_requests` at once where too much waits, and
   * the reason of the signal where it aborts before the work has begun.
   */
  async lend<T>(request: LendRequest, work: (member: Member, turn: Turn) => Promise<T>): Promise<T> {
    request.signal?.throwIfAborted()
    if (request.kind === 'asked') {
      this.#askers.note(request.owner)
      this.#present.note(request.owner)
    }
    const flow = this.#flowOf(request)
    this.#requireRoom(flow)
    const { member, running } = await this.#wait(flow, request.signal)
    const startedMs = this.#options.nowMs()
    const charged = flow.usualCost
    try {
      const isAlone = this.#askers.isAlone(request.owner)
      const turn = { isAlone, isCrowding: this.#isCrowding(flow) }
      const end = running?.end?.signal
      return await work(member, end === undefined ? turn : { ...turn, end })
    } finally {
      if (running !== null) this.#long?.ended(running)
      const cost = Math.max(0, this.#options.nowMs() - startedMs)
      const { owner, rule } = flow
      this.#times.correct(owner, cost - charged, rule.weightAmongOwners ?? 1)
      owner.times.correct(flow, cost - charged, rule.weight)
      flow.usualCost += (cost - flow.usualCost) * latestShare
      flow.running--
      flow.endedMs = startedMs + cost
      this.#running[flow.kind]--
      this.#free.push(member)
      this.#pause(flow, cost)
      this.#dispatch()
      this.#forgetIdle(owner)
    }
  }

  /** Makes the rest of what an owner asks for wait after a piece of it, where it crowds others. */
  #pause(flow: Flow<Member>, cost: number): void {
    const { pauses } = this.#options
    if (pauses === undefined || flow.kind !== 'asked' || !this.#isCrowding(flow)) return
    const pauseMs = pauses.afterMs(cost)
    if (pauseMs <= 0) return
    flow.pauses++
    // Not by the clock: a timer may end a part of a millisecond early.
    void pauses.sleep(pauseMs).then(() => {
      flow.pauses--
      this.#dispatch()
    })
  }

  #isCrowding({ owner, waiting }: Flow<Member>): boolean {
    return waiting.length > 0 && !this.#present.isAlone(owner.name)
  }

  #flowOf({ kind, owner: name }: LendRequest): Flow<Member> {
    const owner = this.#ownerOf(name)
    const known = owner.flows.find((flow) => flow.kind === kind)
    if (known !== undefined) return known
    const rule = this.#options.kinds[kind]
    const flow = {
      key: `${kind} ${name}`,
      owner,
      rule,
      kind,
      waiting: [],
      running: 0,
      clock: owner.times.now,
      usualCost: firstCostMs,
      endedMs: Number.NEGATIVE_INFINITY,
      pauses: 0,
    }
    owner.flows.push(flow)
    return flow
  }

  #ownerOf(name: string): Owner<Member> {
    const known = this.#owners.get(name)
    if (known !== undefined) return known
    const owner = { name, times: new StartTimes(), flows: [], clock: this.#times.now }
    this.#owners.set(name, owner)
    return owner
  }

  #requireRoom(flow: Flow<Member>): void {
    const isFull = this.#waiting >= this.#options.waiting && flow.waiting.length > 0
    if (!isFull && flow.waiting.length < flow.rule.waitingByOwner) return
    throw new AppError('too_many_requests', {
      sentence: `${flow.waiting.length} reads of your organisation are waiting; repeat after Retry-After.`,
      retryAfterSeconds: retrySeconds,
    })
  }

  #wait(flow: Flow<Member>, signal: AbortSignal | undefined): Promise<Lent<Member>> {
    return new Promise<Lent<Member>>((resolve, reject) => {
      const leave = () => {
        flow.waiting.splice(flow.waiting.indexOf(waiting), 1)
        this.#waiting--
        this.#endWatch()
        reject(signal?.reason)
      }
      const waiting: Waiting<Member> = {
        seq: this.#seq++,
        sinceMs: this.#options.nowMs(),
        isLong: false,
        resolve: (lent) => {
          signal?.removeEventListener('abort', leave)
          resolve(lent)
        },
      }
      signal?.addEventListener('abort', leave, { once: true })
      flow.waiting.push(waiting)
      this.#waiting++
      this.#dispatch()
      if (this.#waiting > 0 && this.#long !== null) void this.#watchWaiting(this.#long)
    })
  }

  /**
   * As long as work waits, looks from time to time whether it may begin now, as cores are free again, and
   * whether long work must end for it.
   */
  async #watchWaiting(long: LongWork): Promise<void> {
    if (this.#watch !== null) return
    const { sleep, waitedMs } = long.rule
    this.#watch = new AbortController()
    const { signal } = this.#watch
    while (!signal.aborted) {
      await sleep(waitedMs, signal)
      if (!signal.aborted) this.#dispatch()
      const latestMs = this.#options.nowMs() - waitedMs
      if (!signal.aborted && this.#flows().some((flow) => this.#isHeldUp(flow, latestMs, long))) long.endOne()
    }
  }

  #endWatch(): void {
    if (this.#waiting > 0) return
    this.#watch?.abort()
    this.#watch = null
  }

  /** Whether a client has waited since `latestMs` at least while nothing of its owner ran. */
  #isHeldUp(flow: Flow<Member>, latestMs: number, long: LongWork): boolean {
    const [first] = flow.waiting
    if (first === undefined || flow.kind !== 'asked' || flow.running > 0 || flow.pauses > 0) return false
    return Math.max(first.sinceMs, flow.endedMs) <= latestMs && !first.isLong && !long.isLong(flow.key)
  }

  /** Lends every free member to work that may begin. */
  #dispatch(): void {
    for (let flow = this.#next(); flow !== undefined; flow = this.#next()) {
      const first = flow.waiting.shift()
      const member = this.#free.pop()
      assert(first !== undefined && member !== undefined)
      this.#waiting--
      const { owner, rule, usualCost } = flow
      this.#times.begin(owner, usualCost, rule.weightAmongOwners ?? 1)
      owner.times.begin(flow, usualCost, rule.weight)
      flow.running++
      this.#running[flow.kind]++
      const isLong = first.isLong || this.#long?.isLong(flow.key) === true
      const running = this.#long?.began(flow.key, isLong, flow.kind === 'asked') ?? null
      first.resolve({ member, running })
    }
    this.#endWatch()
  }

  #flows(): Flow<Member>[] {
    return [...this.#owners.values()].flatMap(({ flows }) => flows)
  }

  /** Returns the flow that is next; of owners that are equal the one whose work waited first. */
  #next(): Flow<Member> | undefined {
    if (this.#free.length === 0) return undefined
    const room = this.#long?.room() ?? 'all'
    let best: Flow<Member> | undefined
    for (const owner of this.#owners.values()) {
      const flow = this.#nextOf(owner, room)
      if (flow === undefined) {
        this.#forgetIdle(owner)
        continue
      }
      if (best === undefined || isBefore(this.#times, [owner, flow], [best.owner, best])) best = flow
    }
    return best
  }

  #nextOf({ flows, times }: Owner<Member>, room: LongRoom): Flow<Member> | undefined {
    let best: Flow<Member> | undefined
    for (const flow of flows) {
      if (!this.#mayBegin(flow, room)) continue
      if (best === undefined || isBefore(times, [flow, flow], [best, best])) best = flow
    }
    return best
  }

  #mayBegin(flow: Flow<Member>, room: LongRoom): boolean {
    const { kind, owner, pauses, rule, running, waiting } = flow
    const [first] = waiting
    if (first === undefined || this.#running[kind] >= rule.atOnce) return false
    if (pauses > 0) return false
    const { atOnceByOwner, atOnceBesideOthers = atOnceByOwner } = rule
    if (running >= (this.#askers.isAlone(owner.name) ? atOnceByOwner : atOnceBesideOthers)) return false
    if (!this.#mustWaitAsLong(flow, first, room)) return true
    first.isLong = true
    return false
  }

  #mustWaitAsLong({ key, owner }: Flow<Member>, first: Waiting<Member>, room: LongRoom): boolean {
    const long = this.#long
    if (long === null || room === 'all' || !(first.isLong || long.isLong(key))) return false
    return room === 'none' || (long.isHeavy(key) && !this.#present.isAlone(owner.name))
  }

  /**
   * Removes an idle owner whose clock is not ahead of the common clock: it would be treated like a new one.
   */
  #forgetIdle({ clock, flows, name }: Owner<Member>): void {
    const isIdle = flows.every((flow) => flow.running + flow.waiting.length + flow.pauses === 0)
    if (isIdle && clock <= this.#times.now) this.#owners.delete(name)
  }
}

/** Whether the first starts before the second; of equal ones, whether its work has waited longer. */
function isBefore<Member>(times: StartTimes, first: Candidate<Member>, second: Candidate<Member>): boolean {
  const [a, b] = [times.startOf(first[0]), times.startOf(second[0])]
  return a === b ? seqOf(first[1]) < seqOf(second[1]) : a < b
}

const seqOf = <Member>({ waiting }: Flow<Member>) => waiting[0]?.seq ?? 0
