// Request bodies are read in turns between organisations. The runtime reads up to two megabytes of every
// connection in one round of the event loop, so forty connections that send as fast as they can would make
// everybody else wait a tenth of a second for each round. So an organisation reads a part of a round freely;
// above it, its streams pause, and each of their next pieces waits for a turn.

import type { Readable } from 'node:stream'
import type { LoopTurns } from '../core/turns/loop-turns.ts'

/** Bytes that an organisation reads in a round of the loop without a turn: a body of the usual size. */
const freeBytes = 512 * 1024

export class ReadTurns {
  readonly #turns: LoopTurns
  /** Bytes in this round, by organisation. */
  readonly #taken = new Map<string, number>()

  constructor(turns: LoopTurns) {
    this.#turns = turns
  }

  /** Counts a piece that has arrived, and pauses its stream until the turn of its organisation. */
  took(tenantId: string, stream: Readable, bytes: number): void {
    if (this.#taken.size === 0) setImmediate(() => this.#taken.clear())
    const taken = (this.#taken.get(tenantId) ?? 0) + bytes
    this.#taken.set(tenantId, taken)
    if (taken <= freeBytes || stream.isPaused()) return
    stream.pause()
    this.#turns.take(tenantId, () => !stream.destroyed && stream.resume())
  }
}
