// A bound on the request bodies that are in memory at once, of all protocols and organisations together: from their
// first byte until they are decoded. What the writer holds has a bound of its own. A body counts as it arrives and not
// by what its sender declares, so that a slow sender holds no more than it has sent. Whatever its size, a body that
// is alone is let in; the limit for one body is another.

import { AppError } from '../core/app-error.ts'

/** Bodies are decoded as soon as they are whole, so there is room again very soon. */
const retryAfterSeconds = 1

export class BodyBudget {
  readonly #limitBytes: number
  #heldBytes = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  open(): BodyHold {
    return new BodyHold((bytes, ownBytes) => {
      const others = this.#heldBytes - ownBytes
      if (bytes > 0 && others > 0 && this.#heldBytes + bytes > this.#limitBytes) {
        throw new AppError('overloaded', { retryAfterSeconds })
      }
      this.#heldBytes += bytes
    })
  }
}

/** One body's part. */
export class BodyHold {
  readonly #change: (bytes: number, ownBytes: number) => void
  #bytes = 0
  #isReleased = false

  constructor(change: (bytes: number, ownBytes: number) => void) {
    this.#change = change
  }

  /** Throws `overloaded` where there is no room for more. */
  grow(bytes: number): void {
    if (this.#isReleased) return
    this.#change(bytes, this.#bytes)
    this.#bytes += bytes
  }

  /** Idempotent; the body is garbage from here on. */
  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#change(-this.#bytes, this.#bytes)
  }
}
