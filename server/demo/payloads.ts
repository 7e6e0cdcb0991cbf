// Converts minutes of the demo shop to OTLP request bodies: metrics at the end of each reported minute, logs
// and sampled traces of every minute, all protobuf. The history is divided into bodies of about `rowsPerBody`
// rows, oldest first, so that an engine partitioned by time has few partitions per commit; a slice is what
// happened in a few live seconds. Both come from the same recorder and the same minutes, so live traffic
// continues the history exactly, including counters.

import { BinaryWriter } from '@bufbuild/protobuf/wire'
import type { Signal } from '../telemetry/schema/tables.ts'
import type { Flow, ServiceName, Step } from './call-graph.ts'
import { failures, flows, serviceNames, spanKind } from './call-graph.ts'
import type { LogLine } from './log-lines.ts'
import { logLinesOf, severity } from './log-lines.ts'
import { openMetricRecorder } from './metric-recorder.ts'
import type { Batch, Instant, Payload, Resource } from './otlp-batch.ts'
import {
  encodeResource,
  fixed32Field,
  getOrInsert,
  instantOf,
  lengthField,
  openBatch,
  scopeGroup,
  varintField,
  writeAttributes,
  writeId,
  writeInstant,
} from './otlp-batch.ts'
import { mix } from './random.ts'
import type { ServiceState, Shop } from './shop.ts'
import { minuteNs } from './shop.ts'
import type { Span, Trace } from './traces.ts'
import { traceStateOf, tracesOf } from './traces.ts'

/**
 * Metrics older than this are reported every {@link coarseMinutes}, the newer ones every
 * minute, as live ones are.
 */
const fineMinutes = 120
const coarseMinutes = 5

const scope = { name: 'shop.telemetry', version: '1.0.0' }

/**
 * The bodies of the whole history, from the shop's opening to its anchor. Every body has one signal. Within a
 * signal, a row of a later body is older than the oldest row of an earlier body at most by the length of a
 * trace.
 */
export function* historyPayloads(shop: Shop, rowsPerBody = 10_000): Generator<Payload, void, undefined> {
  const pen = openPen(shop, shop.openMinute)
  for (let minute = shop.openMinute; minute < shop.anchorMinute; minute++) {
    const end = minute + 1
    const isReported = minute >= shop.anchorMinute - fineMinutes || end % coarseMinutes === 0
    pen.write(minute, { fromNs: 0, toNs: 60e9, isReported })
    yield* pen.take(rowsPerBody)
  }
  yield* pen.take(1)
}

/** The approximate number of rows of the history, within a few per cent, without generating it. */
export function estimateHistoryRows(shop: Shop): number {
  const stepMinutes = 30
  let requests = 0
  for (let minute = shop.openMinute; minute < shop.anchorMinute; minute += stepMinutes) {
    for (const { name, root, tracedOneIn } of flows) {
      const perTrace = spansOf(root) + linesPerTrace
      requests += (stepMinutes * shop.expectedRate(name, minute) * perTrace) / tracedOneIn
    }
  }
  const minutes = shop.anchorMinute - shop.openMinute
  const reports = Math.max(0, minutes - fineMinutes) / coarseMinutes + Math.min(minutes, fineMinutes)
  return Math.round(requests + reports * pointsPerReport + minutes * otherLinesPerMinute)
}

/** Measured over seeds; used only for the estimate. */
const pointsPerReport = 80
const linesPerTrace = 0.85
const otherLinesPerMinute = 2.7

const spansOf = (step: Step): number =>
  1 +
  step.calls.reduce((sum, next) => sum + spansOf(next), 0) +
  (step.causes === undefined ? 0 : spansOf(step.causes))

export interface LiveSlicer {
  /**
   * Returns the bodies, at most one per signal, of what arrived in `fromMs <= t < toMs` (milliseconds since
   * 1970), and of the metric reports due in `fromMs < t <= toMs`. Slices come in order; time between two
   * slices is lost except for cumulative counters.
   */
  slice(fromMs: number, toMs: number): readonly Payload[]
}

