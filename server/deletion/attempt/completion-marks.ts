// The ids of completed erasures, kept in the engine itself. A telemetry store that was put back from an older copy
// doesn't know what was erased since; comparing its own list with the ledger shows exactly that. A mark is on the
// disk before the ledger says completed, so a missing mark always means older data and never a lost write.

import type { TelemetryEngine } from '../../telemetry/engine.ts'
import { RowBinary } from '../../telemetry/row-binary.ts'
import { raw, sql } from '../../telemetry/sql.ts'

const table = 'erasures_done'
const columns = [
  { name: 'RequestId', type: 'String' },
  { name: 'DoneAtMs', type: 'UInt64' },
] as const

export class CompletionMarks {
  readonly #engine: TelemetryEngine

  constructor(engine: TelemetryEngine) {
    this.#engine = engine
  }

  /** Idempotent; to be called before anything else here. */
  async prepare(): Promise<void> {
    await this.#engine.command(
      raw(`CREATE TABLE IF NOT EXISTS ${table} (RequestId String, DoneAtMs UInt64)
ENGINE = MergeTree ORDER BY RequestId
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`),
    )
  }

  /** A mark may be made twice. */
  async mark(requestId: string, nowMs: number): Promise<void> {
    const row = new RowBinary()
    row.text(requestId)
    row.uint64(Math.floor(nowMs / 2 ** 32), nowMs % 2 ** 32)
    await this.#engine.insert(table, columns, [row.toBuffer()])
  }

  /** When each was completed last, milliseconds. */
  async all(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#engine.select<{ id: string; ms: string }>(
      sql`SELECT RequestId AS id, max(DoneAtMs) AS ms FROM ${raw(table)} GROUP BY id`,
    )
    return new Map(rows.map(({ id, ms }) => [id, Number(ms)]))
  }
}
