// How much of the commits one organisation may use while others send too. A large commit of one would make
// the next one of a neighbour wait, so while others send each has small ones. A flood would still keep every
// core busy, so while cores are short its commits have a low priority and pauses between them
// (flood-rate.ts). Alone an organisation has everything. docs/decisions/0040 and 0054 have the measurements.

import type { Clock } from '../../core/clock.ts'
import { Presence } from '../../core/turns/presence.ts'
import { RecentUse } from '../../core/turns/recent-use.ts'
import { CommitCost, type CostedRows } from './commit-cost.ts'
import { groupBytes } from './commit-parts.ts'
import { FloodRate, type FloodRateOptions } from './flood-rate.ts'
import { sliceBytes } from './pending-batch.ts'

interface CommitSharesOptions extends Pick<FloodRateOptions, 'areCoresShort' | 'reservedBy'> {
  readonly clock: Pick<Clock, 'elapsedMs'>
}

/** A part of a commit; all of an organisation count together. */
interface CommittedRows extends CostedRows {
  readonly place: { readonly tenantId: string }
}

interface Pause {
  readonly beganMs: number
  readonly untilMs: number
  /** Of the bodies that came in its second half. */
  lateBytes: number
}

/** Shorter halves of pauses say nothing about who sends, milliseconds. */
const leastJudgedMs = 100

/**
 * Who sends at least this share of its usual rate in so many pauses, one after the other, sends at its own
 * pace. In one pause a flood may do so too: when it begins, all its first requests are still read.
 */
const steadyShare = 0.5
const steadyPauses = 3

/** However low the limit of floods is, milliseconds: exporters wait ten seconds for a response. */
const longestPauseMs = 2_000

export class CommitShares {
  readonly #clock: CommitSharesOptions['clock']
  readonly #floods: FloodRate
  readonly #senders: Presence
  /** Bytes of bodies. */
  readonly #bodies: RecentUse
  readonly #pauses = new Map<string, Pause>()
  /** In how many pauses, up to now, an organisation sent as before. */
  readonly #steadyIn = new Map<string, number>()

  constructor(options: CommitSharesOptions) {
    this.#clock = options.clock
    const nowMs = () => this.nowMs()
    this.#floods = new FloodRate({ ...options, nowMs })
    this.#senders = new Presence(nowMs)
    this.#bodies = new RecentUse(nowMs)
  }

  /** The time of {@link ended}, milliseconds. */
  nowMs(): number {
    return this.#clock.elapsedMs()
  }

  /** Counts a body that was received and is not decoded yet. */
  received(tenantId: string, bytes: number): void {
    this.#bodies.count(tenantId, bytes)
    const pause = this.#pauses.get(tenantId)
    if (pause !== undefined && isInSecondHalf(pause, this.nowMs())) pause.lateBytes += bytes
  }

  /**
   * Counts rows that now wait, by what they cost (commit-cost.ts).
   *
   * @param isLockedOut whether an erasure has locked their placement
   */
  count(tenantId: string, cost: number, isLockedOut = false): void {
    this.#floods.count(tenantId, cost, isLockedOut)
    this.#senders.note(tenantId)
  }

  /** Whether the organisation is a flood that has a limit at present. */
  isLimited(tenantId: string): boolean {
    return this.#floods.limitOf(tenantId) < Number.POSITIVE_INFINITY
  }

  /** The highest cost of the organisation in the next commit. */
  mostBytes(tenantId: string): number {
    return this.#senders.isAlone(tenantId) ? groupBytes : sliceBytes
  }

  /** A commit of these rows, which began at `beganMs`, has ended. */
  ended(rows: Iterable<CommittedRows>, beganMs: number): void {
    const nowMs = this.nowMs()
    this.#floods.adjust()
    const costs = new Map<string, CommitCost>()
    for (const slice of rows) {
      const { tenantId } = slice.place
      const cost = costs.get(tenantId) ?? new CommitCost()
      costs.set(tenantId, cost)
      cost.add(slice)
    }
    for (const [tenantId, cost] of costs) {
      const nextMs = beganMs + cost.value / this.#floods.limitOf(tenantId)
      if (nextMs <= nowMs) continue
      const untilMs = Math.min(nextMs, nowMs + longestPauseMs)
      this.#pauses.set(tenantId, { beganMs: nowMs, untilMs, lateBytes: 0 })
    }
  }

  /** Milliseconds until the next commit may have rows of the organisation; 0 where it may now. */
  pauseMs(tenantId: string): number {
    const pause = this.#pauses.get(tenantId)
    if (pause === undefined) return 0
    const restMs = pause.untilMs - this.nowMs()
    if (restMs > 0) return restMs
    this.#pauses.delete(tenantId)
    this.#judge(tenantId, pause)
    return 0
  }

  /**
   * A flood sends as fast as it gets responses, so nothing of it comes while it has no commit. Rows show this
   * less well: bodies of a flood wait for their turn to be decoded.
   */
  #judge(tenantId: string, { beganMs, lateBytes, untilMs }: Pause): void {
    const halfMs = (untilMs - beganMs) / 2
    const usual = this.#bodies.rateOf(tenantId)
    if (halfMs < leastJudgedMs) return
    const isSteady = lateBytes > 0 && lateBytes >= halfMs * usual * steadyShare
    const pauses = isSteady ? (this.#steadyIn.get(tenantId) ?? 0) + 1 : 0
    if (pauses === steadyPauses) this.#floods.exempt(tenantId)
    if (pauses > 0 && pauses < steadyPauses) this.#steadyIn.set(tenantId, pauses)
    else this.#steadyIn.delete(tenantId)
  }
}

/** In the first half, requests still come for the responses of the commit before. */
function isInSecondHalf({ beganMs, untilMs }: Pause, nowMs: number): boolean {
  return nowMs >= (beganMs + untilMs) / 2 && nowMs < untilMs
}
