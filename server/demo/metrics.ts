// The shop's metrics, as its services' SDKs would report them: cumulative counters and histograms that start at
// zero with each process, delta sums and exponential histograms that cover the time since the last report, gauges
// of the moment, and the summary of an older client library. A recorder is fed every minute in order, whether or
// not a report is due, so counters are right no matter how often they are reported. Latencies are drawn as bucket
// shares of the same log-normal law as the sampled spans.

import type { BinaryWriter } from '@bufbuild/protobuf/wire'
import type { ServiceName, Step } from './call-graph.ts'
import { failures, flows, serviceNames, spanKind } from './call-graph.ts'
import type { Batch, Group, Instant, Resource } from './otlp-batch.ts'
import {
  encodeAttributes,
  fixed64Field,
  getOrInsert,
  instantOf,
  lengthField,
  varintField,
  writeFixedCount,
  writeId,
  writeInstant,
} from './otlp-batch.ts'
import type { Random } from './random.ts'
import { logNormalShareBelow, openRandom } from './random.ts'
import type { ServiceState, Shop, ShopMinute } from './shop.ts'
import { minuteNs, stream } from './shop.ts'
import type { Trace } from './traces.ts'
import { okStatus } from './traces.ts'

/** Advised bounds of `http.server.request.duration` in seconds, OpenTelemetry semantic conventions, HTTP metrics. */
export const durationBounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** Spread of the logarithm of a request's duration; a sum of several steps spreads less than each of them. */
const requestSigma = 0.32
const stepSigma = 0.38

/** 2^3 buckets for each doubling. */
const exponentialScale = 3

/** Place of bucket 0 (just above a second) in an array of buckets: it leaves room down to 2^-16 and up to 2^8 seconds. */
const bucketOrigin = 16 * 2 ** exponentialScale

const delta = 1
const cumulative = 2

/** `Metric` of the protocol: name = 1, description = 2, unit = 3, and the data in the field of its kind. */
function metric(
  name: string,
  unit: string,
  description: string,
  kind: 'gauge' | 'sum' | 'histogram' | 'exponential' | 'summary',
  temporality?: typeof delta | typeof cumulative,
  isMonotonic?: boolean,
): Group {
  const field = { gauge: 5, sum: 7, histogram: 9, exponential: 10, summary: 11 }[kind]
  return {
    wrap(writer, points) {
      writer.uint32(lengthField(2)).fork()
      writer.uint32(lengthField(1)).string(name)
      writer.uint32(lengthField(2)).string(description)
      writer.uint32(lengthField(3)).string(unit)
      writer.uint32(lengthField(field)).fork().raw(points)
      if (temporality !== undefined) writer.uint32(varintField(2)).int32(temporality)
      if (isMonotonic === true) writer.uint32(varintField(3)).bool(true)
      writer.join().join()
    },
  }
}

const metrics = {
  cpu: metric('process.cpu.utilization', '1', 'Share of the allotted processor time in use.', 'gauge'),
  memory: metric('system.memory.utilization', '1', 'Share of the memory limit in use.', 'gauge'),
  queue: metric('shop.queue.depth', '{message}', 'Messages waiting to be processed.', 'gauge'),
  active: metric('http.server.active_requests', '{request}', 'Requests in progress.', 'sum', cumulative),
  requests: metric(
    'http.server.request.count',
    '{request}',
    'Requests answered since the process started.',
    'sum',
    cumulative,
    true,
  ),
  orders: metric('shop.orders.placed', '{order}', 'Orders placed since the last report.', 'sum', delta, true),
  revenue: metric('shop.orders.revenue', 'EUR', 'Value of orders since the last report.', 'sum', delta, true),
  duration: metric(
    'http.server.request.duration',
    's',
    'Duration of HTTP server requests.',
    'histogram',
    cumulative,
  ),
  database: metric(
    'db.client.operation.duration',
    's',
    'Duration of database client operations.',
    'exponential',
    delta,
  ),
  provider: metric(
    'http.client.request.duration',
    's',
    'Duration of HTTP client requests.',
    'exponential',
    delta,
  ),
  collection: metric(
    'jvm_gc_pause_seconds',
    's',
    'Time spent in pauses of the garbage collector.',
    'summary',
  ),
}

/** Requests of one flow that reach an endpoint, and whose fault and time they inherit. */
interface Use {
  readonly flow: number
  /** Indexes of the services below and including the endpoint's own. */
  readonly services: readonly number[]
  readonly parts: readonly { readonly service: number; readonly medianMs: number }[]
}

