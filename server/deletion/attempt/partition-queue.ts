// Whose partition is erased next, where several attempts are at work: one at a time, because a rewrite takes one of the
// few sessions that commits have too, and by turns between organisations.

import { elapsedMs } from '../../core/clock.ts'
import { FairPool } from '../../telemetry/fair-pool.ts'
import type { StoredDeletion } from '../requests/request.ts'

const endless = Number.POSITIVE_INFINITY
const one = { atOnceByOwner: 1, atOnce: 1, waitingByOwner: endless }

/** What retention asks for has less haste than what somebody does. */
const kinds = { asked: { ...one, weight: 4 }, background: { ...one, weight: 1 } } as const

/** Before the names of requesters that are the service itself. */
const ownPrefix = 'system:'

export class PartitionQueue {
  readonly #pool = new FairPool([null], { kinds, waiting: endless, nowMs: elapsedMs })

  /** Does a piece of a request's work when it is its turn. Never to be awaited while a placement is held. */
  run<T>({ requestedBy, tenantId }: StoredDeletion, work: () => Promise<T>): Promise<T> {
    const kind = requestedBy.startsWith(ownPrefix) ? 'background' : 'asked'
    return this.#pool.lend({ owner: tenantId, kind }, work)
  }
}
