// What the shop measures: the metrics by name and kind, the endpoints and outbound calls where they are
// measured, and the counters of requests. Endpoints are read from the call graph, so a new step of a flow is
// measured without a list here. metric-recorder.ts counts, metric-points.ts writes.

import type { ServiceName, Step } from './call-graph.ts'
import { flows, serviceNames, spanKind } from './call-graph.ts'
import type { Group } from './otlp-batch.ts'
import { lengthField, varintField } from './otlp-batch.ts'

/**
 * Recommended bounds of `http.server.request.duration` in seconds, OpenTelemetry semantic conventions, HTTP
 * metrics.
 */
export const durationBounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** 2^3 buckets for each doubling. */
export const exponentialScale = 3

/** Index of bucket 0 (just above a second) in an array of buckets, which covers 2^-16 to 2^8 seconds. */
export const bucketOrigin = 16 * 2 ** exponentialScale

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

/** Every metric that the shop sends, with the name of the semantic conventions where they have one. */
export const metrics = {
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

/** A flow whose requests reach an endpoint, and determine its failures and duration. */
interface Use {
  readonly flow: number
  /** Indexes of the endpoint's own service and the services below it. */
  readonly services: readonly number[]
  readonly parts: readonly { readonly service: number; readonly medianMs: number }[]
}

export interface Endpoint {
  readonly server: Step
  readonly uses: readonly Use[]
}

/** Index of a service in `serviceNames`, the order of services in a minute. */
export const indexOf = (name: ServiceName): number => serviceNames.indexOf(name)

/** Returns `step` and every step below it, in order. */
const stepsOf = (step: Step): readonly Step[] => [step, ...step.calls.flatMap(stepsOf)]

export const endpoints: readonly Endpoint[] = (() => {
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

/** Steps that call something outside the shop, or a store; each has an exponential histogram. */
export const outbound: readonly { readonly step: Step; readonly flows: readonly number[] }[] = (() => {
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
export interface Counter {
  readonly service: number
  readonly attributes: Uint8Array
  count: number
}

/** A histogram series: one endpoint and one status. */
export interface HistogramSeries {
  readonly service: number
  readonly attributes: Uint8Array
  readonly endpoint: Endpoint
  readonly isFailure: boolean
  count: number
  sumSeconds: number
  readonly buckets: Float64Array
}

/** A delta exponential histogram between two reports. */
export interface Interval {
  readonly service: number
  readonly group: Group
  readonly attributes: Uint8Array
  readonly step: Step
  readonly flows: readonly number[]
  count: number
  sumSeconds: number
  /**
   * Counts by bucket index + {@link bucketOrigin}; bucket i has the values in (2^(i/8), 2^((i+1)/8)] seconds.
   */
  readonly buckets: Float64Array
}

export interface Collections {
  readonly service: number
  count: number
  sumSeconds: number
}

/**
 * Median pause of the garbage collector in seconds; it grows as free memory shrinks. `memory` is a share, 0
 * to 1.
 */
export const pauseSeconds = (memory: number): number => 0.006 / Math.max(0.03, 1 - memory)