interface Endpoint {
  readonly server: Step
  readonly uses: readonly Use[]
}

const indexOf = (name: ServiceName): number => serviceNames.indexOf(name)

/** Every step below and including `step`, in order. */
const stepsOf = (step: Step): readonly Step[] => [step, ...step.calls.flatMap(stepsOf)]

const endpoints: readonly Endpoint[] = (() => {
  const found = new Map<string, { server: Step; uses: Use[] }>()
  flows.forEach(({ root }, flow) => {
    for (const server of stepsOf(root)) {
      if (server.kind !== spanKind.server) continue
      const below = stepsOf(server)
      const use: Use = {
        flow,
        services: [...new Set(below.map((step) => indexOf(step.service)))],
        parts: below.map((step) => ({ service: indexOf(step.service), medianMs: step.medianMs })),
      }
      const key = `${server.service} ${server.name}`
      const endpoint = found.get(key)
      if (endpoint === undefined) found.set(key, { server, uses: [use] })
      else endpoint.uses.push(use)
    }
  })
  return [...found.values()]
})()

/** Steps that reach out of the shop or into a store; each has an exponential histogram. */
const outbound: readonly { readonly step: Step; readonly flows: readonly number[] }[] = (() => {
  const found = new Map<string, { step: Step; flows: number[] }>()
  flows.forEach(({ root }, flow) => {
    for (const step of stepsOf(root)) {
      if (step.kind !== spanKind.client || step.calls.length > 0) continue
      const key = `${step.service} ${step.name}`
      const entry = found.get(key)
      if (entry === undefined) found.set(key, { step, flows: [flow] })
      else entry.flows.push(flow)
    }
  })
  return [...found.values()]
})()

/** A counter series: one service and one status. */
interface Counter {
  readonly service: number
  readonly attributes: Uint8Array
  count: number
}

/** A histogram series: one endpoint and one status. */
interface Series {
  readonly service: number
  readonly attributes: Uint8Array
  readonly endpoint: Endpoint
  readonly isFailure: boolean
  count: number
  sumSeconds: number
  readonly buckets: Float64Array
}

/** A delta exponential histogram between two reports. */
interface Interval {
  readonly service: number
  readonly group: Group
  readonly attributes: Uint8Array
  readonly step: Step
  readonly flows: readonly number[]
  count: number
  sumSeconds: number
  /** Counts by bucket index + {@link bucketOrigin}; bucket i holds values in (2^(i/8), 2^((i+1)/8)] seconds. */
  readonly buckets: Float64Array
}

interface Collections {
  readonly service: number
  count: number
  sumSeconds: number
}

export interface MetricRecorder {
  /** Takes in a minute; minutes come in order without a gap. `traces` of that minute give exemplars. */
  record(moment: ShopMinute, traces: readonly Trace[]): void
  /** Forgets what delta metrics have gathered since the last report, as if a report had been lost. */
  discardIntervals(): void
  /** Reports everything as of the end of the last recorded minute. */
  report(batch: Batch, resourceOf: (service: number, state: ServiceState) => Resource): void
}

/** `startMinute` is the first minute that will be recorded; a process already running then counts from there. */
export function openMetricRecorder(shop: Shop, startMinute: number): MetricRecorder {
  const counters = new Map<string, Counter>()
  const series = new Map<string, Series>()
  const intervals = outbound.map(openInterval)
  const collections = (['search', 'inventory'] as const).map(
    (name): Collections => ({
      service: indexOf(name),
      count: 0,
      sumSeconds: 0,
    }),
  )
  const orders = { placed: 0, revenue: 0 }
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
      const failed = moment.ownFailures.reduce((sum, byFlow) => sum + (byFlow[checkoutFlow] ?? 0), 0)
      const placed = Math.max(0, (moment.arrivals[checkoutFlow] ?? 0) - failed)
      orders.placed += placed
      orders.revenue += Math.round(placed * (82 + 9 * (random() - 0.5)) * 100) / 100
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
      points.number(metrics.orders, checkoutService, noAttributes, { value: orders.placed, since: 'report' })
      points.number(metrics.revenue, checkoutService, noAttributes, {
        value: orders.revenue,
        since: 'report',
        isDouble: true,
      })
      for (const interval of intervals) reportInterval(points, interval)
      for (const each of collections) reportCollections(points, each, moment, random)
      startInterval(moment)
    },

    discardIntervals() {
      if (last !== undefined) startInterval(last.moment)
    },
  }
}

