// How fast OTLP bodies become rows, without engine and network: rows per second and MB per second of body for
// each signal and encoding. The payloads are like a Collector's batch: a few resources, a handful of
// attributes per record, one export time. Each figure is the median of many passes after warm-up and includes
// garbage collection.
//
// npm run bench -- ingest/decode [seconds per case, 2 by default]

import { decodeExport, type OtlpEncoding } from '../../server/ingest/otlp/decode-export.ts'
import { type Signal, signals } from '../../server/telemetry/schema/tables.ts'
import { encodeProto } from '../../tests/otlp/otlp-messages.ts'
import { report } from '../report.ts'

const resourceCount = 4
const recordsPerResource = 500
const place = { tenantId: 'acme', placement: 0 }
const startNs = 1_700_000_000_000_000_000n

const text = (key: string, stringValue: string) => ({ key, value: { stringValue } })
const integer = (key: string, value: number) => ({ key, value: { intValue: String(value) } })

function resource(index: number): object {
  return {
    attributes: [
      text('service.name', `checkout-${index}`),
      text('service.version', '1.14.2'),
      text('k8s.pod.name', `checkout-${index}-7d9f8b6c5-x2x4z`),
      text('k8s.namespace.name', 'shop'),
      text('telemetry.sdk.language', 'nodejs'),
    ],
  }
}

function requestAttributes(index: number): object[] {
  return [
    text('http.request.method', index % 3 === 0 ? 'POST' : 'GET'),
    text('http.route', `/api/v1/route-${index % 20}/{id}`),
    integer('http.response.status_code', index % 50 === 0 ? 500 : 200),
    text('server.address', 'checkout.shop.svc.cluster.local'),
  ]
}

const hex = (value: number, length: number) => (value + 1).toString(16).padStart(length, 'a')

function metric(index: number): object {
  const point = {
    attributes: requestAttributes(index),
    startTimeUnixNano: String(startNs - 600_000_000_000n),
    timeUnixNano: String(startNs),
  }
  const name = `http.server.metric-${index % 25}`
  if (index % 10 !== 0) {
    return {
      name,
      unit: '1',
      sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints: [{ ...point, asInt: String(index) }] },
    }
  }
  const bucketCounts = Array.from({ length: 15 }, (_, at) => String(at * index))
  const explicitBounds = Array.from({ length: 14 }, (_, at) => 0.005 * 2 ** at)
  const histogram = { ...point, count: String(index * 105), sum: index * 0.25, bucketCounts, explicitBounds }
  return { name, unit: 's', histogram: { aggregationTemporality: 2, dataPoints: [histogram] } }
}

function logRecord(index: number): object {
  return {
    timeUnixNano: String(startNs + BigInt(index) * 1_234_567n),
    observedTimeUnixNano: String(startNs + BigInt(index) * 1_234_567n + 1_000n),
    severityNumber: 9,
    severityText: 'INFO',
    body: {
      stringValue: `order ${index} accepted for customer ${index * 7919} with 3 items, total 49.90 EUR`,
    },
    attributes: requestAttributes(index),
    traceId: hex(index, 32),
    spanId: hex(index, 16),
    flags: 1,
  }
}

function span(index: number): object {
  return {
    traceId: hex(index, 32),
    spanId: hex(index, 16),
    parentSpanId: hex(index + 1, 16),
    name: `GET /api/v1/route-${index % 20}/{id}`,
    kind: 2,
    startTimeUnixNano: String(startNs + BigInt(index) * 1_234_567n),
    endTimeUnixNano: String(startNs + BigInt(index) * 1_234_567n + 5_000_000n),
    attributes: requestAttributes(index),
    status: { code: 0 },
  }
}

function payload(signal: Signal): object {
  const indexes = Array.from({ length: resourceCount }, (_, index) => index)
  const records = (make: (index: number) => object) =>
    Array.from({ length: recordsPerResource }, (_, index) => make(index))
  const scope = { name: 'shop.instrumentation', version: '0.57.0' }
  switch (signal) {
    case 'metrics':
      return {
        resourceMetrics: indexes.map((at) => ({
          resource: resource(at),
          scopeMetrics: [{ scope, metrics: records(metric) }],
        })),
      }
    case 'logs':
      return {
        resourceLogs: indexes.map((at) => ({
          resource: resource(at),
          scopeLogs: [{ scope, logRecords: records(logRecord) }],
        })),
      }
    case 'traces':
      return {
        resourceSpans: indexes.map((at) => ({
          resource: resource(at),
          scopeSpans: [{ scope, spans: records(span) }],
        })),
      }
  }
}

function measure(signal: Signal, encoding: OtlpEncoding, seconds: number): void {
  const message = payload(signal)
  const body = encoding === 'json' ? Buffer.from(JSON.stringify(message)) : encodeProto(signal, message)
  const rows = resourceCount * recordsPerResource
  const passes: number[] = []
  const warmUntil = performance.now() + 500
  const until = warmUntil + seconds * 1_000
  for (let now = performance.now(); now < until; ) {
    const { accepted } = decodeExport(signal, encoding, body, { place, receivedNs: startNs })
    if (accepted !== rows) throw new Error(`${signal} ${encoding}: ${accepted} of ${rows} rows were accepted`)
    const after = performance.now()
    if (now > warmUntil) passes.push(after - now)
    now = after
  }
  passes.sort((a, b) => a - b)
  const medianMs = passes[Math.floor(passes.length / 2)] ?? Number.NaN
  const rowsPerSecond = Math.round((rows / medianMs) * 1_000)
  const megabytesPerSecond = Math.round(body.length / medianMs / 1_000)
  report('Decoding', {
    signal,
    encoding,
    'rows/s': rowsPerSecond,
    'MB/s': megabytesPerSecond,
    'body bytes a row': Math.round(body.length / rows),
  })
}

const secondsPerCase = Number(process.argv[2] ?? 2)
for (const signal of signals) {
  for (const encoding of ['protobuf', 'json'] as const) measure(signal, encoding, secondsPerCase)
}
