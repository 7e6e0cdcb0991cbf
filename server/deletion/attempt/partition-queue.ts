// Runs the work of several attempts on partitions one piece at a time, by turns between organisations: a
// rewrite takes one of the few engine sessions that commits need too. A turn covers short pieces of work
// together: between two of them an attempt has nothing to wait for, and if each were a turn, a rewrite of a
// neighbour would come between any two (deceptive idleness; Iyer and Druschel, 2001). The copy of a large
// partition has many pieces, so short work of others comes between them, but no other large copy: together
// they could fill the disk, and each would take so long that merges make it useless.

import { FairPool, type LendRequest } from '../../core/turns/fair-pool.ts'
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

/** How an attempt waits for those of others. */
export interface PartitionTurns {
  readonly inTurn: InTurn
  /**
   * Runs work that makes a large copy when no other attempt makes one; its pieces are passed to `inTurn`.
   * Must not be awaited in a piece of work.
   */
  readonly withLargeCopy: InTurn
}

export class PartitionQueue {
  readonly #nowMs: () => number
  readonly #pool: FairPool<null>
  readonly #largeCopies: FairPool<null>

  /** @param nowMs a clock that never goes back, milliseconds */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
    this.#pool = new FairPool([null], { kinds, waiting: endless, nowMs })
    this.#largeCopies = new FairPool([null], { kinds, waiting: endless, nowMs })
  }

  /** Runs the whole work of an attempt on partitions, which passes its pieces on one after another. */
  async during<T>(request: StoredDeletion, work: (turns: PartitionTurns) => Promise<T>): Promise<T> {
    const asker = askerOf(request)
    let endTurn = () => {}
    let untilMs = Number.NEGATIVE_INFINITY
    const inTurn: InTurn = async (piece) => {
      if (this.#nowMs() >= untilMs) {
        endTurn()
        endTurn = await this.#begin(asker)
        untilMs = this.#nowMs() + turnMs
      }
      return piece()
    }
    const withLargeCopy: InTurn = (large) => {
      // Who makes one now needs turns to finish it.
      endTurn()
      untilMs = Number.NEGATIVE_INFINITY
      return this.#largeCopies.lend(asker, large)
    }
    try {
      return await work({ inTurn, withLargeCopy })
    } finally {
      endTurn()
    }
  }

  /** Resolves when the turn begins, to a function that ends it. */
  #begin(asker: LendRequest): Promise<() => void> {
    const ended = Promise.withResolvers<void>()
    return new Promise((resolve, reject) => {
      const turn = () => {
        resolve(ended.resolve)
        return ended.promise
      }
      this.#pool.lend(asker, turn).catch(reject)
    })
  }
}

function askerOf({ requestedBy, tenantId }: StoredDeletion): LendRequest {
  return { owner: tenantId, kind: requestedBy.kind === 'system' ? 'background' : 'asked' }
}
