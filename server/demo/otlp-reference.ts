// A second decoder of OTLP bodies for the tests of this room: the messages of opentelemetry-proto 1.x,
// written from the published field numbers and decoded by protobufjs, which shares no code with the writer
// under test.

import protobuf from 'protobufjs'

const proto = `
syntax = "proto3";
message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3;
  double double_value = 4; ArrayValue array_value = 5; KeyValueList kvlist_value = 6; bytes bytes_value = 7; } }
message ArrayValue { repeated AnyValue values = 1; }
message KeyValueList { repeated KeyValue values = 1; }
message KeyValue { string key = 1; AnyValue value = 2; }
message InstrumentationScope { string name = 1; string version = 2; repeated KeyValue attributes = 3; uint32 dropped_attributes_count = 4; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }

message TracesData { repeated ResourceSpans groups = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scopes = 2; string schema_url = 3; }
message ScopeSpans { InstrumentationScope scope = 1; repeated Span spans = 2; string schema_url = 3; }
message Span { bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5;
  int32 kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9;
  uint32 dropped_attributes_count = 10; repeated Event events = 11; uint32 dropped_events_count = 12;
  repeated Link links = 13; uint32 dropped_links_count = 14; Status status = 15; fixed32 flags = 16; }
message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; }
message Link { bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; repeated KeyValue attributes = 4; fixed32 flags = 6; }
message Status { string message = 2; int32 code = 3; }

message LogsData { repeated ResourceLogs groups = 1; }
message ResourceLogs { Resource resource = 1; repeated ScopeLogs scopes = 2; string schema_url = 3; }
message ScopeLogs { InstrumentationScope scope = 1; repeated LogRecord log_records = 2; string schema_url = 3; }
message LogRecord { fixed64 time_unix_nano = 1; int32 severity_number = 2; string severity_text = 3; AnyValue body = 5;
  repeated KeyValue attributes = 6; uint32 dropped_attributes_count = 7; fixed32 flags = 8; bytes trace_id = 9;
  bytes span_id = 10; fixed64 observed_time_unix_nano = 11; string event_name = 12; }

message MetricsData { repeated ResourceMetrics groups = 1; }
message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scopes = 2; string schema_url = 3; }
message ScopeMetrics { InstrumentationScope scope = 1; repeated Metric metrics = 2; string schema_url = 3; }
message Metric { string name = 1; string description = 2; string unit = 3; oneof data { Gauge gauge = 5; Sum sum = 7;
  Histogram histogram = 9; ExponentialHistogram exponential_histogram = 10; Summary summary = 11; } }
message Gauge { repeated NumberDataPoint data_points = 1; }
message Sum { repeated NumberDataPoint data_points = 1; int32 aggregation_temporality = 2; bool is_monotonic = 3; }
message Histogram { repeated HistogramDataPoint data_points = 1; int32 aggregation_temporality = 2; }
message ExponentialHistogram { repeated ExponentialHistogramDataPoint data_points = 1; int32 aggregation_temporality = 2; }
message Summary { repeated SummaryDataPoint data_points = 1; }
message NumberDataPoint { fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3;
  oneof value { double as_double = 4; sfixed64 as_int = 6; } repeated Exemplar exemplars = 5; repeated KeyValue attributes = 7; uint32 flags = 8; }
message HistogramDataPoint { fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3; fixed64 count = 4; double sum = 5;
  repeated fixed64 bucket_counts = 6; repeated double explicit_bounds = 7; repeated Exemplar exemplars = 8;
  repeated KeyValue attributes = 9; uint32 flags = 10; double min = 11; double max = 12; }
message Buckets { sint32 offset = 1; repeated uint64 bucket_counts = 2; }
message ExponentialHistogramDataPoint { repeated KeyValue attributes = 1; fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3;
  fixed64 count = 4; double sum = 5; sint32 scale = 6; fixed64 zero_count = 7; Buckets positive = 8; Buckets negative = 9;
  uint32 flags = 10; repeated Exemplar exemplars = 11; double min = 12; double max = 13; double zero_threshold = 14; }
message SummaryDataPoint { fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3; fixed64 count = 4; double sum = 5;
  repeated ValueAtQuantile quantile_values = 6; repeated KeyValue attributes = 7; uint32 flags = 8; }
message ValueAtQuantile { double quantile = 1; double value = 2; }
message Exemplar { fixed64 time_unix_nano = 2; double as_double = 3; bytes span_id = 4; bytes trace_id = 5; sfixed64 as_int = 6; repeated KeyValue filtered_attributes = 7; }
`

const root = protobuf.parse(proto, { keepCase: true }).root

type Attributes = Readonly<Record<string, string | number>>

export interface ReadSpan {
  readonly service: string
  readonly resource: Attributes
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly traceState: string
  readonly name: string
  readonly kind: number
  readonly startNs: bigint
  readonly endNs: bigint
  readonly attributes: Attributes
  readonly events: readonly { readonly name: string; readonly attributes: Attributes }[]
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly statusCode: number
}

export interface ReadLog {
  readonly service: string
  readonly timeNs: bigint
  readonly severityNumber: number
  readonly severityText: string
  readonly body: string
  readonly attributes: Attributes
  readonly traceId: string
  readonly spanId: string
  readonly flags: number
  readonly eventName: string
}

