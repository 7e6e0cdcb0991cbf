// Lets an organisation send no more than the operator allows, and counts what it sends. Bytes are reserved
// before a body is decoded and rows before they are committed, each in the same turn of the event loop as the
// check of the limit, so that concurrent requests can't exceed it together. What was accepted is on disk
// before it is acknowledged: requests that end together share a transaction. Organisations share nothing else
// here.

import { setImmediate as turn } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { AppError, isOutcomeUnknown } from '../core/app-error.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { workForAll } from '../core/work-owner.ts'
import {
  addCounts,
  type CountsBatch,
  type DayCounts,
  type IngestLimits,
  noCounts,
  type QuotaStore,
} from './quota-store.ts'
import { TokenBucket } from './token-bucket.ts'

/**
 * Seconds of the rate that may come at once. Exporters send every few seconds what has accumulated; a bucket
 * of one second would refuse an organisation that is well below its rate.
 */
const burstSeconds = 10

const msPerDay = 86_400_000

/** The part of the quota that one request has reserved. */
interface Admission {
  /** Reserves rows that are about to be committed. Throws `quota_exceeded`. */
  takeRows(rows: number): void
  /** Call it where nothing of the request was stored. */
  giveBack(): void
  /** Counts what was stored; resolves when the count is on disk. */
  count(rowsAccepted: number, rowsRejected: number): Promise<void>
}

/** The counts of one organisation's day: those on disk, and those that are reserved or wait to be written. */
interface Day {
  readonly tenantId: string
  readonly day: string
  /** Counted or reserved. */
  bytes: number
  stored: DayCounts
  waiting: DayCounts
}

interface IngestQuotasOptions {
  readonly store: QuotaStore
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error'>
}

export class IngestQuotas {
  readonly #store: QuotaStore
  readonly #clock: Clock
  readonly #logger: Pick<FastifyBaseLogger, 'error'>
  readonly #buckets = new Map<string, TokenBucket>()
  readonly #days = new Map<string, Promise<Day>>()
  /** Days with counts that wait. */
  readonly #dirty = new Set<Day>()
  /** What may be stored or not, because the answer to its commit was lost. */
  #inDoubt: CountsBatch | null = null
  #writing: Promise<void> = Promise.resolve()
  #next: Promise<void> | null = null

  constructor({ store, clock, logger }: IngestQuotasOptions) {
    this.#store = store
    this.#clock = clock
    this.#logger = logger
  }

  /**
   * Reserves the bytes of a request's body. Throws `quota_exceeded` where the organisation has used up its
   * bytes of today.
   *
   * @param bytes of the body, uncompressed
   */
  async admit(tenantId: string, bytes: number): Promise<Admission> {
    const limits = await this.#store.limitsOf(tenantId)
    const day = await this.#today(tenantId)
    // From here on without another turn of the event loop.
    if (limits.bytesPerDay !== null && day.bytes + bytes > limits.bytesPerDay) {
      throw this.#refuse(day, secondsToMidnight(this.#clock.nowMs()), bytesSentence(limits.bytesPerDay))
    }
    day.bytes += bytes
    return this.#admission(day, bytes, this.#bucketOf(tenantId, limits))
  }

