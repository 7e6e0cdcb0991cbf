// Remote write requests, written by another library, as rows: both versions give the same. What can't be
// stored is counted with its reason, and nothing else is lost.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { here } from '../../../tests/otlp/decode-here.ts'
import { assertBatchFits, namedRows } from '../../../tests/otlp/named-cells.ts'
import {
  encodeRaw,
  encodeRequest,
  staleMarker,
  type TestSeries,
  type Version,
  versions,
} from '../../../tests/prometheus/remote-write-messages.ts'
import { AppError } from '../../core/app-error.ts'
import type { TableName } from '../../telemetry/schema/tables.ts'
import { decodeRemoteWrite } from './remote-write.ts'

const timeMs = 1_767_571_200_123
const timeText = '1767571200.123000000'

function decode(version: Version, series: readonly TestSeries[]) {
  const parts = decodeRemoteWrite(version, encodeRequest(version, series), here)
  for (const { batch } of parts) assertBatchFits(batch)
  const [samples, histograms, exemplars] = parts
  const batch = parts.flatMap((part) => part.batch)
  const rows = (table: TableName) => namedRows(batch, table)
  return { samples, histograms, exemplars, rows }
}

const gauge = (value: number, more: Partial<TestSeries> = {}): TestSeries => ({
  labels: { __name__: 'temperature_celsius', job: 'shop', instance: 'a:9090', room: 'cold' },
  samples: [{ value, timestamp: timeMs }],
  ...more,
})