/**
 * Continues a shop from `fromMs` on. It first records the minutes since the oldest running process started,
 * so that cumulative counters have their values: at most some days of minutes, well under a second.
 */
export function openLiveSlicer(shop: Shop, fromMs: number): LiveSlicer {
  const fromMinute = Math.floor(fromMs / 60_000)
  const running = shop.at(fromMinute).services.map(({ startedMinute }) => startedMinute)
  let recorded = Math.min(...running)
  const pen = openPen(shop, recorded)
  const recordUpTo = (minute: number): void => {
    for (; recorded < minute; recorded++) pen.skip(recorded)
  }
  recordUpTo(fromMinute)
  return {
    slice(sliceFromMs, sliceToMs) {
      const lastMinute = Math.floor((sliceToMs - 1) / 60_000)
      for (let minute = Math.floor(sliceFromMs / 60_000); minute <= lastMinute; minute++) {
        const startMs = minute * 60_000
        const endsHere = startMs + 60_000 <= sliceToMs
        if (endsHere) recordUpTo(minute)
        pen.write(minute, {
          fromNs: Math.max(0, sliceFromMs - startMs) * 1e6,
          toNs: Math.min(60_000, sliceToMs - startMs) * 1e6,
          isReported: endsHere,
          isRecorded: endsHere,
        })
        if (endsHere) recorded = minute + 1
      }
      return [...pen.take(1)]
    },
  }
}

interface Portion {
  /** Requests that arrived in `fromNs <= offset < toNs` of the minute. */
  readonly fromNs: number
  readonly toNs: number
  /** Whether metrics are reported at the minute's end. */
  readonly isReported: boolean
  /** Whether the minute is added to the counters now; true unless it has only begun. */
  readonly isRecorded?: boolean
}

interface Pen {
  write(minute: number, portion: Portion): void
  /** Adds a minute to the cumulative counters and writes nothing. */
  skip(minute: number): void
  /** Returns the batches that have at least `rows` rows, and empties them. */
  take(rows: number): Generator<Payload, void, undefined>
}

function openPen(shop: Shop, startMinute: number): Pen {
  const recorder = openMetricRecorder(shop, startMinute)
  const batches: Record<Signal, Batch> = {
    metrics: openBatch('metrics', scope),
    logs: openBatch('logs', scope),
    traces: openBatch('traces', scope),
  }
  const resourceOf = openResources(shop)
  return {
    write(minute, { fromNs, toNs, isReported, isRecorded = true }) {
      const moment = shop.at(minute)
      const traces = tracesOf(shop, moment)
      const base = instantOf(BigInt(minute) * minuteNs)
      const isWithin = ({ arrivedNs }: { arrivedNs: number }): boolean =>
        arrivedNs >= fromNs && arrivedNs < toNs
      const resources = moment.services.map((state, service) => resourceOf(service, state))
      for (const trace of traces) if (isWithin(trace)) writeTrace(batches.traces, resources, base, trace)
      for (const line of logLinesOf(shop, moment, traces)) {
        if (isWithin(line)) writeLine(batches.logs, resources, base, line)
      }
      if (isRecorded) recorder.record(moment, traces)
      if (isReported) recorder.report(batches.metrics, resourceOf)
    },
    skip(minute) {
      recorder.record(shop.at(minute), [])
      recorder.discardIntervals()
    },
    *take(rows) {
      for (const batch of Object.values(batches)) {
        const payload = batch.rows >= rows ? batch.finish() : undefined
        if (payload !== undefined) yield payload
      }
    },
  }
}

