// Counts rows that came too late for ranges that are refused for good. Counted in memory at each export and written
// to the requests now and then, so that a stubborn exporter costs no transaction for each of its tries. What the end
// of the process takes with it is at most the last second's.

import type { RequestStore } from './store.ts'

export class LateRowCounts {
  readonly #store: RequestStore
  #counts = new Map<string, number>()

  constructor(store: RequestStore) {
    this.#store = store
  }

  add(late: ReadonlyMap<string, number>): void {
    for (const [requestId, rows] of late) {
      this.#counts.set(requestId, (this.#counts.get(requestId) ?? 0) + rows)
    }
  }

  async flush(): Promise<void> {
    if (this.#counts.size === 0) return
    const counts = this.#counts
    this.#counts = new Map()
    try {
      await this.#store.countLateRows(counts)
    } catch (error) {
      this.add(counts)
      throw error
    }
  }
}
