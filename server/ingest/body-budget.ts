// Limits the request bodies that are in memory at once, over all protocols: from before their first byte
// until they are decoded. Rows in the writer have a limit of their own. Organisations share the budget fairly
// (core/fair-shares): a body of an organisation with less than its equal part is admitted, and bodies of the
// organisation with the most are ended for it. A body counts the bytes that have arrived and not the declared
// length, so that a slow sender reserves no more than it has sent. A single body is admitted whatever its
// size; the size of one body has its own limit.

import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { FairShares, type Share } from '../core/turns/fair-shares.ts'
import { type Arrival, Arrivals } from './arrivals.ts'

/** Bodies are decoded as soon as they are complete, so memory is free again very soon. */
const retryAfterSeconds = 1

/**
 * What a body counts before its first byte: its connection, its HTTP request and the state of its
 * decompression, which take some 70 kB together with its first block (docs/decisions/0033).
 */
export const emptyBodyBytes = 64 * 1024

/**
 * The most bodies of one organisation in memory at once; most of them are incomplete. A thousand agents that
 * send every ten seconds over uplinks of 100 kbit/s have half as many in progress; the bodies of most senders
 * take milliseconds.
 */
const bodiesMax = 512

export class BodyBudget {
  readonly #shares: FairShares
  readonly #arrivals: Arrivals

  constructor(limitBytes: number, clock: Clock) {
    this.#shares = new FairShares(limitBytes)
    this.#arrivals = new Arrivals(clock)
  }

  get reservedBytes(): number {
    return this.#shares.reserved
  }

  reservedBy(tenantId: string): number {
    return this.#shares.reservedBy(tenantId)
  }

  /**
   * Throws `too_many_requests` where the organisation has as many bodies in progress as it may have, and
   * `overloaded` where there is no memory left.
   *
   * @param onEnd called where the budget ends the body, with `overloaded` or `request_timeout`; the
   * reservation is released by then, and the caller must free the bytes
   */
  open(tenantId: string, onEnd: (reason: AppError) => void): BodyReservation {
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
    const reservation = new BodyReservation(share, arrival)
    try {
      reservation.grow(emptyBodyBytes)
    } catch (error) {
      reservation.release()
      throw error
    }
    return reservation
  }

  /** Ends the checks of how fast bodies arrive; for the end of the process. */
  close(): Promise<void> {
    return this.#arrivals.close()
  }
}

const tooSlow = 'The body arrived too slowly; send smaller bodies over slow connections.'

/** The part of the budget that one body has reserved. */
export class BodyReservation {
  readonly #share: Share
  readonly #arrival: Arrival

  constructor(share: Share, arrival: Arrival) {
    this.#share = share
    this.#arrival = arrival
  }

  /** Counts bytes from the network; after decompression the body may have another size. */
  took(bytes: number): void {
    this.#arrival.took(bytes)
  }

  /** The body is complete and waits to be decoded. */
  isWhole(): void {
    this.#arrival.end()
  }

  /** Reserves more bytes. Throws `overloaded` where there is no memory left. */
  grow(bytes: number): void {
    if (!this.#share.grow(bytes)) throw new AppError('overloaded', { retryAfterSeconds })
  }

  /** Idempotent; the caller must not use the body afterwards. */
  release(): void {
    this.#arrival.end()
    this.#share.release()
  }
}
