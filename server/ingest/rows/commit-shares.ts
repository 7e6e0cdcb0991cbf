// How much of the commits one organisation may use while others send too. A large commit of one would make
// the next one of a neighbour wait, so while others send each has small ones. An organisation that sends most
// of what arrives would still keep the engine busy without a break, on every core, and an insert, a chart and
// an erasure of its neighbours would take several times as long. So each of its commits has a low priority
// and is followed by a pause: as long as the commit, and longer while cores are short. Alone it has
// everything. docs/decisions/0040 and 0046 have the measurements.

import type { Clock } from '../../core/clock.ts'
import { shortPausePerMs } from '../../core/turns/core-use.ts'
import { Presence } from '../../core/turns/presence.ts'
import { RecentUse } from '../../core/turns/recent-use.ts'
import { groupBytes } from './commit-parts.ts'
import { sliceBytes } from './pending-batch.ts'

interface CommitSharesOptions {
  readonly clock: Pick<Clock, 'elapsedMs'>
  /** Returns the bytes of the organisation that wait or are being committed. */
  readonly reservedBy: (tenantId: string) => number
  /** Whether the process uses most of its cores; absent: never. */
  readonly areCoresShort?: () => boolean
}

export class CommitShares {
  readonly #options: CommitSharesOptions
  readonly #arrivals: RecentUse
  readonly #senders: Presence
  /** Ends of pauses. */
  readonly #pausedUntilMs = new Map<string, number>()

  constructor(options: CommitSharesOptions) {
    this.#options = options
    const nowMs = () => this.nowMs()
    this.#arrivals = new RecentUse(nowMs)
    this.#senders = new Presence(nowMs)
  }

  /** The time of {@link ended}, milliseconds. */
  nowMs(): number {
    return this.#options.clock.elapsedMs()
  }

  /** Counts rows that have arrived. */
  count(tenantId: string, bytes: number): void {
    this.#arrivals.count(tenantId, bytes)
    this.#senders.note(tenantId)
  }

  /**
   * Whether the organisation sends most of what arrives, while others send too, and has more than fits into a
   * commit: beside others that send little, everybody sends most.
   */
  isFlood(tenantId: string): boolean {
    const isMuch = this.#options.reservedBy(tenantId) > sliceBytes
    return isMuch && !this.#senders.isAlone(tenantId) && this.#arrivals.hasMost(tenantId)
  }

  /** The most bytes of the organisation in the next commit. */
  mostBytes(tenantId: string): number {
    return this.#senders.isAlone(tenantId) ? groupBytes : sliceBytes
  }

  /** A commit with rows of these organisations, which began at `beganMs`, has ended. */
  ended(tenantIds: Iterable<string>, beganMs: number): void {
    const nowMs = this.nowMs()
    const pausePerMs = this.#options.areCoresShort?.() ? shortPausePerMs : 1
    for (const tenantId of tenantIds) {
      if (this.isFlood(tenantId)) this.#pausedUntilMs.set(tenantId, nowMs + (nowMs - beganMs) * pausePerMs)
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
