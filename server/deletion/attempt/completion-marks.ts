// The ids of completed erasures, stored in the engine. An engine that was restored from an older copy lacks
// the marks of later erasures; comparing them with the requests shows which. A mark is on the disk before the
// request is completed, so a missing mark always means older data and never a lost write.

import type { TelemetryEngine } from '../../telemetry/engine.ts'
import { RowBinary } from '../../telemetry/row-binary.ts'
import { completionTable } from '../../telemetry/schema/tables.ts'
import { raw, sql } from '../../telemetry/sql.ts'

const columns = [
  { name: 'RequestId', type: 'String' },
  { name: 'DoneAtMs', type: 'UInt64' },
] as const

export class CompletionMarks {
  readonly #engine: TelemetryEngine

  constructor(engine: TelemetryEngine) {
    this.#engine = engine
  }

  /** Creates the table. Idempotent; called before anything else here. */
  async prepare(): Promise<void> {
    await this.#engine.command(
      raw(`CREATE TABLE IF NOT EXISTS ${completionTable} (RequestId String, DoneAtMs UInt64)
ENGINE = MergeTree ORDER BY RequestId
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`),
    )
  }

  /** Stores a mark. It may be stored twice. */
  async mark(requestId: string, nowMs: number): Promise<void> {
    const row = new RowBinary()
    row.text(requestId)
    row.uint64(Math.floor(nowMs / 2 ** 32), nowMs % 2 ** 32)
    await this.#engine.insert(completionTable, columns, [row.toBuffer()])
  }

  /** Returns when each request was completed last, milliseconds. */
  async all(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#engine.select<{ id: string; ms: string }>(
      sql`SELECT RequestId AS id, max(DoneAtMs) AS ms FROM ${raw(completionTable)} GROUP BY id`,
    )
    return new Map(rows.map(({ id, ms }) => [id, Number(ms)]))
  }
}
