// Data points of all five kinds as rows: exact counts, special values, and rejections of single points.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeHere } from '../../../tests/otlp/decode-here.ts'
import { namedRows } from '../../../tests/otlp/named-cells.ts'
import { encodeProto } from '../../../tests/otlp/otlp-messages.ts'
import { MapCell } from '../rows/cells.ts'
import type { DecodedExport } from '../rows/row-collector.ts'

const time = '1700000000123456789'

/** Decodes in both encodings, whose results must be equal. */
function decodeBoth(message: object): DecodedExport {
  const fromJson = decodeHere('metrics', 'json', Buffer.from(JSON.stringify(message)), 1n)
  assert.deepEqual(decodeHere('metrics', 'protobuf', encodeProto('metrics', message), 1n), fromJson)
  return fromJson
}

function decodeMetrics(...metrics: object[]): DecodedExport {
  return decodeBoth({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] })
}

const text = (key: string, stringValue: string) => ({ key, value: { stringValue } })

const noExemplars = {
  'Exemplars.FilteredAttributes': [],
  'Exemplars.TimeUnix': [],
  'Exemplars.Value': [],
  'Exemplars.SpanId': [],
  'Exemplars.TraceId': [],
}

test('a sum becomes a row with its resource, scope, metric and exemplar', () => {
  const exemplar = {
    filteredAttributes: [text('user', 'u1')],
    timeUnixNano: '1700000000000000001',
    asInt: '3',
    spanId: '00F067AA0BA902B7',
    traceId: '4BF92F3577B34DA6A3CE929D0E0E4736',
  }
  const point = {
    attributes: [text('route', '/a')],
    startTimeUnixNano: '1699999990000000000',
    timeUnixNano: time,
    asInt: '42',
    flags: 0,
    exemplars: [exemplar],
  }
  const { batch, accepted } = decodeBoth({
    resourceMetrics: [
      {
        resource: { attributes: [text('service.name', 'shop'), text('host', 'h1')] },
        schemaUrl: 'resource-schema',
        scopeMetrics: [
          {
            scope: { name: 'lib', version: '1.2', attributes: [text('s', 'v')], droppedAttributesCount: 3 },
            schemaUrl: 'scope-schema',
            metrics: [
              {
                name: 'requests',
                description: 'Requests.',
                unit: '1',
                sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints: [point] },
              },
            ],
          },
        ],
      },
    ],
  })
  assert.equal(accepted, 1)
  assert.equal(batch[0]?.minTimeNs, 1_700_000_000_123_456_789n)
  assert.deepEqual(namedRows(batch, 'otel_metrics_sum'), [
    {
      ResourceAttributes: { 'service.name': 'shop', host: 'h1' },
      ResourceSchemaUrl: 'resource-schema',
      ScopeName: 'lib',
      ScopeVersion: '1.2',
      ScopeAttributes: { s: 'v' },
      ScopeDroppedAttrCount: 3,
      ScopeSchemaUrl: 'scope-schema',
      ServiceName: 'shop',
      MetricName: 'requests',
      MetricDescription: 'Requests.',
      MetricUnit: '1',
      Attributes: { route: '/a' },
      StartTimeUnix: '1699999990.000000000',
      TimeUnix: '1700000000.123456789',
      Value: 42,
      Flags: 0,
      'Exemplars.FilteredAttributes': [{ user: 'u1' }],
      'Exemplars.TimeUnix': ['1700000000.000000001'],
      'Exemplars.Value': [3],
      'Exemplars.SpanId': ['00f067aa0ba902b7'],
      'Exemplars.TraceId': ['4bf92f3577b34da6a3ce929d0e0e4736'],
      AggregationTemporality: 2,
      IsMonotonic: true,
    },
  ])
})

test('histograms keep 64-bit counts exactly and absent minima as null', () => {
  const big = '18446744073709551615'
  const { batch } = decodeMetrics({
    name: 'latency',
    histogram: {
      aggregationTemporality: 1,
      dataPoints: [
        { timeUnixNano: time, count: big, sum: 2.5, bucketCounts: ['1', big], explicitBounds: [0.5], max: 9 },
        { timeUnixNano: time, count: '0' },
      ],
    },
  })
  const [full, empty] = namedRows(batch, 'otel_metrics_histogram')
  const { Count, Sum, BucketCounts, ExplicitBounds, Min, Max, AggregationTemporality } = full ?? {}
  assert.deepEqual(
    { Count, Sum, BucketCounts, ExplicitBounds, Min, Max, AggregationTemporality },
    {
      Count: big,
      Sum: 2.5,
      BucketCounts: ['1', big],
      ExplicitBounds: [0.5],
      Min: null,
      Max: 9,
      AggregationTemporality: 1,
    },
  )
  assert.deepEqual([empty?.Sum, empty?.BucketCounts, empty?.ExplicitBounds], ['nan', [], []])
})

