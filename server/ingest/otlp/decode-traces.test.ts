// Spans as rows: names for numbers, root spans, and rejections of single spans.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeHere } from '../../../tests/otlp/decode-here.ts'
import { namedRows } from '../../../tests/otlp/named-cells.ts'
import { encodeProto } from '../../../tests/otlp/otlp-messages.ts'
import type { DecodedExport } from '../rows/row-collector.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'
const startTimeUnixNano = '1700000000000000001'
const span = { traceId, spanId, startTimeUnixNano }

/** Decodes in both encodings, whose results must be equal. */
function decodeSpans(...spans: object[]): DecodedExport {
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }
  const message = {
    resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'lib', version: '2' }, spans }] }],
  }
  const fromJson = decodeHere('traces', 'json', Buffer.from(JSON.stringify(message)), 1n)
  assert.deepEqual(decodeHere('traces', 'protobuf', encodeProto('traces', message), 1n), fromJson)
  return fromJson
}

function columnOf(result: DecodedExport, column: string): unknown[] {
  return namedRows(result.batch, 'otel_traces').map((row) => row[column])
}

test('a span becomes a row with its events and links', () => {
  const { batch } = decodeSpans({
    traceId: traceId.toUpperCase(),
    spanId,
    parentSpanId: '00f067aa0ba902b8',
    traceState: 'a=1',
    name: 'GET /',
    kind: 2,
    startTimeUnixNano,
    endTimeUnixNano: '1700000001000000002',
    attributes: [{ key: 'ok', value: { boolValue: true } }],
    status: { code: 2, message: 'boom' },
    events: [
      {
        timeUnixNano: '1700000000500000000',
        name: 'e',
        attributes: [{ key: 'n', value: { intValue: '1' } }],
      },
      { name: 'later' },
    ],
    links: [{ traceId, spanId, traceState: 'b=2', attributes: [] }, { traceId: 'ff' }],
  })
  assert.deepEqual(namedRows(batch, 'otel_traces'), [
    {
      Timestamp: '1700000000.000000001',
      TraceId: traceId,
      SpanId: spanId,
      ParentSpanId: '00f067aa0ba902b8',
      TraceState: 'a=1',
      SpanName: 'GET /',
      SpanKind: 'Server',
      ServiceName: 'shop',
      ResourceAttributes: { 'service.name': 'shop' },
      ScopeName: 'lib',
      ScopeVersion: '2',
      SpanAttributes: { ok: 'true' },
      Duration: '1000000001',
      StatusCode: 'Error',
      StatusMessage: 'boom',
      'Events.Timestamp': ['1700000000.500000000', '0000000000.000000000'],
      'Events.Name': ['e', 'later'],
      'Events.Attributes': [{ n: '1' }, {}],
      'Links.TraceId': [traceId, ''],
      'Links.SpanId': [spanId, ''],
      'Links.TraceState': ['b=2', ''],
      'Links.Attributes': [{}, {}],
    },
  ])
})

test('kinds and status codes are names, and unknown ones the unspecified names', () => {
  const kinds = [0, 1, 2, 3, 4, 5, 6, -1].map((kind) => ({ ...span, kind }))
  assert.deepEqual(columnOf(decodeSpans(...kinds), 'SpanKind'), [
    'Unspecified',
    'Internal',
    'Server',
    'Client',
    'Producer',
    'Consumer',
    'Unspecified',
    'Unspecified',
  ])
  const codes = [0, 1, 2, 3].map((code) => ({ ...span, status: { code } }))
  assert.deepEqual(columnOf(decodeSpans(span, ...codes), 'StatusCode'), [
    'Unset',
    'Unset',
    'Ok',
    'Error',
    'Unset',
  ])
})

test('names of kinds and status codes are read in JSON, and unknown names are refused', () => {
  const json = (kind: string) =>
    Buffer.from(
      JSON.stringify({
        resourceSpans: [{ scopeSpans: [{ spans: [{ ...span, kind, status: { code: 'STATUS_CODE_OK' } }] }] }],
      }),
    )
  const known = decodeHere('traces', 'json', json('SPAN_KIND_CLIENT'), 1n)
  assert.deepEqual([columnOf(known, 'SpanKind'), columnOf(known, 'StatusCode')], [['Client'], ['Ok']])
  assert.throws(
    () => decodeHere('traces', 'json', json('CLIENT'), 1n),
    /^OtlpDecodeError: resourceSpans\[0\]\.scopeSpans\[0\]\.spans\[0\]\.kind: expected an integer or one of SPAN_KIND/,
  )
})

test('a span that ends before it starts, or has no end, has duration 0', () => {
  const result = decodeSpans(span, { ...span, endTimeUnixNano: '1700000000000000000' })
  assert.deepEqual(columnOf(result, 'Duration'), ['0', '0'])
  const longest = decodeSpans({ ...span, endTimeUnixNano: '18446744073709551615' })
  assert.deepEqual(columnOf(longest, 'Duration'), ['16746744073709551614'])
})

test('spans without valid ids or times are rejected singly', () => {
  const { accepted, rejected, reasons } = decodeSpans(
    span,
    { ...span, parentSpanId: '0'.repeat(16) },
    { ...span, traceId: '' },
    { ...span, traceId: '0'.repeat(32) },
    { ...span, traceId: 'ff' },
    { ...span, spanId: 'ff' },
    { ...span, parentSpanId: 'ff' },
    { ...span, startTimeUnixNano: '0' },
    { ...span, startTimeUnixNano: '5661792000000000000' },
    { ...span, events: [{ timeUnixNano: '18446744073709551615' }] },
  )
  assert.deepEqual([accepted, rejected], [2, 8])
  assert.deepEqual(reasons.split('; '), [
    '1 span: time is 0',
    '1 span: time is outside 1970-01-01 to 2149-06-01',
    '1 span: time of an exemplar or event is outside 1970-01-01 to 2149-06-01',
    '3 spans: trace id is missing or not 16 bytes',
    '1 span: span id is missing or not 8 bytes',
    '1 span: parent span id is not 8 bytes',
  ])
})

test('a parent id of zeros means a root span', () => {
  assert.deepEqual(columnOf(decodeSpans({ ...span, parentSpanId: '0'.repeat(16) }), 'ParentSpanId'), [''])
})

test('a span with too many events is rejected', () => {
  const events = (length: number) => ({ ...span, events: Array.from({ length }, () => ({ name: 'e' })) })
  const { accepted, reasons } = decodeSpans(events(4_096), events(4_097))
  assert.equal(accepted, 1)
  assert.equal(reasons, '1 span: more than 4096 buckets, quantiles, exemplars, events or links')
})
