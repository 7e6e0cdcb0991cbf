// A second, independent encoder of OTLP for tests: the messages of opentelemetry-proto 1.x with their
// published field numbers, encoded by protobufjs, which shares no code with the decoders. A test writes one
// message in its OTLP/JSON form (ids in hex, 64-bit integers as strings, bytes as base64) and gets both
// encodings of it.

import protobuf from 'protobufjs'
import type { Signal } from '../../server/telemetry/schema/tables.ts'

const messages = `
syntax = "proto3";
message AnyValue { oneof value { string stringValue = 1; bool boolValue = 2; int64 intValue = 3;
  double doubleValue = 4; ArrayValue arrayValue = 5; KeyValueList kvlistValue = 6; bytes bytesValue = 7; } }
message ArrayValue { repeated AnyValue values = 1; }
message KeyValueList { repeated KeyValue values = 1; }
message KeyValue { string key = 1; AnyValue value = 2; }
message Scope { string name = 1; string version = 2; repeated KeyValue attributes = 3; uint32 droppedAttributesCount = 4; }
message Resource { repeated KeyValue attributes = 1; uint32 droppedAttributesCount = 2; }

message MetricsRequest { repeated ResourceMetrics resourceMetrics = 1; }
message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scopeMetrics = 2; string schemaUrl = 3; }
message ScopeMetrics { Scope scope = 1; repeated Metric metrics = 2; string schemaUrl = 3; }
message Metric { string name = 1; string description = 2; string unit = 3;
  oneof data { Gauge gauge = 5; Sum sum = 7; Histogram histogram = 9; ExponentialHistogram exponentialHistogram = 10;
    Summary summary = 11; }
  repeated KeyValue metadata = 12; }
message Gauge { repeated NumberDataPoint dataPoints = 1; }
message Sum { repeated NumberDataPoint dataPoints = 1; int32 aggregationTemporality = 2; bool isMonotonic = 3; }
message Histogram { repeated HistogramDataPoint dataPoints = 1; int32 aggregationTemporality = 2; }
message ExponentialHistogram { repeated ExponentialHistogramDataPoint dataPoints = 1; int32 aggregationTemporality = 2; }
message Summary { repeated SummaryDataPoint dataPoints = 1; }
message NumberDataPoint { repeated KeyValue attributes = 7; fixed64 startTimeUnixNano = 2; fixed64 timeUnixNano = 3;
  oneof value { double asDouble = 4; sfixed64 asInt = 6; } repeated Exemplar exemplars = 5; uint32 flags = 8; }
message HistogramDataPoint { repeated KeyValue attributes = 9; fixed64 startTimeUnixNano = 2; fixed64 timeUnixNano = 3;
  fixed64 count = 4; optional double sum = 5; repeated fixed64 bucketCounts = 6; repeated double explicitBounds = 7;
  repeated Exemplar exemplars = 8; uint32 flags = 10; optional double min = 11; optional double max = 12; }
message ExponentialHistogramDataPoint { repeated KeyValue attributes = 1; fixed64 startTimeUnixNano = 2;
  fixed64 timeUnixNano = 3; fixed64 count = 4; optional double sum = 5; sint32 scale = 6; fixed64 zeroCount = 7;
  Buckets positive = 8; Buckets negative = 9; uint32 flags = 10; repeated Exemplar exemplars = 11;
  optional double min = 12; optional double max = 13; double zeroThreshold = 14; }
message Buckets { sint32 offset = 1; repeated uint64 bucketCounts = 2; }
message SummaryDataPoint { repeated KeyValue attributes = 7; fixed64 startTimeUnixNano = 2; fixed64 timeUnixNano = 3;
  fixed64 count = 4; double sum = 5; repeated ValueAtQuantile quantileValues = 6; uint32 flags = 8; }
message ValueAtQuantile { double quantile = 1; double value = 2; }
message Exemplar { repeated KeyValue filteredAttributes = 7; fixed64 timeUnixNano = 2;
  oneof value { double asDouble = 3; sfixed64 asInt = 6; } bytes spanId = 4; bytes traceId = 5; }

message LogsRequest { repeated ResourceLogs resourceLogs = 1; }
message ResourceLogs { Resource resource = 1; repeated ScopeLogs scopeLogs = 2; string schemaUrl = 3; }
message ScopeLogs { Scope scope = 1; repeated LogRecord logRecords = 2; string schemaUrl = 3; }
message LogRecord { fixed64 timeUnixNano = 1; fixed64 observedTimeUnixNano = 11; int32 severityNumber = 2;
  string severityText = 3; AnyValue body = 5; repeated KeyValue attributes = 6; uint32 droppedAttributesCount = 7;
  fixed32 flags = 8; bytes traceId = 9; bytes spanId = 10; string eventName = 12; }

message TracesRequest { repeated ResourceSpans resourceSpans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scopeSpans = 2; string schemaUrl = 3; }
message ScopeSpans { Scope scope = 1; repeated Span spans = 2; string schemaUrl = 3; }
message Span { bytes traceId = 1; bytes spanId = 2; string traceState = 3; bytes parentSpanId = 4; uint32 flags = 16;
  string name = 5; int32 kind = 6; fixed64 startTimeUnixNano = 7; fixed64 endTimeUnixNano = 8;
  repeated KeyValue attributes = 9; uint32 droppedAttributesCount = 10; repeated Event events = 11;
  uint32 droppedEventsCount = 12; repeated Link links = 13; uint32 droppedLinksCount = 14; Status status = 15; }
message Event { fixed64 timeUnixNano = 1; string name = 2; repeated KeyValue attributes = 3;
  uint32 droppedAttributesCount = 4; }
message Link { bytes traceId = 1; bytes spanId = 2; string traceState = 3; repeated KeyValue attributes = 4;
  uint32 droppedAttributesCount = 5; fixed32 flags = 6; }
message Status { string message = 2; int32 code = 3; }

message ExportResponse { PartialSuccess partialSuccess = 1; }
message PartialSuccess { int64 rejected = 1; string errorMessage = 2; }
message RpcStatus { int32 code = 1; string message = 2; }
`