const languages: Readonly<Record<ServiceName, { readonly name: string; readonly version: string }>> = {
  storefront: { name: 'nodejs', version: '2.2.0' },
  gateway: { name: 'cpp', version: '1.22.0' },
  catalogue: { name: 'python', version: '1.38.0' },
  search: { name: 'java', version: '1.55.0' },
  cart: { name: 'dotnet', version: '1.13.1' },
  checkout: { name: 'go', version: '1.38.0' },
  payments: { name: 'go', version: '1.38.0' },
  inventory: { name: 'java', version: '1.55.0' },
}

/** The resource of a service's process; the same object while that process runs. */
function openResources(shop: Shop): (service: number, state: ServiceState) => Resource {
  const known = new Map<string, Resource>()
  const describe = (service: number, { version, startedMinute }: ServiceState): Resource => {
    const name = serviceNames[service]
    if (name === undefined) throw new RangeError(`The shop has no service number ${service}.`)
    return encodeResource({
      'service.name': name,
      'service.namespace': 'shop',
      'service.version': version,
      'service.instance.id': instanceId(shop.seed, service, startedMinute),
      'deployment.environment.name': 'production',
      'host.name': `shop-${(service % 3) + 1}`,
      'telemetry.sdk.name': 'opentelemetry',
      'telemetry.sdk.language': languages[name].name,
      'telemetry.sdk.version': languages[name].version,
    })
  }
  return (service, state) =>
    getOrInsert(known, `${service} ${state.startedMinute}`, () => describe(service, state))
}

