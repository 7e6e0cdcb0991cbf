// Seeded, realistic OTLP bodies for the ingest benches. Half of the bodies are like those of an SDK (one
// resource, some hundred records), half like those of a Collector (eight resources, some thousand records in
// all). Metrics are of all five kinds in about the shares of real services, log bodies have 200 B to 2 kB,
// traces 5 to 50 spans.

import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import type { Signal } from '../../server/telemetry/schema/tables.ts'
import { encodeProto } from '../../tests/otlp/otlp-messages.ts'

export const startNs = 1_767_700_000_000_000_000n

export interface TextAttribute {
  readonly key: string
  readonly value: { readonly stringValue: string }
}

export interface IntegerAttribute {
  readonly key: string
  readonly value: { readonly intValue: string }
}

type Random = () => number

const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
const between = (random: Random, low: number, high: number) => low + Math.floor(random() * (high - low + 1))
const hex = (random: Random, digits: number) =>
  Array.from({ length: digits }, () => '0123456789abcdef'[Math.floor(random() * 16)]).join('')
const text = (key: string, stringValue: string): TextAttribute => ({ key, value: { stringValue } })
const integer = (key: string, value: number): IntegerAttribute => ({
  key,
  value: { intValue: String(value) },
})

const services = ['checkout', 'cart', 'catalogue', 'payment', 'shipping', 'frontend', 'search', 'identity']
const routes = Array.from({ length: 40 }, (_, at) => `/api/v2/${services[at % 8]}/{id}/step-${at}`)
const words =
  'order accepted for customer with items total retry upstream timeout connection pool exhausted request payload validated stored cache miss shard replica leader elected token refreshed gateway'.split(
    ' ',
  )

/** The resource of a service's process, in OTLP's form. */
export function resource(random: Random, index: number): { readonly attributes: readonly TextAttribute[] } {
  const service = services[index % services.length] ?? 'shop'
  return {
    attributes: [
      text('service.name', service),
      text('service.version', '1.14.2'),
      text('service.instance.id', hex(random, 32)),
      text('k8s.pod.name', `${service}-7d9f8b6c5-${hex(random, 5)}`),
      text('k8s.namespace.name', 'shop'),
      text('host.name', `node-${index}.eu-central.internal`),
      text('telemetry.sdk.language', 'nodejs'),
    ],
  }
}

/** Attributes of an HTTP request on a server. */
export function requestAttributes(random: Random): (TextAttribute | IntegerAttribute)[] {
  return [
    text('http.request.method', pick(random, ['GET', 'GET', 'POST'])),
    text('http.route', pick(random, routes)),
    integer('http.response.status_code', pick(random, [200, 200, 200, 404, 500])),
    text('server.address', 'shop.svc.cluster.local'),
  ]
}

const counts = (random: Random, length: number) =>
  Array.from({ length }, () => String(between(random, 0, 900)))

/**
 * One metric with a few points; kinds in the shares gauge 30, sum 45, histogram 20, exponential 3, summary 2.
 */
function metric(random: Random, points: number, fromNs: bigint): object {
  const share = random()
  const point = () => ({
    attributes: requestAttributes(random),
    startTimeUnixNano: String(fromNs - 600_000_000_000n),
    timeUnixNano: String(fromNs + BigInt(between(random, 0, 10_000)) * 1_000_000n),
  })
  const list = <T extends object>(own: () => T) =>
    Array.from({ length: points }, () => ({ ...point(), ...own() }))
  const head = { name: `shop.metric.${between(random, 0, 60)}`, unit: 'ms', description: 'As the SDK says.' }
  const temporality = { aggregationTemporality: 2 }
  if (share < 0.3) return { ...head, gauge: { dataPoints: list(() => ({ asDouble: random() * 1000 })) } }
  if (share < 0.75) {
    const dataPoints = list(() => ({ asInt: String(between(random, 0, 1e6)) }))
    return { ...head, sum: { ...temporality, isMonotonic: true, dataPoints } }
  }
  const distribution = () => ({ count: String(between(random, 1, 9000)), sum: random() * 1e4 })
  if (share < 0.95) {
    const explicitBounds = Array.from({ length: 14 }, (_, at) => 0.005 * 2 ** at)
    const own = () => ({
      ...distribution(),
      min: 0.1,
      max: 90,
      explicitBounds,
      bucketCounts: counts(random, 15),
    })
    return { ...head, histogram: { ...temporality, dataPoints: list(own) } }
  }
  if (share < 0.98) {
    const own = () => ({
      ...distribution(),
      scale: 3,
      zeroCount: '1',
      positive: { offset: 7, bucketCounts: counts(random, 40) },
    })
    return { ...head, exponentialHistogram: { ...temporality, dataPoints: list(own) } }
  }
  const quantileValues = [0.5, 0.9, 0.99].map((quantile) => ({ quantile, value: quantile * 100 }))
  return { ...head, summary: { dataPoints: list(() => ({ ...distribution(), quantileValues })) } }
}

