// The series that the demo's shop gives its detectors, made from its model without a service in between: the
// same spans and log records that the demo sends, counted as the built-in metrics count them.

import { serviceNames, spanKind } from '../../server/demo/call-graph.ts'
import { logLinesOf, severity } from '../../server/demo/log-lines.ts'
import { openShop } from '../../server/demo/shop.ts'
import { tracesOf } from '../../server/demo/traces.ts'
import type { RunPlan } from '../../server/detection/runs/run-plan.ts'
import type { Series } from '../../server/detection/scoring/series.ts'

const minuteMs = 60_000
/** Sunday 2026-11-22, 21:29 UTC. */
const anchorMs = Date.UTC(2026, 10, 22, 21, 29)

interface Minute {
  /** Requests that arrived, traced or not. */
  visitors: number
  requests: number
  failed: number
  errorLogs: number
  memory: number
  readonly durationsMs: number[]
}

interface ShopSeries {
  readonly anchorMs: number
  /** Those that are over at the anchor. */
  readonly incidents: readonly { readonly key: string; readonly startMs: number; readonly endMs: number }[]
  /** By service, what a run reads of a metric. */
  read(metricKey: string, plan: RunPlan): Map<string, Series>
}

export function shopSeries(seed: number): ShopSeries {
  const shop = openShop({ seed, anchorNs: BigInt(anchorMs) * 1_000_000n })
  const length = shop.anchorMinute - shop.openMinute
  const minutes = new Map(serviceNames.map((name) => [name as string, Array.from({ length }, emptyMinute)]))
  const minuteOf = (service: string, index: number) => minutes.get(service)?.[index] ?? emptyMinute()
  for (let i = 0; i < length; i++) {
    const moment = shop.at(shop.openMinute + i)
    const traces = tracesOf(shop, moment)
    moment.services.forEach((state, service) => {
      minuteOf(serviceNames[service] ?? '', i).memory = state.memory
    })
    // Every visit enters by the storefront.
    minuteOf('storefront', i).visitors = moment.arrivals.reduce((sum, count) => sum + count, 0)
    for (const { spans } of traces) {
      for (const { endNs, failed, startNs, step } of spans) {
        if (step.kind !== spanKind.server && step.kind !== spanKind.consumer) continue
        const minute = minuteOf(step.service, i + Math.floor(startNs / 60e9))
        minute.requests++
        if (failed) minute.failed++
        minute.durationsMs.push((endNs - startNs) / 1e6)
      }
    }
    for (const line of logLinesOf(shop, moment, traces)) {
      if (severity[line.level] >= severity.ERROR) minuteOf(line.service, i).errorLogs++
    }
  }
  return {
    anchorMs,
    incidents: shop.incidents
      .filter(({ endMinute }) => endMinute <= shop.anchorMinute)
      .map(({ endMinute, key, startMinute }) => ({
        key,
        startMs: startMinute * minuteMs,
        endMs: endMinute * minuteMs,
      })),
    read(metricKey, plan) {
      const firstMinute = Number(plan.startNs / 60_000_000_000n) - shop.openMinute
      return new Map(
        serviceNames.map((service) => [
          service,
          seriesOf(plan, (bucket) => {
            const from = firstMinute + bucket * plan.stepMinutes
            const part =
              minutes.get(service)?.slice(Math.max(0, from), Math.max(0, from + plan.stepMinutes)) ?? []
            return from < 0 || part.length === 0 ? null : readingOf(metricKey, part)
          }),
        ]),
      )
    },
  }
}

const emptyMinute = (): Minute => ({
  visitors: 0,
  requests: 0,
  failed: 0,
  errorLogs: 0,
  memory: Number.NaN,
  durationsMs: [],
})

interface Reading {
  readonly value: number
  readonly volume: number
}

function readingOf(metricKey: string, part: readonly Minute[]): Reading {
  const sum = (of: (minute: Minute) => number) => part.reduce((total, minute) => total + of(minute), 0)
  const requests = sum((minute) => minute.requests)
  const visitors = sum((minute) => minute.visitors)
  if (metricKey === 'http.server.request.count')
    return { value: visitors / (60 * part.length), volume: visitors }
  if (metricKey === 'spans.rate') return { value: requests / (60 * part.length), volume: requests }
  if (metricKey === 'spans.error_ratio')
    return { value: sum((minute) => minute.failed) / requests, volume: requests }
  if (metricKey === 'logs.error_count') return { value: sum((minute) => minute.errorLogs), volume: 1 }
  if (metricKey === 'spans.latency_p95') {
    const durations = part.flatMap(({ durationsMs }) => durationsMs).sort((a, b) => a - b)
    const position = 0.95 * (durations.length - 1)
    const [low, high] = [durations[Math.floor(position)], durations[Math.ceil(position)]]
    const value = low === undefined || high === undefined ? Number.NaN : low + (high - low) * (position % 1)
    return { value, volume: requests }
  }
  return { value: sum((minute) => minute.memory) / part.length, volume: part.length }
}

function seriesOf(plan: RunPlan, readingAt: (bucket: number) => Reading | null): Series {
  const length = Number((plan.endNs - plan.startNs) / (BigInt(plan.stepMinutes) * 60_000_000_000n))
  const readings = Array.from({ length }, (_, i) => readingAt(i))
  return {
    startNs: plan.startNs,
    stepMinutes: plan.stepMinutes,
    values: Float64Array.from(readings, (reading) => reading?.value ?? Number.NaN),
    unknown: new Uint8Array(length),
    volumes: Float64Array.from(readings, (reading) => reading?.volume ?? 0),
  }
}
