// Work of a separate thread, which does one piece at a time. The next piece is always of the owner that has
// used the least time (fair-queue.ts). While cores are short, an owner that uses most of them is held between
// two pieces (headroom.ts).

import type { Headroom } from './headroom.ts'
import { HeldQueue } from './held-queue.ts'

interface ThreadTurnsOptions {
  /** A clock that never goes back, milliseconds. */
  readonly nowMs: () => number
  /** Holds the work of an owner for a moment; absent: of none. */
  readonly headroom?: Headroom
}

export class ThreadTurns {
  readonly #queue: HeldQueue<() => void>
  readonly #nowMs: () => number
  #isBusy = false

  constructor({ headroom, nowMs }: ThreadTurnsOptions) {
    this.#nowMs = nowMs
    this.#queue = new HeldQueue(headroom, () => {
      if (!this.#isBusy) this.#next()
    })
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
      this.#queue.used(owner, this.#nowMs() - startedMs)
      this.#next()
    }
  }

  #next(): void {
    const next = this.#queue.shift()
    this.#isBusy = next !== undefined
    if (next === undefined) this.#queue.rest()
    else next.item()
  }
}
