// The rows of one placement that wait for a commit, in the order in which they came, and what they cost.

import { CommitCost } from './commit-cost.ts'
import type { PendingBatch, RowSlice } from './pending-batch.ts'

export class PlacementQueue {
  /** Since when the oldest rows wait, milliseconds since 1970. */
  sinceMs: number
  /** Queues with lower numbers are committed first. */
  order: number
  /** Whether a commit has taken a part of it. */
  isRest = false
  #slices: RowSlice[] = []
  #cost = new CommitCost()

  constructor(sinceMs: number, order: number) {
    this.sinceMs = sinceMs
    this.order = order
  }

  get slices(): readonly RowSlice[] {
    return this.#slices
  }

  get cost(): Pick<CommitCost, 'bytes' | 'partitions' | 'value'> {
    return this.#cost
  }

  push({ slices }: PendingBatch): void {
    for (const slice of slices) {
      this.#slices.push(slice)
      this.#cost.add(slice)
    }
  }

  /** Leaves the slices for which `isKept` returns true. */
  keep(isKept: (slice: RowSlice) => boolean): void {
    this.#slices = this.#slices.filter(isKept)
    this.#cost = new CommitCost()
    for (const slice of this.#slices) this.#cost.add(slice)
  }
}