for (const version of versions) {
  describe(`remote write ${version}`, () => {
    test('a gauge becomes a row with its name, labels, service and time to the millisecond', () => {
      const { samples, rows } = decode(version, [
        gauge(21.5, { type: 2, help: 'How warm.', unit: 'celsius' }),
      ])
      assert.deepEqual([samples.accepted, samples.rejected, samples.reasons], [1, 0, ''])
      const [row] = rows('otel_metrics_gauge')
      assert.deepEqual(row, {
        ResourceAttributes: { 'service.name': 'shop', 'service.instance.id': 'a:9090' },
        ResourceSchemaUrl: '',
        ScopeName: '',
        ScopeVersion: '',
        ScopeAttributes: {},
        ScopeDroppedAttrCount: 0,
        ScopeSchemaUrl: '',
        ServiceName: 'shop',
        MetricName: 'temperature_celsius',
        MetricDescription: 'How warm.',
        MetricUnit: 'Cel',
        Attributes: { room: 'cold' },
        StartTimeUnix: '0000000000.000000000',
        TimeUnix: timeText,
        Value: 21.5,
        Flags: 0,
        'Exemplars.FilteredAttributes': [],
        'Exemplars.TimeUnix': [],
        'Exemplars.Value': [],
        'Exemplars.SpanId': [],
        'Exemplars.TraceId': [],
      })
    })

    test('a counter becomes a cumulative monotonic sum, an info a non-monotonic one', () => {
      const series = (name: string, type: number) => gauge(7, { labels: { __name__: name }, type })
      const { rows } = decode(version, [series('a_total', 0), series('b', 1), series('c_info', 6)])
      assert.deepEqual(
        rows('otel_metrics_sum').map((row) => [row.MetricName, row.AggregationTemporality, row.IsMonotonic]),
        [
          ['a_total', 2, true],
          ['b', 2, true],
          ['c_info', 2, false],
        ],
      )
    })

    test('a job with a namespace is split, and scope labels name the scope', () => {
      const labels = {
        __name__: 'x',
        job: 'prod/shop',
        otel_scope_name: 'm',
        otel_scope_version: '2',
        empty: '',
      }
      const [row] = decode(version, [gauge(1, { labels })]).rows('otel_metrics_gauge')
      assert.deepEqual(row?.ResourceAttributes, { 'service.namespace': 'prod', 'service.name': 'shop' })
      assert.deepEqual(
        [row?.ServiceName, row?.ScopeName, row?.ScopeVersion, row?.Attributes],
        ['shop', 'm', '2', {}],
      )
    })

    test('each series has its own source, whichever series it follows', () => {
      const of = (job: string, instance: string, otel_scope_name = '', otel_scope_version = '') =>
        gauge(1, { labels: { __name__: 'x', job, instance, otel_scope_name, otel_scope_version } })
      const sources: readonly (readonly [string, string, string?, string?])[] = [
        ['a', '1'],
        ['a', '1'],
        ['b', '1'],
        ['b', '2'],
        ['b', '2', 'm'],
        ['b', '2', 'm', '3'],
        ['a', '1'],
      ]
      const found = decode(
        version,
        sources.map((source) => of(...source)),
      )
        .rows('otel_metrics_gauge')
        .map((row) => [
          row.ServiceName,
          Object(row.ResourceAttributes)['service.instance.id'],
          row.ScopeName,
          row.ScopeVersion,
        ])
      assert.deepEqual(
        found,
        sources.map(([job, instance, name = '', text = '']) => [job, instance, name, text]),
      )
    })

    test('a refused source rejects all of its series and no others', () => {
      const of = (job: string) => gauge(1, { labels: { __name__: 'x', job } })
      const far = 'j'.repeat(40_000)
      const { samples, rows } = decode(version, [of('a'), of(far), of(far), of('b')])
      assert.deepEqual([samples.accepted, samples.rejected], [2, 2])
      assert.deepEqual(
        rows('otel_metrics_gauge').map((row) => row.ServiceName),
        ['a', 'b'],
      )
    })

    test('a job with several slashes is one name', () => {
      const [row] = decode(version, [gauge(1, { labels: { __name__: 'x', job: 'a/b/c' } })]).rows(
        'otel_metrics_gauge',
      )
      assert.equal(row?.ServiceName, 'a/b/c')
    })

    test('the stale marker ends a series, and any other NaN or infinity is a value', () => {
      const samples = [staleMarker, Number.NaN, Infinity, -Infinity, -0].map((value, i) => ({
        value,
        timestamp: timeMs + i,
      }))
      const { rows } = decode(version, [gauge(0, { samples })])
      assert.deepEqual(
        rows('otel_metrics_gauge').map(({ Value, Flags }) => [Value, Flags]),
        [
          ['nan', 1],
          ['nan', 0],
          ['inf', 0],
          ['-inf', 0],
          ['-0', 0],
        ],
      )
    })

    test('times are exact to both ends of the range, and a sample outside is left out', () => {
      const times = [1, 4_294_967_296, 5_661_791_999_999, 0, -1, 5_661_792_000_000, '9223372036854775807']
      const samples = times.map((timestamp) => ({ value: 1, timestamp }))
      const found = decode(version, [gauge(0, { samples })])
      assert.deepEqual(
        found.rows('otel_metrics_gauge').map((row) => row.TimeUnix),
        ['0000000000.001000000', '0004294967.296000000', '5661791999.999000000'],
      )
      assert.equal(
        found.samples.reasons,
        '1 sample: time is 0; 3 samples: time is outside 1970-01-01 to 2149-06-01',
      )
    })

    test('a label with an empty or repeated name rejects its series and no other', () => {
      const twice = [
        ['__name__', 'x'],
        ['a', '1'],
        ['a', '2'],
      ] as const
      const nothing = [
        ['__name__', 'x'],
        ['', '1'],
      ] as const
      const found = decode(version, [
        gauge(1, { labels: twice }),
        gauge(2, { labels: nothing }),
        gauge(3, { labels: { room: 'cold' } }),
        gauge(4, { labels: { __name__: 'x', __proto__x: '1', constructor: 'c' } }),
      ])
      assert.equal(found.samples.accepted, 1)
      assert.equal(
        found.samples.reasons,
        '1 sample: metric name is empty; 2 samples: label name is empty or stands twice',
      )
      assert.deepEqual(found.rows('otel_metrics_gauge')[0]?.Attributes, { __proto__x: '1', constructor: 'c' })
    })

    test('an exemplar is a row without a value beside its series', () => {
      const traceId = '4BF92F3577B34DA6A3CE929D0E0E4736'
      const labels = { trace_id: traceId, span_id: 'not hex', user: 'u' }
      const exemplars = [{ labels, value: 0.25, timestamp: timeMs }]
      const found = decode(version, [
        {
          labels: { __name__: 'a_total', job: 'shop' },
          samples: [{ value: 3, timestamp: timeMs }],
          exemplars,
        },
      ])
      assert.deepEqual([found.samples.accepted, found.exemplars.accepted], [1, 1])
      const [row] = namedRows(found.exemplars.batch, 'otel_metrics_sum')
      assert.deepEqual([row?.Value, row?.Flags, row?.ServiceName], ['nan', 1, 'shop'])
      assert.deepEqual(row?.['Exemplars.Value'], [0.25])
      assert.deepEqual(row?.['Exemplars.TimeUnix'], [timeText])
      assert.deepEqual(row?.['Exemplars.TraceId'], [traceId.toLowerCase()])
      assert.deepEqual(row?.['Exemplars.FilteredAttributes'], [{ span_id: 'not hex', user: 'u' }])
    })

    test('an empty request has no records, and a series without samples has none', () => {
      for (const series of [[], [{ labels: { __name__: 'x' } }]]) {
        assert.deepEqual(
          decodeRemoteWrite(version, encodeRequest(version, series), here).map((part) => [
            part.accepted,
            part.rejected,
          ]),
          [
            [0, 0],
            [0, 0],
            [0, 0],
          ],
        )
      }
    })

    test('invalid UTF-8 becomes U+FFFD', () => {
      const body = encodeRequest(version, [gauge(1, { labels: { __name__: 'x', where: 'caf_' } })])
      body[body.indexOf('caf_') + 3] = 0xc3
      const [samples] = decodeRemoteWrite(version, body, here)
      assert.deepEqual(namedRows(samples.batch, 'otel_metrics_gauge')[0]?.Attributes, { where: 'caf\ufffd' })
    })

    test('a body that is cut anywhere, or has random bytes, is refused or read', () => {
      const body = encodeRequest(version, [
        gauge(1, { exemplars: [{ labels: { a: 'b' }, value: 1, timestamp: 1 }] }),
      ])
      const read = (bytes: Buffer) => {
        try {
          decodeRemoteWrite(version, bytes, here)
        } catch (error) {
          assert.ok(error instanceof AppError && error.code === 'bad_request', String(error))
        }
      }
      for (let length = 0; length < body.length; length++) read(body.subarray(0, length))
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => read(Buffer.from(bytes))),
        {
          numRuns: 1000,
        },
      )
      const flip = fc.tuple(fc.nat(body.length - 1), fc.nat(255))
      fc.assert(
        fc.property(fc.array(flip, { minLength: 1, maxLength: 5 }), (flips) => {
          const changed = Buffer.from(body)
          for (const [at, byte] of flips) changed[at] = byte
          read(changed)
        }),
        { numRuns: 1000 },
      )
    })
  })
}