test('exponential histograms keep scale, offsets and counts of both sides', () => {
  const { batch } = decodeMetrics({
    name: 'latency',
    exponentialHistogram: {
      aggregationTemporality: 2,
      dataPoints: [
        {
          timeUnixNano: time,
          count: '6',
          sum: -1.5,
          scale: -3,
          zeroCount: '1',
          positive: { offset: -2, bucketCounts: ['1', '300'] },
          negative: { offset: 5, bucketCounts: ['4'] },
          min: -8,
          zeroThreshold: 0.1,
        },
      ],
    },
  })
  const [row] = namedRows(batch, 'otel_metrics_exponential_histogram')
  const { Count, Sum, Scale, ZeroCount, PositiveOffset, PositiveBucketCounts, Min, Max } = row ?? {}
  assert.deepEqual(
    { Count, Sum, Scale, ZeroCount, PositiveOffset, PositiveBucketCounts, Min, Max },
    {
      Count: '6',
      Sum: -1.5,
      Scale: -3,
      ZeroCount: '1',
      PositiveOffset: -2,
      PositiveBucketCounts: ['1', '300'],
      Min: -8,
      Max: null,
    },
  )
  assert.deepEqual([row?.NegativeOffset, row?.NegativeBucketCounts], [5, ['4']])
})

test('summaries keep their quantiles, and an absent sum is 0', () => {
  const { batch } = decodeMetrics({
    name: 'old',
    summary: {
      dataPoints: [
        {
          timeUnixNano: time,
          count: '2',
          quantileValues: [
            { quantile: 0.5, value: 3 },
            { quantile: 1, value: 'NaN' },
          ],
        },
      ],
    },
  })
  const [row] = namedRows(batch, 'otel_metrics_summary')
  assert.deepEqual(
    [row?.Count, row?.Sum, row?.['ValueAtQuantiles.Quantile'], row?.['ValueAtQuantiles.Value']],
    ['2', 0, [0.5, 1], [3, 'nan']],
  )
})

test('special values are text and integers beyond 2^53 become the nearest double', () => {
  const values = [
    { asDouble: 'NaN' },
    { asDouble: 'Infinity' },
    { asDouble: '-Infinity' },
    { asDouble: '-0' },
    { asInt: '9007199254740993' },
    { asInt: '-9223372036854775808' },
  ]
  const dataPoints = values.map((value) => ({ timeUnixNano: time, ...value }))
  const { batch } = decodeMetrics({ name: 'g', gauge: { dataPoints } })
  assert.deepEqual(
    namedRows(batch, 'otel_metrics_gauge').map((row) => row.Value),
    ['nan', 'inf', '-inf', '-0', 9_007_199_254_740_992, -(2 ** 63)],
  )
})

test('a point flagged as without a recorded value is kept with its flag and NaN', () => {
  const flagged = { timeUnixNano: time, flags: 1 }
  const { batch, rejected } = decodeMetrics(
    { name: 'g', gauge: { dataPoints: [flagged, { ...flagged, asDouble: 0 }] } },
    { name: 'h', histogram: { dataPoints: [{ ...flagged, sum: 0 }] } },
    { name: 's', summary: { dataPoints: [flagged] } },
  )
  assert.equal(rejected, 0)
  assert.deepEqual(
    namedRows(batch, 'otel_metrics_gauge').map((row) => [row.Value, row.Flags]),
    [
      ['nan', 1],
      ['nan', 1],
    ],
  )
  assert.equal(namedRows(batch, 'otel_metrics_histogram')[0]?.Sum, 'nan')
  assert.equal(namedRows(batch, 'otel_metrics_summary')[0]?.Sum, 'nan')
})

