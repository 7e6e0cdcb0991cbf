// Counts rows that arrived too late for ranges whose late telemetry is refused. Counts in memory at each
// export and writes them to the requests from time to time, so that an exporter that retries costs no
// transaction each time. If the process ends, the counts of at most the last second are lost.

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
