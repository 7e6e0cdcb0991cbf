// Limits how many weeks of a table an organisation may have outside of the last twenty years: each week is a
// partition, whose parts use memory of the engine that all share, and a table can have 9,360. Telemetry of
// the last twenty years is never refused or counted. What is counted is never less than what the engine
// has: the weeks that it had when they were read, and those that came since. Erased weeks count until the
// weeks are read again. Weeks that exist may always get further rows, also where an earlier build let in
// more than the limit.

import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import { type TableWeek, weeksOfPlacement, weeksOutside } from '../../telemetry/partitions.ts'
import type { RowBatch } from '../../telemetry/rows.ts'
import { partitionAt, partitionsOf, tableAndWeek } from './partition-spread.ts'

interface DistantWeeksOptions {
  readonly engine: Pick<TelemetryEngine, 'select'>
  readonly clock: Pick<Clock, 'nowMs' | 'elapsedMs'>
  /** Weeks of an organisation and table; {@link distantWeeksMax} where absent. */
  readonly max?: number
}

/** Ten years. With twenty that are never refused, 11,000 parts of seven tables: some 350 MB of memory. */
const distantWeeksMax = 520

const weekMs = 604_800_000
/** Twenty years and a week. */
const usualPastMs = 1_045 * weekMs
/** Clocks of senders may be wrong. */
const usualFutureMs = weekMs

/**
 * Who is refused is counted again after this time, milliseconds. Longer than a request may wait for its
 * commit, so that nothing accepted is missing in two counts.
 */
const recountMs = 60_000

const retryAfterSeconds = 1

/** Numbers of `partitionOf`. */
type Weeks = Set<number>

interface OwnWeeks {
  weeks: Weeks
  /** Those that came since the weeks were read: a commit of them may not have ended at that time. */
  sent: Weeks
  /** Null before the first time. */
  readMs: number | null
}

export class DistantWeeks {
  readonly #options: DistantWeeksOptions
  readonly #max: number
  /** Weeks of all organisations of a placement. Where they are few, so are those of each. */
  readonly #ofPlacement = new Map<number, Weeks>()
  readonly #ofTenant = new Map<string, OwnWeeks>()
  readonly #reads = new Map<string, Promise<void>>()

  constructor(options: DistantWeeksOptions) {
    this.#options = options
    this.#max = options.max ?? distantWeeksMax
  }

  /** Reads what {@link admit} needs for rows of distant weeks. Throws `overloaded` where it can't be read. */
  async prepare(place: TenantPlace, batch: RowBatch): Promise<void> {
    const distant = this.#distantOf(batch)
    if (distant.size === 0) return
    const { placement, tenantId } = place
    if (!this.#ofPlacement.has(placement)) {
      await this.#once(`placement ${placement}`, async () => {
        this.#ofPlacement.set(
          placement,
          this.#distantOnly(await weeksOfPlacement(this.#options.engine, placement)),
        )
      })
    }
    if (this.#hasRoom(this.#ofPlacement.get(placement), distant)) return
    const own = this.#ownWeeks(tenantId)
    if (own.readMs !== null) {
      if (this.#fit(own.weeks, distant) || this.#options.clock.elapsedMs() - own.readMs < recountMs) return
    }
    await this.#once(`organisation ${tenantId}`, () => this.#readOwn(place, own))
  }

  /** Counts the distant weeks of rows. Throws `body_too_large` where the organisation would have too many. */
  admit({ placement, tenantId }: TenantPlace, batch: RowBatch): void {
    const distant = this.#distantOf(batch)
    if (distant.size === 0) return
    const [shared, own] = [this.#ofPlacement.get(placement), this.#ownWeeks(tenantId)]
    const isRead = own.readMs !== null
    if (!this.#hasRoom(shared, distant) && !(isRead && this.#fit(own.weeks, distant))) {
      // Others have filled the placement since `prepare`.
      if (!isRead) throw new AppError('overloaded', { retryAfterSeconds })
      throw new AppError('body_too_large', {
        sentence: `Your organisation would have telemetry of more than ${this.#max} weeks outside of the last 20 years. Check the times that you send, and erase such telemetry first.`,
      })
    }
    for (const weeks of [shared, own.weeks, own.sent]) for (const week of distant) weeks?.add(week)
  }

  #ownWeeks(tenantId: string): OwnWeeks {
    const own = this.#ofTenant.get(tenantId) ?? { weeks: new Set(), sent: new Set(), readMs: null }
    this.#ofTenant.set(tenantId, own)
    return own
  }

  async #readOwn(place: TenantPlace, own: OwnWeeks): Promise<void> {
    const before = own.sent
    own.sent = new Set()
    const readMs = this.#options.clock.elapsedMs()
    const { startMs, endMs } = this.#usual()
    const [startNs, endNs] = [BigInt(startMs) * 1_000_000n, BigInt(endMs) * 1_000_000n]
    try {
      const found = await weeksOutside(this.#options.engine, place, startNs, endNs)
      own.weeks = new Set([...this.#distantOnly(found), ...before, ...own.sent])
      own.readMs = readMs
    } catch (error) {
      own.sent = new Set([...before, ...own.sent])
      throw error
    }
  }

  /** Requests that need the same read share it. */
  async #once(key: string, read: () => Promise<void>): Promise<void> {
    const reading = this.#reads.get(key) ?? read().finally(() => this.#reads.delete(key))
    this.#reads.set(key, reading)
    await reading.catch((cause: unknown) => {
      throw new AppError('overloaded', { cause, retryAfterSeconds })
    })
  }

  /** A half-open time. */
  #usual() {
    const nowMs = this.#options.clock.nowMs()
    return { startMs: Math.max(0, nowMs - usualPastMs), endMs: nowMs + usualFutureMs }
  }

  #distantOf(batch: RowBatch): Weeks {
    const { startMs, endMs } = this.#usual()
    const [startNs, endNs] = [BigInt(startMs) * 1_000_000n, BigInt(endMs) * 1_000_000n]
    const distant = batch.filter(({ minTimeNs, maxTimeNs }) => minTimeNs < startNs || maxTimeNs >= endNs)
    return this.#outsideOfUsual(distant.flatMap((part) => [...partitionsOf(part)]))
  }

  #distantOnly(found: readonly TableWeek[]): Weeks {
    return this.#outsideOfUsual(found.map(({ table, startMs }) => partitionAt(table, startMs)))
  }

  #outsideOfUsual(partitions: readonly number[]): Weeks {
    const { startMs, endMs } = this.#usual()
    const [first, last] = [startMs, endMs].map((ms) => tableAndWeek(partitionAt('otel_logs', ms)).week)
    const isUsual = (week: number) => week >= (first ?? 0) && week <= (last ?? 0)
    return new Set(partitions.filter((partition) => !isUsual(tableAndWeek(partition).week)))
  }

  /** Whether an organisation with these weeks has the distant ones already, or room for them. */
  #fit(weeks: Weeks, distant: Weeks): boolean {
    return this.#hasRoom(weeks, distant.difference(weeks))
  }

  /** Whether no table of the distant weeks would have more than the limit. */
  #hasRoom(weeks: Weeks | undefined, distant: Weeks): boolean {
    if (weeks === undefined) return false
    const counts = new Map<number, number>()
    for (const week of weeks.union(distant)) {
      const { table } = tableAndWeek(week)
      counts.set(table, (counts.get(table) ?? 0) + 1)
    }
    return [...distant].every((week) => (counts.get(tableAndWeek(week).table) ?? 0) <= this.#max)
  }
}
