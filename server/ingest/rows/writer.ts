// Group commits: many small HTTP requests, few inserts. Each partition in a commit costs the engine about as
// much as a thousand rows, so rows that arrive for a placement within a short time are inserted together. A
// commit has few placements, those that waited longest and have about as many rows. Of a placement with many
// waiting rows it has only a part, so that nobody waits for all of them, and the rows of a large request are
// divided for that. Under load groups grow by themselves, and the number of parts does not. A request is
// acknowledged when all its rows are committed, never before. The buffer is limited, and organisations share
// it fairly (core/fair-shares): above the limit, requests of those that use the most are refused with a
// response that can be retried, and the process does not grow. While others send, an organisation has small
// commits, and a flood has pauses while cores are short (commit-shares.ts). docs/decisions/0001 and 0033 have
// the measurements.

import { once } from 'node:events'
import type { FastifyBaseLogger } from 'fastify'
import { AppError, storageRetrySeconds } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import type { StorageFault } from '../../core/storage-fault.ts'
import { FairShares } from '../../core/turns/fair-shares.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import type { PlacementLocks } from '../../telemetry/placement-locks.ts'
import type { RowBatch } from '../../telemetry/rows.ts'
import { insertColumns } from '../../telemetry/schema/create-schema.ts'
import { tables } from '../../telemetry/schema/tables.ts'
import { WaitingCost } from './commit-cost.ts'
import { fairPart, groupBytes, hasManyPartitions, insertsOf, placementsOfCommit } from './commit-parts.ts'
import { CommitShares } from './commit-shares.ts'
import { PendingBatch, type RowSlice } from './pending-batch.ts'
import { PlacementQueue } from './placement-queue.ts'

interface WriterOptions {
  readonly engine: TelemetryEngine
  /** Resolves when everything that was inserted before is on the disk; rejected means that it may not be. */
  readonly sync: () => Promise<void>
  readonly gate: TelemetryGate
  /** The locks under which an erasure removes rows from placements. */
  readonly locks: PlacementLocks
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error'>
  /** How long the first row of a placement may wait for others. */
  readonly commitDelayMs: number
  /** Limit of waiting rows and of those that are being committed, bytes of encoded rows. */
  readonly bufferBytes: number
  /** Whether the process uses most of its cores; absent: never. */
  readonly areCoresShort?: () => boolean
  /** Returns the fault of the disk behind a failed commit; null where the disk is not the cause. */
  readonly faultBehind?: (error: unknown) => Promise<StorageFault | null>
}

/** What the next commit has, or a running one. */
interface Commit {
  readonly placements: ReadonlySet<number>
  readonly slices: readonly RowSlice[]
  readonly hasMany: boolean
}

/** Commits that run at once, of different placements: while one waits for the disk another is computed. */
const commitsMax = 2

/** A clock counts whole milliseconds, so a queue that is due in less would be checked repeatedly. */
const leastWaitMs = 1

/** A placement with this much waiting is due at once, bytes of encoded rows: some forty thousand rows. */
const dueBytes = 24 * 1024 * 1024

const columnsOf = new Map(tables.map((table) => [table.name, insertColumns(table)]))

/** Seconds after which a refused sender should retry; a commit takes much less. */
const retryAfterSeconds = 1

export class IngestWriter {
  readonly #options: WriterOptions
  readonly #queues = new Map<number, PlacementQueue>()
  readonly #committing = new Set<Commit>()
  /** Placements that an erasure has locked, and whose next commit waits for the lock. */
  readonly #behind = new Set<number>()
  readonly #shares: FairShares
  readonly #waitingCost = new WaitingCost()
  readonly #commitShares: CommitShares
  #order = 0
  #loop: Promise<void> | null = null
  #pause = new AbortController()
  #closed = false

  /** Totals since the start, for the metrics page. */
  readonly totals = { rows: 0, commits: 0, failedCommits: 0 }

  constructor(options: WriterOptions) {
    this.#options = options
    this.#shares = new FairShares(options.bufferBytes)
    const reservedBy = (tenantId: string) => this.#waitingCost.of(tenantId)
    this.#commitShares = new CommitShares({ ...options, reservedBy })
  }

