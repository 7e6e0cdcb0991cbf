// Request bodies are read in turns between organisations. The runtime reads up to two megabytes of every
// connection in one round of the event loop, so forty connections that send as fast as they can would make
// everybody else wait a tenth of a second for each round. So an organisation reads some of what arrives
// freely; above it, its streams pause, and each of their next pieces waits for a turn.

import type { Readable } from 'node:stream'
import { elapsedMs } from '../core/clock.ts'
import type { LoopTurns } from '../core/turns/loop-turns.ts'

/** Bytes that an organisation reads without a turn in {@link freeForMs}: a body of the usual size. */
const freeBytes = 512 * 1024

/** The least time, milliseconds; a round of the loop where that is longer. An empty loop has shorter ones. */
const freeForMs = 5

/** What a read takes of the loop, about: the system call, new memory and the copy. */
const bytesPerMs = 1024 * 1024

export class ReadTurns {
  readonly #turns: LoopTurns
  readonly #nowMs: () => number
  /** Bytes since {@link #sinceMs}, by organisation. */
  readonly #taken = new Map<string, number>()
  #sinceMs = Number.NEGATIVE_INFINITY
  /** Whether a round of the loop has ended since. */
  #isRoundOver = true

  /** @param nowMs a clock that never goes back, milliseconds */
  constructor(turns: LoopTurns, nowMs: () => number = elapsedMs) {
    this.#turns = turns
    this.#nowMs = nowMs
  }

  /** Counts a piece that has arrived, and pauses its stream until the turn of its organisation. */
  took(tenantId: string, stream: Readable, bytes: number): void {
    this.#beginFreePart()
    const taken = (this.#taken.get(tenantId) ?? 0) + bytes
    this.#taken.set(tenantId, taken)
    this.#turns.charge(tenantId, bytes / bytesPerMs)
    if (taken <= freeBytes || stream.isPaused()) return
    stream.pause()
    this.#turns.take(tenantId, () => !stream.destroyed && stream.resume())
  }

  #beginFreePart(): void {
    const nowMs = this.#nowMs()
    if (!this.#isRoundOver || nowMs - this.#sinceMs < freeForMs) return
    this.#taken.clear()
    this.#sinceMs = nowMs
    this.#isRoundOver = false
    setImmediate(() => {
      this.#isRoundOver = true
    })
  }
}