test('points that cannot be stored are rejected singly, with counts by reason', () => {
  const good = { timeUnixNano: time, asDouble: 1 }
  const { batch, accepted, rejected, reasons } = decodeMetrics(
    {
      name: 'g',
      gauge: {
        dataPoints: [
          good,
          { asDouble: 1 },
          { timeUnixNano: '0', asDouble: 1 },
          { timeUnixNano: '5661792000000000000', asDouble: 1 },
          { timeUnixNano: '5661791999999999999', asDouble: 1 },
          { timeUnixNano: time },
          { ...good, startTimeUnixNano: '18446744073709551615' },
          { ...good, exemplars: [{ asDouble: 1, timeUnixNano: '18446744073709551615' }] },
        ],
      },
    },
    { name: '', gauge: { dataPoints: [good] } },
    { name: 'n'.repeat(1_025), gauge: { dataPoints: [good] } },
    {
      name: 'h',
      histogram: { dataPoints: [{ timeUnixNano: time, bucketCounts: ['1'], explicitBounds: [1] }] },
    },
  )
  assert.equal(accepted, 2)
  assert.equal(batch.length, 1)
  assert.equal(rejected, 9)
  assert.deepEqual(reasons.split('; '), [
    '2 points: time is 0',
    '1 point: time is outside 1970-01-01 to 2149-06-01',
    '1 point: start time is outside 1970-01-01 to 2149-06-01',
    '1 point: time of an exemplar or event is outside 1970-01-01 to 2149-06-01',
    '1 point: metric name is empty',
    '1 point: metric name is longer than 1024',
    '1 point: point has no value',
    '1 point: bucket counts do not fit the bounds',
  ])
})

test('attribute limits reject the record that breaks them and no other', () => {
  const point = (attributes: object[]) => ({ timeUnixNano: time, asDouble: 1, attributes })
  const many = (count: number) => Array.from({ length: count }, (_, at) => text(`k${at}`, 'v'))
  const { accepted, reasons } = decodeMetrics({
    name: 'g',
    gauge: {
      dataPoints: [
        point(many(1_024)),
        point(many(1_025)),
        point([text('k'.repeat(1_024), 'v'.repeat(32_768))]),
        point([text('k'.repeat(1_025), '')]),
        point([text('k', 'v'.repeat(32_769))]),
      ],
    },
  })
  assert.equal(accepted, 2)
  assert.equal(
    reasons,
    '1 point: more than 1024 attributes; 1 point: attribute key is longer than 1024; 1 point: attribute value is longer than 32768',
  )
})

test('a resource or scope above a limit rejects its own points and no others', () => {
  const metrics = [{ name: 'g', gauge: { dataPoints: [{ timeUnixNano: time, asDouble: 1 }] } }]
  const long = [text('k', 'v'.repeat(32_769))]
  const { accepted, rejected } = decodeBoth({
    resourceMetrics: [
      { resource: { attributes: long }, scopeMetrics: [{ metrics }, { metrics }] },
      { scopeMetrics: [{ metrics }, { scope: { attributes: long }, metrics }, { metrics }] },
    ],
  })
  assert.deepEqual([accepted, rejected], [2, 3])
})

test('every row of one resource and scope has their attributes', () => {
  const dataPoints = [
    { timeUnixNano: time, asDouble: 1 },
    { timeUnixNano: time, asDouble: 2 },
  ]
  const attributes = [text('service.name', 's')]
  const message = {
    resourceMetrics: [
      {
        resource: { attributes },
        scopeMetrics: [{ scope: { attributes }, metrics: [{ name: 'g', gauge: { dataPoints } }] }],
      },
    ],
  }
  const rows = namedRows(decodeBoth(message).batch, 'otel_metrics_gauge')
  for (const row of rows) {
    assert.deepEqual(row.ResourceAttributes, { 'service.name': 's' })
    assert.deepEqual(row.ScopeAttributes, { 'service.name': 's' })
  }
  assert.equal(rows.length, 2)
})

test('scopes without records copy nothing of a large resource', (t) => {
  const copying = t.mock.method(MapCell.prototype, 'writeTo')
  const attributes = Array.from({ length: 100 }, (_, at) => text(`key.${at}`, 'v'.repeat(10_000)))
  const metrics = [{ name: 'g', gauge: { dataPoints: [{ timeUnixNano: time, asDouble: 1 }] } }]
  const scopeMetrics = [...Array.from({ length: 1_000 }, () => ({ scope: { name: 'empty' } })), { metrics }]
  const body = encodeProto('metrics', { resourceMetrics: [{ resource: { attributes }, scopeMetrics }] })
  assert.equal(decodeHere('metrics', 'protobuf', body, 1n).accepted, 1)
  const ofTheRow = ['ResourceAttributes', 'ScopeAttributes', 'Attributes']
  assert.equal(copying.mock.callCount(), ofTheRow.length)
})

test('without exemplars their columns are empty arrays', () => {
  const { batch } = decodeMetrics({ name: 'g', gauge: { dataPoints: [{ timeUnixNano: time, asDouble: 1 }] } })
  const [row = {}] = namedRows(batch, 'otel_metrics_gauge')
  for (const [name, empty] of Object.entries(noExemplars)) assert.deepEqual(row[name], empty)
})

