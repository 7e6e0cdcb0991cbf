// The OpenTelemetry JavaScript SDK as an independent client: its serializers write the bodies, and its
// deserializers read our responses.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type HrTime,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
  ValueType,
} from '@opentelemetry/api'
import {
  JsonLogsSerializer,
  JsonMetricsSerializer,
  JsonTraceSerializer,
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { InMemoryLogRecordExporter, LoggerProvider, SimpleLogRecordProcessor } from '@opentelemetry/sdk-logs'
import {
  AggregationType,
  MeterProvider,
  MetricReader,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { decodeHere } from '../../../tests/otlp/decode-here.ts'
import { namedRows } from '../../../tests/otlp/named-cells.ts'
import type { Signal, TableName } from '../../telemetry/schema/tables.ts'
import type { OtlpEncoding } from './decode-export.ts'
import { encodeExportResponse } from './response.ts'

class PullReader extends MetricReader {
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}

const resource = resourceFromAttributes({ 'service.name': 'shop', 'process.pid': 7, tags: ['a', 'b'] })
const resourceText = { 'service.name': 'shop', 'process.pid': '7', tags: '["a","b"]' }

function decodeRows(
  signal: Signal,
  encoding: OtlpEncoding,
  body: Uint8Array | undefined,
  table: TableName,
): Record<string, unknown>[] {
  assert.ok(body)
  const decoded = decodeHere(signal, encoding, Buffer.from(body), 1n)
  assert.equal(decoded.reasons, '')
  return namedRows(decoded.batch, table)
}

function instantOf([seconds, nanos]: HrTime): string {
  return `${seconds}.${String(nanos).padStart(9, '0')}`
}

async function collectMetrics(): Promise<ResourceMetrics> {
  const reader = new PullReader()
  const provider = new MeterProvider({
    resource,
    readers: [reader],
    views: [
      { instrumentName: 'exponential', aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM } },
      {
        instrumentName: 'explicit',
        aggregation: { type: AggregationType.EXPLICIT_BUCKET_HISTOGRAM, options: { boundaries: [1, 10] } },
      },
    ],
  })
  const meter = provider.getMeter('shop-meter', '1.0', { schemaUrl: 'https://schema.test/1' })
  meter
    .createCounter('counter', { valueType: ValueType.INT, unit: '1', description: 'C' })
    .add(3, { route: '/a' })
  meter.createUpDownCounter('updown').add(-1.5)
  meter.createGauge('gauge').record(0.25, { on: true, n: 5 })
  for (const value of [0.5, 5, 5, 50]) meter.createHistogram('explicit').record(value)
  for (const value of [0, 1, 2, 1024]) meter.createHistogram('exponential').record(value)
  const { resourceMetrics } = await reader.collect()
  await provider.shutdown()
  return resourceMetrics
}

for (const encoding of ['protobuf', 'json'] as const) {
  test(`metrics of the SDK arrive in ${encoding}`, async () => {
    const collected = await collectMetrics()
    const serializer = encoding === 'json' ? JsonMetricsSerializer : ProtobufMetricsSerializer
    const body = serializer.serializeRequest(collected)
    const sums = decodeRows('metrics', encoding, body, 'otel_metrics_sum')
    const [counter, updown] = sums
    const metrics = collected.scopeMetrics.flatMap((group) => group.metrics)
    const sent = metrics.find((metric) => metric.descriptor.name === 'counter')?.dataPoints[0]
    assert.ok(sent)
    assert.deepEqual(counter?.ResourceAttributes, resourceText)
    assert.deepEqual(
      [counter?.ServiceName, counter?.ScopeName, counter?.ScopeVersion, counter?.ScopeSchemaUrl],
      ['shop', 'shop-meter', '1.0', 'https://schema.test/1'],
    )
    assert.deepEqual(
      [
        counter?.MetricName,
        counter?.MetricUnit,
        counter?.MetricDescription,
        counter?.Attributes,
        counter?.Value,
      ],
      ['counter', '1', 'C', { route: '/a' }, 3],
    )
    assert.deepEqual([counter?.AggregationTemporality, counter?.IsMonotonic], [2, true])
    assert.deepEqual(
      [counter?.StartTimeUnix, counter?.TimeUnix],
      [instantOf(sent.startTime), instantOf(sent.endTime)],
    )
    assert.deepEqual([updown?.Value, updown?.IsMonotonic], [-1.5, false])
    const [gauge] = decodeRows('metrics', encoding, body, 'otel_metrics_gauge')
    assert.deepEqual([gauge?.Value, gauge?.Attributes], [0.25, { on: 'true', n: '5' }])
    const [explicit] = decodeRows('metrics', encoding, body, 'otel_metrics_histogram')
    assert.deepEqual(
      [
        explicit?.Count,
        explicit?.Sum,
        explicit?.BucketCounts,
        explicit?.ExplicitBounds,
        explicit?.Min,
        explicit?.Max,
      ],
      ['4', 60.5, ['1', '2', '1'], [1, 10], 0.5, 50],
    )
    const [exponential] = decodeRows('metrics', encoding, body, 'otel_metrics_exponential_histogram')
    const counts = exponential?.PositiveBucketCounts
    assert.deepEqual([exponential?.Count, exponential?.ZeroCount, exponential?.Max], ['4', '1', 1024])
    assert.ok(Array.isArray(counts))
    assert.equal(
      counts.reduce((sum: number, count) => sum + Number(count), 0),
      3,
    )
  })

  test(`logs of the SDK arrive in ${encoding}`, async () => {
    const exporter = new InMemoryLogRecordExporter()
    const provider = new LoggerProvider({
      resource,
      processors: [new SimpleLogRecordProcessor({ exporter })],
    })
    const logger = provider.getLogger('shop-logger')
    const spanContext = {
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      spanId: '00f067aa0ba902b7',
      traceFlags: TraceFlags.SAMPLED,
    }
    logger.emit({
      severityNumber: 9,
      severityText: 'INFO',
      body: { text: 'paid', items: [1, 2.5, null] },
      attributes: { 'order.id': 12, raw: new Uint8Array([0, 255]) },
      eventName: 'order.paid',
      timestamp: [1_700_000_000, 5],
      context: trace.setSpanContext(ROOT_CONTEXT, spanContext),
    })
    const serializer = encoding === 'json' ? JsonLogsSerializer : ProtobufLogsSerializer
    const body = serializer.serializeRequest(exporter.getFinishedLogRecords())
    await provider.shutdown()
    const [row] = decodeRows('logs', encoding, body, 'otel_logs')
    assert.deepEqual(
      [row?.Timestamp, row?.TraceId, row?.SpanId, row?.TraceFlags, row?.SeverityText, row?.SeverityNumber],
      ['1700000000.000000005', spanContext.traceId, spanContext.spanId, 1, 'INFO', 9],
    )
    assert.equal(row?.Body, '{"items":[1,2.5,null],"text":"paid"}')
    assert.deepEqual(row?.LogAttributes, { 'order.id': '12', raw: 'AP8=' })
    assert.deepEqual(
      [row?.ServiceName, row?.ScopeName, row?.EventName, row?.ResourceAttributes],
      ['shop', 'shop-logger', 'order.paid', resourceText],
    )
  })

  test(`spans of the SDK arrive in ${encoding}`, async () => {
    const exporter = new InMemorySpanExporter()
    const provider = new TracerProvider({ resource, spanProcessors: [new SimpleSpanProcessor({ exporter })] })
    const tracer = provider.getTracer('shop-tracer', '3')
    const parent = tracer.startSpan('parent', { kind: SpanKind.SERVER, startTime: [1_700_000_000, 1] })
    const child = tracer.startSpan(
      'child',
      {
        startTime: [1_700_000_000, 2],
        links: [{ context: parent.spanContext() }],
        attributes: { list: [true] },
      },
      trace.setSpan(ROOT_CONTEXT, parent),
    )
    child.addEvent('half', { at: 1 }, [1_700_000_000, 3])
    child.setStatus({ code: SpanStatusCode.ERROR, message: 'no' })
    child.end([1_700_000_000, 1_002])
    parent.end([1_700_000_001, 1])
    await provider.forceFlush()
    const serializer = encoding === 'json' ? JsonTraceSerializer : ProtobufTraceSerializer
    const body = serializer.serializeRequest(exporter.getFinishedSpans())
    await provider.shutdown()
    const [first, second] = decodeRows('traces', encoding, body, 'otel_traces')
    const { traceId, spanId } = parent.spanContext()
    assert.deepEqual(
      [first?.SpanName, first?.SpanKind, first?.TraceId, first?.SpanId, first?.ParentSpanId, first?.Duration],
      ['child', 'Internal', traceId, child.spanContext().spanId, spanId, '1000'],
    )
    assert.deepEqual(
      [first?.StatusCode, first?.StatusMessage, first?.SpanAttributes],
      ['Error', 'no', { list: '[true]' }],
    )
    assert.deepEqual(
      [first?.['Events.Timestamp'], first?.['Events.Name'], first?.['Events.Attributes']],
      [['1700000000.000000003'], ['half'], [{ at: '1' }]],
    )
    assert.deepEqual([first?.['Links.TraceId'], first?.['Links.SpanId']], [[traceId], [spanId]])
    assert.deepEqual(
      [second?.SpanName, second?.SpanKind, second?.ParentSpanId, second?.StatusCode, second?.Duration],
      ['parent', 'Server', '', 'Unset', '1000000000'],
    )
  })
}

test('the SDK reads our partial successes', () => {
  const result = { rejected: 2, message: '2 spans: time is 0' }
  const proto = ProtobufTraceSerializer.deserializeResponse(
    encodeExportResponse('traces', 'protobuf', result),
  )
  assert.equal(Number(proto.partialSuccess?.rejectedSpans), 2)
  assert.equal(proto.partialSuccess?.errorMessage, result.message)
  const json = JsonMetricsSerializer.deserializeResponse(encodeExportResponse('metrics', 'json', result))
  assert.equal(Number(json.partialSuccess?.rejectedDataPoints), 2)
  const empty = encodeExportResponse('logs', 'protobuf', { rejected: 0, message: '' })
  assert.equal(ProtobufLogsSerializer.deserializeResponse(empty).partialSuccess, undefined)
})
