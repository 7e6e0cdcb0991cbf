// Ends bodies that arrive too slowly. The received part of a body stays in memory until the body is complete,
// so its sender must keep sending: in each time window it has to send at the minimum rate, otherwise the body
// is ended and its memory freed. A rate over the whole time would not be enough, because a sender could send
// much at once and then stop.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../core/clock.ts'

/**
 * The first window is a grace period: long enough for a radio link that is lost for some seconds, with TCP's
 * retransmission. Exporters of the OpenTelemetry SDKs give up a request after 10 seconds.
 */
const windowMs = 10_000

/**
 * The least bytes that a body must receive in a window: 2 kB/s. GPRS, the slowest uplink in use, sends 3 to 5
 * kB/s. Compressed bytes count as they are sent.
 */
const leastBytes = 20_000

/** The most time that a body may take, even at a steady rate: the same as for a whole HTTP request. */
const longestMs = 60_000

/** Interval of the checks, milliseconds. */
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
   * Begins to watch a body.
   *
   * @param onSlow called once when the body is too slow, in a turn of the event loop of its own; the body has
   * ended by then. Must not throw.
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

  /** Ends the checks. */
  close(): Promise<void> {
    this.#closing.abort()
    return this.#loop ?? Promise.resolve()
  }

  async #look(): Promise<void> {
    const { signal } = this.#closing
    while (this.#arriving.size > 0 && !signal.aborted) {
      await this.#clock.sleep(lookMs, signal)
      // Bytes that came while the event loop was busy are read before the body counts as slow.
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

  /** Counts `bytes` bytes from the network. */
  took(bytes: number): void {
    this.#windowBytes += bytes
  }

  /** The body is complete or was given up. Idempotent. */
  end(): void {
    this.#ends.onEnd()
  }

  /** Begins a new window where the current one is over, or where the clock went back. */
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
