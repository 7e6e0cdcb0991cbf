// Lets the event loop breathe between bodies. What many senders send at once would be decoded in one breath, tens of
// milliseconds and more, and every commit, query and acknowledgement has steps that wait for the loop to come round. So
// no more than so many bytes are decoded in one turn of it, in the order in which they came.

/** Bytes of bodies that are decoded in one turn, some three milliseconds of work; the last may go beyond. */
const turnBytes = 256 * 1024

interface Waiting {
  readonly bytes: number
  readonly resolve: () => void
}

export class Turns {
  readonly #waiting: Waiting[] = []
  #leftBytes = turnBytes
  #isScheduled = false

  /** Resolves when a body of so many bytes may be decoded, which is to be done at once. */
  async take(bytes: number): Promise<void> {
    const mayGo = this.#waiting.length === 0 && this.#leftBytes > 0
    if (mayGo) this.#leftBytes -= bytes
    this.#schedule()
    if (!mayGo) await new Promise<void>((resolve) => this.#waiting.push({ bytes, resolve }))
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
    while (this.#leftBytes > 0) {
      const first = this.#waiting.shift()
      if (first === undefined) return
      this.#leftBytes -= first.bytes
      first.resolve()
    }
    this.#schedule()
  }
}
