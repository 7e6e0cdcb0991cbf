// Which requests may be attempted now, and in which order. Pure.

import type { DeletionStatus } from '../../../contract/deletion.ts'

/** What the queue needs to know of a request. */
export interface Queued {
  readonly tenantId: string
  readonly status: DeletionStatus
  readonly scope: 'range' | 'all'
  readonly startsAtMs: number | null
  readonly retryAtMs: number | null
}

/**
 * What may be attempted now, per organisation: full erasures first, because they finish what waits behind them, then
 * in the order given. A request that waits for its next attempt holds up those behind it in its own organisation.
 * What waits for a date starts by `dueMs`, and not while that is null.
 */
export function queuesOf<T extends Queued>(
  requests: readonly T[],
  nowMs: number,
  dueMs: number | null = nowMs,
): T[][] {
  const isDue = ({ startsAtMs }: T) => startsAtMs === null || (dueMs !== null && startsAtMs <= dueMs)
  const byTenant = Map.groupBy(
    requests.filter((request) => request.status !== 'scheduled' || isDue(request)),
    ({ tenantId }) => tenantId,
  )
  return [...byTenant.values()].map((own) => {
    const ordered = [
      ...own.filter(({ scope }) => scope === 'all'),
      ...own.filter(({ scope }) => scope !== 'all'),
    ]
    const firstWaiting = ordered.findIndex((request) => waitsForRetry(request, nowMs))
    return firstWaiting === -1 ? ordered : ordered.slice(0, firstWaiting)
  })
}

function waitsForRetry({ retryAtMs }: Queued, nowMs: number): boolean {
  const waitMs = (retryAtMs ?? 0) - nowMs
  // A wait longer than any that is ever set means that the clock was set back.
  return waitMs > 0 && waitMs <= retryDelayMaxMs
}

export const retryDelayMaxMs = 300_000

/** Pause before the next attempt, milliseconds: one second doubling to five minutes. */
export function retryDelayMs(attempts: number): number {
  return Math.min(retryDelayMaxMs, 1000 * 2 ** Math.max(0, attempts - 1))
}
