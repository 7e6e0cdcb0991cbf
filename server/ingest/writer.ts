// Grouped commits: many small requests, few inserts. Every partition a commit touches costs the engine about as
// much as thousands of rows, so what arrives within a short while goes in together, one insert per table. A
// request is acknowledged when all its rows are committed, never before. The buffer is bounded: past the bound
// requests are refused with a retryable answer instead of growing the process.

import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import type { TelemetryGate } from '../telemetry/gate.ts'
import type { RowBatch } from '../telemetry/rows.ts'
import { insertColumns } from '../telemetry/schema/create-schema.ts'
import { type TableName, tables } from '../telemetry/schema/tables.ts'
import type { TelemetryEngine, TenantPlace } from '../telemetry/telemetry.ts'

export interface WriterOptions {
  readonly engine: TelemetryEngine
  readonly gate: TelemetryGate
  readonly clock: Clock
  /** How long the first row of a commit may wait for company. */
  readonly commitDelayMs: number
  /** A commit goes at once when this much is waiting, bytes of encoded rows. */
  readonly commitBytes: number
  /** Bound on what waits and what is being committed, bytes of encoded rows. */
  readonly bufferBytes: number
}

interface PendingBatch {
  readonly place: TenantPlace
  readonly encoded: ReadonlyMap<TableName, string>
  readonly rows: number
  readonly bytes: number
  readonly settle: (error: Error | null) => void
}

const columnsOf = new Map(tables.map((table) => [table.name, insertColumns(table)]))

/** Seconds after which a refused sender should try again; a commit takes well under this. */
const retryAfterSeconds = 1

export class IngestWriter {
  readonly #options: WriterOptions
  #waiting: PendingBatch[] = []
  #bytes = 0
  #loop: Promise<void> | null = null
  #wake: AbortController | null = null
  #closed = false

  /** Totals since start, for the metrics page. */
  readonly totals = { rows: 0, commits: 0, failedCommits: 0 }

  constructor(options: WriterOptions) {
    this.#options = options
  }

  /** Bytes waiting or being committed. */
  get bufferedBytes(): number {
    return this.#bytes
  }

  /**
   * Resolves when every row of the batch is committed. Throws `erasing` where a fence covers some row,
   * `overloaded` where the buffer is full or the engine failed; the batch may then be in part committed, and
   * repeating it is right.
   */
  async commit(place: TenantPlace, batch: RowBatch): Promise<void> {
    if (batch.every(({ rows }) => rows.length === 0)) return
    if (this.#closed) throw new AppError('not_ready', { retryAfterSeconds })
    if (this.#options.gate.refuses(place.tenantId, batch))
      throw new AppError('erasing', { retryAfterSeconds })
    const encoded = encode(place, batch)
    const bytes = [...encoded.values()].reduce((sum, lines) => sum + lines.length, 0)
    if (this.#bytes > 0 && this.#bytes + bytes > this.#options.bufferBytes) {
      throw new AppError('overloaded', { retryAfterSeconds })
    }
    const committed = new Promise<void>((resolve, reject) => {
      const settle = (error: Error | null) => {
        this.#bytes -= bytes
        if (error === null) resolve()
        else reject(error)
      }
      const rows = batch.reduce((sum, part) => sum + part.rows.length, 0)
      this.#waiting.push({ place, encoded, rows, bytes, settle })
    })
    this.#bytes += bytes
    this.#options.gate.track(place.tenantId, committed)
    this.#start()
    return committed
  }

  /** Commits what waits and takes nothing more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#wake?.abort()
    await this.#loop
  }

  #start(): void {
    if (this.#bytes >= this.#options.commitBytes) this.#wake?.abort()
    this.#loop ??= this.#run().finally(() => {
      this.#loop = null
    })
  }

  /** One commit at a time: while it runs the next one gathers, so groups grow with the load by themselves. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      this.#wake = new AbortController()
      if (!this.#closed && this.#bytes < this.#options.commitBytes) {
        await this.#options.clock.sleep(this.#options.commitDelayMs, this.#wake.signal)
      }
      this.#wake = null
      const group = this.#waiting
      this.#waiting = []
      await this.#commitGroup(group)
    }
  }

  async #commitGroup(group: readonly PendingBatch[]): Promise<void> {
    const placements = [...new Set(group.map(({ place }) => place.placement))]
    try {
      await this.#options.gate.exclusively(placements, () => this.#insertAll(group))
    } catch (cause) {
      this.totals.failedCommits++
      const error = new AppError('overloaded', { cause, retryAfterSeconds })
      for (const batch of group) batch.settle(error)
      return
    }
    this.totals.commits++
    for (const batch of group) {
      this.totals.rows += batch.rows
      batch.settle(null)
    }
  }

  async #insertAll(group: readonly PendingBatch[]): Promise<void> {
    for (const [table, columns] of columnsOf) {
      const lines = group.flatMap(({ encoded }) => encoded.get(table) ?? [])
      if (lines.length === 0) continue
      await this.#options.engine.insert(table, columns, Buffer.from(lines.join('\n')))
    }
  }
}

/** Lines of JSONCompactEachRow per table, placement and tenant first. */
function encode(place: TenantPlace, batch: RowBatch): Map<TableName, string> {
  const head = `[${place.placement},${JSON.stringify(place.tenantId)},`
  const encoded = new Map<TableName, string>()
  for (const { table, rows } of batch) {
    if (rows.length === 0) continue
    const before = encoded.get(table)
    const lines = rows.map((row) => head + JSON.stringify(row).slice(1)).join('\n')
    encoded.set(table, before === undefined ? lines : `${before}\n${lines}`)
  }
  return encoded
}
