// A bound on the request bodies that are in memory at once, of all protocols together: from before their
// first byte until they are decoded. What the writer holds has a bound of its own. Organisations share it
// fairly (core/fair-shares): one that holds less than its equal part is let in, and bodies of whoever
// holds the most give way for it. A body counts as it arrives and not by what its sender declares, so that
// a slow sender holds no more than it has sent. Whatever its size, a body that is alone is let in; the
// limit for one body is another.

import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { FairShares, type Share } from '../core/fair-shares.ts'
import { type Arrival, Arrivals } from './arrivals.ts'

/** Bodies are decoded as soon as they are whole, so there is room again very soon. */
const retryAfterSeconds = 1

/**
 * What a body counts before its first byte: its connection, its request and the state that uncompresses it,
 * which have some 70 kB together with the first block of its bytes (docs/decisions/0033).
 */
export const emptyBodyBytes = 64 * 1024

/**
 * Bodies of an organisation that may be in memory at once, unfinished ones above all. A thousand agents that
 * send every ten seconds over an uplink of 100 kbit/s have half as many under way; the bodies of most
 * senders take milliseconds.
 */
const bodiesMax = 512

export class BodyBudget {
  readonly #shares: FairShares
  readonly #arrivals: Arrivals

  constructor(limitBytes: number, clock: Clock) {
    this.#shares = new FairShares(limitBytes)
    this.#arrivals = new Arrivals(clock)
  }

  get heldBytes(): number {
    return this.#shares.held
  }

  heldBy(tenantId: string): number {
    return this.#shares.heldBy(tenantId)
  }

  /**
   * Throws `too_many_requests` where the organisation has as many bodies under way as it may have,
   * `overloaded` where there is no room.
   *
   * @param onEnd called where the body is ended from here, with `overloaded` or `request_timeout`; it is
   *   released by then, and its bytes have to be let go
   */
  open(tenantId: string, onEnd: (reason: AppError) => void): BodyHold {
    if (this.#shares.countOf(tenantId) >= bodiesMax) {
      throw new AppError('too_many_requests', {
        sentence: `Your organisation has ${bodiesMax} bodies under way; repeat after Retry-After.`,
        retryAfterSeconds,
      })
    }
    const share = this.#shares.open(tenantId, () => {
      arrival.end()
      onEnd(new AppError('overloaded', { retryAfterSeconds }))
    })
    const arrival = this.#arrivals.open(() => {
      share.release()
      onEnd(new AppError('request_timeout', { sentence: tooSlow }))
    })
    const hold = new BodyHold(share, arrival)
    try {
      hold.grow(emptyBodyBytes)
    } catch (error) {
      hold.release()
      throw error
    }
    return hold
  }

  /** Looks no more at how fast bodies arrive; for the end of the process. */
  close(): Promise<void> {
    return this.#arrivals.close()
  }
}

const tooSlow = 'The body arrived too slowly; send smaller ones where the way here is slow.'

/** One body's part. */
export class BodyHold {
  readonly #share: Share
  readonly #arrival: Arrival

  constructor(share: Share, arrival: Arrival) {
    this.#share = share
    this.#arrival = arrival
  }

  /** Bytes that have come from the network, which need not be what the body holds. */
  took(bytes: number): void {
    this.#arrival.took(bytes)
  }

  /** The body waits to be decoded. */
  isWhole(): void {
    this.#arrival.end()
  }

  /** Throws `overloaded` where there is no room for more. */
  grow(bytes: number): void {
    if (!this.#share.grow(bytes)) throw new AppError('overloaded', { retryAfterSeconds })
  }

  /** Idempotent; the body is garbage from here on. */
  release(): void {
    this.#arrival.end()
    this.#share.release()
  }
}
