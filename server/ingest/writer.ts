// Grouped commits: many small requests, few inserts. Every partition a commit touches costs the engine about as
// much as a thousand rows, so what arrives for a placement within a short while goes in together, and a commit
// takes few placements, the longest waiting first. Behind, groups grow by themselves instead of parts. A request
// is acknowledged when all its rows are committed, never before. The buffer is bounded: past the bound requests
// are refused with a retryable answer instead of growing the process. docs/decisions/0001 has the measurements.

import type { FastifyBaseLogger } from 'fastify'
import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import type { TelemetryGate } from '../telemetry/gate.ts'
import { type RowBatch, rowCount } from '../telemetry/rows.ts'
import { insertColumns } from '../telemetry/schema/create-schema.ts'
import { type TableName, tables } from '../telemetry/schema/tables.ts'
import type { TelemetryEngine, TenantPlace } from '../telemetry/telemetry.ts'

export interface WriterOptions {
  readonly engine: TelemetryEngine
  readonly gate: TelemetryGate
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error'>
  /** How long the first row for a placement may wait for company. */
  readonly commitDelayMs: number
  /** Bound on what waits and what is being committed, bytes of encoded rows. */
  readonly bufferBytes: number
}

interface PendingBatch {
  readonly place: TenantPlace
  /** Rows by table; more than one buffer where the batch names a table twice. */
  readonly encoded: readonly (readonly [TableName, Buffer])[]
  readonly rows: number
  readonly bytes: number
  readonly settle: (error: Error | null) => void
}

/** What waits for one placement. */
interface Queue {
  sinceMs: number
  readonly batches: PendingBatch[]
  bytes: number
}

/** Placements in one commit. More of them cost throughput when behind, fewer cost latency when many are due. */
const placementsMax = 8

/** Pause before looking again at placements that an erasure holds; it usually does so for some tens of milliseconds. */
const heldPollMs = 5

/** A placement with this much waiting is due at once, bytes of encoded rows: some ten thousand of them. */
const dueBytes = 8 * 1024 * 1024

const columnsOf = new Map(tables.map((table) => [table.name, insertColumns(table)]))

/** Seconds after which a refused sender should try again; a commit takes well under this. */
const retryAfterSeconds = 1

export class IngestWriter {
  readonly #options: WriterOptions
  readonly #queues = new Map<number, Queue>()
  #bytes = 0
  #loop: Promise<void> | null = null
  #pause = new AbortController()
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
    if (batch.every(({ bytes }) => bytes.length === 0)) return
    assertOwn(place, batch)
    if (this.#closed) throw new AppError('not_ready', { retryAfterSeconds })
    if (this.#options.gate.refuses(place, batch)) throw new AppError('erasing', { retryAfterSeconds })
    const encoded = batch.map((part) => [part.table, part.bytes] as const)
    const bytes = encoded.reduce((sum, [, rows]) => sum + rows.length, 0)
    if (this.#bytes > 0 && this.#bytes + bytes > this.#options.bufferBytes) {
      throw new AppError('overloaded', { retryAfterSeconds })
    }
    this.#bytes += bytes
    const committed = new Promise<void>((resolve, reject) => {
      const settle = (error: Error | null) => {
        this.#bytes -= bytes
        if (error === null) resolve()
        else reject(error)
      }
      const rows = batch.reduce((sum, part) => sum + rowCount(part), 0)
      this.#enqueue({ place, encoded, rows, bytes, settle })
    })
    this.#options.gate.track(place.tenantId, committed)
    this.#loop ??= this.#run()
    return committed
  }

  /** Commits what waits and takes nothing more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#pause.abort()
    await this.#loop
  }

  #enqueue(batch: PendingBatch): void {
    const { placement } = batch.place
    const queue = this.#queues.get(placement) ?? {
      sinceMs: this.#options.clock.nowMs(),
      batches: [],
      bytes: 0,
    }
    queue.batches.push(batch)
    queue.bytes += batch.bytes
    this.#queues.set(placement, queue)
    if (queue.bytes >= dueBytes) this.#pause.abort()
  }

  /** One commit at a time: while it runs the next ones gather. */
  async #run(): Promise<void> {
    while (this.#queues.size > 0) {
      const group = this.#takeDue()
      if (group.length > 0) await this.#commitGroup(group)
      else await this.#waitForDue()
    }
    // In one breath with the last look at the queues, so that a batch that comes after it begins a new loop.
    this.#loop = null
  }

  #takeDue(): PendingBatch[] {
    const nowMs = this.#options.clock.nowMs()
    const due = [...this.#queues]
      .filter(([placement]) => !this.#options.gate.isHeld(placement))
      .filter(([, queue]) => this.#closed || queue.bytes >= dueBytes || this.#dueInMs(queue, nowMs) <= 0)
      .sort(([, a], [, b]) => a.sinceMs - b.sinceMs)
      .slice(0, placementsMax)
    for (const [placement] of due) this.#queues.delete(placement)
    return due.flatMap(([, queue]) => queue.batches)
  }

  async #waitForDue(): Promise<void> {
    const nowMs = this.#options.clock.nowMs()
    const waits = [...this.#queues.values()].map((queue) => this.#dueInMs(queue, nowMs))
    this.#pause = new AbortController()
    await this.#options.clock.sleep(Math.max(Math.min(...waits), heldPollMs), this.#pause.signal)
  }

  /** A clock that stepped back must not make anyone wait longer than the delay, counted from when that is noticed. */
  #dueInMs(queue: Queue, nowMs: number): number {
    queue.sinceMs = Math.min(queue.sinceMs, nowMs)
    return queue.sinceMs + this.#options.commitDelayMs - nowMs
  }

  async #commitGroup(group: readonly PendingBatch[]): Promise<void> {
    const { gate } = this.#options
    const placements = [...new Set(group.map(({ place }) => place.placement))]
    await gate.exclusively(placements, async () => {
      // A placement may have been closed after the batch had passed the door.
      const open = group.filter(({ place }) => !gate.isClosed(place.placement))
      await this.#commitOpen(open)
      for (const batch of group) {
        if (!open.includes(batch)) batch.settle(new AppError('erasing', { retryAfterSeconds }))
      }
    })
  }

  async #commitOpen(group: readonly PendingBatch[]): Promise<void> {
    try {
      await this.#insertAll(group)
    } catch (cause) {
      this.totals.failedCommits++
      this.#options.logger.error({ err: cause }, 'a commit failed; its senders are told to repeat it')
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
      const rows = group.flatMap(({ encoded }) =>
        encoded.flatMap(([name, bytes]) => (name === table ? bytes : [])),
      )
      if (rows.length > 0) await this.#options.engine.insert(table, columns, rows)
    }
  }
}

/** The fence is asked for one place and the rows carry theirs: a difference would put rows past an erasure. */
function assertOwn(place: TenantPlace, batch: RowBatch): void {
  for (const { table, place: written } of batch) {
    if (written.tenantId !== place.tenantId || written.placement !== place.placement) {
      throw new Error(`Rows of ${table} are written for another place than they are committed for.`)
    }
  }
}
