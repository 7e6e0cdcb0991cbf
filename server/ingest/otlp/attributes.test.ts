// Attribute values as text, as the ClickHouse exporter of the OpenTelemetry Collector writes them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeHere } from '../../../tests/otlp/decode-here.ts'
import { namedRows } from '../../../tests/otlp/named-cells.ts'
import { encodeProto } from '../../../tests/otlp/otlp-messages.ts'
import type { AttributeMap } from '../../telemetry/row-fixture.ts'

/** Attributes of one log record after decoding; both encodings must agree. */
function decodeAttributes(attributes: object[]): AttributeMap {
  const message = { resourceLogs: [{ scopeLogs: [{ logRecords: [{ attributes }] }] }] }
  const fromJson = decodeHere('logs', 'json', Buffer.from(JSON.stringify(message)), 1n)
  assert.deepEqual(decodeHere('logs', 'protobuf', encodeProto('logs', message), 1n), fromJson)
  return namedRows(fromJson.batch, 'otel_logs')[0]?.LogAttributes as AttributeMap
}

function decodeValue(value: object): string | undefined {
  return decodeAttributes([{ key: 'k', value }]).k
}

test('scalars become text as the ClickHouse exporter writes them', () => {
  assert.equal(decodeValue({ stringValue: 'a "b"\n' }), 'a "b"\n')
  assert.equal(decodeValue({ boolValue: true }), 'true')
  assert.equal(decodeValue({ boolValue: false }), 'false')
  assert.equal(decodeValue({ intValue: '-9223372036854775808' }), '-9223372036854775808')
  assert.equal(decodeValue({ intValue: '9007199254740993' }), '9007199254740993')
  assert.equal(decodeValue({ doubleValue: 0.1 }), '0.1')
  assert.equal(decodeValue({ doubleValue: 3 }), '3')
  assert.equal(decodeValue({ doubleValue: 1e21 }), '1e+21')
  assert.equal(decodeValue({ doubleValue: '-0' }), '-0')
  assert.equal(decodeValue({ doubleValue: 'NaN' }), 'NaN')
  assert.equal(decodeValue({ doubleValue: '-Infinity' }), '-Infinity')
  assert.equal(decodeValue({ bytesValue: 'AP8+' }), 'AP8+')
  assert.equal(decodeValue({}), '')
})

test('arrays and maps become JSON text with exact integers, quoted specials and sorted keys', () => {
  const values = [
    { stringValue: 'a"b' },
    { intValue: '9007199254740993' },
    { doubleValue: 'NaN' },
    { doubleValue: 'Infinity' },
    { bytesValue: 'AP8+' },
    {},
    { arrayValue: { values: [] } },
  ]
  assert.equal(
    decodeValue({ arrayValue: { values } }),
    '["a\\"b",9007199254740993,"NaN","Infinity","AP8+",null,[]]',
  )
  const entries = [
    { key: 'b', value: { boolValue: true } },
    { key: 'a', value: { intValue: 1 } },
    { key: '__proto__', value: {} },
    { key: 'b', value: { boolValue: false } },
  ]
  assert.equal(decodeValue({ kvlistValue: { values: entries } }), '{"__proto__":null,"a":1,"b":false}')
})

test('the last one of duplicate keys is used', () => {
  const map = decodeAttributes([
    { key: 'k', value: { stringValue: 'first' } },
    { key: 'k', value: { stringValue: 'last' } },
  ])
  assert.deepEqual(Object.entries(map), [['k', 'last']])
})

test('__proto__, constructor and integers are keys like any other', () => {
  const keys = ['__proto__', 'constructor', 'toString', '10', '']
  const map = decodeAttributes(keys.map((key) => ({ key, value: { stringValue: `<${key}>` } })))
  for (const key of keys) assert.equal(map[key], `<${key}>`)
  assert.equal(Object.keys(map).length, keys.length)
  assert.deepEqual(JSON.parse(JSON.stringify(map)), Object.fromEntries(keys.map((key) => [key, `<${key}>`])))
})

test('bytes that are not UTF-8 become U+FFFD and the record is kept', () => {
  const json = Buffer.from(
    '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"a?b"}}]}]}]}',
  )
  json[json.indexOf('?')] = 0xff
  assert.equal(namedRows(decodeHere('logs', 'json', json, 1n).batch, 'otel_logs')[0]?.Body, 'a\ufffdb')
  const message = { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'a?b' } }] }] }] }
  const proto = encodeProto('logs', message)
  proto[proto.indexOf('?')] = 0xff
  assert.equal(namedRows(decodeHere('logs', 'protobuf', proto, 1n).batch, 'otel_logs')[0]?.Body, 'a\ufffdb')
})

test('duplicate keys are found among many, at any position', () => {
  const attribute = (key: string, value: string) => ({ key, value: { stringValue: value } })
  const keys = Array.from({ length: 500 }, (_, at) => `key.${at % 300}`)
  const map = decodeAttributes(keys.map((key, at) => attribute(key, String(at))))
  assert.equal(Object.keys(map).length, 300)
  for (const [at, key] of keys.entries()) assert.equal(map[key], String(at < 200 ? at + 300 : at))
})
