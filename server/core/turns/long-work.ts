// Work that occupies a member of a pool for a long time. Turns don't interrupt running work, so several
// owners with long work, each within its limits, could occupy every member together. Three rules limit that.
// Work of a flow whose work took long lately never begins where it would leave no member without long work.
// Of flows that also used much time lately, the heavy ones, fewer have a member while cores are short: each
// of their members keeps a core busy, and everybody's short work then waits for a core at each of its steps.
// And where every member has long work nevertheless, because nobody could know before, work that has run
// very long is ended for a client who waits.

import { RecentUse } from './recent-use.ts'

export interface LongWorkRule {
  /** Work that takes longer than this is long, milliseconds. */
  readonly longMs: number
  /** A flow counts as long until this much time after its last long work ended, milliseconds. */
  readonly rememberedMs: number
  /**
   * A long flow whose work took more than this in the last 10 to 20 seconds is heavy, milliseconds, unless
   * another's took {@link manyTimes} as long.
   */
  readonly heavyMs: number
  /** Returns how many members heavy flows may have at once now, beside other owners. */
  readonly heavyAtOnce: () => number
  /** Work that a client waits for is ended only after it has run this long, milliseconds. */
  readonly ranMs: number
  /** It is ended only for a client who has waited this long, milliseconds. */
  readonly waitedMs: number
  /** Returns the error of the work that is ended. */
  readonly refusal: () => Error
  /** Resolves after `ms`, or at once where `signal` aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

/** For which long flows another member may be occupied. */
export type LongRoom = 'all' | 'light' | 'none'

/** The time over which the work of a flow is counted, milliseconds. */
const heavyWindowMs = 10_000

/**
 * Where cores are short everything takes longer, so the work of a flow that has little may take more than
 * {@link LongWorkRule.heavyMs} beside one that has much.
 */
const manyTimes = 3

/** Work that occupies a member. */
export interface RunningWork {
  readonly flow: string
  readonly startedMs: number
  /** Whether its flow was long when it began. */
  readonly isOfLongFlow: boolean
  /** Aborts where the work must end; null where it may always continue. */
  readonly end: AbortController | null
}

export class LongWork {
  readonly rule: LongWorkRule
  readonly #members: number
  readonly #nowMs: () => number
  readonly #running = new Set<RunningWork>()
  /** When the last long work of a flow ended, in this order. */
  readonly #endedMs = new Map<string, number>()
  readonly #use: RecentUse

  /** @param members the number of members of the pool */
  constructor(rule: LongWorkRule, members: number, nowMs: () => number) {
    this.rule = rule
    this.#members = members
    this.#nowMs = nowMs
    this.#use = new RecentUse(nowMs, heavyWindowMs)
  }

  /** Whether work of the flow takes long, or took long lately. */
  isLong(flow: string): boolean {
    const endedMs = this.#endedMs.get(flow)
    if (endedMs !== undefined && this.#nowMs() - endedMs < this.rule.rememberedMs) return true
    return [...this.#running].some((work) => work.flow === flow && this.#hasRun(work, this.rule.longMs))
  }

  /** Whether the work of a flow took much time lately, also compared with that of others. */
  isHeavy(flow: string): boolean {
    const ranMs = this.#runningMs()
    const usedMs = (one: string) => this.#use.amountOf(one) + (ranMs.get(one) ?? 0)
    const ownMs = usedMs(flow)
    if (ownMs <= this.rule.heavyMs) return false
    return [...this.#use.owners(), ...ranMs.keys()].every((one) => usedMs(one) < ownMs * manyTimes)
  }

  /** How long the work that each flow has now has run. */
  #runningMs(): ReadonlyMap<string, number> {
    const nowMs = this.#nowMs()
    const ranMs = new Map<string, number>()
    for (const { flow, startedMs } of this.#running)
      ranMs.set(flow, (ranMs.get(flow) ?? 0) + nowMs - startedMs)
    return ranMs
  }

  /** Returns for which long flows another member is free. */
  room(): LongRoom {
    const long = [...this.#running].filter(
      (work) => work.isOfLongFlow || this.#hasRun(work, this.rule.longMs),
    )
    if (long.length >= this.#members - 1) return 'none'
    const heavy = long.filter(({ flow }) => this.isHeavy(flow))
    return heavy.length < this.rule.heavyAtOnce() ? 'all' : 'light'
  }

  /** @param isAsked whether a client waits for the result; only then it can be ended early */
  began(flow: string, isOfLongFlow: boolean, isAsked: boolean): RunningWork {
    const end = isAsked ? new AbortController() : null
    const work = { flow, isOfLongFlow, startedMs: this.#nowMs(), end }
    this.#running.add(work)
    return work
  }

  ended(work: RunningWork): void {
    this.#running.delete(work)
    const nowMs = this.#nowMs()
    this.#use.count(work.flow, nowMs - work.startedMs)
    if (this.#hasRun(work, this.rule.longMs)) {
      this.#endedMs.delete(work.flow)
      this.#endedMs.set(work.flow, nowMs)
    }
    for (const [flow, endedMs] of this.#endedMs) {
      if (nowMs - endedMs < this.rule.rememberedMs) break
      this.#endedMs.delete(flow)
    }
  }

  /**
   * Ends one piece of work where every member has long work: of the flow with most members the one that began
   * first. Ends nothing while work that was ended is still running.
   */
  endOne(): void {
    const { longMs, ranMs, refusal } = this.rule
    const running = [...this.#running]
    if (running.some(({ end }) => end?.signal.aborted)) return
    if (running.length < this.#members || running.some((work) => !this.#hasRun(work, longMs))) return
    const mayEnd = running.filter((work) => work.end !== null && this.#hasRun(work, ranMs))
    const membersOf = (flow: string) => mayEnd.filter((work) => work.flow === flow).length
    // Stable, so equal ones stay in the order in which they began.
    const [first] = mayEnd.toSorted((a, b) => membersOf(b.flow) - membersOf(a.flow))
    first?.end?.abort(refusal())
  }

  #hasRun({ startedMs }: RunningWork, ms: number): boolean {
    return this.#nowMs() - startedMs > ms
  }
}
