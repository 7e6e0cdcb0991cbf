// The log records of one minute of the demo shop. Every failure of a service is logged (failures aren't
// sampled), a fixed share of the traced requests has an ordinary record, and deploys, restarts, memory
// pressure and slow requests are logged. A record of a traced request has the ids of its own span; a record
// of an untraced one has other ids with the sampled flag off, as a real SDK writes them.

import type { Attributes, FlowName, ServiceName } from './call-graph.ts'
import { failures, serviceNames, spanKind } from './call-graph.ts'
import type { Random } from './random.ts'
import { openRandom } from './random.ts'
import type { ServiceState, Shop, ShopMinute } from './shop.ts'
import { stream } from './shop.ts'
import type { Span, SpanWords, Trace, TraceWords } from './traces.ts'

/** Severity text and number of the OpenTelemetry log data model. */
export const severity = { DEBUG: 5, INFO: 9, WARN: 13, ERROR: 17, FATAL: 21 } as const

export interface LogLine {
  readonly service: ServiceName
  readonly level: keyof typeof severity
  readonly body: string
  readonly attributes: Attributes
  readonly eventName?: string
  /** Nanoseconds after the start of the minute; may be after its end. */
  readonly atNs: number
  /**
   * When the work that wrote the record began, nanoseconds after the start of the minute, always within it.
   */
  readonly arrivedNs: number
  readonly context?: { readonly trace: TraceWords; readonly span: SpanWords; readonly isSampled: boolean }
}

interface Everyday {
  readonly service: ServiceName
  /** Share of the flow's traced requests that write the record, 0 to 1. */
  readonly share: number
  readonly eventName?: string
  write(random: Random): { readonly body: string; readonly attributes: Attributes }
}

const pick = (random: Random, count: number): number => 1 + Math.floor(random() * count)

const words = [
  'lamp',
  'oak table',
  'wool blanket',
  'desk',
  'mirror',
  'shelf',
  'rug',
  'armchair',
  'vase',
  'clock',
]

const everyday: Readonly<Record<FlowName, readonly Everyday[]>> = {
  browse: [
    {
      service: 'catalogue',
      share: 0.3,
      write: (random) => {
        const product = `p-${pick(random, 4000)}`
        return { body: `served product ${product}`, attributes: { 'shop.product.id': product } }
      },
    },
    {
      service: 'storefront',
      share: 0.2,
      write: (random) => ({
        body: 'page rendered',
        attributes: { 'shop.page.bytes': 40_000 + pick(random, 30_000) },
      }),
    },
  ],
  search: [
    {
      service: 'search',
      share: 0.6,
      write: (random) => {
        const text = words[pick(random, words.length) - 1] ?? ''
        const hits = pick(random, 240) - 1
        return { body: `query "${text}" found ${hits} products`, attributes: { 'shop.search.hits': hits } }
      },
    },
    {
      service: 'gateway',
      share: 0.4,
      write: (random) => ({
        body: 'GET /api/search 200',
        attributes: { 'http.response.body.size': 2_000 + pick(random, 9_000) },
      }),
    },
  ],
  add_to_cart: [
    {
      service: 'cart',
      share: 0.6,
      eventName: 'shop.cart.item_added',
      write: (random) => {
        const product = `p-${pick(random, 4000)}`
        const quantity = pick(random, 3)
        return {
          body: `added ${quantity} of ${product}`,
          attributes: { 'shop.product.id': product, 'shop.item.quantity': quantity },
        }
      },
    },
  ],
  checkout: [
    {
      service: 'checkout',
      share: 0.7,
      eventName: 'shop.order.placed',
      write: (random) => {
        const order = `o-${random.bits().toString(36)}`
        const cents = 900 + pick(random, 24_000)
        return {
          body: `order ${order} placed`,
          attributes: {
            'shop.order.id': order,
            'shop.order.total': cents / 100,
            'shop.order.currency': 'EUR',
          },
        }
      },
    },
    {
      service: 'payments',
      share: 0.5,
      write: (random) => ({
        body: 'charge accepted',
        attributes: { 'shop.payment.method': random() < 0.7 ? 'card' : 'wallet', 'shop.payment.attempt': 1 },
      }),
    },
    {
      service: 'inventory',
      share: 0.5,
      write: (random) => ({
        body: 'stock reserved',
        attributes: { 'shop.warehouse.id': `w-${pick(random, 5)}` },
      }),
    },
  ],
}

/**
 * A traced request that takes longer gets a warning, nanoseconds: five times the median of the longest flow.
 */
const slowNs = 1.2e9

/** Returns all records of the minute, oldest first. `traces` are those of the same minute. */
export function logLinesOf(shop: Shop, moment: ShopMinute, traces: readonly Trace[]): readonly LogLine[] {
  const random = openRandom(shop.seed, stream.logs, moment.minute)
  const lines = traces.flatMap((trace) => linesOfTrace(random, trace))
  lines.push(...untracedFailures(random, moment, traces), ...linesOfService(random, moment))
  return lines.sort((a, b) => a.atNs - b.atNs)
}

