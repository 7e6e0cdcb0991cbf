// Names and types of Prometheus in OpenTelemetry's terms.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { familyNames, kindOfSeries, metricTypes, unitOf } from './names.ts'

test('a declared type decides, and a suffix only where none is declared', () => {
  const cases = [
    ['http_requests_total', 'unknown', 'counter'],
    ['rpc_seconds_count', 'unknown', 'counter'],
    ['rpc_seconds_sum', 'unknown', 'counter'],
    ['rpc_seconds_bucket', 'unknown', 'counter'],
    ['temperature_celsius', 'unknown', 'gauge'],
    ['totality', 'unknown', 'gauge'],
    ['requests', 'counter', 'counter'],
    ['pods_total', 'gauge', 'gauge'],
    ['rpc_seconds_bucket', 'histogram', 'counter'],
    ['rpc_seconds_count', 'summary', 'counter'],
    ['rpc_seconds', 'summary', 'gauge'],
    ['rpc_seconds_bucket', 'gaugeHistogram', 'gauge'],
    ['build_info', 'info', 'nonMonotonicSum'],
    ['feature', 'stateSet', 'nonMonotonicSum'],
    ['requests_created', 'counter', 'gauge'],
    ['requests_created', 'unknown', 'gauge'],
  ] as const
  for (const [name, type, kind] of cases) {
    assert.equal(kindOfSeries(name, metricTypes[type]), kind, `${name} ${type}`)
  }
  assert.equal(kindOfSeries('x_total', 99), 'gauge', 'a type of the future')
})

test('a series belongs to the family of its own name or of its stem', () => {
  assert.deepEqual(familyNames('rpc_seconds_bucket'), ['rpc_seconds_bucket', 'rpc_seconds'])
  assert.deepEqual(familyNames('up'), ['up'])
})

test('units are written as OpenTelemetry does, and unknown ones stay', () => {
  const cases = { seconds: 's', bytes: 'By', ratio: '1', bytes_per_second: 'By/s', carts_per_hour: 'carts/h' }
  for (const [word, unit] of Object.entries({
    ...cases,
    '': '',
    carts: 'carts',
    constructor: 'constructor',
  })) {
    assert.equal(unitOf(word), unit)
  }
})

test('a unit of megabytes is read in one pass', () => {
  const word = 'x_per_'.repeat(500_000)
  assert.equal(unitOf(`${word}\n`), `${word.slice(0, -'_per_'.length)}/\n`)
})
