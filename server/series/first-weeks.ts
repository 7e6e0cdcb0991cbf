// The week of the first row of an organisation: a read of a long past need not begin before it. Only weeks in
// which the placement has rows are searched. Most organisations are alone in their placement, so its first
// week is tried first, and then halves. Cheap in a large organisation too: each table stops at the first row.

import { type Ns, nsPerMs } from '../../contract/values/instant.ts'
import { onBehalfOf, type TelemetryEngine } from '../telemetry/engine.ts'
import { type TableWeek, weeksOfPlacement } from '../telemetry/partitions.ts'
import { type Signal, tablesOf } from '../telemetry/schema/tables.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { firstRows } from './earlier-rows.ts'

const weekNs = 604_800_000n * nsPerMs

/**
 * Weeks of first rows, each read once. For a short time, such as a batch of detectors, which ask for the same
 * signals at the same time.
 */
export class FirstWeeks {
  readonly #engine: Pick<TelemetryEngine, 'select'>
  readonly #reader: TenantReader
  #ofPlacement: Promise<readonly TableWeek[]> | null = null
  /** By signals. */
  readonly #found = new Map<string, Promise<Ns | null>>()

  constructor(engine: TelemetryEngine, reader: TenantReader) {
    this.#engine = onBehalfOf(engine, reader.share)
    this.#reader = reader
  }

  /**
   * Returns when the week begins that has the first row of these signals; null where there is none. A failure
   * concerns those who have asked by then; whoever asks later starts a search again.
   */
  async of(signals: readonly Signal[]): Promise<Ns | null> {
    const key = signals.toSorted().join(' ')
    const search = this.#found.get(key) ?? this.#find(signals)
    this.#found.set(key, search)
    try {
      return await search
    } catch (error) {
      if (this.#found.get(key) === search) this.#found.delete(key)
      this.#ofPlacement = null
      throw error
    }
  }

  async #find(signals: readonly Signal[]): Promise<Ns | null> {
    const tables = new Set(tablesOf(signals).map(({ name }) => name))
    this.#ofPlacement ??= weeksOfPlacement(this.#engine, this.#reader.place.placement)
    const ofTables = (await this.#ofPlacement).filter(({ table }) => tables.has(table))
    const weeks = [...new Set(ofTables.map(({ startMs }) => BigInt(startMs) * nsPerMs))]
    weeks.sort((a, b) => (a < b ? -1 : 1))
    let [low, high, middle] = [0, weeks.length, 0]
    while (low < high) {
      const endNs = (weeks[middle] ?? 0n) + weekNs
      const rows = await this.#reader.rows((from) => firstRows(from, signals, { endNs, conditions: [] }))
      if (rows.length > 0) high = middle
      else low = middle + 1
      middle = (low + high) >> 1
    }
    return weeks[low] ?? null
  }
}
