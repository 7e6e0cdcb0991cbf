// Responses as the OTLP specification defines them, in both encodings.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeProto } from '../../../tests/otlp/otlp-messages.ts'
import { signals } from '../../telemetry/schema/tables.ts'
import { encodeExportResponse, encodeStatus, otlpContentType, rpcCodeOf } from './response.ts'

test('full success is the empty message in both encodings', () => {
  for (const signal of signals) {
    assert.equal(encodeExportResponse(signal, 'protobuf', { rejected: 0, message: '' }).length, 0)
    assert.equal(encodeExportResponse(signal, 'json', { rejected: 0, message: '' }).toString(), '{}')
  }
})

test('a partial success has the count and the reason', () => {
  const result = { rejected: 300, message: '300 points: time is 0 – ä' }
  const read = (signal: 'metrics' | 'logs' | 'traces') =>
    JSON.parse(encodeExportResponse(signal, 'json', result).toString())
  assert.deepEqual(read('metrics'), {
    partialSuccess: { rejectedDataPoints: '300', errorMessage: result.message },
  })
  assert.deepEqual(read('logs'), {
    partialSuccess: { rejectedLogRecords: '300', errorMessage: result.message },
  })
  assert.deepEqual(read('traces'), { partialSuccess: { rejectedSpans: '300', errorMessage: result.message } })
  for (const signal of signals) {
    assert.deepEqual(decodeProto('ExportResponse', encodeExportResponse(signal, 'protobuf', result)), {
      partialSuccess: { rejected: '300', errorMessage: result.message },
    })
  }
})

test('a message without rejections is a warning about an accepted request', () => {
  const warning = { rejected: 0, message: 'deprecated' }
  assert.equal(
    encodeExportResponse('logs', 'json', warning).toString(),
    '{"partialSuccess":{"errorMessage":"deprecated"}}',
  )
  assert.deepEqual(decodeProto('ExportResponse', encodeExportResponse('logs', 'protobuf', warning)), {
    partialSuccess: { errorMessage: 'deprecated' },
  })
})

test('an error body is a google.rpc.Status whose code follows from the HTTP status', () => {
  assert.deepEqual(JSON.parse(encodeStatus('json', 400, 'request: truncated').toString()), {
    code: 3,
    message: 'request: truncated',
  })
  assert.deepEqual(decodeProto('RpcStatus', encodeStatus('protobuf', 503, 'busy')), {
    code: 14,
    message: 'busy',
  })
  const codes = [400, 401, 403, 404, 413, 415, 429, 500, 503].map(rpcCodeOf)
  assert.deepEqual(codes, [3, 16, 7, 5, 8, 3, 8, 13, 14])
})

test('the content type is that of the request', () => {
  assert.equal(otlpContentType('protobuf'), 'application/x-protobuf')
  assert.equal(otlpContentType('json'), 'application/json')
})
