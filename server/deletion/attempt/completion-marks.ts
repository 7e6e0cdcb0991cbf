// The ids of completed erasures, stored in the engine with the time of each completion. An engine that was
// restored from an older copy lacks the marks of later completions; comparing them with the requests shows
// which. A mark is on the disk before the request is completed, so a missing mark always means older data and
// never a lost write. The completion may fail after it, and then rows may arrive that nobody erases: a mark
// alone says nothing. It counts where a completed request has its time, or where it is confirmed.

import type { FastifyBaseLogger } from 'fastify'
import type { TelemetryEngine } from '../../telemetry/engine.ts'
import { RowBinary } from '../../telemetry/row-binary.ts'
import { completionTable } from '../../telemetry/schema/tables.ts'
import { raw, sql } from '../../telemetry/sql.ts'

const columns = [
  { name: 'RequestId', type: 'String' },
  { name: 'DoneAtMs', type: 'UInt64' },
  { name: 'IsConfirmed', type: 'UInt8' },
] as const

/** One completion of a request, or an attempt at it. */
interface Completion {
  readonly requestId: string
  /** Identifies the completion among those of its request; decides no order. */
  readonly doneAtMs: number
}

export interface CompletionMark extends Completion {
  /** Whether the completion is known to be stored in the control plane. */
  readonly isConfirmed: boolean
}

export class CompletionMarks {
  readonly #engine: TelemetryEngine

  constructor(engine: TelemetryEngine) {
    this.#engine = engine
  }

  /** Creates the table, or adds what it lacks. Idempotent; called before anything else here. */
  async prepare(): Promise<void> {
    await this.#engine.command(
      raw(`CREATE TABLE IF NOT EXISTS ${completionTable} (RequestId String, DoneAtMs UInt64, IsConfirmed UInt8 DEFAULT 0)
ENGINE = MergeTree ORDER BY RequestId
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`),
    )
    await this.#engine.command(
      raw(`ALTER TABLE ${completionTable} ADD COLUMN IF NOT EXISTS IsConfirmed UInt8 DEFAULT 0`),
    )
  }

  /** Stores the mark of a completion that is about to be stored in the control plane, at the same time. */
  async mark(requestId: string, doneAtMs: number): Promise<void> {
    await this.#insert([{ requestId, doneAtMs, isConfirmed: false }])
  }

  /**
   * Stores that these completions are stored in the control plane. A failure is logged and not thrown: an
   * erasure that is not confirmed is at worst carried out again after a restore, and each start confirms what
   * is not.
   */
  async confirm(completions: readonly Completion[], logger: Pick<FastifyBaseLogger, 'warn'>): Promise<void> {
    if (completions.length === 0) return
    try {
      await this.#insert(completions.map((one) => ({ ...one, isConfirmed: true })))
    } catch (err) {
      logger.warn(
        { err },
        'completed erasures could not be confirmed in the engine; the next start confirms them',
      )
    }
  }

  async #insert(marks: readonly CompletionMark[]): Promise<void> {
    const rows = new RowBinary()
    for (const { doneAtMs, isConfirmed, requestId } of marks) {
      rows.text(requestId)
      rows.uint64(Math.floor(doneAtMs / 2 ** 32), doneAtMs % 2 ** 32)
      rows.uint8(isConfirmed ? 1 : 0)
    }
    await this.#engine.insert(completionTable, columns, [rows.toBuffer()])
  }

  /** Returns the marks by request, each completion once. */
  async all(): Promise<ReadonlyMap<string, readonly CompletionMark[]>> {
    const rows = await this.#engine.select<{ id: string; ms: string; confirmed: number }>(
      sql`SELECT RequestId AS id, DoneAtMs AS ms, max(IsConfirmed) AS confirmed
        FROM ${raw(completionTable)} GROUP BY id, ms`,
    )
    const marks = rows.map(({ confirmed, id, ms }) => ({
      requestId: id,
      doneAtMs: Number(ms),
      isConfirmed: Number(confirmed) === 1,
    }))
    return Map.groupBy(marks, ({ requestId }) => requestId)
  }
}
