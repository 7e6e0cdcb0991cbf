// Grouped commits: many small requests, few inserts. Every partition a commit touches costs the engine about as
// much as a thousand rows, so what arrives for a placement within a short while goes in together, and a commit
// takes few placements, the longest waiting first. Behind, groups grow by themselves instead of parts. A request
// is acknowledged when all its rows are committed, never before. The buffer is bounded: past the bound requests
// are refused with a retryable answer instead of growing the process. docs/decisions/0001 has the measurements.

import { once } from 'node:events'
import type { FastifyBaseLogger } from 'fastify'
import { AppError, storageRetrySeconds } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import type { StorageFault } from '../core/storage-fault.ts'
import type { TelemetryGate } from '../telemetry/gate.ts'
import { type RowBatch, rowCount, rowMemory } from '../telemetry/rows.ts'
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
  /** What a failed commit says of the disk; null where the disk is not the cause. Nobody is asked where absent. */
  readonly faultBehind?: (error: unknown) => Promise<StorageFault | null>
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

/** Commits under way at once, of different placements: while one waits for the disk another is computed. */
const commitsMax = 2

/**
 * Placements in one commit. An insert costs as much as several partitions before it has written one, so that few of them
 * cost more for each row; with many the first to be written waits for the last (docs/decisions/0022).
 */
const placementsMax = 8

/** A commit takes no more than this besides its first placement, bytes of encoded rows: what the engine holds at once. */
const groupBytes = 32 * 1024 * 1024

/**
 * From here on the rows of a table go in as two inserts side by side, bytes: most of an insert computes on one core, but
 * each costs some 6 ms however small it is. So logs and spans are halved, and of metrics the tables go side by side.
 */
const halvedBytes = 16 * 1024 * 1024

/** Pause before looking again at placements that an erasure holds; it usually does so for some tens of milliseconds. */
const heldPollMs = 5

/** A placement with this much waiting is due at once, bytes of encoded rows: some forty thousand of them. */
const dueBytes = 24 * 1024 * 1024

const columnsOf = new Map(tables.map((table) => [table.name, insertColumns(table)]))

/** Seconds after which a refused sender should try again; a commit takes well under this. */
const retryAfterSeconds = 1

export class IngestWriter {
  readonly #options: WriterOptions
  readonly #queues = new Map<number, Queue>()
  /** The placements of each commit under way. */
  readonly #committing = new Set<ReadonlySet<number>>()
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
   * Resolves when every row of the batch is committed; its bytes are not to be looked at any more. Throws `erasing` where a fence covers some row,
   * `overloaded` where the buffer is full or the engine failed, `storage_unavailable` where the disk did; the batch may then be in part committed, and
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
    const known = this.#queues.get(placement)
    const queue = known ?? { sinceMs: this.#options.clock.nowMs(), batches: [], bytes: 0 }
    queue.batches.push(batch)
    queue.bytes += batch.bytes
    this.#queues.set(placement, queue)
    if (known === undefined || queue.bytes >= dueBytes) this.#pause.abort()
  }

