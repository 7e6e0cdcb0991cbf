// The shop's metrics, as the SDKs of its services would report them: cumulative counters and histograms that
// start at zero with each process, delta sums and exponential histograms since the last report, gauges of the
// moment, and the summary of an older client library. A recorder needs every minute in order, whether or not
// a report is due, so counters are right however often they are reported. Latencies are drawn as bucket
// shares of the same log-normal distribution as the sampled spans.

import { failures, flows } from './call-graph.ts'
import {
  exemplarsOf,
  noAttributes,
  openPoints,
  type Points,
  reportCollections,
  reportInterval,
  reportMoment,
  reportSeries,
} from './metric-points.ts'
import type { Collections, Counter, Endpoint, HistogramSeries, Interval } from './metric-series.ts'
import {
  bucketOrigin,
  durationBounds,
  endpoints,
  exponentialScale,
  indexOf,
  metrics,
  outbound,
  pauseSeconds,
} from './metric-series.ts'
import type { Batch, Resource } from './otlp-batch.ts'
import { encodeAttributes, getOrInsert } from './otlp-batch.ts'
import type { Random } from './random.ts'
import { logNormalShareBelow, openRandom } from './random.ts'
import type { ServiceState, Shop, ShopMinute } from './shop.ts'
import { stream } from './shop.ts'
import type { Trace } from './traces.ts'
import { okStatus } from './traces.ts'

/**
 * Standard deviation of the logarithm of a request's duration; the sum of several steps varies less than each
 * of them.
 */
const requestSigma = 0.32
const stepSigma = 0.38

interface MetricRecorder {
  /** Records a minute; minutes come in order without a gap. `traces` of that minute give exemplars. */
  record(moment: ShopMinute, traces: readonly Trace[]): void
  /** Discards what delta metrics have collected since the last report, as if a report had been lost. */
  discardIntervals(): void
  /** Reports everything as of the end of the last recorded minute. */
  report(batch: Batch, resourceOf: (service: number, state: ServiceState) => Resource): void
}

/**
 * `startMinute` is the first minute that will be recorded; a process already running then counts from there.
 */
export function openMetricRecorder(shop: Shop, startMinute: number): MetricRecorder {
  const counters = new Map<string, Counter>()
  const series = new Map<string, HistogramSeries>()
  const intervals = outbound.map(openInterval)
  const collections = collected.map(
    (name): Collections => ({ service: indexOf(name), count: 0, sumSeconds: 0 }),
  )
  const orders: Orders = { placed: 0, revenue: 0 }
  let reportedMinute = startMinute
  let last: { moment: ShopMinute; traces: readonly Trace[]; random: Random } | undefined

  const forgetRestarted = (moment: ShopMinute): void => {
    moment.services.forEach((state, service) => {
      if (state.startedMinute !== moment.minute) return
      dropOf(counters, service)
      dropOf(series, service)
      for (const each of collections)
        if (each.service === service) Object.assign(each, { count: 0, sumSeconds: 0 })
    })
  }

  const startInterval = (moment: ShopMinute): void => {
    Object.assign(orders, { placed: 0, revenue: 0 })
    for (const interval of intervals) {
      Object.assign(interval, { count: 0, sumSeconds: 0 })
      interval.buckets.fill(0)
    }
    reportedMinute = moment.minute + 1
  }

  return {
    record(moment, traces) {
      const random = openRandom(shop.seed, stream.metrics, moment.minute)
      forgetRestarted(moment)
      for (const endpoint of endpoints) recordEndpoint({ counters, series }, endpoint, moment, random)
      for (const interval of intervals) recordInterval(interval, moment, random)
      for (const each of collections) recordCollections(each, moment, random)
      recordOrders(orders, moment, random)
      last = { moment, traces, random }
    },

    report(batch, resourceOf) {
      if (last === undefined) return
      const { moment, traces, random } = last
      const points = openPoints({ batch, resourceOf, moment, startMinute, reportedMinute })
      reportMoment(points, moment)
      for (const { service, attributes, count } of counters.values()) {
        points.number(metrics.requests, service, attributes, { value: count, since: 'start' })
      }
      const exemplars = exemplarsOf(traces)
      for (const each of series.values()) reportSeries(points, each, exemplars)
      reportOrders(points, orders)
      for (const interval of intervals) reportInterval(points, interval)
      for (const each of collections) reportCollections(points, each, moment, random)
      startInterval(moment)
    },

    discardIntervals() {
      if (last !== undefined) startInterval(last.moment)
    },
  }
}

/** Services on a runtime with a garbage collector whose pauses are measured. */
const collected = ['search', 'inventory'] as const

/** Counts since the last report. */
interface Orders {
  placed: number
  /** In euros. */
  revenue: number
}

const checkoutFlow = flows.findIndex(({ name }) => name === 'checkout')
const checkoutService = indexOf('checkout')

function recordOrders(orders: Orders, moment: ShopMinute, random: Random): void {
  const failed = moment.ownFailures.reduce((sum, byFlow) => sum + (byFlow[checkoutFlow] ?? 0), 0)
  const placed = Math.max(0, (moment.arrivals[checkoutFlow] ?? 0) - failed)
  orders.placed += placed
  orders.revenue += Math.round(placed * (82 + 9 * (random() - 0.5)) * 100) / 100
}

function reportOrders(points: Points, { placed, revenue }: Orders): void {
  points.number(metrics.orders, checkoutService, noAttributes, { value: placed, since: 'report' })
  const point = { value: revenue, since: 'report', isDouble: true } as const
  points.number(metrics.revenue, checkoutService, noAttributes, point)
}

