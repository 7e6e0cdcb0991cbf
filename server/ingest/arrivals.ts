// Ends bodies that arrive too slowly. What a body has brought is in memory until it is whole, so its sender
// has to keep sending: in each window of its life it brings the least rate, or it is ended and its memory let
// go. A rate over the whole life would not do, because a sender could bring much at once and then stop.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../core/clock.ts'

/**
 * The first window is the grace. Long enough for a radio link that is gone for some seconds and for TCP to
 * send again; exporters of the OpenTelemetry SDKs give up a request after 10 seconds.
 */
const windowMs = 10_000

/**
 * What a body brings in a window at least, bytes: 2 kB/s. GPRS, the slowest uplink in use, sends 3 to 5 kB/s.
 * A compressed body counts as it is sent, not as it is read.
 */
const leastBytes = 20_000

/**
 * How long a body may take in all, however steadily it comes: as long as over HTTP for a
 * whole request to arrive.
 */
const longestMs = 60_000

/** How often is looked, milliseconds. */
const lookMs = 5_000

export class Arrivals {
  readonly #clock: Clock
  readonly #arriving = new Set<Arrival>()
  readonly #closing = new AbortController()
  #loop: Promise<void> | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * A body begins to arrive.
   *
   * @param onSlow called once, in a turn of its own, when it is too slow; it has ended by then. Must not
   *   throw.
   */
  open(onSlow: () => void): Arrival {
    const arrival = new Arrival(this.#clock.nowMs(), {
      onSlow,
      onEnd: () => this.#arriving.delete(arrival),
    })
    this.#arriving.add(arrival)
    this.#loop ??= this.#look()
    return arrival
  }

  /** Looks no more. */
  close(): Promise<void> {
    this.#closing.abort()
    return this.#loop ?? Promise.resolve()
  }

  async #look(): Promise<void> {
    const { signal } = this.#closing
    while (this.#arriving.size > 0 && !signal.aborted) {
      await this.#clock.sleep(lookMs, signal)
      // What came while the event loop was busy is read before it is missed.
      await nextTurn()
      const nowMs = this.#clock.nowMs()
      for (const arrival of [...this.#arriving]) if (arrival.isSlow(nowMs)) arrival.giveUp()
    }
    this.#loop = null
  }
}

export class Arrival {
  readonly #beganMs: number
  readonly #ends: { readonly onSlow: () => void; readonly onEnd: () => void }
  #windowMs: number
  #windowBytes = 0

  constructor(nowMs: number, ends: { readonly onSlow: () => void; readonly onEnd: () => void }) {
    this.#beganMs = nowMs
    this.#windowMs = nowMs
    this.#ends = ends
  }

  /** So many bytes have come from the network. */
  took(bytes: number): void {
    this.#windowBytes += bytes
  }

  /** The body is whole, or is given up. Idempotent. */
  end(): void {
    this.#ends.onEnd()
  }

  /** Begins a new window where one is over. A clock that stepped back begins one too. */
  isSlow(nowMs: number): boolean {
    if (nowMs - this.#beganMs >= longestMs) return true
    const passedMs = nowMs - this.#windowMs
    if (passedMs >= 0 && passedMs < windowMs) return false
    const isSlow = passedMs >= 0 && this.#windowBytes < leastBytes
    this.#windowMs = nowMs
    this.#windowBytes = 0
    return isSlow
  }

  giveUp(): void {
    this.end()
    this.#ends.onSlow()
  }
}