/** A UUID (version 8, RFC 9562) of a process. */
function instanceId(seed: number, service: number, startedMinute: number): string {
  const hex = [1, 2, 3, 4]
    .map((part) => mix(seed, service, startedMinute, part).toString(16).padStart(8, '0'))
    .join('')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`
}

const resourceAt = (resources: readonly Resource[], name: ServiceName): Resource => {
  const resource = resources[serviceNames.indexOf(name)]
  if (resource === undefined) throw new RangeError(`The shop has no service ${name}.`)
  return resource
}

/** Trace flags of a sampled span with a random trace id (W3C Trace Context level 2). */
const sampledFlags = 0x03
/** `SpanFlags`: the span says whether its parent is remote, and whether it is. */
const knowsRemote = 0x100
const isRemote = 0x200

/** Appends each span as `Span` in field 2 of its scope. */
function writeTrace(batch: Batch, resources: readonly Resource[], base: Instant, trace: Trace): void {
  for (const span of trace.spans) {
    const writer = batch.row(resourceAt(resources, span.step.service), scopeGroup)
    writer.uint32(lengthField(2)).fork()
    writeSpan(writer, base, trace, span)
    writer.join()
  }
}

/**
 * Fields of `Span`: trace_id 1, span_id 2, trace_state 3, parent 4, name 5, kind 6, times 7 and 8, attributes
 * 9, events 11, links 13, status 15, flags 16.
 */
function writeSpan(writer: BinaryWriter, base: Instant, trace: Trace, span: Span): void {
  const isRoot = span.parent === undefined
  writeId(writer, 1, trace.id)
  writeId(writer, 2, span.id)
  if (span.parent !== undefined) writeId(writer, 4, span.parent)
  writeInstant(writer, 7, base, span.startNs)
  writeInstant(writer, 8, base, span.endNs)
  writer.raw(fixedPartOf(trace.flow, span))
  if (isRoot && span.step.kind === spanKind.server) writeAttributes(writer, 9, visitOf(trace))
  if (span.isOrigin) writeException(writer, base, span)
  if (isRoot && trace.link !== undefined) writeLink(writer, trace.link)
  if (span.failed) writeStatus(writer, span)
}

const fixedParts = new Map<Flow, Map<Step, Map<number, Uint8Array>>>()

/** The fields that are the same for every span of a flow's step with one outcome, encoded once. */
function fixedPartOf(flow: Flow, { step, code, failed, parent }: Span): Uint8Array {
  const bySteps = getOrInsert(fixedParts, flow, () => new Map<Step, Map<number, Uint8Array>>())
  const byOutcome = getOrInsert(bySteps, step, () => new Map<number, Uint8Array>())
  return getOrInsert(byOutcome, failed ? -code - 1 : code, () => {
    const writer = new BinaryWriter()
    writer.uint32(lengthField(3)).string(traceStateOf(flow))
    writer.uint32(lengthField(5)).string(step.name)
    writer.uint32(varintField(6)).int32(step.kind)
    writeAttributes(writer, 9, {
      ...step.attributes,
      ...(code === 0 ? {} : { 'http.response.status_code': code }),
      ...(failed ? { 'error.type': code === 0 ? failures[step.service].type : String(code) } : {}),
    })
    const remote = step.kind === spanKind.server && parent !== undefined ? isRemote : 0
    writer.uint32(fixed32Field(16)).fixed32(sampledFlags | knowsRemote | remote)
    return writer.finish()
  })
}

/**
 * Attributes of the visitor in a root span; derived from the trace id, so they are as reproducible as the
 * trace.
 */
function visitOf({ id, flow }: Trace): Record<string, string> {
  const product = 1 + (id[0] % 4000)
  const path = String(flow.root.attributes['http.route']).replace('{id}', `p-${product}`)
  return {
    'url.path': path,
    'client.address': `203.0.113.${id[1] % 256}`,
    'user_agent.original': agents[id[3] % agents.length] ?? '',
  }
}

const agents = [
  'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/138.0.0.0 Safari/537.36',
]

/** Event { time = 1, name = 2, attributes = 3 } in field 11. */
function writeException(writer: BinaryWriter, base: Instant, { step, endNs }: Span): void {
  const { type, message } = failures[step.service]
  writer.uint32(lengthField(11)).fork()
  writeInstant(writer, 1, base, endNs)
  writer.uint32(lengthField(2)).string('exception')
  writeAttributes(writer, 3, {
    'exception.type': type,
    'exception.message': message,
    'exception.stacktrace': `${type}: ${message}\n    at ${step.service}.handle (request)\n    at ${step.service}.serve (main)`,
  })
  writer.join()
}

/** Link { trace_id = 1, span_id = 2, attributes = 4 } in field 13. */
function writeLink(writer: BinaryWriter, link: NonNullable<Trace['link']>): void {
  writer.uint32(lengthField(13)).fork()
  writeId(writer, 1, link.trace)
  writeId(writer, 2, link.span)
  writeAttributes(writer, 4, { 'messaging.operation.type': 'send' })
  writer.join()
}

/** Status { message = 2, code = 3 } in field 15; the message is in the span where the failure began. */
function writeStatus(writer: BinaryWriter, { step, isOrigin }: Span): void {
  writer.uint32(lengthField(15)).fork()
  if (isOrigin) writer.uint32(lengthField(2)).string(failures[step.service].message)
  writer.uint32(varintField(3)).int32(2).join()
}

/**
 * LogRecord { time 1, severity 2 and 3, body 5, attributes 6, flags 8, ids 9 and 10, observed 11,
 * event_name 12 } in field 2.
 */
function writeLine(batch: Batch, resources: readonly Resource[], base: Instant, line: LogLine): void {
  const writer = batch.row(resourceAt(resources, line.service), scopeGroup).uint32(lengthField(2)).fork()
  writeInstant(writer, 1, base, line.atNs)
  writer.uint32(varintField(2)).int32(severity[line.level])
  writer.uint32(lengthField(3)).string(line.level)
  writer.uint32(lengthField(5)).fork().uint32(lengthField(1)).string(line.body).join()
  writeAttributes(writer, 6, line.attributes)
  if (line.context !== undefined) {
    writer.uint32(fixed32Field(8)).fixed32(line.context.isSampled ? sampledFlags : sampledFlags - 1)
    writeId(writer, 9, line.context.trace)
    writeId(writer, 10, line.context.span)
  }
  writeInstant(writer, 11, base, line.atNs)
  if (line.eventName !== undefined) writer.uint32(lengthField(12)).string(line.eventName)
  writer.join()
}
