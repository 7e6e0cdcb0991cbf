// Log records as rows: which time is used, what is stored with a repair, and what is rejected with a reason.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeHere } from '../../../tests/otlp/decode-here.ts'
import { namedRows } from '../../../tests/otlp/named-cells.ts'
import { encodeProto } from '../../../tests/otlp/otlp-messages.ts'
import type { DecodedExport } from '../rows/row-collector.ts'

const receivedNs = 1_700_000_009_000_000_000n

/** Decodes in both encodings, whose results must be equal. */
function decodeLogs(...logRecords: object[]): DecodedExport {
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }
  const message = { resourceLogs: [{ resource, scopeLogs: [{ scope: { name: 'lib' }, logRecords }] }] }
  const fromJson = decodeHere('logs', 'json', Buffer.from(JSON.stringify(message)), receivedNs)
  assert.deepEqual(decodeHere('logs', 'protobuf', encodeProto('logs', message), receivedNs), fromJson)
  return fromJson
}

test('a log record becomes a row with lower-case ids and its low eight flags', () => {
  const { batch } = decodeLogs({
    timeUnixNano: '1700000000000000001',
    observedTimeUnixNano: '1700000001000000000',
    severityNumber: 17,
    severityText: 'ERROR',
    body: { kvlistValue: { values: [{ key: 'msg', value: { stringValue: 'no' } }] } },
    attributes: [{ key: 'code', value: { intValue: '7' } }],
    flags: 0xffff_ff01,
    traceId: '4BF92F3577B34DA6A3CE929D0E0E4736',
    spanId: '00F067AA0BA902B7',
    eventName: 'failed',
  })
  assert.deepEqual(namedRows(batch, 'otel_logs'), [
    {
      Timestamp: '1700000000.000000001',
      TraceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      SpanId: '00f067aa0ba902b7',
      TraceFlags: 1,
      SeverityText: 'ERROR',
      SeverityNumber: 17,
      ServiceName: 'shop',
      Body: '{"msg":"no"}',
      ResourceSchemaUrl: '',
      ResourceAttributes: { 'service.name': 'shop' },
      ScopeSchemaUrl: '',
      ScopeName: 'lib',
      ScopeVersion: '',
      ScopeAttributes: {},
      LogAttributes: { code: '7' },
      EventName: 'failed',
    },
  ])
})

test('without its own time a record has the observed time, and without that the time of arrival', () => {
  const { batch } = decodeLogs({ observedTimeUnixNano: '1700000001000000000' }, {}, { timeUnixNano: '0' })
  assert.deepEqual(
    namedRows(batch, 'otel_logs').map((row) => row.Timestamp),
    ['1700000001.000000000', '1700000009.000000000', '1700000009.000000000'],
  )
  assert.equal(batch[0]?.minTimeNs, 1_700_000_001_000_000_000n)
  assert.equal(batch[0]?.maxTimeNs, receivedNs)
})

test('a time that cannot be stored is rejected and not replaced by another', () => {
  const { accepted, reasons } = decodeLogs({
    timeUnixNano: '5661792000000000000',
    observedTimeUnixNano: '1700000001000000000',
  })
  assert.equal(accepted, 0)
  assert.equal(reasons, '1 log record: time is outside 1970-01-01 to 2149-06-01')
})

test('ids of a wrong length or of zeros become empty and the record is kept', () => {
  const { batch } = decodeLogs(
    { traceId: '4bf9', spanId: '00' },
    { traceId: '0'.repeat(32), spanId: '0'.repeat(16) },
  )
  for (const row of namedRows(batch, 'otel_logs')) assert.deepEqual([row.TraceId, row.SpanId], ['', ''])
})

test('an id that is not hex in JSON becomes empty', () => {
  const json = '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"S/kvNXezTaajzpKdDg5HNg=="}]}]}]}'
  const [row] = namedRows(decodeHere('logs', 'json', Buffer.from(json), 1n).batch, 'otel_logs')
  assert.equal(row?.TraceId, '')
})

test('severity is a number or a name, and a record outside 0 to 255 is rejected', () => {
  const record = '{"severityNumber":"SEVERITY_NUMBER_WARN3"}'
  const json = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[${record}]}]}]}`
  const [row] = namedRows(decodeHere('logs', 'json', Buffer.from(json), 1n).batch, 'otel_logs')
  assert.equal(row?.SeverityNumber, 15)
  const { accepted, reasons } = decodeLogs(
    { severityNumber: 255 },
    { severityNumber: 256 },
    { severityNumber: -1 },
  )
  assert.equal(accepted, 1)
  assert.equal(reasons, '2 log records: severity number is outside 0 to 255')
})

test('a body may be far longer than an attribute', () => {
  const { accepted, reasons } = decodeLogs(
    { body: { stringValue: 'x'.repeat(1_048_576) } },
    { body: { stringValue: 'x'.repeat(1_048_577) } },
    { severityText: 'x'.repeat(32_769) },
  )
  assert.equal(accepted, 1)
  assert.equal(reasons, '1 log record: body is longer than 1048576; 1 log record: text is longer than 32768')
})

test('a lone surrogate in JSON becomes U+FFFD', () => {
  const json = '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"a\\ud800b"}}]}]}]}'
  const [row] = namedRows(decodeHere('logs', 'json', Buffer.from(json), 1n).batch, 'otel_logs')
  assert.equal(row?.Body, 'a\ufffdb')
})
