// A clock that advances only on request, for tests and for replay. Sleepers wake in the order of their
// deadlines, and `advance` lets each of them run before the next, so a test sees the same as with a real
// wait.

import type { Clock, SteadyTime } from './clock.ts'

interface Sleeper {
  readonly atMs: number
  readonly wake: () => void
}

export class ManualClock implements Clock {
  #nowMs: number
  #steadyMs = 0
  #sleepers: Sleeper[] = []

  constructor(startMs: number) {
    this.#nowMs = startMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  nowNs(): bigint {
    return BigInt(this.#nowMs) * 1_000_000n
  }

  steady(): SteadyTime {
    return { boot: 'manual', ms: this.#steadyMs }
  }

  elapsedMs(): number {
    return this.#steadyMs
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const sleeper = { atMs: this.#nowMs + ms, wake: resolve }
      this.#sleepers.push(sleeper)
      signal?.addEventListener(
        'abort',
        () => {
          this.#sleepers = this.#sleepers.filter((other) => other !== sleeper)
          resolve()
        },
        { once: true },
      )
    })
  }

  /** Number of waiting sleepers; a test waits for this before it advances time. */
  get waiting(): number {
    return this.#sleepers.length
  }

  /** Sets the wall clock by `byMs`; no time passes, and nobody wakes. */
  set(byMs: number): void {
    this.#nowMs += byMs
  }

  /** Advances time, or sets it back (a corrected clock), and wakes sleepers that are due. */
  async advance(ms: number): Promise<void> {
    this.#nowMs += ms
    // Only the wall clock can go back.
    this.#steadyMs += Math.max(0, ms)
    for (;;) {
      this.#sleepers.sort((a, b) => a.atMs - b.atMs)
      const next = this.#sleepers[0]
      if (next === undefined || next.atMs > this.#nowMs) return
      this.#sleepers.shift()
      next.wake()
      await new Promise<void>((resolve) => setImmediate(resolve))
    }
  }
}
