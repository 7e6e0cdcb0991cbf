// Runs the work of several attempts on partitions one at a time, by turns between organisations: a rewrite
// takes one of the few engine sessions that commits need too. A turn covers short pieces of work together:
// between two of them an attempt has nothing to wait for, and if each were a turn, a rewrite of a neighbour
// would come between any two (deceptive idleness; Iyer and Druschel, 2001). Who erases all the time gives way
// earlier: to a neighbour with little to erase, each turn of half a second is as long as its whole erasure.

import { elapsedMs } from '../../core/clock.ts'
import { FairPool } from '../../core/turns/fair-pool.ts'
import { RecentUse } from '../../core/turns/recent-use.ts'
import type { StoredDeletion } from '../requests/request.ts'

const endless = Number.POSITIVE_INFINITY
const one = { atOnceByOwner: 1, atOnce: 1, waitingByOwner: endless }

/** Retention is less urgent than what a person has requested, also one of another organisation. */
const kinds = {
  asked: { ...one, weight: 4, weightAmongOwners: 4 },
  background: { ...one, weight: 1 },
} as const

/** After this much time a turn ends with its current piece of work, milliseconds. */
const turnMs = 500

/**
 * Whoever has used more than a turn lately gives way with its current piece to one that has used less than
 * this share of that. Between some that all erase much, nobody does: their pieces in turn would let all
 * attempts end late, and one that waits for an attempt to end would wait for all of them.
 */
const littleShare = 0.1

/** Runs a piece of work when it is its turn. Must not be awaited while a placement is locked. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>

export class PartitionQueue {
  readonly #nowMs: () => number
  readonly #pool: FairPool<null>
  /** Milliseconds of work on partitions by organisation. */
  readonly #use: RecentUse
  /** Organisations whose attempt waits for a turn; each has one attempt at a time. */
  readonly #waiting = new Set<string>()

  /** @param nowMs a clock that never goes back, milliseconds */
  constructor(nowMs: () => number = elapsedMs) {
    this.#nowMs = nowMs
    this.#pool = new FairPool([null], { kinds, waiting: endless, nowMs })
    this.#use = new RecentUse(nowMs)
  }

  /**
   * Runs the whole work of an attempt on partitions, which passes its pieces to `inTurn` one after another.
   */
  async during<T>(request: StoredDeletion, work: (inTurn: InTurn) => Promise<T>): Promise<T> {
    let endTurn = () => {}
    let untilMs = Number.NEGATIVE_INFINITY
    try {
      return await work(async (piece) => {
        if (this.#nowMs() >= untilMs || this.#mustGiveWay(request.tenantId)) {
          endTurn()
          endTurn = await this.#begin(request)
          untilMs = this.#nowMs() + turnMs
        }
        const startedMs = this.#nowMs()
        try {
          return await piece()
        } finally {
          this.#use.count(request.tenantId, this.#nowMs() - startedMs)
        }
      })
    } finally {
      endTurn()
    }
  }

  #mustGiveWay(tenantId: string): boolean {
    const used = this.#use.amountOf(tenantId)
    if (used <= turnMs) return false
    return [...this.#waiting].some((other) => this.#use.amountOf(other) < used * littleShare)
  }

  /** Resolves when the turn begins, to a function that ends it. */
  #begin({ requestedBy, tenantId }: StoredDeletion): Promise<() => void> {
    const kind = requestedBy.kind === 'system' ? 'background' : 'asked'
    const ended = Promise.withResolvers<void>()
    this.#waiting.add(tenantId)
    return new Promise((resolve, reject) => {
      const turn = () => {
        this.#waiting.delete(tenantId)
        resolve(ended.resolve)
        return ended.promise
      }
      this.#pool.lend({ owner: tenantId, kind }, turn).catch(reject)
    })
  }
}
