// The sampled traces of one minute of the demo shop. Each traced request walks the tree of its flow once:
// every step draws its own time, failures appear in the step that called another system, and each caller
// above reports them. Sampling is a constant share per flow, decided at the root and recorded as
// OpenTelemetry specifies it: the tracestate has the rejection threshold (`ot=th:`), and the trace id's 56
// random bits are above it (OpenTelemetry specification, "TraceState: Probability Sampling"), so a reader can
// compute the number of requests from the spans.

import type { Flow, ServiceName, Step } from './call-graph.ts'
import { failingStep, failures, flows, serviceNames, spanKind } from './call-graph.ts'
import type { Random } from './random.ts'
import { logNormal, openRandom, poisson } from './random.ts'
import type { ServiceState, Shop, ShopMinute } from './shop.ts'
import { stream } from './shop.ts'

/** An id as 32-bit words, in the order in which their little-endian bytes are written. */
export type TraceWords = readonly [number, number, number, number]
export type SpanWords = readonly [number, number]

export interface Span {
  readonly step: Step
  readonly id: SpanWords
  /** Undefined for a root. */
  readonly parent?: SpanWords
  /** Nanoseconds after the start of the minute; may be after its end. */
  readonly startNs: number
  endNs: number
  /** HTTP status that the step received or returned; 0 where the step isn't HTTP. */
  code: number
  failed: boolean
  /** The failure began in this step and not in one below. */
  isOrigin: boolean
}

export interface Trace {
  readonly id: TraceWords
  readonly flow: Flow
  /** Parents come before their children. */
  readonly spans: readonly Span[]
  /** When the visitor's request arrived, nanoseconds after the start of the minute, always within it. */
  readonly arrivedNs: number
  /** The span that sent the message, where a message caused the trace. */
  readonly link?: { readonly trace: TraceWords; readonly span: SpanWords }
}

const durationSigma = 0.38

/** The flow's rejection threshold as tracestate text, such as `ot=th:ffc` for one request of 1,024. */
export function traceStateOf(flow: Flow): string {
  const rejected = (1n << 56n) - (1n << 56n) / BigInt(flow.tracedOneIn)
  return `ot=th:${rejected.toString(16).padStart(14, '0').replace(/0+$/, '')}`
}

/** For each flow, the bits of a trace id's third word that sampling with the flow's share sets to one. */
const sampledBits: ReadonlyMap<Flow, number> = new Map(
  flows.map((flow) => {
    let bits = 0
    // The random part of a trace id is its last 7 bytes; the first of them is the second byte of word 3.
    for (let bit = 0; bit < Math.log2(flow.tracedOneIn); bit++)
      bits |= 1 << (8 * (1 + (bit >> 3)) + 7 - (bit & 7))
    return [flow, bits]
  }),
)

/**
 * Returns all traces that arrive in the minute, oldest first; a trace that a message caused follows its cause
 * directly.
 */
export function tracesOf(shop: Shop, moment: ShopMinute): readonly Trace[] {
  const random = openRandom(shop.seed, stream.traces, moment.minute)
  const arrivals = flows.flatMap((flow, index) => {
    const count = poisson(random, (moment.arrivals[index] ?? 0) / flow.tracedOneIn)
    return Array.from({ length: count }, () => ({ flow, arrivedNs: Math.floor(random() * 60e9) }))
  })
  arrivals.sort((a, b) => a.arrivedNs - b.arrivedNs)
  return arrivals.flatMap(({ flow, arrivedNs }) => traceRequest(random, moment, flow, arrivedNs))
}

const stateByName = (moment: ShopMinute, name: ServiceName): ServiceState => {
  const state = moment.services[serviceNames.indexOf(name)]
  if (state === undefined) throw new RangeError(`The shop has no service ${name}.`)
  return state
}

function traceRequest(random: Random, moment: ShopMinute, flow: Flow, arrivedNs: number): Trace[] {
  const id = sampledId(random, flow)
  const spans: Span[] = []
  walk({ random, moment, spans }, flow.root, arrivedNs, undefined, false)
  const traces: Trace[] = [{ id, flow, spans, arrivedNs }]
  for (const sent of spans) {
    if (sent.step.causes === undefined) continue
    const waitNs = 40e6 + 25e6 * stateByName(moment, sent.step.causes.service).queueDepth * random()
    const caused: Span[] = []
    walk({ random, moment, spans: caused }, sent.step.causes, sent.endNs + waitNs, undefined, false)
    const link = { trace: id, span: sent.id }
    traces.push({ id: sampledId(random, flow), flow, spans: caused, arrivedNs, link })
  }
  return traces
}

function sampledId(random: Random, flow: Flow): TraceWords {
  return [random.bits(), random.bits(), (random.bits() | (sampledBits.get(flow) ?? 0)) >>> 0, random.bits()]
}

interface Walk {
  readonly random: Random
  readonly moment: ShopMinute
  readonly spans: Span[]
}

/** Adds the step's span and all spans below it; `isDoomed` makes this step the origin of a failure. */
function walk(
  run: Walk,
  step: Step,
  startNs: number,
  parent: SpanWords | undefined,
  isDoomed: boolean,
): Span {
  const { random } = run
  const state = stateByName(run.moment, step.service)
  const ownNs = logNormal(random, step.medianMs * 1e6 * state.latencyFactor, durationSigma)
  const id: SpanWords = [random.bits(), random.bits()]
  const start = Math.floor(startNs)
  const span: Span = {
    step,
    id,
    ...(parent === undefined ? {} : { parent }),
    startNs: start,
    endNs: start,
    code: 0,
    failed: isDoomed,
    isOrigin: isDoomed,
  }
  run.spans.push(span)
  const below = walkCalls(run, span, start + 0.4 * ownNs, state.failureRatio)
  span.endNs = Math.floor(below.endNs + (0.6 + (isDoomed ? 0.5 : 0)) * ownNs) + 1
  span.code = statusOf(span, below.broken)
  return span
}

/** Runs the calls one after another, up to the first failure (`broken`). */
function walkCalls(
  run: Walk,
  span: Span,
  startNs: number,
  failureRatio: number,
): { readonly endNs: number; readonly broken?: Span } {
  const { step } = span
  const isEntry = step.kind === spanKind.server || step.kind === spanKind.consumer
  const failsItself = isEntry && run.random() < failureRatio
  const origin = failsItself ? failingStep(step) : undefined
  if (failsItself && origin === undefined) {
    span.failed = true
    span.isOrigin = true
    return { endNs: startNs }
  }
  let endNs = startNs
  for (const next of step.calls) {
    const child = walk(run, next, endNs, span.id, next === origin)
    endNs = child.endNs
    if (!child.failed) continue
    span.failed = true
    return { endNs, broken: child }
  }
  return { endNs }
}

/**
 * HTTP status of a span: a service returns its own code when it fails itself or its database or provider
 * fails, and 502 when a service that it called failed; the CLIENT span of the caller has the status that the
 * callee returned.
 */
function statusOf({ step, failed }: Span, broken: Span | undefined): number {
  if (step.attributes['http.request.method'] === undefined) return 0
  if (!failed) return okStatus(step)
  if (broken === undefined || isLeafOf(step, broken)) return failures[step.service].code
  return step.kind === spanKind.client ? broken.code : 502
}

const isLeafOf = (step: Step, broken: Span): boolean =>
  broken.step.service === step.service && broken.step.calls.length === 0

/** Status of a successful step: 201 for a POST, 200 for the others. */
export function okStatus(step: Step): number {
  return step.attributes['http.request.method'] === 'POST' ? 201 : 200
}