describe('features of one version only', () => {
  test('2.0 gives the start of a counter', () => {
    const series = {
      labels: { __name__: 'a_total' },
      samples: [{ value: 1, timestamp: timeMs }],
      createdMs: 1000,
    }
    const { rows } = decode('2.0', [series])
    assert.equal(rows('otel_metrics_sum')[0]?.StartTimeUnix, '0000000001.000000000')
  })

  test('2.0 refuses a reference to a missing symbol, and a label without a value', () => {
    for (const labelsRefs of [[0, 7], [0]]) {
      const message = { symbols: [''], timeseries: [{ labelsRefs, samples: [{ value: 1, timestamp: 1 }] }] }
      assert.throws(() => decodeRemoteWrite('2.0', encodeRaw('2.0', message), here), AppError)
    }
  })

  test('a request of one version that is read as the other is empty, as both specifications say', () => {
    for (const [as, written] of [
      ['1.0', '2.0'],
      ['2.0', '1.0'],
    ] as const) {
      const parts = decodeRemoteWrite(as, encodeRequest(written, [gauge(1)]), here)
      assert.deepEqual(
        parts.map(({ accepted, rejected }) => accepted + rejected),
        [0, 0, 0],
      )
    }
  })
})

test('a small request that repeats one long text very often is refused before it fills the memory', () => {
  const symbols = ['', '__name__', 'x', 'note', 'n'.repeat(30_000)]
  const one = { labelsRefs: [1, 2, 3, 4], samples: [{ value: 1, timestamp: 1 }] }
  const body = encodeRaw('2.0', { symbols, timeseries: Array.from({ length: 6000 }, () => one) })
  assert.ok(body.length < 300_000)
  assert.throws(
    () => decodeRemoteWrite('2.0', body, here),
    (error) => error instanceof AppError && error.code === 'body_too_large',
  )
})

