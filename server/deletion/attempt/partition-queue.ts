// Runs the work of several attempts on partitions one at a time, by turns between organisations: a rewrite
// takes one of the few engine sessions that commits need too.

import { elapsedMs } from '../../core/clock.ts'
import { FairPool } from '../../core/turns/fair-pool.ts'
import type { StoredDeletion } from '../requests/request.ts'

const endless = Number.POSITIVE_INFINITY
const one = { atOnceByOwner: 1, atOnce: 1, waitingByOwner: endless }

/** Retention is less urgent than what a person has requested. */
const kinds = { asked: { ...one, weight: 4 }, background: { ...one, weight: 1 } } as const

export class PartitionQueue {
  readonly #pool = new FairPool([null], { kinds, waiting: endless, nowMs: elapsedMs })

  /**
   * Runs a piece of a request's work when it is its turn. Must not be awaited while a placement is locked.
   */
  run<T>({ requestedBy, tenantId }: StoredDeletion, work: () => Promise<T>): Promise<T> {
    const kind = requestedBy.kind === 'system' ? 'background' : 'asked'
    return this.#pool.lend({ owner: tenantId, kind }, work)
  }
}
