// Grouped commits: many small requests, few inserts. Every partition a commit touches costs the engine about
// as much as a thousand rows, so what arrives for a placement within a short while goes in together, and a
// commit takes few placements, the longest waiting first, and of one that has much waiting only a part, so
// that nobody waits behind all of it. Behind, groups grow by themselves instead of parts. A request is
// acknowledged when all its rows are committed, never before. The buffer is bounded, and organisations share
// it fairly (core/fair-shares): past the bound requests of those that hold the most are refused with a
// retryable answer instead of growing the process. docs/decisions/0001 and 0033 have the measurements.

import { once } from 'node:events'
import type { FastifyBaseLogger } from 'fastify'
import { AppError, storageRetrySeconds } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import { FairShares, type Share } from '../../core/fair-shares.ts'
import type { StorageFault } from '../../core/storage-fault.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import type { PlacementLocks } from '../../telemetry/placement-locks.ts'
import { type RowBatch, rowCount, rowMemory } from '../../telemetry/rows.ts'
import { insertColumns } from '../../telemetry/schema/create-schema.ts'
import { type TableName, tables } from '../../telemetry/schema/tables.ts'

interface WriterOptions {
  readonly engine: TelemetryEngine
  /** Resolves when everything that was inserted before is on the disk; rejected means that it may not be. */
  readonly sync: () => Promise<void>
  readonly gate: TelemetryGate
  /** The locks under which an erasure removes rows from placements. */
  readonly locks: PlacementLocks
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error'>
  /** How long the first row for a placement may wait for company. */
  readonly commitDelayMs: number
  /** Bound on what waits and what is being committed, bytes of encoded rows. */
  readonly bufferBytes: number
  /**
   * What a failed commit says of the disk; null where the disk is not the cause. Nobody is asked where
   * absent.
   */
  readonly faultBehind?: (error: unknown) => Promise<StorageFault | null>
}

interface PendingBatch {
  readonly place: TenantPlace
  /** Rows by table; more than one buffer where the batch names a table twice. */
  readonly encoded: readonly (readonly [TableName, Buffer])[]
  readonly rows: number
  readonly bytes: number
  /** Of the buffer; nobody takes it away any more once a commit has begun with it. */
  readonly share: Share
  readonly settle: (error: Error | null) => void
}

/** What waits for one placement. */
interface Queue {
  sinceMs: number
  /** Those with lower numbers are committed first. */
  order: number
  /** A commit has taken a part of it. */
  isRest: boolean
  batches: PendingBatch[]
  bytes: number
}

/** Commits under way at once, of different placements: while one waits for the disk another is computed. */
const commitsMax = 2

/**
 * Placements in one commit. An insert costs as much as several partitions before it has written
 * one, so that few of them cost more for each row; with many the first to be written waits for the
 * last (docs/decisions/0022).
 */
const placementsMax = 8

/**
 * A commit takes no more than this, or one batch, bytes of encoded rows: what the engine holds at once, and
 * for how long others may have to wait for a commit, some four tenths of a second.
 */
const groupBytes = 32 * 1024 * 1024

/**
 * From here on the rows of a table go in as two inserts side by side, bytes: most of an insert computes
 * on one core, but each costs some 6 ms however small it is. So logs and spans are halved, and of metrics
 * the tables go side by side.
 */
const halvedBytes = 16 * 1024 * 1024