function linesOfTrace(random: Random, trace: Trace): LogLine[] {
  if (trace.link !== undefined) return []
  const root = trace.spans[0]
  const origin = trace.spans.find((span) => span.isOrigin)
  const lines: LogLine[] = []
  if (origin !== undefined) lines.push(failureLine(origin.step.service, trace, origin))
  if (root !== undefined && root.endNs - root.startNs > slowNs) lines.push(slowLine(trace, root))
  for (const kind of everyday[trace.flow.name]) {
    const isWritten = random() < kind.share
    const span = entryOf(trace, kind.service)
    if (!isWritten || span === undefined || span.failed) continue
    lines.push({
      service: kind.service,
      level: 'INFO',
      ...kind.write(random),
      ...(kind.eventName === undefined ? {} : { eventName: kind.eventName }),
      ...placed(trace, span),
    })
  }
  return lines
}

const entryOf = (trace: Trace, service: ServiceName): Span | undefined =>
  trace.spans.find((span) => span.step.service === service && span.step.kind === spanKind.server)

const placed = (trace: Trace, span: Span): Pick<LogLine, 'atNs' | 'arrivedNs' | 'context'> => ({
  atNs: span.endNs,
  arrivedNs: trace.arrivedNs,
  context: { trace: trace.id, span: span.id, isSampled: true },
})

const failureText = (service: ServiceName): Pick<LogLine, 'level' | 'body' | 'attributes'> => {
  const { type, message } = failures[service]
  return {
    level: 'ERROR',
    body: `request failed: ${message}`,
    attributes: { 'exception.type': type, 'exception.message': message },
  }
}

const failureLine = (service: ServiceName, trace: Trace, span: Span): LogLine => ({
  service,
  ...failureText(service),
  ...placed(trace, span),
})

function slowLine(trace: Trace, root: Span): LogLine {
  const durationMs = Math.round((root.endNs - root.startNs) / 1e6)
  return {
    service: root.step.service,
    level: 'WARN',
    body: `slow request: ${root.step.name} took ${durationMs} ms`,
    attributes: { 'http.route': String(root.step.attributes['http.route']), 'shop.duration_ms': durationMs },
    ...placed(trace, root),
  }
}

/** The failures of the minute that no trace shows: all counted failures minus the traced ones. */
function untracedFailures(random: Random, moment: ShopMinute, traces: readonly Trace[]): LogLine[] {
  return serviceNames.flatMap((service, index) => {
    const counted = (moment.ownFailures[index] ?? []).reduce((sum, count) => sum + count, 0)
    const traced = traces.filter(({ spans }) =>
      spans.some((span) => span.isOrigin && span.step.service === service),
    )
    return Array.from({ length: Math.max(0, counted - traced.length) }, (): LogLine => {
      const atNs = Math.floor(random() * 60e9)
      return { service, ...failureText(service), atNs, arrivedNs: atNs, context: untracedContext(random) }
    })
  })
}

const untracedContext = (random: Random): NonNullable<LogLine['context']> => ({
  trace: [random.bits(), random.bits(), random.bits(), random.bits()],
  span: [random.bits(), random.bits()],
  isSampled: false,
})

/** Records that no request causes: starts, memory pressure, and the periodic work of some services. */
function linesOfService(random: Random, { minute, services }: ShopMinute): LogLine[] {
  const lines: LogLine[] = []
  const say = (
    service: ServiceName,
    level: LogLine['level'],
    body: string,
    attributes: Attributes = {},
    eventName?: string,
  ): void => {
    const atNs = Math.floor(random() * 60e9)
    lines.push({
      service,
      level,
      body,
      attributes,
      atNs,
      arrivedNs: atNs,
      ...(eventName === undefined ? {} : { eventName }),
    })
  }
  services.forEach((state, index) => {
    const name = serviceNames[index]
    if (name === undefined) return
    if (state.startedMinute === minute) {
      say(name, 'INFO', `listening on :8080, version ${state.version}`, {}, 'shop.process.started')
    }
    if (state.memory > 0.85 && minute % 3 === 0) {
      const percent = Math.round(state.memory * 100)
      say(name, 'WARN', `memory at ${percent} % of its limit`, { 'system.memory.utilization': state.memory })
    }
    if (state.startedMinute === minute && wasKilled(state, name)) {
      say(name, 'FATAL', 'previous process was killed: out of memory', { 'process.exit.code': 137 })
    }
    if (minute % 10 === index) say(name, 'DEBUG', 'configuration unchanged', { 'shop.config.revision': 41 })
  })
  if (minute % 5 === 0) say('inventory', 'INFO', `stock synchronised, ${3_000 + pick(random, 900)} items`)
  return lines
}

/**
 * Only the memory leak ends a process without a deploy, and only then does a new process start during
 * failures.
 */
const wasKilled = (state: ServiceState, name: ServiceName): boolean =>
  name === 'inventory' && state.failureRatio > 0.5
