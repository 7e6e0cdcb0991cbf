// Requests take turns on the event loop. All work of the service has steps that wait for the next round of
// the loop: a commit has some ten, an erasure a hundred. If every request began as soon as it has arrived,
// three hundred of one client would take a quarter of a second in each round, and all others would wait that
// long for each step. So requests wait here, the next one is always of the owner that has used the loop least
// (fair-queue.ts), and a round of the loop begins only as many requests as take some milliseconds. Costs are
// measured: for how long a request occupies the loop, and a fixed part for what was done before it came here.
// While cores are short, an owner that uses most of the loop is held between two requests (headroom.ts).

import type { Headroom } from './headroom.ts'
import { HeldQueue } from './held-queue.ts'

interface LoopTurnsOptions {
  /** A clock that never goes back, milliseconds. */
  readonly nowMs: () => number
  /** No request begins in a round of the loop after others have used this much of it, milliseconds. */
  readonly turnMs?: number
  /** Holds the requests of an owner for a moment; absent: of none. */
  readonly headroom?: Headroom
}

/**
 * Long enough for several requests, so that they share the system calls of a round. The hundred steps of an
 * erasure beside a full loop take less than half a second.
 */
const usualTurnMs = 2

/** The most requests that begin in one round. The cheapest take some 0.3 ms. */
const perRound = 16

/**
 * What a request costs besides its own time here: to read its head, and to create its objects. Without it,
 * requests that end before their turn would cost their owner nothing, and thousands of them would be served
 * before the second request of another owner.
 */
const overheadMs = 0.1

export class LoopTurns {
  readonly #queue: HeldQueue<() => unknown>
  readonly #nowMs: () => number
  readonly #turnMs: number
  readonly #headroom: Headroom | null
  #isScheduled = false
  #usedMs = 0
  #current: { readonly owner: string; readonly startedMs: number } | null = null

  constructor({ headroom, nowMs, turnMs = usualTurnMs }: LoopTurnsOptions) {
    this.#nowMs = nowMs
    this.#headroom = headroom ?? null
    this.#turnMs = turnMs
    this.#queue = new HeldQueue(headroom, () => {
      if (!this.#isScheduled) this.#schedule()
    })
  }

  /** Requests that wait for their turn. */
  get waiting(): number {
    return this.#queue.waiting
  }

  /**
   * Calls `begin` at the owner's turn, never before this call returns. `begin` must not throw.
   *
   * @param owner an organisation, or the address of a client without a valid token
   * @param begin returns false where nothing was left to do, as after the end of a connection: then the next
   * request begins
   */
  take(owner: string, begin: () => unknown): void {
    if (this.#queue.push(owner, overheadMs, begin) && !this.#isScheduled) this.#schedule()
  }

  /** Resolves at the owner's turn; the caller must do the work at once. */
  turnOf(owner: string): Promise<void> {
    return new Promise((resolve) => this.take(owner, resolve))
  }

  /** Counts work of an owner on the loop that its turns do not include, milliseconds. */
  charge(owner: string, ms: number): void {
    this.#headroom?.used(owner, ms)
  }

  /**
   * Callbacks of `setImmediate` that are scheduled together run in the same round of the loop, and Node runs
   * the continuations of promises between any two of them. So the time from one callback to the next is what
   * a request has used, including everything that it did without waiting.
   */
  #schedule(): void {
    this.#isScheduled = true
    const steps = Math.min(this.#queue.waiting, perRound)
    for (let step = 0; step < steps; step++) setImmediate(this.#step)
    setImmediate(this.#end)
  }

  readonly #step = (): void => {
    this.#settle()
    while (this.#usedMs < this.#turnMs) {
      const next = this.#queue.shift()
      if (next === undefined) return
      this.#current = { owner: next.owner, startedMs: this.#nowMs() }
      if (next.item() !== false) return
      this.#settle()
    }
  }

  readonly #end = (): void => {
    this.#settle()
    this.#usedMs = 0
    this.#isScheduled = false
    if (this.#queue.hasNext) this.#schedule()
    else this.#queue.rest()
  }

  #settle(): void {
    if (this.#current === null) return
    const { owner, startedMs } = this.#current
    this.#current = null
    const usedMs = this.#nowMs() - startedMs
    this.#usedMs += usedMs
    this.#queue.used(owner, usedMs)
  }
}
