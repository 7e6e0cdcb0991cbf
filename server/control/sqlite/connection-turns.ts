// Who uses the only connection next. A transaction has it until it ends, and each commit waits for the disk.
// Kysely's own queue is in order of arrival: fifty requests of one client would all come before each of the
// dozen transactions of an erasure. Here the owner that has used the connection least is next.

import { elapsedMs } from '../../core/clock.ts'
import { FairQueue } from '../../core/turns/fair-queue.ts'
import { workOwner } from '../../core/work-owner.ts'

/** The service does the work of everybody: look-ups of tokens, steps of erasures, detectors. */
const service = 'service'
const serviceWeight = 4

/** The cost of a statement that takes no time that the clock shows, milliseconds. */
const leastCostMs = 0.02

export class SqliteTurns {
  readonly #queue = new FairQueue<() => void>()
  #current: { readonly owner: string; readonly startedMs: number } | null = null

  /** Statements and transactions that wait. */
  get waiting(): number {
    return this.#queue.waiting
  }

  /** Resolves when the caller may use the connection. {@link end} must follow. */
  async begin(): Promise<void> {
    const owner = workOwner() ?? service
    if (this.#current === null) {
      this.#current = { owner, startedMs: elapsedMs() }
      return
    }
    await new Promise<void>((resolve) => this.#queue.push(owner, leastCostMs, resolve))
  }

  /** The caller does not use the connection any more. */
  end(): void {
    if (this.#current === null) throw new Error('Nobody uses the connection.')
    const { owner, startedMs } = this.#current
    this.#current = null
    if (this.#queue.waiting === 0) {
      this.#queue.forget()
      return
    }
    const nowMs = elapsedMs()
    const usedMs = nowMs - startedMs
    this.#queue.addCost(owner, owner === service ? usedMs / serviceWeight : usedMs)
    const next = this.#queue.shift()
    if (next === undefined) return
    this.#current = { owner: next.owner, startedMs: nowMs }
    next.item()
  }
}
