// Who gets the next connection of a pool. An organisation that waits for its own lock, or whose statements
// are slow, holds connections meanwhile, so it may hold only some of them, and the next free one goes to the
// organisation that has used them least. The service itself always finds a connection that no organisation
// holds: each request looks its token up, and leases must be renewed.

import { elapsedMs, systemClock } from '../../core/clock.ts'
import { FairPool } from '../../core/turns/fair-pool.ts'
import { workOwner } from '../../core/work-owner.ts'
import { overloaded } from './refusals.ts'

/** Who waits is limited by the connections of clients and by the time that a statement waits. */
const endless = Number.POSITIVE_INFINITY

/** Connections for the service alone: its look-ups share one statement, and loops ask one by one. */
const forService = 2

/** The share of an organisation beside others, of what organisations may use. */
const shareBesideOthers = 1 / 2

export class ConnectionTurns {
  readonly #pool: FairPool<null>
  readonly #waitMs: number

  /** @param waitMs how long a statement waits for a connection at most, milliseconds */
  constructor(connections: number, waitMs: number) {
    const atLeastOne = (count: number) => Math.max(1, Math.floor(count))
    const forOrganisations = atLeastOne(connections - forService)
    this.#waitMs = waitMs
    this.#pool = new FairPool(new Array<null>(connections).fill(null), {
      kinds: {
        asked: {
          weight: 1,
          atOnceByOwner: atLeastOne(connections - 2 * forService),
          atOnceBesideOthers: atLeastOne(forOrganisations * shareBesideOthers),
          atOnce: forOrganisations,
          waitingByOwner: endless,
        },
        background: {
          weight: 1,
          weightAmongOwners: 4,
          atOnceByOwner: connections,
          atOnce: connections,
          waitingByOwner: endless,
        },
      },
      waiting: endless,
      nowMs: elapsedMs,
    })
  }

  /** Statements that wait for a connection. */
  get waiting(): number {
    return this.#pool.waiting
  }

  /**
   * Resolves when the caller may use a connection, to a function that ends its turn. Throws `overloaded`
   * where that takes too long.
   */
  async begin(): Promise<() => void> {
    const owner = workOwner()
    const kind = owner === null ? 'background' : 'asked'
    const [tooLate, begun] = [new AbortController(), new AbortController()]
    const turn = Promise.withResolvers<() => void>()
    const ended = Promise.withResolvers<void>()
    this.#pool
      .lend({ owner: owner ?? 'service', kind, signal: tooLate.signal }, () => {
        turn.resolve(ended.resolve)
        return ended.promise
      })
      .catch(turn.reject)
    void systemClock
      .sleep(this.#waitMs, begun.signal)
      .then(() => tooLate.abort(overloaded(new Error('No connection was free.'))))
    try {
      return await turn.promise
    } finally {
      begun.abort()
    }
  }
}
