// Work of a separate thread, which does one piece at a time. The next piece is always of the owner that has
// used the least time (fair-queue.ts). While cores are short, an owner that uses most of them is held between
// two pieces (headroom.ts).

import { FairQueue } from './fair-queue.ts'
import type { Headroom } from './headroom.ts'

interface ThreadTurnsOptions {
  /** A clock that never goes back, milliseconds. */
  readonly nowMs: () => number
  /** Holds the work of an owner for a moment; absent: of none. */
  readonly headroom?: Headroom
}

export class ThreadTurns {
  readonly #queue = new FairQueue<() => void>()
  readonly #nowMs: () => number
  readonly #headroom: Headroom | null
  #isBusy = false
  /** Whether it waits for the end of a pause. */
  #isWaiting = false

  constructor({ headroom, nowMs }: ThreadTurnsOptions) {
    this.#nowMs = nowMs
    this.#headroom = headroom ?? null
  }

  /** Runs the work at the owner's turn and returns its result. */
  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((resolve) => {
      // Its cost is known when it ends, and nothing else begins before that.
      this.#queue.push(owner, 0, resolve)
      if (!this.#isBusy) this.#next()
    })
    const startedMs = this.#nowMs()
    try {
      return await work()
    } finally {
      const usedMs = this.#nowMs() - startedMs
      this.#queue.addCost(owner, usedMs)
      this.#headroom?.used(owner, usedMs)
      this.#next()
    }
  }

  #next(): void {
    const next = this.#queue.shift(this.#isHeld)
    this.#isBusy = next !== undefined
    if (next !== undefined) next.item()
    else if (this.#queue.waiting > 0) void this.#waitForPause()
    else this.#queue.forget()
  }

  async #waitForPause(): Promise<void> {
    if (this.#isWaiting) return
    this.#isWaiting = true
    await this.#headroom?.untilNext()
    this.#isWaiting = false
    if (!this.#isBusy && this.#queue.waiting > 0) this.#next()
  }

  readonly #isHeld = (owner: string): boolean => this.#headroom?.holds(owner) ?? false
}