const checkoutFlow = flows.findIndex(({ name }) => name === 'checkout')
const checkoutService = indexOf('checkout')
const storefrontService = indexOf('storefront')
const noAttributes = new Uint8Array()

// Recording.

interface Cumulative {
  readonly counters: Map<string, Counter>
  readonly series: Map<string, Series>
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

const seriesOf = (all: Map<string, Series>, endpoint: Endpoint, code: number): Series =>
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

/** Spreads `count` requests over the buckets in the shares of their law; rounding is shifted by chance, never lossy. */
function addRequests(series: Series, count: number, medianSeconds: number, random: Random): void {
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

/** Median pause of the collector; it grows as free memory shrinks. */
const pauseSeconds = (memory: number): number => 0.006 / Math.max(0.03, 1 - memory)

// Reporting.

interface NumberPoint {
  readonly value: number
  /** What the start time says: process start, last report, or none for a gauge. */
  readonly since?: 'start' | 'report'
  readonly isDouble?: boolean
}

/** Writes data points at the end of a minute, each to its resource's and metric's writer. */
interface Points {
  number(group: Group, service: number, attributes: Uint8Array, point: NumberPoint): void
  /** Opens a point's message in `group`; the caller fills it in and joins. */
  open(group: Group, service: number): BinaryWriter
  /** Writes start = 2 and time = 3, shared by all kinds of point. */
  times(writer: BinaryWriter, service: number, since: 'start' | 'report' | undefined): void
  /** Start of the minute that the points end. */
  readonly minuteStart: Instant
}

function openPoints({
  batch,
  resourceOf,
  moment,
  startMinute,
  reportedMinute,
}: {
  batch: Batch
  resourceOf: (service: number, state: ServiceState) => Resource
  moment: ShopMinute
  startMinute: number
  reportedMinute: number
}): Points {
  const at = instantAt(moment.minute + 1)
  const reported = instantAt(reportedMinute)
  const started = moment.services.map((state) => instantAt(Math.max(startMinute, state.startedMinute)))
  const points: Points = {
    minuteStart: instantAt(moment.minute),
    number(group, service, attributes, { value, since, isDouble }) {
      const writer = points.open(group, service).raw(attributes)
      points.times(writer, service, since)
      if (isDouble === true) writer.uint32(fixed64Field(4)).double(value)
      else writeFixedCount(writer.uint32(fixed64Field(6)), value)
      writer.join()
    },
    open(group, service) {
      const state = moment.services[service]
      if (state === undefined) throw new RangeError(`The shop has no service number ${service}.`)
      return batch.row(resourceOf(service, state), group).uint32(lengthField(1)).fork()
    },
    times(writer, service, since) {
      const start = since === 'report' ? reported : started[service]
      if (since !== undefined && start !== undefined) writeInstant(writer, 2, start, 0)
      writeInstant(writer, 3, at, 0)
    },
  }
  return points
}

const instantAt = (minute: number): Instant => instantOf(BigInt(minute) * minuteNs)

const memoryUsed = encodeAttributes(7, { 'system.memory.state': 'used' })
const queueNames: Partial<Record<ServiceName, Uint8Array>> = {
  payments: encodeAttributes(7, { 'messaging.destination.name': 'settlements' }),
  inventory: encodeAttributes(7, { 'messaging.destination.name': 'orders' }),
}

function reportMoment(points: Points, moment: ShopMinute): void {
  moment.services.forEach((state, service) => {
    const name = serviceNames[service]
    const queue = name === undefined ? undefined : queueNames[name]
    points.number(metrics.cpu, service, noAttributes, { value: state.cpu, isDouble: true })
    points.number(metrics.memory, service, memoryUsed, { value: state.memory, isDouble: true })
    if (queue !== undefined) points.number(metrics.queue, service, queue, { value: state.queueDepth })
  })
  // Little's law: requests in progress = arrivals per second times the time each stays.
  const perSecond = moment.arrivals.reduce((sum, count) => sum + count, 0) / 60
  const value = Math.round(perSecond * 0.06 * (moment.services[storefrontService]?.latencyFactor ?? 1))
  points.number(metrics.active, storefrontService, noAttributes, { value, since: 'start' })
}

/** By endpoint and status: the last traced request of the minute. */
type Exemplars = ReadonlyMap<string, { readonly trace: Trace; readonly span: Trace['spans'][number] }>

function exemplarsOf(traces: readonly Trace[]): Exemplars {
  const found = new Map<string, { trace: Trace; span: Trace['spans'][number] }>()
  for (const trace of traces) {
    for (const span of trace.spans) {
      // The answer has to be in before the report is written.
      if (span.step.kind !== spanKind.server || span.endNs >= 60e9) continue
      found.set(`${span.step.service} ${span.step.name} ${span.failed}`, { trace, span })
    }
  }
  return found
}

function reportSeries(points: Points, series: Series, exemplars: Exemplars): void {
  const { server } = series.endpoint
  const writer = points.open(metrics.duration, series.service)
  points.times(writer, series.service, 'start')
  writeFixedCount(writer.uint32(fixed64Field(4)), series.count)
  writer.uint32(fixed64Field(5)).double(series.sumSeconds)
  writer.uint32(lengthField(6)).uint32(8 * series.buckets.length)
  for (const count of series.buckets) writeFixedCount(writer, count)
  writer.raw(boundBytes)
  const exemplar = exemplars.get(`${server.service} ${server.name} ${series.isFailure}`)
  if (exemplar !== undefined) writeExemplar(writer, points, exemplar)
  writer.raw(series.attributes).join()
}

/** `explicit_bounds`, field 7 of HistogramDataPoint, packed. */
const boundBytes: Uint8Array = (() => {
  const bytes = new Uint8Array(2 + 8 * durationBounds.length)
  const view = new DataView(bytes.buffer)
  bytes[0] = lengthField(7)
  bytes[1] = 8 * durationBounds.length
  durationBounds.forEach((bound, index) => {
    view.setFloat64(2 + 8 * index, bound, true)
  })
  return bytes
})()

/** Exemplar { time = 2, as_double = 3, span_id = 4, trace_id = 5 } in field 8 of HistogramDataPoint. */
function writeExemplar(
  writer: BinaryWriter,
  points: Points,
  { trace, span }: { trace: Trace; span: Trace['spans'][number] },
): void {
  writer.uint32(lengthField(8)).fork()
  writeInstant(writer, 2, points.minuteStart, span.endNs)
  writer.uint32(fixed64Field(3)).double((span.endNs - span.startNs) / 1e9)
  writeId(writer, 4, span.id)
  writeId(writer, 5, trace.id)
  writer.join()
}

/** ExponentialHistogramDataPoint; an interval without operations isn't reported. */
function reportInterval(points: Points, interval: Interval): void {
  if (interval.count === 0) return
  const offset = interval.buckets.findIndex((count) => count > 0) - bucketOrigin
  const last = interval.buckets.findLastIndex((count) => count > 0) - bucketOrigin
  const writer = points.open(interval.group, interval.service).raw(interval.attributes)
  points.times(writer, interval.service, 'report')
  writeFixedCount(writer.uint32(fixed64Field(4)), interval.count)
  writer.uint32(fixed64Field(5)).double(interval.sumSeconds)
  writer.uint32(varintField(6)).sint32(exponentialScale)
  writer.uint32(lengthField(8)).fork().uint32(varintField(1)).sint32(offset).uint32(lengthField(2)).fork()
  for (let index = offset; index <= last; index++) writer.uint64(interval.buckets[index + bucketOrigin] ?? 0)
  writer.join().join()
  writer.uint32(fixed64Field(12)).double(2 ** (offset / 2 ** exponentialScale))
  writer.uint32(fixed64Field(13)).double(2 ** ((last + 1) / 2 ** exponentialScale))
  writer.join()
}

/** SummaryDataPoint with the quantiles of the moment. */
function reportCollections(points: Points, each: Collections, moment: ShopMinute, random: Random): void {
  const median = pauseSeconds(moment.services[each.service]?.memory ?? 0)
  const writer = points.open(metrics.collection, each.service)
  points.times(writer, each.service, 'start')
  writeFixedCount(writer.uint32(fixed64Field(4)), each.count)
  writer.uint32(fixed64Field(5)).double(each.sumSeconds)
  for (const [quantile, factor] of [
    [0.5, 1],
    [0.9, 2.1],
    [0.99, 4.4],
  ] as const) {
    writer.uint32(lengthField(6)).fork()
    writer.uint32(fixed64Field(1)).double(quantile)
    writer.uint32(fixed64Field(2)).double(median * factor * (0.9 + 0.2 * random()))
    writer.join()
  }
  writer.join()
}