const { root } = protobuf.parse(messages, { keepCase: true })
const requestTypes = { metrics: 'MetricsRequest', logs: 'LogsRequest', traces: 'TracesRequest' } as const
const idNames = new Set(['traceId', 'spanId', 'parentSpanId'])

/** Encodes a message given in OTLP/JSON form as protobuf. */
export function encodeProto(signal: Signal, message: object): Buffer {
  const type = root.lookupType(requestTypes[signal])
  return Buffer.from(type.encode(type.fromObject(withIdBytes(message) as object)).finish())
}

/** The type of a signal's request, for tests that walk its fields. */
export function requestType(signal: Signal): protobuf.Type {
  return root.lookupType(requestTypes[signal]).resolveAll() as protobuf.Type
}

/** Decodes a response with the names of the messages above; 64-bit integers as text. */
export function decodeProto(type: 'ExportResponse' | 'RpcStatus', bytes: Uint8Array): object {
  const messageType = root.lookupType(type)
  return messageType.toObject(messageType.decode(bytes), { longs: String })
}

function withIdBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withIdBytes)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      idNames.has(name) ? [name, Buffer.from(String(member), 'hex')] : [name, withIdBytes(member)],
    ),
  )
}

/**
 * Log records with nothing but their time, of a resource with one long attribute: small as a body, but each
 * row repeats the attribute.
 */
export function logsOfLongResource(records: number, attributeBytes: number, timeUnixNano: string): object {
  const attributes = [{ key: 'k', value: { stringValue: 'x'.repeat(attributeBytes) } }]
  const logRecords = Array.from({ length: records }, () => ({ timeUnixNano }))
  return { resourceLogs: [{ resource: { attributes }, scopeLogs: [{ logRecords }] }] }
}
