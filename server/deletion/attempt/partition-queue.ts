// Runs the work of several attempts on partitions one at a time, by turns between organisations: a rewrite
// takes one of the few engine sessions that commits need too. A turn covers short pieces of work together:
// between two of them an attempt has nothing to wait for, and if each were a turn, a rewrite of a neighbour
// would come between any two (deceptive idleness; Iyer and Druschel, 2001).

import { elapsedMs } from '../../core/clock.ts'
import { FairPool } from '../../core/turns/fair-pool.ts'
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

/** Runs a piece of work when it is its turn. Must not be awaited while a placement is locked. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>

export class PartitionQueue {
  readonly #nowMs: () => number
  readonly #pool: FairPool<null>

  /** @param nowMs a clock that never goes back, milliseconds */
  constructor(nowMs: () => number = elapsedMs) {
    this.#nowMs = nowMs
    this.#pool = new FairPool([null], { kinds, waiting: endless, nowMs })
  }

  /**
   * Runs the whole work of an attempt on partitions, which passes its pieces to `inTurn` one after another.
   */
  async during<T>(request: StoredDeletion, work: (inTurn: InTurn) => Promise<T>): Promise<T> {
    let endTurn = () => {}
    let untilMs = Number.NEGATIVE_INFINITY
    try {
      return await work(async (piece) => {
        if (this.#nowMs() >= untilMs) {
          endTurn()
          endTurn = await this.#begin(request)
          untilMs = this.#nowMs() + turnMs
        }
        return piece()
      })
    } finally {
      endTurn()
    }
  }

  /** Resolves when the turn begins, to a function that ends it. */
  #begin({ requestedBy, tenantId }: StoredDeletion): Promise<() => void> {
    const kind = requestedBy.kind === 'system' ? 'background' : 'asked'
    const ended = Promise.withResolvers<void>()
    return new Promise((resolve, reject) => {
      const turn = () => {
        resolve(ended.resolve)
        return ended.promise
      }
      this.#pool.lend({ owner: tenantId, kind }, turn).catch(reject)
    })
  }
}
