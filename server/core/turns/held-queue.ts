// A fair queue (fair-queue.ts) from which nothing of an owner is taken while that owner is held
// (headroom.ts). Where all that wait are held, it calls back at the end of a pause.

import { FairQueue } from './fair-queue.ts'
import type { Headroom } from './headroom.ts'

export class HeldQueue<T> {
  readonly #queue = new FairQueue<T>()
  readonly #headroom: Headroom | null
  readonly #onPauseEnd: () => void
  #isWaiting = false

  /**
   * @param headroom absent: no owner is ever held
   * @param onPauseEnd called after {@link rest} where something waits
   */
  constructor(headroom: Headroom | undefined, onPauseEnd: () => void) {
    this.#headroom = headroom ?? null
    this.#onPauseEnd = onPauseEnd
  }

  get waiting(): number {
    return this.#queue.waiting
  }

  /** Whether a piece of an owner waits that is not held. */
  get hasNext(): boolean {
    return this.#queue.hasNext(this.#isHeld)
  }

  /** Returns false where the piece waits for the end of a pause, which calls back. */
  push(owner: string, cost: number, item: T): boolean {
    this.#queue.push(owner, cost, item)
    return !this.#isWaiting || !this.#isHeld(owner)
  }

  /** Removes and returns the next piece; undefined where none waits of an owner that is not held. */
  shift(): { readonly item: T; readonly owner: string } | undefined {
    return this.#queue.shift(this.#isHeld)
  }

  /** Counts the time of a piece that was taken, milliseconds. */
  used(owner: string, ms: number): void {
    this.#queue.addCost(owner, ms)
    this.#headroom?.used(owner, ms)
  }

  /**
   * Call it where nothing is taken for now: waits for the end of a pause, or forgets what owners used where
   * nothing waits.
   */
  rest(): void {
    if (this.#queue.waiting === 0) this.#queue.forget()
    else void this.#waitForPause()
  }

  async #waitForPause(): Promise<void> {
    if (this.#isWaiting) return
    this.#isWaiting = true
    await this.#headroom?.untilNext()
    this.#isWaiting = false
    if (this.#queue.waiting > 0) this.#onPauseEnd()
  }

  readonly #isHeld = (owner: string): boolean => this.#headroom?.holds(owner) ?? false
}
