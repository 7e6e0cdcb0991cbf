// How much of the commits one organisation may use while others send too. A large commit of one would make
// the next one of a neighbour wait, so while others send each has small ones. An organisation that sends most
// of what arrives would still keep the engine busy without a break, on every core, and an insert, a chart and
// an erasure of its neighbours would take several times as long. So each of its commits is followed by a
// pause: as long as the commit, and longer while cores are short. Alone it has everything.
// docs/decisions/0040 and 0046 have the measurements.

import type { Clock } from '../../core/clock.ts'
import { Presence } from '../../core/turns/presence.ts'
import { RecentUse } from '../../core/turns/recent-use.ts'
import { groupBytes } from './commit-parts.ts'

/** The limited part of a commit, bytes of encoded rows: some 0.1 s of an insert, on one core. */
const limitedBytes = 8 * 1024 * 1024

/** A pause for each millisecond of a commit while cores are short, milliseconds; otherwise one. */
const shortPausePerMs = 3

export class CommitShares {
  readonly #clock: Pick<Clock, 'steady'>
  readonly #areCoresShort: () => boolean
  readonly #arrivals: RecentUse
  readonly #senders: Presence
  /** Ends of pauses. */
  readonly #pausedUntilMs = new Map<string, number>()

  constructor(clock: Pick<Clock, 'steady'>, areCoresShort: () => boolean = () => false) {
    this.#areCoresShort = areCoresShort
    this.#clock = clock
    const nowMs = () => this.nowMs()
    this.#arrivals = new RecentUse(nowMs)
    this.#senders = new Presence(nowMs)
  }

  /** The time of {@link ended}, milliseconds. */
  nowMs(): number {
    return this.#clock.steady().ms
  }

  /** Counts rows that have arrived. */
  count(tenantId: string, bytes: number): void {
    this.#arrivals.count(tenantId, bytes)
    this.#senders.note(tenantId)
  }

  /** Whether the organisation sends most of what arrives, while others send too. */
  isLimited(tenantId: string): boolean {
    return !this.#senders.isAlone(tenantId) && this.#arrivals.hasMost(tenantId)
  }

  /** The most bytes of the organisation in the next commit. */
  mostBytes(tenantId: string): number {
    return this.#senders.isAlone(tenantId) ? groupBytes : limitedBytes
  }

  /**
   * A commit, which began at `beganMs`, has ended. Only a flood pauses, one that has more waiting than fits
   * into its next commit: beside others that send little, everybody sends most of what arrives.
   *
   * @param waiting the bytes that wait of each organisation with rows in the commit
   */
  ended(waiting: ReadonlyMap<string, number>, beganMs: number): void {
    const nowMs = this.nowMs()
    const pausePerMs = this.#areCoresShort() ? shortPausePerMs : 1
    for (const [tenantId, bytes] of waiting) {
      const isFlood = bytes > limitedBytes && this.isLimited(tenantId)
      if (isFlood) this.#pausedUntilMs.set(tenantId, nowMs + (nowMs - beganMs) * pausePerMs)
    }
  }

  /** Milliseconds until the next commit may have rows of the organisation; 0 where it may now. */
  pauseMs(tenantId: string): number {
    const untilMs = this.#pausedUntilMs.get(tenantId)
    if (untilMs === undefined) return 0
    const restMs = untilMs - this.nowMs()
    if (restMs > 0) return restMs
    this.#pausedUntilMs.delete(tenantId)
    return 0
  }
}