  /** Returns the limits of the organisation and what it has sent so far. */
  async usageOf(tenantId: string): Promise<{
    readonly limits: IngestLimits
    readonly burstRows: number | null
    readonly today: DayCounts & { readonly day: string }
    readonly days: readonly (DayCounts & { readonly day: string })[]
    readonly resetsAt: string
  }> {
    const limits = await this.#store.limitsOf(tenantId)
    const day = await this.#today(tenantId)
    const today = { day: day.day, ...addCounts(day.stored, day.waiting) }
    const others = (await this.#store.daysOf(tenantId)).filter((other) => other.day !== day.day)
    const isEmpty = today.bytes + today.rowsAccepted + today.rowsRejected + today.requestsRefused === 0
    return {
      limits,
      burstRows: limits.rowsPerSecond === null ? null : burstOf(limits.rowsPerSecond),
      today,
      days: isEmpty ? others : [today, ...others],
      resetsAt: instantText(dayStartMs(this.#clock.nowMs()) + msPerDay),
    }
  }

  /** Writes waiting counts; for the end of the process. */
  async close(): Promise<void> {
    await this.#persist()
  }

  #admission(day: Day, bytes: number, bucket: TokenBucket | null): Admission {
    let taken = 0
    return {
      takeRows: (rows) => {
        const waitSeconds = bucket?.take(rows, this.#clock.nowMs()) ?? 0
        if (bucket !== null && waitSeconds > 0) {
          throw this.#refuse(day, waitSeconds, rowsSentence(bucket.perSecond))
        }
        taken = rows
      },
      giveBack: () => {
        day.bytes -= bytes
        bucket?.giveBack(taken)
      },
      count: (rowsAccepted, rowsRejected) => {
        this.#wait(day, { ...noCounts, bytes, rowsAccepted, rowsRejected })
        return this.#persist()
      },
    }
  }

  /**
   * The refusal is counted, and written with the next accepted request, so that repeated refusals cost no
   * transaction.
   */
  #refuse(day: Day, retryAfterSeconds: number, sentence: string): AppError {
    this.#wait(day, { ...noCounts, requestsRefused: 1 })
    return new AppError('quota_exceeded', { retryAfterSeconds, sentence })
  }

  #bucketOf(tenantId: string, { rowsPerSecond }: IngestLimits): TokenBucket | null {
    if (rowsPerSecond === null) {
      this.#buckets.delete(tenantId)
      return null
    }
    const known = this.#buckets.get(tenantId)
    if (known?.perSecond === rowsPerSecond) return known
    const bucket = new TokenBucket(rowsPerSecond, burstOf(rowsPerSecond), this.#clock.nowMs())
    this.#buckets.set(tenantId, bucket)
    return bucket
  }

  async #today(tenantId: string): Promise<Day> {
    const today = instantText(dayStartMs(this.#clock.nowMs())).slice(0, 10)
    const known = this.#days.get(tenantId)
    if (known !== undefined && (await known).day === today) return known
    // Another request may have begun the day while we waited. After a clock has gone back, waiting counts are
    // written first.
    const current = this.#days.get(tenantId)
    if (current !== known && current !== undefined) return current
    const loading = this.#persist().then(() => this.#load(tenantId, today))
    this.#days.set(tenantId, loading)
    loading.catch(() => this.#days.delete(tenantId))
    return loading
  }

  async #load(tenantId: string, day: string): Promise<Day> {
    const stored = await this.#store.countsOf(tenantId, day)
    return { tenantId, day, bytes: stored.bytes, stored, waiting: noCounts }
  }

  #wait(day: Day, counts: DayCounts): void {
    day.waiting = addCounts(day.waiting, counts)
    this.#dirty.add(day)
  }

  /**
   * Resolves when all counts that wait now are on disk. At most one transaction runs while the next one
   * collects.
   */
  #persist(): Promise<void> {
    if (this.#dirty.size === 0 && this.#inDoubt === null) return this.#writing
    this.#next ??= workForAll(() => this.#writeNext())
    return this.#next
  }

  async #writeNext(): Promise<void> {
    await this.#writing
    await turn()
    this.#next = null
    this.#writing = this.#write()
    await this.#writing
  }

  /**
   * Counts that can't be written wait for the next try: the telemetry is committed, and a refusal now would
   * make the client store it twice. A batch that may be stored is sent again as it is, before any other.
   */
  async #write(): Promise<void> {
    try {
      if (this.#inDoubt !== null) await this.#store.add(this.#inDoubt)
      this.#inDoubt = null
      await this.#writeWaiting()
    } catch (err) {
      this.#logger.error({ err }, 'what was sent could not be counted on disk; it is tried again')
    }
  }

  async #writeWaiting(): Promise<void> {
    const sent = [...this.#dirty].map((day) => ({ day, counts: day.waiting }))
    if (sent.length === 0) return
    const batch = this.#store.batchOf(
      sent.map(({ counts, day }) => ({ tenantId: day.tenantId, day: day.day, ...counts })),
    )
    this.#dirty.clear()
    for (const { day } of sent) day.waiting = noCounts
    let isStored = true
    try {
      await this.#store.add(batch)
    } catch (error) {
      // A batch in doubt is sent until it is stored, so it counts as stored.
      isStored = isOutcomeUnknown(error)
      if (isStored) this.#inDoubt = batch
      throw error
    } finally {
      for (const { counts, day } of sent) {
        if (isStored) day.stored = addCounts(day.stored, counts)
        else this.#wait(day, counts)
      }
    }
  }
}

function burstOf(rowsPerSecond: number): number {
  return rowsPerSecond * burstSeconds
}

function dayStartMs(nowMs: number): number {
  return nowMs - (nowMs % msPerDay)
}

function secondsToMidnight(nowMs: number): number {
  return Math.ceil((dayStartMs(nowMs) + msPerDay - nowMs) / 1000)
}

function bytesSentence(limit: number): string {
  return `Your organisation may send ${limit} bytes a day, and this request would pass that; repeat it after Retry-After.`
}

function rowsSentence(limit: number): string {
  return `Your organisation may send ${limit} rows a second, and has sent more; repeat after Retry-After.`
}