interface Cumulative {
  readonly counters: Map<string, Counter>
  readonly series: Map<string, HistogramSeries>
}

function dropOf(all: Map<string, { readonly service: number }>, service: number): void {
  for (const [key, each] of all) if (each.service === service) all.delete(key)
}

const counterOf = (all: Map<string, Counter>, service: number, code: number): Counter =>
  getOrInsert(all, `${service} ${code}`, () => ({
    service,
    attributes: encodeAttributes(7, { 'http.response.status_code': code }),
    count: 0,
  }))

function recordEndpoint(all: Cumulative, endpoint: Endpoint, moment: ShopMinute, random: Random): void {
  const own = indexOf(endpoint.server.service)
  for (const use of endpoint.uses) {
    const arrived = moment.arrivals[use.flow] ?? 0
    const ownFailed = moment.ownFailures[own]?.[use.flow] ?? 0
    const failedBelow = use.services.reduce(
      (sum, service) => sum + (service === own ? 0 : (moment.ownFailures[service]?.[use.flow] ?? 0)),
      0,
    )
    const medianSeconds = use.parts.reduce(
      (sum, part) => sum + (part.medianMs / 1000) * (moment.services[part.service]?.latencyFactor ?? 1),
      0,
    )
    const below = Math.min(failedBelow, Math.max(0, arrived - ownFailed))
    const add = (code: number, count: number): void => {
      if (count === 0) return
      counterOf(all.counters, own, code).count += count
      addRequests(seriesOf(all.series, endpoint, code), count, medianSeconds, random)
    }
    add(okStatus(endpoint.server), arrived - ownFailed - below)
    add(failures[endpoint.server.service].code, ownFailed)
    add(502, below)
  }
}

const seriesOf = (all: Map<string, HistogramSeries>, endpoint: Endpoint, code: number): HistogramSeries =>
  getOrInsert(all, `${endpoint.server.service} ${endpoint.server.name} ${code}`, () => {
    const { service, attributes } = endpoint.server
    return {
      service: indexOf(service),
      attributes: encodeAttributes(9, {
        'http.request.method': attributes['http.request.method'] ?? '',
        'http.route': attributes['http.route'] ?? '',
        'http.response.status_code': code,
        ...(code >= 500 ? { 'error.type': String(code) } : {}),
      }),
      endpoint,
      isFailure: code >= 500,
      count: 0,
      sumSeconds: 0,
      buckets: new Float64Array(durationBounds.length + 1),
    }
  })

/**
 * Distributes `count` requests over the buckets by the shares of their distribution; rounding is random and
 * loses nothing.
 */
function addRequests(series: HistogramSeries, count: number, medianSeconds: number, random: Random): void {
  const shift = random()
  let placed = 0
  for (let bucket = 0; bucket < series.buckets.length; bucket++) {
    const bound = durationBounds[bucket]
    const share = bound === undefined ? 1 : logNormalShareBelow(bound, medianSeconds, requestSigma)
    const upTo = bound === undefined ? count : Math.min(count, Math.floor(count * share + shift))
    series.buckets[bucket] = (series.buckets[bucket] ?? 0) + Math.max(0, upTo - placed)
    placed = Math.max(placed, upTo)
  }
  series.count += count
  const mean = medianSeconds * Math.exp(requestSigma ** 2 / 2)
  series.sumSeconds += count * mean * (1 + (0.4 * (random() - 0.5)) / Math.sqrt(count))
}

function openInterval({ step, flows: used }: (typeof outbound)[number]): Interval {
  const isDatabase = step.attributes['db.system.name'] !== undefined
  const { 'url.full': _, ...attributes } = step.attributes
  return {
    service: indexOf(step.service),
    group: isDatabase ? metrics.database : metrics.provider,
    attributes: encodeAttributes(1, attributes),
    step,
    flows: used,
    count: 0,
    sumSeconds: 0,
    buckets: new Float64Array(bucketOrigin + 64),
  }
}

function recordInterval(interval: Interval, moment: ShopMinute, random: Random): void {
  const count = interval.flows.reduce((sum, flow) => sum + (moment.arrivals[flow] ?? 0), 0)
  if (count === 0) return
  const factor = moment.services[interval.service]?.latencyFactor ?? 1
  const median = (interval.step.medianMs / 1000) * factor
  const bucketOf = (value: number): number => Math.ceil(Math.log2(value) * 2 ** exponentialScale) - 1
  const first = bucketOf(median * Math.exp(-3 * stepSigma))
  const last = bucketOf(median * Math.exp(3 * stepSigma))
  const shift = random()
  let placed = 0
  for (let bucket = first; bucket <= last; bucket++) {
    const share = logNormalShareBelow(2 ** ((bucket + 1) / 2 ** exponentialScale), median, stepSigma)
    const upTo = bucket === last ? count : Math.min(count, Math.floor(count * share + shift))
    const at = bucket + bucketOrigin
    interval.buckets[at] = (interval.buckets[at] ?? 0) + Math.max(0, upTo - placed)
    placed = Math.max(placed, upTo)
  }
  interval.count += count
  interval.sumSeconds += count * median * Math.exp(stepSigma ** 2 / 2)
}

function recordCollections(each: Collections, moment: ShopMinute, random: Random): void {
  const memory = moment.services[each.service]?.memory ?? 0
  const count = 3 + Math.floor(3 * random() + 20 * memory ** 6)
  each.count += count
  each.sumSeconds += count * pauseSeconds(memory)
}
