// Which requests may be attempted now, and in which order. Pure.

import type { DeletionStatus } from '../../../contract/deletion/requests.ts'

/** The fields of a request that decide about its position. */
interface Queued {
  readonly tenantId: string
  readonly status: DeletionStatus
  readonly scope: 'range' | 'all'
  readonly startsAtMs: number | null
  readonly retryAtMs: number | null
}

/**
 * Returns a queue per organisation of what may be attempted at `nowMs`: full erasures first, because they
 * complete what waits behind them, then in the order given. A request that waits for a retry delays those
 * behind it in its own organisation. A delayed request starts once its time is at most `dueMs`; none does
 * while that is null.
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
  // A wait that is longer than the longest pause means that the clock was set back.
  return waitMs > 0 && waitMs <= retryDelayMaxMs
}

const retryDelayMaxMs = 300_000

/** Returns the pause before the next attempt in milliseconds: one second, doubling to five minutes. */
export function retryDelayMs(attempts: number): number {
  return Math.min(retryDelayMaxMs, 1000 * 2 ** Math.max(0, attempts - 1))
}