test('unpacked numbers, a second kind of data and fields after the data are read like the usual form', () => {
  const packed = {
    resourceMetrics: [
      {
        scopeMetrics: [
          {
            metrics: [
              {
                name: 'h',
                description: 'd',
                histogram: {
                  dataPoints: [{ timeUnixNano: '1', bucketCounts: ['1', '2'], explicitBounds: [4] }],
                },
              },
            ],
          },
        ],
      },
    ],
  }
  const point = Buffer.concat([
    Buffer.from([(3 << 3) | 1, 1, 0, 0, 0, 0, 0, 0, 0]),
    Buffer.from([(6 << 3) | 1, 1, 0, 0, 0, 0, 0, 0, 0, (6 << 3) | 1, 2, 0, 0, 0, 0, 0, 0, 0]),
    Buffer.from([(7 << 3) | 1, 0, 0, 0, 0, 0, 0, 0x10, 0x40]),
  ])
  const wrap = (tag: number, ...inner: Buffer[]) => {
    const content = Buffer.concat(inner)
    return Buffer.concat([Buffer.from([tag, content.length]), content])
  }
  const gauge = wrap((5 << 3) | 2, wrap(0x0a, Buffer.alloc(0)))
  const metric = wrap(
    0x12,
    gauge,
    wrap((9 << 3) | 2, wrap(0x0a, point)),
    Buffer.from([0x0a, 1, 0x68, 0x12, 1, 0x64]),
  )
  const body = wrap(0x0a, wrap(0x12, metric))
  assert.deepEqual(decodeHere('metrics', 'protobuf', body, 1n), decodeBoth(packed))
})

test('enum names, snake_case and nulls are accepted in JSON', () => {
  const json = `{"resource_metrics":[{"resource":null,"scope_metrics":[{"scope":null,"metrics":[{"name":"s","unit":null,"gauge":null,
    "sum":{"aggregation_temporality":"AGGREGATION_TEMPORALITY_DELTA","is_monotonic":true,
    "data_points":[{"time_unix_nano":1700000000123456789,"as_int":9007199254740993,"attributes":null}]}}]}]}]}`
  const [row] = namedRows(decodeHere('metrics', 'json', Buffer.from(json), 1n).batch, 'otel_metrics_sum')
  assert.deepEqual(
    [row?.TimeUnix, row?.Value, row?.AggregationTemporality, row?.IsMonotonic],
    ['1700000000.123456789', 9_007_199_254_740_992, 1, true],
  )
})

test('a value of a wrong type in JSON is refused with its location', () => {
  const refused = (point: object, message: RegExp) => {
    const metrics = [{ name: 'a' }, { name: 'g', gauge: { dataPoints: [{}, point] } }]
    const json = Buffer.from(JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }))
    assert.throws(() => decodeHere('metrics', 'json', json, 1n), { name: 'OtlpDecodeError', message })
  }
  const location = String.raw`^resourceMetrics\[0\]\.scopeMetrics\[0\]\.metrics\[1\]\.gauge\.dataPoints\[1\]`
  refused({ timeUnixNano: -1 }, new RegExp(`${location}\\.timeUnixNano: expected an integer from 0`))
  refused({ timeUnixNano: 1.5 }, new RegExp(`${location}\\.timeUnixNano: expected`))
  refused({ timeUnixNano: '18446744073709551616' }, new RegExp(`${location}\\.timeUnixNano: expected`))
  refused({ asDouble: 'abc' }, new RegExp(`${location}\\.asDouble: expected a number`))
  refused({ asDouble: '' }, new RegExp(`${location}\\.asDouble: expected a number`))
  refused({ asDouble: '0x10' }, new RegExp(`${location}\\.asDouble: expected a number`))
  refused({ asInt: '1.5' }, new RegExp(`${location}\\.asInt: expected a signed 64-bit`))
  refused({ flags: -1 }, new RegExp(`${location}\\.flags: expected an unsigned 32-bit`))
  refused({ attributes: {} }, new RegExp(`${location}\\.attributes: expected an array`))
  refused({ attributes: [{ key: 1 }] }, new RegExp(`${location}\\.attributes\\.key: expected a string`))
  refused({ exemplars: [null] }, new RegExp(`${location}\\.exemplars: expected an object`))
})

test('JSON that is not an object at the top is refused', () => {
  for (const json of ['', '[]', '1', 'null', '{', '{"resourceMetrics":{}}', '{"resourceMetrics":[1]}']) {
    assert.throws(
      () => decodeHere('metrics', 'json', Buffer.from(json), 1n),
      { name: 'OtlpDecodeError' },
      json,
    )
  }
})
