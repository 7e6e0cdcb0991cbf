// The shop's data points, written as bytes of the five kinds of OTLP metric at the end of a minute.
// Cumulative points start with their process, delta points with the previous report; gauges have no start.
// Field numbers are those of opentelemetry-proto's metrics.proto.

import type { BinaryWriter } from '@bufbuild/protobuf/wire'
import type { ServiceName } from './call-graph.ts'
import { serviceNames, spanKind } from './call-graph.ts'
import type { Collections, HistogramSeries, Interval } from './metric-series.ts'
import {
  bucketOrigin,
  durationBounds,
  exponentialScale,
  indexOf,
  metrics,
  pauseSeconds,
} from './metric-series.ts'
import type { Batch, Group, Instant, Resource } from './otlp-batch.ts'
import {
  encodeAttributes,
  fixed64Field,
  instantOf,
  lengthField,
  varintField,
  writeFixedCount,
  writeId,
  writeInstant,
} from './otlp-batch.ts'
import type { Random } from './random.ts'
import type { ServiceState, ShopMinute } from './shop.ts'
import { minuteNs } from './shop.ts'
import type { Trace } from './traces.ts'

const storefrontService = indexOf('storefront')
/** The attributes of a point without attributes. */
export const noAttributes = new Uint8Array()

interface NumberPoint {
  readonly value: number
  /** What the start time is: process start, last report, or none for a gauge. */
  readonly since?: 'start' | 'report'
  readonly isDouble?: boolean
}

/** Writes data points at the end of a minute, each to its resource's and metric's writer. */
export interface Points {
  number(group: Group, service: number, attributes: Uint8Array, point: NumberPoint): void
  /** Opens a point's message in `group`; the caller writes it and calls join. */
  open(group: Group, service: number): BinaryWriter
  /** Writes start = 2 and time = 3, shared by all kinds of point. */
  times(writer: BinaryWriter, service: number, since: 'start' | 'report' | undefined): void
  /** Start of the minute that the points end. */
  readonly minuteStart: Instant
}

/** Points of one report, at the end of `moment`; `reportedMinute` is where delta intervals begin. */
export function openPoints({
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

/** Gauges of every service, and the requests in progress at the entry of the shop. */
export function reportMoment(points: Points, moment: ShopMinute): void {
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

/** The last traced request of the minute, by endpoint and status. */
type Exemplars = ReadonlyMap<string, { readonly trace: Trace; readonly span: Trace['spans'][number] }>

/** Empty where nothing was traced. Responses that are not complete at the end of the minute are left out. */
export function exemplarsOf(traces: readonly Trace[]): Exemplars {
  const found = new Map<string, { trace: Trace; span: Trace['spans'][number] }>()
  for (const trace of traces) {
    for (const span of trace.spans) {
      // The response must be complete before the report is written.
      if (span.step.kind !== spanKind.server || span.endNs >= 60e9) continue
      found.set(`${span.step.service} ${span.step.name} ${span.failed}`, { trace, span })
    }
  }
  return found
}

/** HistogramDataPoint of one endpoint and status, with a matching exemplar. */
export function reportSeries(points: Points, series: HistogramSeries, exemplars: Exemplars): void {
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
export function reportInterval(points: Points, interval: Interval): void {
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
export function reportCollections(
  points: Points,
  each: Collections,
  moment: ShopMinute,
  random: Random,
): void {
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