  /** Bytes that wait or are being committed. */
  get bufferedBytes(): number {
    return this.#shares.reserved
  }

  /**
   * Throws `overloaded` where the organisation's next row would be refused, so that it need not be decoded.
   */
  requireRoom({ tenantId }: TenantPlace): void {
    if (this.#shares.refuses(tenantId, 1)) throw new AppError('overloaded', { retryAfterSeconds })
  }

  /** A body of the organisation was received, for which {@link requireRoom} has found room. */
  received({ tenantId }: TenantPlace, bodyBytes: number): void {
    this.#commitShares.received(tenantId, bodyBytes)
  }

  /**
   * Resolves when every row of the batch is committed; the caller must not use its bytes any more. Throws
   * `erasing` where a fence covers a row, `overloaded` where the organisation's share of the buffer is full
   * or the engine failed, `storage_unavailable` where the disk did. The batch may then be partly committed,
   * and should be repeated.
   */
  async commit(place: TenantPlace, batch: RowBatch): Promise<void> {
    if (batch.every(({ bytes }) => bytes.length === 0)) return
    assertOwn(place, batch)
    if (this.#closed) throw new AppError('not_ready', { retryAfterSeconds })
    if (this.#options.gate.refuses(place, batch)) throw new AppError('erasing', { retryAfterSeconds })
    const { committed } = this.#enqueue(place, batch)
    this.#options.gate.track(place.tenantId, batch, committed)
    this.#loop ??= this.#run()
    return committed
  }

  /** Commits what waits and accepts nothing more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#pause.abort()
    await this.#loop
  }

  /** Throws `overloaded` where there is no memory left for the rows. */
  #enqueue(place: TenantPlace, rows: RowBatch): PendingBatch {
    const { placement, tenantId } = place
    const batch = new PendingBatch(place, rows, (pending) =>
      this.#shares.open(tenantId, () =>
        this.#refuse([pending], new AppError('overloaded', { retryAfterSeconds })),
      ),
    )
    if (!batch.reserve()) throw new AppError('overloaded', { retryAfterSeconds })
    const cost = this.#waitingCost.add(tenantId, batch)
    this.#commitShares.count(tenantId, cost, this.#isLockedOut(placement))
    const ended = () => this.#waitingCost.remove(tenantId, batch)
    batch.committed.then(ended, ended)
    const known = this.#queues.get(placement)
    const queue = known ?? new PlacementQueue(this.#options.clock.nowMs(), this.#order++)
    queue.push(batch)
    this.#queues.set(placement, queue)
    if (known === undefined || queue.cost.bytes >= dueBytes) this.#pause.abort()
    return batch
  }

  /** Refuses batches, and leaves out what still waits of them. */
  #refuse(batches: readonly PendingBatch[], error: AppError): void {
    const refused = new Set(batches)
    for (const placement of new Set(batches.map(({ place }) => place.placement))) {
      const queue = this.#queues.get(placement)
      if (queue !== undefined) this.#keep(placement, queue, ({ batch }) => !refused.has(batch))
    }
    for (const batch of refused) batch.refuse(error)
  }

  /** Leaves the slices in the queue for which `isKept` returns true. */
  #keep(placement: number, queue: PlacementQueue, isKept: (slice: RowSlice) => boolean): void {
    queue.keep(isKept)
    if (queue.slices.length === 0) this.#queues.delete(placement)
  }