function logRecord(random: Random, fromNs: bigint): object {
  const length = 200 + Math.floor(1800 * random() ** 3)
  let body = `request ${hex(random, 12)}:`
  while (body.length < length) body += ` ${pick(random, words)}`
  const timeNs = fromNs + BigInt(between(random, 0, 10_000_000)) * 1_000n
  return {
    timeUnixNano: String(timeNs),
    observedTimeUnixNano: String(timeNs + 1_000n),
    severityNumber: 9,
    severityText: 'INFO',
    body: { stringValue: body },
    attributes: requestAttributes(random),
    ...(random() < 0.7 ? { traceId: hex(random, 32), spanId: hex(random, 16), flags: 1 } : {}),
  }
}

function trace(random: Random, rootNs: bigint): object[] {
  const traceId = hex(random, 32)
  const ids = Array.from({ length: between(random, 5, 50) }, () => hex(random, 16))
  return ids.map((spanId, at) => {
    const fromNs = rootNs + BigInt(at) * 1_000_000n
    const exception = {
      timeUnixNano: String(fromNs),
      name: 'exception',
      attributes: [text('exception.type', 'Timeout')],
    }
    return {
      traceId,
      spanId,
      ...(at === 0 ? {} : { parentSpanId: ids[between(random, 0, at - 1)] }),
      name: `GET ${pick(random, routes)}`,
      kind: 1 + (at % 3),
      startTimeUnixNano: String(fromNs),
      endTimeUnixNano: String(fromNs + 5_000_000n),
      attributes: requestAttributes(random),
      ...(random() < 0.05 ? { events: [exception], status: { code: 2, message: 'timed out' } } : {}),
    }
  })
}

function records(signal: Signal, random: Random, count: number, fromNs: bigint): object[] {
  const made: object[] = []
  for (let rows = 0; rows < count; ) {
    const points = signal === 'metrics' ? between(random, 1, 8) : 0
    const more =
      signal === 'metrics'
        ? [metric(random, points, fromNs)]
        : signal === 'logs'
          ? [logRecord(random, fromNs)]
          : trace(random, fromNs)
    made.push(...more)
    rows += points || more.length
  }
  return made
}

const names = {
  metrics: ['resourceMetrics', 'scopeMetrics', 'metrics'],
  logs: ['resourceLogs', 'scopeLogs', 'logRecords'],
  traces: ['resourceSpans', 'scopeSpans', 'spans'],
} as const

/** Protobuf bodies of one signal, see {@link ingestMessages}. */
export function ingestBodies(signal: Signal, count: number, seed: number, fromNs = startNs): Buffer[] {
  return Array.from(ingestMessages(signal, count, seed, fromNs), (message) => encodeProto(signal, message))
}

/**
 * Exports of one signal in the form of OTLP/JSON, the same for the same seed; their rows are in the ten
 * seconds after `fromNs`.
 */
export function* ingestMessages(
  signal: Signal,
  count: number,
  seed: number,
  fromNs = startNs,
): Generator<object> {
  const random = seededUniform(seed)
  const [groups, scopes, list] = names[signal]
  const scope = { name: 'shop.instrumentation', version: '0.57.0' }
  for (let at = 0; at < count; at++) {
    const [resources, rowsEach] = at % 2 === 0 ? ([1, 512] as const) : ([8, 256] as const)
    const exported = Array.from({ length: resources }, (_, index) => ({
      resource: resource(random, at + index),
      [scopes]: [{ scope, [list]: records(signal, random, rowsEach, fromNs) }],
    }))
    yield { [groups]: exported }
  }
}
