// The rate at which floods may commit. An organisation that has more rows waiting than fit into a commit is
// a flood: it sends as fast as it gets responses. One or several of them would keep every core busy with
// inserts and merges, and an insert, a chart and an erasure of everybody else would take several times as
// long. So while cores are short and an organisation is present that is no flood, every flood has the same
// limit, which falls until a part of the cores is free and then rises again. Where only floods send, none has
// a limit. An organisation that sends at its own pace, whatever it gets, is no flood either: a limit would
// only make its rows wait. All bytes here are costs (commit-cost.ts), so rows of very many weeks are a flood
// too. docs/decisions/0054 has the measurements.

import { presentMs } from '../../core/turns/presence.ts'
import { RecentUse } from '../../core/turns/recent-use.ts'
import { sliceBytes } from './pending-batch.ts'

export interface FloodRateOptions {
  /** A clock that never goes back, milliseconds. */
  readonly nowMs: () => number
  /** Returns the cost of the rows of the organisation that wait or are being committed. */
  readonly reservedBy: (tenantId: string) => number
  /** Whether the process uses most of its cores; absent: never. */
  readonly areCoresShort?: () => boolean
}

/** The limit changes once in this time, milliseconds: the use of the cores is measured over as long. */
const stepMs = 200

/** For each step. As fast up as down, so that cores are short half of the time. */
const factor = 0.8

/**
 * How long an organisation is a flood after it had much waiting, milliseconds: right after each of its
 * commits less waits.
 */
const floodMs = 4_000

/** Floods together may always commit this share of what arrives. */
const leastShareOfAll = 0.3

/** Each flood may always commit this share of the rate of any organisation that is none. */
const leastShareOfCalm = 0.5

export class FloodRate {
  readonly #options: FloodRateOptions
  readonly #arrivals: RecentUse
  /** Of the arrivals those that came while an erasure locked their placement. */
  readonly #lockedOut: RecentUse
  /** When each organisation last had much waiting, and when others last sent. */
  readonly #floodAtMs = new Map<string, number>()
  readonly #calmAtMs = new Map<string, number>()
  /** When each organisation last showed that it sends at its own pace. */
  readonly #steadyAtMs = new Map<string, number>()
  /** Bytes in a millisecond. */
  #limit = Number.POSITIVE_INFINITY
  #adjustedMs: number

  constructor(options: FloodRateOptions) {
    this.#options = options
    this.#arrivals = new RecentUse(options.nowMs)
    this.#lockedOut = new RecentUse(options.nowMs)
    this.#adjustedMs = options.nowMs()
  }

  /**
   * Counts rows that now wait.
   *
   * @param isLockedOut whether an erasure has locked their placement. For some seconds they then don't count
   * as waiting: the organisation needs that long to catch up, and who sends as fast as it gets responses
   * sends little meanwhile.
   */
  count(tenantId: string, cost: number, isLockedOut: boolean): void {
    const nowMs = this.#options.nowMs()
    this.#arrivals.count(tenantId, cost)
    if (isLockedOut) this.#lockedOut.count(tenantId, cost)
    const hasMuch = this.#options.reservedBy(tenantId) - this.#lockedOut.amountOf(tenantId) > sliceBytes
    if (hasMuch && !this.#isSteady(tenantId, nowMs)) this.#floodAtMs.set(tenantId, nowMs)
    if (!this.#isFlood(tenantId)) this.#calmAtMs.set(tenantId, nowMs)
    this.adjust()
  }

  /**
   * Adjusts the limit where a step is over. Call it at every commit too: a flood may wait while nothing
   * arrives.
   */
  adjust(): void {
    const nowMs = this.#options.nowMs()
    if (nowMs - this.#adjustedMs < stepMs) return
    const steps = (nowMs - this.#adjustedMs) / stepMs
    this.#adjustedMs = nowMs
    forgetBefore(this.#floodAtMs, nowMs - floodMs)
    forgetBefore(this.#calmAtMs, nowMs - presentMs)
    forgetBefore(this.#steadyAtMs, nowMs - floodMs)
    for (const flood of this.#floodAtMs.keys()) this.#calmAtMs.delete(flood)
    if (this.#floodAtMs.size === 0 || this.#calmAtMs.size === 0) this.#limit = Number.POSITIVE_INFINITY
    else if (this.#options.areCoresShort?.()) this.#lower()
    else this.#raise(steps)
  }

  /** Bytes that the organisation may commit in a millisecond; infinite where it has no limit. */
  limitOf(tenantId: string): number {
    return this.#isFlood(tenantId) ? this.#limit : Number.POSITIVE_INFINITY
  }

  /**
   * The organisation is no flood for {@link floodMs}, because it sends at its own pace: its rows wait because
   * something delayed them, and they need to catch up.
   */
  exempt(tenantId: string): void {
    this.#steadyAtMs.set(tenantId, this.#options.nowMs())
    this.#floodAtMs.delete(tenantId)
  }

  #isFlood(tenantId: string): boolean {
    return this.#floodAtMs.has(tenantId)
  }

  #isSteady(tenantId: string, nowMs: number): boolean {
    const steadyMs = this.#steadyAtMs.get(tenantId)
    return steadyMs !== undefined && nowMs - steadyMs < floodMs
  }

  #lower(): void {
    const { calm, fastest, total } = this.#arriving()
    if (this.#limit === Number.POSITIVE_INFINITY && fastest > 0) this.#limit = fastest
    const least = Math.max((total * leastShareOfAll) / this.#floodAtMs.size, calm * leastShareOfCalm)
    this.#limit = Math.max(this.#limit * factor, least)
  }

  #raise(steps: number): void {
    this.#limit /= factor ** steps
    if (this.#limit > 2 * this.#arriving().fastest) this.#limit = Number.POSITIVE_INFINITY
  }

  /** Bytes in a millisecond: of all, and the most of an organisation and of one that is no flood. */
  #arriving() {
    let [total, fastest, calm] = [0, 0, 0]
    for (const [tenantId, rate] of this.#arrivals.rates()) {
      total += rate
      fastest = Math.max(fastest, rate)
      if (!this.#isFlood(tenantId)) calm = Math.max(calm, rate)
    }
    return { calm, fastest, total }
  }
}

function forgetBefore(times: Map<string, number>, ms: number): void {
  for (const [tenantId, atMs] of times) if (atMs <= ms) times.delete(tenantId)
}