  /** While commits run the next ones gather. */
  async #run(): Promise<void> {
    while (this.#queues.size > 0 || this.#committing.size > 0) {
      const group = this.#committing.size < commitsMax ? this.#takeDue() : []
      if (group.length > 0) this.#begin(group)
      else await this.#waitForDue()
    }
    // In one breath with the last look at the queues, so that a batch that comes after it begins a new loop.
    this.#loop = null
  }

  #begin(group: readonly PendingBatch[]): void {
    const placements = new Set(group.map(({ place }) => place.placement))
    this.#committing.add(placements)
    void this.#commitGroup([...placements], group).then(() => {
      this.#committing.delete(placements)
      this.#pause.abort()
    })
  }

  #takeDue(): PendingBatch[] {
    const nowMs = this.#options.clock.nowMs()
    const due = [...this.#queues]
      .filter(([placement]) => !this.#isTaken(placement) && !this.#options.gate.isHeld(placement))
      .filter(([, queue]) => this.#closed || queue.bytes >= dueBytes || this.#dueInMs(queue, nowMs) <= 0)
      .sort(([, a], [, b]) => a.sinceMs - b.sinceMs)
    let bytes = 0
    const group = due.slice(0, placementsMax).filter(([, queue], at) => {
      bytes += queue.bytes
      return at === 0 || bytes <= groupBytes
    })
    for (const [placement] of group) this.#queues.delete(placement)
    return group.flatMap(([, queue]) => queue.batches)
  }

  #isTaken(placement: number): boolean {
    return [...this.#committing].some((placements) => placements.has(placement))
  }

  /**
   * Until a commit ends, a placement is due that may be begun, or something has come for another one. Whether a
   * placement is still held is asked again when a commit ends, and every now and then where none is under way.
   */
  async #waitForDue(): Promise<void> {
    this.#pause = new AbortController()
    const { signal } = this.#pause
    const nowMs = this.#options.clock.nowMs()
    const open = this.#committing.size < commitsMax ? [...this.#queues] : []
    const waits = open
      .filter(([placement]) => !this.#isTaken(placement))
      .filter(([placement]) => this.#committing.size === 0 || !this.#options.gate.isHeld(placement))
      .map(([, queue]) => this.#dueInMs(queue, nowMs))
    if (waits.length === 0) await once(signal, 'abort')
    else await this.#options.clock.sleep(Math.max(Math.min(...waits), heldPollMs), signal)
  }

  /** A clock that stepped back must not make anyone wait longer than the delay, counted from when that is noticed. */
  #dueInMs(queue: Queue, nowMs: number): number {
    queue.sinceMs = Math.min(queue.sinceMs, nowMs)
    return queue.sinceMs + this.#options.commitDelayMs - nowMs
  }

  async #commitGroup(placements: readonly number[], group: readonly PendingBatch[]): Promise<void> {
    const { gate } = this.#options
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
      const error = await this.#refusalFor(cause)
      for (const batch of group) batch.settle(error)
      return
    }
    this.totals.commits++
    for (const batch of group) {
      this.totals.rows += batch.rows
      for (const [, bytes] of batch.encoded) rowMemory.giveBack(bytes)
      batch.settle(null)
    }
  }

  /** Of a kind that senders repeat: an exporter drops what is answered with 507. */
  async #refusalFor(cause: unknown): Promise<AppError> {
    const fault = (await this.#options.faultBehind?.(cause)) ?? null
    return fault === null
      ? new AppError('overloaded', { cause, retryAfterSeconds })
      : new AppError('storage_unavailable', { cause, retryAfterSeconds: storageRetrySeconds })
  }

  /** The tables side by side, then the disk. Settles when all have, also where one fails: an erasure waits for this. */
  async #insertAll(group: readonly PendingBatch[]): Promise<void> {
    const inserts = [...columnsOf].flatMap(([table, columns]) => {
      const rows = group.flatMap(({ encoded }) =>
        encoded.flatMap(([name, bytes]) => (name === table ? bytes : [])),
      )
      return halvesOf(rows).map((half) => this.#options.engine.insert(table, columns, half))
    })
    for (const result of await Promise.allSettled(inserts)) {
      if (result.status === 'rejected') throw result.reason
    }
    await this.#options.engine.sync()
  }
}

/** What goes in at once: nothing, all of it, or much of it in two parts of about the same size. */
function halvesOf(rows: readonly Buffer[]): readonly (readonly Buffer[])[] {
  const bytes = rows.reduce((sum, { length }) => sum + length, 0)
  if (bytes < halvedBytes || rows.length < 2) return rows.length === 0 ? [] : [rows]
  let [first, cut] = [0, 0]
  while (cut < rows.length - 1 && (cut === 0 || first < bytes / 2)) first += rows[cut++]?.length ?? 0
  return [rows.slice(0, cut), rows.slice(cut)]
}

/** The fence is asked for one place and the rows carry theirs: a difference would put rows past an erasure. */
function assertOwn(place: TenantPlace, batch: RowBatch): void {
  for (const { table, place: written } of batch) {
    if (written.tenantId !== place.tenantId || written.placement !== place.placement) {
      throw new Error(`Rows of ${table} are written for another place than they are committed for.`)
    }
  }
}