test('a small request is refused that repeats one long text in samples, exemplars or series that are rejected', () => {
  const symbols = ['', '__name__', 'x', 'note', 'n'.repeat(30_000), 'job']
  const many = <T>(one: T) => Array.from({ length: 6000 }, () => one)
  const labelsRefs = [1, 2, 3, 4]
  // Without a time.
  const faulty = { value: 1 }
  for (const timeseries of [
    [{ labelsRefs, samples: many(faulty) }],
    [{ labelsRefs: [1, 2], samples: [faulty], exemplars: many({ labelsRefs: [3, 4], value: 1 }) }],
    many({ labelsRefs: [1, 2, 5, 4], samples: [faulty] }),
    [{ labelsRefs: [1, 2, ...many([3, 4]).flat()], samples: [faulty] }],
  ]) {
    const body = encodeRaw('2.0', { symbols, timeseries })
    assert.ok(body.length < 300_000)
    assert.throws(
      () => decodeRemoteWrite('2.0', body, here),
      (error) => error instanceof AppError && error.code === 'body_too_large',
    )
  }
})

describe('native histograms', () => {
  const histogram = {
    countInt: '12',
    sum: 18.4,
    schema: 1,
    zeroThreshold: 0.001,
    zeroCountInt: '2',
    positiveSpans: [
      { offset: 0, length: 2 },
      { offset: 1, length: 2 },
    ],
    positiveDeltas: ['1', '1', '-1', '0'],
    negativeSpans: [{ offset: -1, length: 2 }],
    negativeDeltas: ['2', '1'],
    timestamp: timeMs,
  }
  const read = (changes: Record<string, unknown>, more: Partial<TestSeries> = {}) =>
    versions.map((version) => {
      const series = {
        labels: { __name__: 'rpc_seconds', job: 'shop' },
        histograms: [{ ...histogram, ...changes }],
      }
      return decode(version, [{ ...series, ...more }])
    })

  test('an exponential histogram keeps its counts, has its buckets one index lower and its gaps filled with zeros', () => {
    for (const { histograms, samples, rows } of read({})) {
      assert.deepEqual([samples.accepted, histograms.accepted, histograms.reasons], [0, 1, ''])
      const [row] = rows('otel_metrics_exponential_histogram')
      const { Count, Sum, Scale, ZeroCount, PositiveOffset, NegativeOffset, AggregationTemporality } =
        row ?? {}
      assert.deepEqual([Count, Sum, Scale, ZeroCount], ['12', 18.4, 1, '2'])
      assert.deepEqual([PositiveOffset, NegativeOffset, AggregationTemporality], [-1, -2, 2])
      assert.deepEqual(row?.PositiveBucketCounts, ['1', '2', '0', '1', '1'])
      assert.deepEqual(row?.NegativeBucketCounts, ['2', '3'])
      assert.deepEqual([row?.Min, row?.Max], [null, null])
    }
  })

  test('a histogram with explicit bounds keeps those bounds', () => {
    const custom = {
      schema: -53,
      customValues: [0.1, 1, 10],
      positiveSpans: [{ offset: 1, length: 1 }],
      positiveDeltas: ['12'],
      negativeSpans: [],
      negativeDeltas: [],
    }
    for (const { rows } of read(custom)) {
      const [row] = rows('otel_metrics_histogram')
      assert.deepEqual([row?.Count, row?.Sum], ['12', 18.4])
      assert.deepEqual(row?.BucketCounts, ['0', '12', '0', '0'])
      assert.deepEqual(row?.ExplicitBounds, [0.1, 1, 10])
    }
  })

  test('64-bit counts are exact, and whole counts that were sent as floats are integers', () => {
    for (const { rows } of read({ countInt: '18446744073709551615' })) {
      assert.equal(rows('otel_metrics_exponential_histogram')[0]?.Count, '18446744073709551615')
    }
    const floats = { countFloat: 4, positiveDeltas: [], positiveCounts: [1, 2, 0, 1] }
    const { countInt: _, ...rest } = histogram
    for (const version of versions) {
      const { rows } = decode(version, [{ labels: { __name__: 'x' }, histograms: [{ ...rest, ...floats }] }])
      assert.deepEqual(rows('otel_metrics_exponential_histogram')[0]?.PositiveBucketCounts, [
        '1',
        '2',
        '0',
        '0',
        '1',
      ])
    }
  })

  test('a stale marker as sum ends the series', () => {
    for (const { rows } of read({ sum: staleMarker })) {
      const [row] = rows('otel_metrics_exponential_histogram')
      assert.deepEqual([row?.Flags, row?.Sum, row?.Count], [1, 'nan', '0'])
    }
  })

  const unfit: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ['a gauge', { resetHint: 3 }, 'native histogram of a gauge'],
    [
      'fractional counts',
      { positiveDeltas: [], positiveCounts: [1, 2.5, 0, 1] },
      'native histogram with fractional counts',
    ],
    ['an unknown schema', { schema: 9 }, 'native histogram of an unknown schema'],
    [
      'counts below zero',
      { positiveDeltas: ['1', '-2', '1', '1'] },
      'native histogram whose counts do not fit its spans',
    ],
    ['too few counts', { positiveDeltas: ['1'] }, 'native histogram whose counts do not fit its spans'],
    [
      'spans that go back',
      {
        positiveSpans: [
          { offset: 0, length: 2 },
          { offset: -2, length: 2 },
        ],
      },
      'native histogram whose counts do not fit its spans',
    ],
    [
      'an index that no value has',
      { positiveSpans: [{ offset: 2_000_000_000, length: 4 }] },
      'native histogram whose counts do not fit its spans',
    ],
    [
      'a gap of two thousand million buckets',
      {
        positiveSpans: [
          { offset: 0, length: 2 },
          { offset: 2_000_000_000, length: 2 },
        ],
      },
      'more than 4096 buckets, quantiles, exemplars, events or links',
    ],
  ]
  for (const [name, changes, reason] of unfit) {
    test(`a histogram with ${name} is left out with the reason`, () => {
      for (const { histograms } of read(changes)) {
        assert.deepEqual([histograms.accepted, histograms.reasons], [0, `1 histogram: ${reason}`])
      }
    })
  }

  test('a histogram of the type gauge histogram is left out too', () => {
    for (const { histograms } of read({}, { type: 4 })) {
      assert.equal(histograms.reasons, '1 histogram: native histogram of a gauge')
    }
  })
})