/**
 * Pause before looking again at placements that an erasure holds; it usually does so for
 * some tens of milliseconds.
 */
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
  readonly #shares: FairShares
  #order = 0
  #loop: Promise<void> | null = null
  #pause = new AbortController()
  #closed = false

  /** Totals since start, for the metrics page. */
  readonly totals = { rows: 0, commits: 0, failedCommits: 0 }

  constructor(options: WriterOptions) {
    this.#options = options
    this.#shares = new FairShares(options.bufferBytes)
  }

  /** Bytes waiting or being committed. */
  get bufferedBytes(): number {
    return this.#shares.held
  }

  /**
   * Throws `overloaded` where the organisation's next row would be refused, so that it need not be decoded.
   */
  requireRoom({ tenantId }: TenantPlace): void {
    if (this.#shares.refuses(tenantId, 1)) throw new AppError('overloaded', { retryAfterSeconds })
  }

  /**
   * Resolves when every row of the batch is committed; its bytes are not to be looked at any more. Throws
   * `erasing` where a fence covers some row, `overloaded` where the organisation's share of the buffer is
   * full or the engine failed, `storage_unavailable` where the disk did; the batch may then be in part
   * committed, and repeating it is right.
   */
  async commit(place: TenantPlace, batch: RowBatch): Promise<void> {
    if (batch.every(({ bytes }) => bytes.length === 0)) return
    assertOwn(place, batch)
    if (this.#closed) throw new AppError('not_ready', { retryAfterSeconds })
    if (this.#options.gate.refuses(place, batch)) throw new AppError('erasing', { retryAfterSeconds })
    const encoded = batch.map((part) => [part.table, part.bytes] as const)
    const bytes = encoded.reduce((sum, [, rows]) => sum + rows.length, 0)
    const rows = batch.reduce((sum, part) => sum + rowCount(part), 0)
    const committed = this.#enqueue({ place, encoded, rows, bytes })
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

  /** Resolves when the batch is committed. Throws `overloaded` where there is no room for it. */
  #enqueue(batch: Omit<PendingBatch, 'share' | 'settle'>): Promise<void> {
    const { tenantId, placement } = batch.place
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const share = this.#shares.open(tenantId, () => this.#drop(pending))
    const settle = (error: Error | null) => {
      share.release()
      if (error === null) resolve()
      else reject(error)
    }
    const pending: PendingBatch = { ...batch, share, settle }
    if (!share.grow(batch.bytes)) {
      share.release()
      throw new AppError('overloaded', { retryAfterSeconds })
    }
    const known = this.#queues.get(placement)
    const queue = known ?? this.#newQueue()
    queue.batches.push(pending)
    queue.bytes += batch.bytes
    this.#queues.set(placement, queue)
    if (known === undefined || queue.bytes >= dueBytes) this.#pause.abort()
    return promise
  }

  #newQueue(): Queue {
    const sinceMs = this.#options.clock.nowMs()
    return { sinceMs, order: this.#order++, isRest: false, batches: [], bytes: 0 }
  }

  /** Gives way to an organisation that holds less. */
  #drop(batch: PendingBatch): void {
    const { placement } = batch.place
    const queue = this.#queues.get(placement)
    if (queue !== undefined) {
      queue.batches = queue.batches.filter((other) => other !== batch)
      queue.bytes -= batch.bytes
      if (queue.batches.length === 0) this.#queues.delete(placement)
    }
    batch.settle(new AppError('overloaded', { retryAfterSeconds }))
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
    for (const { share } of group) share.keep()
    void this.#commitGroup([...placements], group).then(() => {
      this.#committing.delete(placements)
      // What is left of a placement waits behind all who came meanwhile.
      for (const placement of placements) {
        const queue = this.#queues.get(placement)
        if (queue?.isRest) Object.assign(queue, { order: this.#order++, isRest: false })
      }
      this.#pause.abort()
    })
  }

  #takeDue(): PendingBatch[] {
    const nowMs = this.#options.clock.nowMs()
    const due = [...this.#queues]
      .filter(([placement]) => !this.#isTaken(placement) && !this.#options.locks.isTaken(placement))
      .filter(([, queue]) => this.#closed || queue.bytes >= dueBytes || this.#dueInMs(queue, nowMs) <= 0)
      .sort(([, a], [, b]) => a.order - b.order)
    let bytes = 0
    const fitting = due.slice(0, placementsMax).filter(([, queue], at) => {
      bytes += queue.bytes
      return at === 0 || bytes <= groupBytes
    })
    return fitting.flatMap(([placement, queue]) => this.#takePart(placement, queue))
  }

  /** What of a placement goes into one commit: all, or as much as one takes, of each organisation as much. */
  #takePart(placement: number, queue: Queue): readonly PendingBatch[] {
    const part = queue.bytes <= groupBytes ? queue.batches : fairPart(queue.batches)
    const taken = new Set(part)
    queue.batches = queue.batches.filter((batch) => !taken.has(batch))
    for (const { bytes } of part) queue.bytes -= bytes
    queue.isRest = true
    if (queue.batches.length === 0) this.#queues.delete(placement)
    return part
  }

  #isTaken(placement: number): boolean {
    return [...this.#committing].some((placements) => placements.has(placement))
  }

  /**
   * Until a commit ends, a placement is due that may be begun, or something has come for another
   * one. Whether a placement is still held is asked again when a commit ends, and every now and then
   * where none is under way.
   */
  async #waitForDue(): Promise<void> {
    this.#pause = new AbortController()
    const { signal } = this.#pause
    const nowMs = this.#options.clock.nowMs()
    const open = this.#committing.size < commitsMax ? [...this.#queues] : []
    const waits = open
      .filter(([placement]) => !this.#isTaken(placement))
      .filter(([placement]) => this.#committing.size === 0 || !this.#options.locks.isTaken(placement))
      .map(([, queue]) => this.#dueInMs(queue, nowMs))
    if (waits.length === 0) await once(signal, 'abort')
    else await this.#options.clock.sleep(Math.max(Math.min(...waits), heldPollMs), signal)
  }

  /**
   * A clock that stepped back must not make anyone wait longer than the delay, counted
   * from when that is noticed.
   */
  #dueInMs(queue: Queue, nowMs: number): number {
    queue.sinceMs = Math.min(queue.sinceMs, nowMs)
    return queue.sinceMs + this.#options.commitDelayMs - nowMs
  }

  async #commitGroup(placements: readonly number[], group: readonly PendingBatch[]): Promise<void> {
    const { gate, locks } = this.#options
    await locks.exclusively(placements, async () => {
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

  /**
   * The tables side by side, then the disk. Settles when all have, also where one fails:
   * an erasure waits for this.
   */
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
    await this.#options.sync()
  }
}

/**
 * As many batches as a commit takes: the next is always one of the organisation that has the fewest bytes in
 * it.
 */
function fairPart(batches: readonly PendingBatch[]): readonly PendingBatch[] {
  const waiting = [...Map.groupBy(batches, ({ place }) => place.tenantId).values()].map((own) => ({
    own: own.values(),
    next: own[0],
    bytes: 0,
  }))
  for (const one of waiting) one.own.next()
  const part: PendingBatch[] = []
  let bytes = 0
  for (;;) {
    let least: (typeof waiting)[number] | undefined
    for (const one of waiting) {
      if (one.next !== undefined && one.bytes < (least?.bytes ?? Number.POSITIVE_INFINITY)) least = one
    }
    const batch = least?.next
    if (least === undefined || batch === undefined) return part
    if (part.length > 0 && bytes + batch.bytes > groupBytes) return part
    part.push(batch)
    bytes += batch.bytes
    least.bytes += batch.bytes
    least.next = least.own.next().value
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

/**
 * The fence is asked for one place and the rows carry theirs: a difference would put rows past an erasure.
 */
function assertOwn(place: TenantPlace, batch: RowBatch): void {
  for (const { table, place: written } of batch) {
    if (written.tenantId !== place.tenantId || written.placement !== place.placement) {
      throw new Error(`Rows of ${table} are written for another place than they are committed for.`)
    }
  }
}