export interface ReadPoint {
  readonly service: string
  readonly metric: string
  readonly unit: string
  readonly kind: 'gauge' | 'sum' | 'histogram' | 'exponential_histogram' | 'summary'
  readonly temporality: number
  readonly isMonotonic: boolean
  readonly startNs: bigint
  readonly timeNs: bigint
  readonly attributes: Attributes
  /** Number points only. */
  readonly value: number
  /** Histograms and summaries only. */
  readonly count: number
  readonly sum: number
  readonly bucketCounts: readonly number[]
  readonly bounds: readonly number[]
  readonly exemplarTraceIds: readonly string[]
}

/**
 * Throws when the bytes are not such a message. Unknown fields would be lost silently, so sizes are compared.
 */
function decode(type: string, body: Uint8Array): Json {
  const message = root.lookupType(type)
  const decoded = message.decode(body)
  const size = message.encode(decoded).finish().length
  if (size !== body.length) throw new Error(`${type}: ${body.length} bytes were read back as ${size}.`)
  return asJson(message.toObject(decoded, { longs: String, bytes: String, arrays: true, defaults: true }))
}

type Json = Readonly<Record<string, unknown>>

const asJson = (value: unknown): Json => (typeof value === 'object' && value !== null ? { ...value } : {})
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(asJson) : [])
const numbers = (value: unknown): readonly number[] => (Array.isArray(value) ? value.map(Number) : [])
const hex = (value: unknown): string => Buffer.from(String(value ?? ''), 'base64').toString('hex')
const ns = (value: unknown): bigint => BigInt(String(value ?? '0'))

function attributesOf(pairs: unknown): Attributes {
  return Object.fromEntries(
    list(pairs).map(({ key, value }) => {
      const any = asJson(value)
      const read =
        any.string_value !== undefined ? String(any.string_value) : Number(any.int_value ?? any.double_value)
      return [String(key), read]
    }),
  )
}

function* scopesOf(type: string, body: Uint8Array): Generator<{ resource: Attributes; scope: Json }> {
  for (const group of list(decode(type, body).groups)) {
    const resource = attributesOf(asJson(group.resource).attributes)
    for (const scope of list(group.scopes)) yield { resource, scope }
  }
}

export function readSpans(body: Uint8Array): readonly ReadSpan[] {
  return [...scopesOf('TracesData', body)].flatMap(({ resource, scope }) =>
    list(scope.spans).map((span) => ({
      service: String(resource['service.name']),
      resource,
      traceId: hex(span.trace_id),
      spanId: hex(span.span_id),
      parentSpanId: hex(span.parent_span_id),
      traceState: String(span.trace_state),
      name: String(span.name),
      kind: Number(span.kind),
      startNs: ns(span.start_time_unix_nano),
      endNs: ns(span.end_time_unix_nano),
      attributes: attributesOf(span.attributes),
      events: list(span.events).map((event) => ({
        name: String(event.name),
        attributes: attributesOf(event.attributes),
      })),
      links: list(span.links).map((link) => ({ traceId: hex(link.trace_id), spanId: hex(link.span_id) })),
      statusCode: Number(asJson(span.status).code ?? 0),
    })),
  )
}

export function readLogs(body: Uint8Array): readonly ReadLog[] {
  return [...scopesOf('LogsData', body)].flatMap(({ resource, scope }) =>
    list(scope.log_records).map((log) => ({
      service: String(resource['service.name']),
      timeNs: ns(log.time_unix_nano),
      severityNumber: Number(log.severity_number),
      severityText: String(log.severity_text),
      body: String(asJson(log.body).string_value),
      attributes: attributesOf(log.attributes),
      traceId: hex(log.trace_id),
      spanId: hex(log.span_id),
      flags: Number(log.flags),
      eventName: String(log.event_name),
    })),
  )
}

const kinds = ['gauge', 'sum', 'histogram', 'exponential_histogram', 'summary'] as const

export function readPoints(body: Uint8Array): readonly ReadPoint[] {
  return [...scopesOf('MetricsData', body)].flatMap(({ resource, scope }) =>
    list(scope.metrics).flatMap((metric) =>
      kinds.flatMap((kind) => {
        const form = asJson(metric[kind])
        return list(form.data_points).map((point) => ({
          service: String(resource['service.name']),
          metric: String(metric.name),
          unit: String(metric.unit),
          kind,
          temporality: Number(form.aggregation_temporality ?? 0),
          isMonotonic: form.is_monotonic === true,
          startNs: ns(point.start_time_unix_nano),
          timeNs: ns(point.time_unix_nano),
          attributes: attributesOf(point.attributes),
          value: Number(point.as_int ?? point.as_double),
          count: Number(point.count),
          sum: Number(point.sum),
          bucketCounts: numbers(point.bucket_counts ?? asJson(point.positive).bucket_counts),
          bounds: numbers(point.explicit_bounds),
          exemplarTraceIds: list(point.exemplars).map((exemplar) => hex(exemplar.trace_id)),
        }))
      }),
    ),
  )
}
