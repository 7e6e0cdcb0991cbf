// Lets the event loop breathe between bodies, and gives organisations their turns. What many senders send at once would
// be decoded in one breath, tens of milliseconds and more, and every commit, query and acknowledgement has steps that
// wait for the loop to come round. So no more than so many bytes are decoded in one turn of it, of each organisation as
// many (fair-queue.ts).

import { FairQueue } from './fair-queue.ts'

/** Bytes of bodies that are decoded in one turn, some three milliseconds of work; the last may go beyond. */
const turnBytes = 256 * 1024

export class Turns {
  readonly #queue = new FairQueue<() => void>()
  #leftBytes = turnBytes
  #isScheduled = false

  /** Resolves when a body of so many bytes may be decoded, which is to be done at once. */
  async take(tenantId: string, bytes: number): Promise<void> {
    const mayGo = this.#queue.waiting === 0 && this.#leftBytes > 0
    this.#schedule()
    if (mayGo) {
      this.#leftBytes -= bytes
      this.#queue.charge(tenantId, bytes)
    } else await new Promise<void>((resolve) => this.#queue.push(tenantId, bytes, resolve))
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#begin())
  }

  /** A new turn of the loop. */
  #begin(): void {
    this.#isScheduled = false
    this.#leftBytes = turnBytes
    while (this.#leftBytes > 0 && this.#queue.waiting > 0) {
      const next = this.#queue.shift()
      this.#leftBytes -= next?.cost ?? 0
      next?.item()
    }
    if (this.#queue.waiting > 0) this.#schedule()
    else this.#queue.forget()
  }
}
