// The series that the demo's shop gives its detectors, made from its model without a service in between: the
// same spans and log records that the demo sends, counted as the built-in metrics count them.

import { serviceNames, spanKind } from '../../server/demo/call-graph.ts'
import { logLinesOf, severity } from '../../server/demo/log-lines.ts'
import { openShop } from '../../server/demo/shop.ts'
import { tracesOf } from '../../server/demo/traces.ts'
import type { RunPlan } from '../../server/detection/runs/run-plan.ts'
import type { Series } from '../../server/detection/scoring/series.ts'
import { type Counted, countRequest, nothing, readingOf, seriesOfRun } from './counted.ts'

const minuteMs = 60_000
/** Sunday 2026-11-22, 21:29 UTC. */
const anchorMs = Date.UTC(2026, 10, 22, 21, 29)

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
  const minutes = new Map<string, Counted[]>(
    serviceNames.map((name) => [name, Array.from({ length }, nothing)]),
  )
  const minuteOf = (service: string, index: number) => minutes.get(service)?.[index] ?? nothing()
  for (let i = 0; i < length; i++) {
    const moment = shop.at(shop.openMinute + i)
    const traces = tracesOf(shop, moment)
    moment.services.forEach((state, service) => {
      minuteOf(serviceNames[service] ?? '', i).memory.push(state.memory)
    })
    // Every visit enters by the storefront.
    minuteOf('storefront', i).visitors = moment.arrivals.reduce((sum, count) => sum + count, 0)
    for (const { spans } of traces) {
      for (const { endNs, failed, startNs, step } of spans) {
        if (step.kind !== spanKind.server && step.kind !== spanKind.consumer) continue
        countRequest(minuteOf(step.service, i + Math.floor(startNs / 60e9)), failed, (endNs - startNs) / 1e6)
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
      const readingAt = (service: string) => (minute: number) => {
        const [from, until] = [minute - shop.openMinute, minute - shop.openMinute + plan.stepMinutes]
        const part = minutes.get(service)?.slice(Math.max(0, from), Math.max(0, until)) ?? []
        return from < 0 || part.length === 0 ? null : readingOf(metricKey, part)
      }
      return new Map(serviceNames.map((service) => [service, seriesOfRun(plan, readingAt(service))]))
    },
  }
}
