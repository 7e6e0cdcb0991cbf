// How much of the commits one organisation may use while others send too. An organisation that sends most of
// what arrives would keep the engine busy without a break, on every core, and an insert, a chart and an
// erasure of its neighbours would take several times as long. So while others send, its commits are small,
// and each is followed by a pause as long as the commit. Alone it has everything. docs/decisions/0040 has the
// measurements.

import type { Clock } from '../../core/clock.ts'
import { groupBytes } from './commit-parts.ts'

/**
 * Arrivals are compared over the last one to two of these, milliseconds. Exporters send every few seconds.
 */
const windowMs = 5_000

/** Above this share of what arrives an organisation is limited. Two that send the same are not. */
const shareMax = 0.6

/** The limited part of a commit, bytes of encoded rows: some 0.1 s of an insert, on one core. */
const limitedBytes = 8 * 1024 * 1024

/** Arrivals of one window, bytes of encoded rows. */
interface Window {
  readonly sinceMs: number
  readonly byTenant: Map<string, number>
  total: number
}

export class CommitShares {
  readonly #clock: Pick<Clock, 'steady'>
  #current: Window
  #previous: Window
  /** Ends of pauses. */
  readonly #pausedUntilMs = new Map<string, number>()

  constructor(clock: Pick<Clock, 'steady'>) {
    this.#clock = clock
    this.#current = newWindow(clock.steady().ms)
    this.#previous = newWindow(this.#current.sinceMs)
  }

  /** The time of {@link ended}, milliseconds. */
  nowMs(): number {
    return this.#clock.steady().ms
  }

  /** Counts rows that have arrived. */
  count(tenantId: string, bytes: number): void {
    this.#roll()
    const { byTenant } = this.#current
    byTenant.set(tenantId, (byTenant.get(tenantId) ?? 0) + bytes)
    this.#current.total += bytes
  }

  /** Whether the organisation sends most of what arrives, while others send too. */
  isLimited(tenantId: string): boolean {
    this.#roll()
    const windows = [this.#previous, this.#current]
    const own = windows.reduce((sum, { byTenant }) => sum + (byTenant.get(tenantId) ?? 0), 0)
    const total = windows.reduce((sum, window) => sum + window.total, 0)
    return own < total && own > total * shareMax
  }

  /** The most bytes of the organisation in the next commit. */
  mostBytes(tenantId: string): number {
    return this.isLimited(tenantId) ? limitedBytes : groupBytes
  }

  /** A commit with rows of these organisations, which began at `beganMs`, has ended. */
  ended(tenantIds: Iterable<string>, beganMs: number): void {
    const nowMs = this.nowMs()
    for (const tenantId of tenantIds) {
      if (this.isLimited(tenantId)) this.#pausedUntilMs.set(tenantId, nowMs + (nowMs - beganMs))
    }
  }

  /** Milliseconds until the next commit may have rows of the organisation; 0 where it may now. */
  pauseMs(tenantId: string): number {
    const untilMs = this.#pausedUntilMs.get(tenantId)
    if (untilMs === undefined) return 0
    const restMs = untilMs - this.nowMs()
    if (restMs > 0) return restMs
    this.#pausedUntilMs.delete(tenantId)
    return 0
  }

  #roll(): void {
    const nowMs = this.nowMs()
    const ageMs = nowMs - this.#current.sinceMs
    if (ageMs < windowMs) return
    this.#previous = ageMs < 2 * windowMs ? this.#current : newWindow(nowMs)
    this.#current = newWindow(nowMs)
  }
}

function newWindow(sinceMs: number): Window {
  return { sinceMs, byTenant: new Map(), total: 0 }
}
