// Requests take turns on the event loop. Everything that the service does has steps that wait for the loop to
// come round: a commit has some ten, an erasure a hundred. Where every request begins as soon as it has
// arrived, three hundred of one client take a quarter of a second in each round, and everybody else waits
// that long for each step. So requests wait here, the next one is always of whoever has used the loop least
// (fair-queue.ts), and no round of the loop begins more requests than some milliseconds' worth. Costs are
// measured: for how long a request keeps the loop.

import { FairQueue } from './fair-queue.ts'

interface LoopTurnsOptions {
  /** A clock that never steps back, milliseconds. */
  readonly nowMs: () => number
  /** No request begins in a round of the loop in which others have used so much of it, milliseconds. */
  readonly turnMs?: number
}

/**
 * Long enough for several requests, so that a round's system calls are shared between them. An erasure's
 * hundred steps beside a full loop wait for less than half a second.
 */
const usualTurnMs = 2

/** Requests that begin in one round at most. The cheapest take some 0.3 ms. */
const perRound = 16

export class LoopTurns {
  readonly #queue = new FairQueue<() => void>()
  readonly #nowMs: () => number
  readonly #turnMs: number
  #isScheduled = false
  #usedMs = 0
  #current: { readonly holder: string; readonly startedMs: number } | null = null

  constructor({ nowMs, turnMs = usualTurnMs }: LoopTurnsOptions) {
    this.#nowMs = nowMs
    this.#turnMs = turnMs
  }

  /** Requests that wait for their turn. */
  get waiting(): number {
    return this.#queue.waiting
  }

  /**
   * Calls `begin` when the holder's turn has come, never before this call returns. `begin` must not throw.
   *
   * @param holder an organisation, or the address of a client that has shown no valid token
   */
  take(holder: string, begin: () => void): void {
    this.#queue.push(holder, 0, begin)
    if (!this.#isScheduled) this.#schedule()
  }

  /** Resolves when the holder's turn has come; the work is to be done at once. */
  turnOf(holder: string): Promise<void> {
    return new Promise((resolve) => this.take(holder, resolve))
  }

  /**
   * Callbacks of `setImmediate` that are scheduled together run in the same round of the loop, and Node runs
   * the continuations of promises between any two of them. So the time from one callback to the next is what
   * a request has used, with everything that it did without waiting.
   */
  #schedule(): void {
    this.#isScheduled = true
    const steps = Math.min(this.#queue.waiting, perRound)
    for (let step = 0; step < steps; step++) setImmediate(this.#step)
    setImmediate(this.#end)
  }

  readonly #step = (): void => {
    this.#settle()
    if (this.#usedMs >= this.#turnMs) return
    const next = this.#queue.shift()
    if (next === undefined) return
    this.#current = { holder: next.holder, startedMs: this.#nowMs() }
    next.item()
  }

  readonly #end = (): void => {
    this.#settle()
    this.#usedMs = 0
    this.#isScheduled = false
    if (this.#queue.waiting > 0) this.#schedule()
    else this.#queue.forget()
  }

  #settle(): void {
    if (this.#current === null) return
    const { holder, startedMs } = this.#current
    this.#current = null
    const usedMs = this.#nowMs() - startedMs
    this.#usedMs += usedMs
    this.#queue.addCost(holder, usedMs)
  }
}
