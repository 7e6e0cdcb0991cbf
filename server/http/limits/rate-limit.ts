// Limits how often something may happen for each key, such as an address: a burst at once, and then a rate.
// The generic cell rate algorithm (ITU-T I.371) keeps one number for each key, and the number of keys is
// limited, so that keys can't fill the memory.

import type { Clock } from '../../core/clock.ts'

/**
 * The usual number of keys where they are organisations: far more than one process serves. One that is
 * forgotten begins with a full burst.
 */
export const organisationsKept = 10_000

interface RateLimitOptions {
  readonly clock: Pick<Clock, 'elapsedMs'>
  /** How many may happen at once after a pause. */
  readonly burst: number
  /** The permanent rate. */
  readonly perSecond: number
  /** The most keys that are remembered; above it the least recently used one is forgotten. */
  readonly keysMax: number
}

export class RateLimit {
  readonly #options: RateLimitOptions
  /** By key, the time at which everything so far is within the rate, ms. Least recently used first. */
  readonly #clearAtMs = new Map<string, number>()

  constructor(options: RateLimitOptions) {
    this.#options = options
  }

  /**
   * Counts one. Returns null where it is within the limit, and otherwise the seconds until the next one is.
   */
  take(key: string): number | null {
    const { burst, clock, perSecond } = this.#options
    const nowMs = clock.elapsedMs()
    const stepMs = 1000 / perSecond
    const clearAtMs = Math.max(nowMs, this.#clearAtMs.get(key) ?? 0) + stepMs
    const overMs = clearAtMs - nowMs - burst * stepMs
    if (overMs > 0) {
      this.#keep(key, clearAtMs - stepMs)
      return Math.ceil(overMs / 1000)
    }
    this.#keep(key, clearAtMs)
    return null
  }

  /** Whether the next one would be above the limit; counts nothing. */
  isOver(key: string): boolean {
    const { burst, clock, perSecond } = this.#options
    const aheadMs = (this.#clearAtMs.get(key) ?? 0) - clock.elapsedMs()
    return aheadMs > (burst - 1) * (1000 / perSecond)
  }

  /** Number of remembered keys. */
  get size(): number {
    return this.#clearAtMs.size
  }

  #keep(key: string, clearAtMs: number): void {
    this.#clearAtMs.delete(key)
    this.#clearAtMs.set(key, clearAtMs)
    if (this.#clearAtMs.size <= this.#options.keysMax) return
    const [oldest] = this.#clearAtMs.keys()
    if (oldest !== undefined) this.#clearAtMs.delete(oldest)
  }
}
