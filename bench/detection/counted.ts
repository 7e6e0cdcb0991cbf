// Counts of the services of a generated shop in each minute, and the built-in metrics that the service would
// compute from them.

import type { RunPlan } from '../../server/detection/runs/run-plan.ts'
import type { Series } from '../../server/detection/scoring/series.ts'

/** The counts of a service in a minute. */
export interface Counted {
  /** Requests that arrived, traced or not. */
  visitors: number
  requests: number
  failed: number
  errorLogs: number
  readonly memory: number[]
  readonly durationsMs: number[]
}

export const nothing = (): Counted => ({
  visitors: 0,
  requests: 0,
  failed: 0,
  errorLogs: 0,
  memory: [],
  durationsMs: [],
})

/** Counts a request that a service has served. */
export function countRequest(counted: Counted, isFailed: boolean, durationMs: number): void {
  counted.requests++
  if (isFailed) counted.failed++
  counted.durationsMs.push(durationMs)
}

export interface Reading {
  readonly value: number
  readonly volume: number
}

/** The metric over these minutes; of an unknown key the mean of the memory. */
export function readingOf(metricKey: string, minutes: readonly Counted[]): Reading {
  const sum = (of: (minute: Counted) => number) => minutes.reduce((total, minute) => total + of(minute), 0)
  const perSecond = (count: number) => ({ value: count / (60 * minutes.length), volume: count })
  if (metricKey === 'http.server.request.count') return perSecond(sum(({ visitors }) => visitors))
  const requests = sum((minute) => minute.requests)
  if (metricKey === 'spans.rate') return perSecond(requests)
  if (metricKey === 'spans.error_ratio')
    return { value: sum(({ failed }) => failed) / requests, volume: requests }
  if (metricKey === 'logs.error_count') return { value: sum(({ errorLogs }) => errorLogs), volume: 1 }
  if (metricKey === 'spans.latency_p95')
    return { value: percentile95(minutes.flatMap(({ durationsMs }) => durationsMs)), volume: requests }
  const memory = minutes.flatMap((minute) => minute.memory)
  return { value: memory.reduce((total, each) => total + each, 0) / memory.length, volume: memory.length }
}

/** Between the two nearest values; NaN without one. */
export function percentile95(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const position = 0.95 * (sorted.length - 1)
  const [low, high] = [sorted[Math.floor(position)], sorted[Math.ceil(position)]]
  return low === undefined || high === undefined ? Number.NaN : low + (high - low) * (position % 1)
}

/** The series of a run; null is a bucket without data. `readingAt` gets the first minute of a bucket. */
export function seriesOfRun(
  { endNs, startNs, stepMinutes }: RunPlan,
  readingAt: (minute: number) => Reading | null,
): Series {
  const start = Number(startNs / 60_000_000_000n)
  const length = Number((endNs - startNs) / (BigInt(stepMinutes) * 60_000_000_000n))
  const readings = Array.from({ length }, (_, i) => readingAt(start + i * stepMinutes))
  return {
    startNs,
    stepMinutes,
    values: Float64Array.from(readings, (reading) => reading?.value ?? Number.NaN),
    unknown: new Uint8Array(length),
    volumes: Float64Array.from(readings, (reading) => reading?.volume ?? 0),
  }
}
