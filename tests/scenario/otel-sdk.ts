// The OpenTelemetry JavaScript SDK with its own exporters, as an application uses it: meters, loggers and
// tracers with batching processors, flushed at the end. The caller chooses times and ids of log records and
// spans, so two runs send the same ones; metric points get their times from the SDK and are returned as they
// were sent.

import { Metadata } from '@grpc/grpc-js'
import {
  type HrTime,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
  ValueType,
} from '@opentelemetry/api'
import { OTLPLogExporter as GrpcLogExporter } from '@opentelemetry/exporter-logs-otlp-grpc'
import { OTLPLogExporter as JsonLogExporter } from '@opentelemetry/exporter-logs-otlp-http'
import { OTLPLogExporter as ProtoLogExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import { OTLPMetricExporter as GrpcMetricExporter } from '@opentelemetry/exporter-metrics-otlp-grpc'
import { OTLPMetricExporter as JsonMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPMetricExporter as ProtoMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter as GrpcTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc'
import { OTLPTraceExporter as JsonTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtoTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base'
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs'
import {
  AggregationType,
  MeterProvider,
  PeriodicExportingMetricReader,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'

/** The two encodings of OTLP/HTTP, and OTLP/gRPC. */
export type Encoding = 'protobuf' | 'json' | 'grpc'

export interface SdkRun {
  /** Address of OTLP/HTTP, or of OTLP/gRPC where that is the encoding. */
  readonly address: string
  readonly secret: string
  readonly encoding: Encoding
  readonly isCompressed: boolean
  /** `service.name` of everything sent. */
  readonly service: string
  /** Hex digits of the trace id; the ids of the two spans follow from them. */
  readonly traceId: string
  /** Time of the log record and start of the first span; everything else is a little later. */
  readonly at: HrTime
}

export interface SdkReport {
  /** What the metric reader collected, per flush. */
  readonly metrics: readonly ResourceMetrics[]
  /** Exports that the service refused, as the exporters report them. */
  readonly failures: readonly Error[]
}

type Done = Parameters<SpanExporter['export']>[1]

interface Exporter<T> {
  export(items: T, done: Done): void
  shutdown(): Promise<void>
  forceFlush?(): Promise<void>
}

/** Passes everything on, and stores what was sent and what failed. */
class WatchedExporter<T> implements Exporter<T> {
  readonly sent: T[] = []
  readonly #inner: Exporter<T>
  readonly #failures: Error[]

  constructor(inner: Exporter<T>, failures: Error[]) {
    this.#inner = inner
    this.#failures = failures
  }

  export(items: T, done: Done): void {
    this.sent.push(items)
    this.#inner.export(items, (result) => {
      if (result.error !== undefined) this.#failures.push(result.error)
      // Failures are in the report; otherwise the SDK would report them to the whole process.
      done({ code: 0 })
    })
  }

  shutdown(): Promise<void> {
    return this.#inner.shutdown()
  }

  async forceFlush(): Promise<void> {
    await this.#inner.forceFlush?.()
  }
}

/**
 * Sends one of everything; flushed and shut down when this resolves. Never rejects because of a refusal of
 * the service.
 */
export async function sendWithSdk(run: SdkRun): Promise<SdkReport> {
  const failures: Error[] = []
  const resource = resourceFromAttributes({ 'service.name': run.service, 'process.pid': 7 })
  const metrics = await sendMetrics(run, resource, failures)
  await sendLogs(run, resource, failures)
  await sendSpans(run, resource, failures)
  return { metrics, failures }
}

function optionsOf({ address, secret, isCompressed }: SdkRun, signal: string) {
  return {
    url: `${address}/v1/${signal}`,
    headers: { Authorization: `Bearer ${secret}` },
    compression: isCompressed ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE,
    keepAlive: false,
  }
}

function grpcOptionsOf({ address, secret, isCompressed }: SdkRun) {
  const metadata = new Metadata()
  metadata.set('authorization', `Bearer ${secret}`)
  const compression = isCompressed ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE
  return { url: `http://${address}`, metadata, compression }
}

async function sendMetrics(run: SdkRun, resource: Resource, failures: Error[]): Promise<ResourceMetrics[]> {
  const Chosen = run.encoding === 'json' ? JsonMetricExporter : ProtoMetricExporter
  const inner =
    run.encoding === 'grpc'
      ? new GrpcMetricExporter(grpcOptionsOf(run))
      : new Chosen(optionsOf(run, 'metrics'))
  const exporter = new WatchedExporter<ResourceMetrics>(inner, failures)
  const aggregation = { type: AggregationType.EXPONENTIAL_HISTOGRAM } as const
  const provider = new MeterProvider({
    resource,
    readers: [new PeriodicExportingMetricReader({ exporter })],
    views: [{ instrumentName: 'exponential', aggregation }],
  })
  const meter = provider.getMeter('shop-meter', '1.0')
  const counter = meter.createCounter('orders', {
    valueType: ValueType.INT,
    unit: '{order}',
    description: 'O',
  })
  counter.add(3, { route: '/a' })
  meter.createUpDownCounter('carts').add(-1.5)
  meter.createGauge('temperature', { unit: 'Cel' }).record(0.25, { room: 'cold', shelf: 5 })
  for (const value of [0.5, 5, 5, 50]) meter.createHistogram('explicit', { unit: 'ms' }).record(value)
  for (const value of [0, 1, 2, 1024]) meter.createHistogram('exponential').record(value)
  await provider.forceFlush()
  counter.add(2, { route: '/a' })
  await provider.shutdown()
  return exporter.sent
}

function later([seconds, nanos]: HrTime, byNs: number): HrTime {
  return [seconds, nanos + byNs]
}

async function sendLogs(run: SdkRun, resource: Resource, failures: Error[]): Promise<void> {
  const Chosen = run.encoding === 'json' ? JsonLogExporter : ProtoLogExporter
  const inner =
    run.encoding === 'grpc' ? new GrpcLogExporter(grpcOptionsOf(run)) : new Chosen(optionsOf(run, 'logs'))
  const exporter = new WatchedExporter(inner, failures)
  const provider = new LoggerProvider({ resource, processors: [new BatchLogRecordProcessor({ exporter })] })
  const spanContext = {
    traceId: run.traceId,
    spanId: childSpanId(run),
    traceFlags: TraceFlags.SAMPLED,
  }
  provider.getLogger('shop-logger').emit({
    severityNumber: 17,
    severityText: 'ERROR',
    body: { text: 'card declined: ☂', items: [1, 2.5, null] },
    attributes: { 'order.id': 12, raw: new Uint8Array([0, 255]) },
    eventName: 'order.declined',
    timestamp: run.at,
    context: trace.setSpanContext(ROOT_CONTEXT, spanContext),
  })
  await provider.forceFlush()
  await provider.shutdown()
}

export function rootSpanId({ traceId }: Pick<SdkRun, 'traceId'>): string {
  return `a${traceId.slice(17)}`
}

export function childSpanId({ traceId }: Pick<SdkRun, 'traceId'>): string {
  return `b${traceId.slice(17)}`
}

async function sendSpans(run: SdkRun, resource: Resource, failures: Error[]): Promise<void> {
  const Chosen = run.encoding === 'json' ? JsonTraceExporter : ProtoTraceExporter
  const inner =
    run.encoding === 'grpc' ? new GrpcTraceExporter(grpcOptionsOf(run)) : new Chosen(optionsOf(run, 'traces'))
  const exporter = new WatchedExporter(inner, failures)
  const spanIds = [rootSpanId(run), childSpanId(run)]
  const provider = new TracerProvider({
    resource,
    spanProcessors: [new BatchSpanProcessor({ exporter })],
    idGenerator: {
      generateTraceId: () => run.traceId,
      generateSpanId: () => spanIds.shift() ?? '0123456789abcdef',
    },
  })
  const tracer = provider.getTracer('shop-tracer', '3')
  const root = tracer.startSpan('POST /orders', { kind: SpanKind.SERVER, startTime: run.at, root: true })
  const child = tracer.startSpan(
    'charge card',
    {
      kind: SpanKind.CLIENT,
      startTime: later(run.at, 1),
      links: [{ context: root.spanContext(), attributes: { why: 'retry' } }],
      attributes: { amount: 12.5, tags: ['a', 'b'], isTest: true },
    },
    trace.setSpan(ROOT_CONTEXT, root),
  )
  child.addEvent('declined', { attempt: 1 }, later(run.at, 2))
  child.setStatus({ code: SpanStatusCode.ERROR, message: 'card declined' })
  child.end(later(run.at, 1_001))
  root.end(later(run.at, 2_000_003))
  await provider.forceFlush()
  await provider.shutdown()
}