  /** While commits run, the next groups collect rows. */
  async #run(): Promise<void> {
    while (this.#queues.size > 0 || this.#committing.size > 0 || this.#behind.size > 0) {
      this.#queueBehindErasures()
      const next = this.#committing.size < commitsMax ? this.#takeDue() : null
      if (next !== null) this.#begin(next)
      else await this.#waitForDue()
    }
    // In the same turn of the event loop as the last check of the queues, so that a later batch starts a new
    // loop.
    this.#loop = null
  }

  #begin(commit: Commit): void {
    const { placements, slices } = commit
    this.#committing.add(commit)
    for (const { batch } of slices) batch.begin()
    void this.#options.locks
      .exclusively([...placements], () => this.#commitLocked(slices))
      .then(() => {
        this.#committing.delete(commit)
        this.#ended(placements)
      })
  }

  /**
   * An erasure locks a placement several times in a row. Rows that are due there wait for the lock like a
   * step of the erasure, and so get it between two steps. They do not count as a running commit, because
   * others must not wait for them.
   */
  #queueBehindErasures(): void {
    const nowMs = this.#options.clock.nowMs()
    for (const [placement, queue] of this.#queues) {
      if (this.#behind.has(placement) || !this.#isLockedOut(placement)) continue
      if (!this.#isDue(queue, nowMs)) continue
      this.#behind.add(placement)
      void this.#options.locks
        .exclusively([placement], async () => {
          const waiting = this.#queues.get(placement)
          if (waiting === undefined) return
          const part = this.#takePart(placement, waiting)
          for (const { batch } of part) batch.begin()
          await this.#commitLocked(part)
        })
        .then(() => {
          this.#behind.delete(placement)
          this.#ended([placement])
        })
    }
  }

  /** Call it when a commit to these placements has ended. */
  #ended(placements: Iterable<number>): void {
    // The rest of a placement waits behind all that came meanwhile.
    for (const placement of placements) {
      const queue = this.#queues.get(placement)
      if (queue?.isRest) Object.assign(queue, { order: this.#order++, isRest: false })
    }
    this.#pause.abort()
  }

  /** Returns null where nothing is due. */
  #takeDue(): Commit | null {
    const nowMs = this.#options.clock.nowMs()
    const due = [...this.#queues]
      .filter(([placement]) => !this.#isTaken(placement) && !this.#options.locks.isTaken(placement))
      .filter(([, queue]) => this.#isDue(queue, nowMs) && !this.#isHeldBack(queue))
      .map(([placement, queue]) => ({ placement, queue, cost: queue.cost }))
      .sort((a, b) => a.queue.order - b.queue.order)
    const next = placementsOfCommit(due)
    const hasMany = next.some(hasManyPartitions)
    const slices = next.flatMap(({ placement, queue }) => this.#takePart(placement, queue))
    if (slices.length === 0) return null
    return { placements: new Set(next.map(({ placement }) => placement)), slices, hasMany }
  }

  /** Of the commits that run, one at most has many partitions: the others are quick. */
  #isHeldBack(queue: PlacementQueue): boolean {
    return hasManyPartitions(queue) && [...this.#committing].some(({ hasMany }) => hasMany)
  }

  /**
   * Returns the slices of a placement for one commit: all, or as many as fit, with about equal costs of each
   * organisation and none of those that pause.
   */
  #takePart(placement: number, queue: PlacementQueue): readonly RowSlice[] {
    const shares = this.#commitShares
    const ready = queue.slices.filter(({ place }) => this.#closed || shares.pauseMs(place.tenantId) === 0)
    const part = fairPart(ready, (tenantId) => (this.#closed ? groupBytes : shares.mostBytes(tenantId)))
    const taken = new Set(part)
    queue.isRest = true
    this.#keep(placement, queue, (slice) => !taken.has(slice))
    return part
  }

  #isTaken(placement: number): boolean {
    return this.#behind.has(placement) || this.#isCommitting(placement)
  }

  #isCommitting(placement: number): boolean {
    return [...this.#committing].some(({ placements }) => placements.has(placement))
  }

  /** Whether others than a commit have the placement, or a commit that has waited for them. */
  #isLockedOut(placement: number): boolean {
    return this.#options.locks.isTaken(placement) && !this.#isCommitting(placement)
  }

  #isDue(queue: PlacementQueue, nowMs: number): boolean {
    if (this.#closed) return true
    if (queue.cost.bytes >= dueBytes) return this.#pauseMs(queue) === 0
    return this.#dueInMs(queue, nowMs) <= 0
  }

  /**
   * Waits until a commit ends, until a placement is due, or until rows come for another placement. While no
   * more commits may run, only the rows of a placement that an erasure has locked can become due.
   */
  async #waitForDue(): Promise<void> {
    this.#pause = new AbortController()
    const { signal } = this.#pause
    const nowMs = this.#options.clock.nowMs()
    const isFull = this.#committing.size >= commitsMax
    const waits = [...this.#queues]
      .filter(([placement]) => !this.#isTaken(placement))
      .filter(
        ([placement, queue]) =>
          this.#options.locks.isTaken(placement) || !(isFull || this.#isHeldBack(queue)),
      )
      .map(([, queue]) => this.#dueInMs(queue, nowMs))
    if (waits.length === 0) await once(signal, 'abort')
    else await this.#options.clock.sleep(Math.max(Math.min(...waits), leastWaitMs), signal)
  }

  /** After the clock went back nothing waits longer than the delay, counted from when that is noticed. */
  #dueInMs(queue: PlacementQueue, nowMs: number): number {
    queue.sinceMs = Math.min(queue.sinceMs, nowMs)
    return Math.max(queue.sinceMs + this.#options.commitDelayMs - nowMs, this.#pauseMs(queue))
  }

  /** The time for which every organisation of the queue pauses. */
  #pauseMs(queue: PlacementQueue): number {
    let leastMs = Number.POSITIVE_INFINITY
    for (const { place } of queue.slices) {
      leastMs = Math.min(leastMs, this.#commitShares.pauseMs(place.tenantId))
      if (leastMs === 0) return 0
    }
    return leastMs
  }

  /** Commits what the placements of a group still accept, under their locks. */
  async #commitLocked(group: readonly RowSlice[]): Promise<void> {
    // A placement may have been closed after the batch was accepted.
    const open = group.filter(({ place }) => !this.#options.gate.isClosed(place.placement))
    const beganMs = this.#commitShares.nowMs()
    await this.#commitOpen(open)
    this.#commitShares.ended(open, beganMs)
    if (open.length === group.length) return
    const closed = group.filter((slice) => !open.includes(slice)).map(({ batch }) => batch)
    this.#refuse(closed, new AppError('erasing', { retryAfterSeconds }))
  }

  async #commitOpen(group: readonly RowSlice[]): Promise<void> {
    try {
      await this.#insertAll(group)
    } catch (cause) {
      this.totals.failedCommits++
      this.#options.logger.error({ err: cause }, 'a commit failed; its senders should repeat it')
      const error = await this.#refusalFor(cause)
      this.#refuse(
        group.map(({ batch }) => batch),
        error,
      )
      return
    }
    this.totals.commits++
    for (const { batch, rows } of group) {
      this.totals.rows += rows
      batch.sliceCommitted()
    }
  }

  /** Returns a refusal that senders retry: an exporter drops what is refused with 507. */
  async #refusalFor(cause: unknown): Promise<AppError> {
    const fault = (await this.#options.faultBehind?.(cause)) ?? null
    return fault === null
      ? new AppError('overloaded', { cause, retryAfterSeconds })
      : new AppError('storage_unavailable', { cause, retryAfterSeconds: storageRetrySeconds })
  }

  /**
   * Inserts the tables at once, then syncs. Settles when all have, also where one fails: an erasure waits for
   * this.
   */
  async #insertAll(group: readonly RowSlice[]): Promise<void> {
    const isAlone = this.#committing.size <= 1
    const tenantIds = new Set(group.map(({ place }) => place.tenantId))
    const isYielding = [...tenantIds].every((tenantId) => this.#commitShares.isLimited(tenantId))
    const commit = { isYielding, tenantIds }
    const inserts = [...columnsOf].flatMap(([table, columns]) => {
      const rows = group.flatMap(({ encoded }) =>
        encoded.flatMap(([name, bytes]) => (name === table ? bytes : [])),
      )
      return insertsOf(rows, isAlone).map((some) => this.#options.engine.insert(table, columns, some, commit))
    })
    for (const result of await Promise.allSettled(inserts)) {
      if (result.status === 'rejected') throw result.reason
    }
    await this.#options.sync()
  }
}

/**
 * The fence is checked for one organisation and the rows name theirs: if they differed, rows would get past
 * an erasure.
 */
function assertOwn(place: TenantPlace, batch: RowBatch): void {
  for (const { table, place: written } of batch) {
    if (written.tenantId !== place.tenantId || written.placement !== place.placement) {
      throw new Error(`Rows of ${table} are written for another organisation than they are committed for.`)
    }
  }
}
