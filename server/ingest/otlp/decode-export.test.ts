// Bodies from outside: damaged and hostile ones are refused without a crash, and both encodings give the same
// rows.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BinaryWriter } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import {
  arbitraryExport,
  arbitraryJsonStyle,
  encodeJson,
  nestedValue,
} from '../../../tests/otlp/arbitrary-export.ts'
import { decodeHere } from '../../../tests/otlp/decode-here.ts'
import { assertBatchFits, namedRows } from '../../../tests/otlp/named-cells.ts'
import { encodeProto, logsOfLongResource } from '../../../tests/otlp/otlp-messages.ts'
import { rowCount } from '../../telemetry/rows.ts'
import { type Signal, signals } from '../../telemetry/schema/tables.ts'
import { OtlpDecodeError } from '../rows/otlp-decode-error.ts'
import type { DecodedExport } from '../rows/row-collector.ts'
import type { OtlpEncoding } from './decode-export.ts'

const receivedNs = 1_700_000_000_000_000_007n
const plainStyle = { snakeCase: false, reversed: false, bareIntegers: false }

function decodeOrRefuse(
  signal: Signal,
  encoding: OtlpEncoding,
  body: Buffer,
): DecodedExport | OtlpDecodeError {
  try {
    return decodeHere(signal, encoding, body, receivedNs)
  } catch (error) {
    assert.ok(error instanceof OtlpDecodeError, String(error))
    assert.match(error.message, /^(request|resource(Metrics|Logs|Spans)\[\d+\]).*: .+$/)
    assert.ok(error.message.length < 1_000)
    return error
  }
}

/** A random but repeatable sample, for tests that change its bytes. */
function sampleBodies(signal: Signal, encoding: OtlpEncoding, count: number): Buffer[] {
  const messages = fc.sample(arbitraryExport[signal], { numRuns: count, seed: 4_317 })
  return messages.map((message) =>
    encoding === 'json' ? encodeJson(message, plainStyle) : encodeProto(signal, message),
  )
}

for (const signal of signals) {
  test(`${signal}: protobuf and JSON of one message, in any style, give the same rows`, () => {
    fc.assert(
      fc.property(arbitraryExport[signal], arbitraryJsonStyle, (message, style) => {
        const fromProto = decodeHere(signal, 'protobuf', encodeProto(signal, message), receivedNs)
        const fromJson = decodeHere(signal, 'json', encodeJson(message, style), receivedNs)
        assert.deepEqual(fromJson, fromProto)
      }),
      { numRuns: 200 },
    )
  })

  test(`${signal}: every row fits its table, and every record is accepted or rejected`, () => {
    fc.assert(
      fc.property(arbitraryExport[signal], (message) => {
        const { batch, accepted, rejected, reasons } = decodeHere(
          signal,
          'protobuf',
          encodeProto(signal, message),
          receivedNs,
        )
        assertBatchFits(batch)
        assert.equal(
          accepted,
          batch.reduce((sum, part) => sum + rowCount(part), 0),
        )
        assert.equal(accepted + rejected, countRecords(message))
        assert.equal(rejected === 0, reasons === '')
      }),
      { numRuns: 200 },
    )
  })

  for (const encoding of ['protobuf', 'json'] as const) {
    test(`${signal} ${encoding}: a body cut at any byte gives rows or one decode error`, () => {
      for (const body of sampleBodies(signal, encoding, 6)) {
        for (let length = 0; length < body.length; length++) {
          decodeOrRefuse(signal, encoding, body.subarray(0, length))
        }
      }
    })

    test(`${signal} ${encoding}: random changes of a body give rows that fit or one decode error`, () => {
      fc.assert(
        fc.property(
          fc.constantFrom(...sampleBodies(signal, encoding, 40).filter((body) => body.length > 0)),
          fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }),
          (body, changes) => {
            const changed = Buffer.from(body)
            for (const [at, byte] of changes) changed[at % changed.length] = byte
            const result = decodeOrRefuse(signal, encoding, changed)
            if (!(result instanceof OtlpDecodeError)) assertBatchFits(result.batch)
          },
        ),
        { numRuns: 1_000 },
      )
    })

    test(`${signal} ${encoding}: random bytes give rows or one decode error`, () => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
          decodeOrRefuse(signal, encoding, Buffer.from(bytes))
        }),
        { numRuns: 400 },
      )
    })
  }

  test(`${signal}: an empty protobuf body and an empty JSON object are requests without records`, () => {
    const nothing = { batch: [], accepted: 0, rejected: 0, reasons: '' }
    assert.deepEqual(decodeHere(signal, 'protobuf', Buffer.alloc(0), receivedNs), nothing)
    assert.deepEqual(decodeHere(signal, 'json', Buffer.from('{}'), receivedNs), nothing)
  })

  test(`${signal}: unknown fields are skipped in both encodings`, () => {
    const message = fc
      .sample(arbitraryExport[signal], { numRuns: 50, seed: 3 })
      .find((one) => countRecords(one) > 3)
    assert.ok(message)
    const known = decodeHere(signal, 'protobuf', encodeProto(signal, message), receivedNs)
    assert.ok(known.accepted > 0)
    const extra = new BinaryWriter()
      .tag(999, 2)
      .string('later')
      .tag(30, 0)
      .uint32(7)
      .tag(20, 3)
      .tag(20, 4)
      .finish()
    const body = Buffer.concat([extra, encodeProto(signal, message), extra])
    assert.deepEqual(decodeHere(signal, 'protobuf', body, receivedNs), known)
    const json = Buffer.from(JSON.stringify({ later: [{}], ...message }))
    assert.deepEqual(decodeHere(signal, 'json', json, receivedNs), known)
  })
}

test('a length beyond the body is refused before memory is allocated for it', () => {
  const hugeLength = Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f])
  for (const signal of signals) {
    assert.throws(() => decodeHere(signal, 'protobuf', hugeLength, receivedNs), {
      name: 'OtlpDecodeError',
      message: 'resourceXs[0] at byte 6: truncated'.replace(
        'Xs',
        { metrics: 'Metrics', logs: 'Logs', traces: 'Spans' }[signal],
      ),
    })
  }
})

test('a nested message that is longer than its parent is refused', () => {
  const body = Buffer.from([0x0a, 0x03, 0x0a, 0x05, 0x0a, 0x00, 0x00, 0x00, 0x00])
  assert.throws(() => decodeHere('logs', 'protobuf', body, receivedNs), /resourceLogs\[0\].*truncated/)
})

test('a number that extends beyond the end of its message is refused', () => {
  const record = Buffer.from([(1 << 3) | 1, 1, 2, 3, 4])
  const scope = new BinaryWriter().tag(2, 2).bytes(record).tag(3, 2).string('a longer text').finish()
  const resource = new BinaryWriter().tag(2, 2).bytes(scope).finish()
  const body = Buffer.from(new BinaryWriter().tag(1, 2).bytes(resource).finish())
  assert.throws(
    () => decodeHere('logs', 'protobuf', body, receivedNs),
    /logRecords\[0\] at byte \d+: a field runs past the end of its message/,
  )
})

test('field 0 and tags of more than 32 bits are refused', () => {
  for (const tag of [[0x02], [0x8a, 0x80, 0x80, 0x80, 0x80, 0x00], [0xff, 0xff, 0xff, 0xff, 0xff, 0x01]]) {
    const body = Buffer.from([...tag, 0x00, 0x00])
    assert.throws(
      () => decodeHere('traces', 'protobuf', body, receivedNs),
      /^OtlpDecodeError: request at byte \d+: invalid field tag$/,
    )
  }
})

test('a packed list that ends inside a number is refused', () => {
  const point = new BinaryWriter().tag(6, 2).bytes(Buffer.alloc(12)).tag(9, 2).bytes(Buffer.alloc(9)).finish()
  const histogram = new BinaryWriter().tag(1, 2).bytes(point).finish()
  const metric = new BinaryWriter().tag(1, 2).string('h').tag(9, 2).bytes(histogram).finish()
  const scope = new BinaryWriter().tag(2, 2).bytes(metric).finish()
  const resource = new BinaryWriter().tag(2, 2).bytes(scope).finish()
  const body = Buffer.from(new BinaryWriter().tag(1, 2).bytes(resource).finish())
  assert.throws(
    () => decodeHere('metrics', 'protobuf', body, receivedNs),
    /metrics\[0\]\.histogram\.dataPoints\[0\] at byte \d+: a packed list ends inside a number/,
  )
})

test('a known field with another wire type is refused and named', () => {
  const record = new BinaryWriter().tag(1, 0).uint32(5).finish()
  const scope = new BinaryWriter().tag(2, 2).bytes(record).finish()
  const resource = new BinaryWriter().tag(2, 2).bytes(scope).finish()
  const body = Buffer.from(new BinaryWriter().tag(1, 2).bytes(resource).finish())
  assert.throws(
    () => decodeHere('logs', 'protobuf', body, receivedNs),
    /^OtlpDecodeError: resourceLogs\[0\]\.scopeLogs\[0\]\.logRecords\[0\] at byte \d+: field 1 has wire type 0/,
  )
})

test('a resource and a schema that follow their records on the wire still belong to them', () => {
  const attribute = new BinaryWriter().tag(1, 2).string('service.name')
  attribute.tag(2, 2).fork().tag(1, 2).string('shop').join()
  const record = new BinaryWriter().tag(1, 1).fixed64(receivedNs).finish()
  const scope = new BinaryWriter().tag(2, 2).bytes(record).tag(3, 2).string('scope-schema')
  scope.tag(1, 2).fork().tag(1, 2).string('library').join()
  const resource = new BinaryWriter().tag(3, 2).string('schema').tag(2, 2).bytes(scope.finish())
  resource.tag(1, 2).fork().tag(1, 2).bytes(attribute.finish()).join()
  const body = Buffer.from(new BinaryWriter().tag(1, 2).bytes(resource.finish()).finish())
  const [row] = namedRows(decodeHere('logs', 'protobuf', body, receivedNs).batch, 'otel_logs')
  assert.equal(row?.ServiceName, 'shop')
  assert.equal(row?.ResourceSchemaUrl, 'schema')
  assert.equal(row?.ScopeSchemaUrl, 'scope-schema')
  assert.equal(row?.ScopeName, 'library')
})

test('hundreds of thousands of nested values are one rejected record and no stack overflow', () => {
  const deep = nestedProtoValue(100_000)
  const record = new BinaryWriter().tag(1, 1).fixed64(receivedNs).tag(5, 2).bytes(deep).finish()
  const scope = new BinaryWriter().tag(2, 2).bytes(record).finish()
  const resource = new BinaryWriter().tag(2, 2).bytes(scope).finish()
  const body = Buffer.from(new BinaryWriter().tag(1, 2).bytes(resource).finish())
  const { rejected, reasons } = decodeHere('logs', 'protobuf', body, receivedNs)
  assert.equal(rejected, 1)
  assert.equal(reasons, '1 log record: attribute value or body is nested deeper than 32')
})

test('deep JSON ends in a decode error or a rejected record, with and without long integers', () => {
  for (const first of ['1', '9007199254740993']) {
    const deep = `{"resourceLogs":[{"n":${first},"x":${'['.repeat(200_000)}${']'.repeat(200_000)}}]}`
    decodeOrRefuse('logs', 'json', Buffer.from(deep))
  }
  const body = { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: nestedValue(300) }] }] }] }
  assert.equal(decodeHere('logs', 'json', Buffer.from(JSON.stringify(body)), receivedNs).rejected, 1)
})

test('an attribute value may be nested 32 deep and no deeper', () => {
  for (const [levels, rejected] of [
    [32, 0],
    [33, 1],
  ] as const) {
    const message = { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: nestedValue(levels) }] }] }] }
    assert.equal(decodeHere('logs', 'protobuf', encodeProto('logs', message), receivedNs).rejected, rejected)
    assert.equal(
      decodeHere('logs', 'json', Buffer.from(JSON.stringify(message)), receivedNs).rejected,
      rejected,
    )
  }
})

test('a body whose rows would be out of proportion to it is refused before their memory is allocated', () => {
  const message = logsOfLongResource(5_000, 30_000, '1700000000000000000')
  const body = encodeProto('logs', message)
  assert.ok(body.length < 200_000)
  assert.throws(() => decodeHere('logs', 'protobuf', body, receivedNs), {
    code: 'body_too_large',
    status: 413,
  })
  assert.throws(() => decodeHere('logs', 'json', Buffer.from(JSON.stringify(message)), receivedNs), {
    code: 'body_too_large',
  })
})

test('nothing of a rejected record is in the rows before and after it', () => {
  const time = '1700000000000000000'
  const record = (text: string, timeUnixNano: string) => ({
    name: text,
    traceId: 'ab'.repeat(16),
    spanId: 'cd'.repeat(8),
    startTimeUnixNano: timeUnixNano,
    events: [{ name: text }],
  })
  const spans = [record('first', time), record('rejected', '0'), record('last', time)]
  const { batch, rejected } = decodeHere(
    'traces',
    'protobuf',
    encodeProto('traces', { resourceSpans: [{ scopeSpans: [{ spans }] }] }),
    receivedNs,
  )
  assert.equal(rejected, 1)
  assert.deepEqual(
    namedRows(batch, 'otel_traces').map((row) => [row.SpanName, row['Events.Name']]),
    [
      ['first', ['first']],
      ['last', ['last']],
    ],
  )
  assert.ok(!batch[0]?.bytes.includes('rejected'))
})

test('endlessly nested groups are refused', () => {
  const body = Buffer.alloc(100_000, (99 << 3) | 3)
  assert.throws(() => decodeHere('traces', 'protobuf', body, receivedNs), OtlpDecodeError)
})

test('a JSON body that would take seconds to parse is refused with the reason', () => {
  const many = (count: number, make: (i: number) => string) =>
    Array.from({ length: count }, (_, i) => make(i)).join()
  for (const [unknown, message] of [
    ['['.repeat(100_000), 'request: nested too deeply to be read'],
    [`[${'['.repeat(100_000)}${']'.repeat(100_000)}]`, 'request: nested too deeply to be read'],
    [`[${many(1_100_000, () => '{}')}]`, 'request: too many arrays and objects to be read'],
    [`{${many(11_000, (i) => `"k${i}":0`)}}`, 'request: too many different names to be read'],
    [`[${many(11_000, (i) => `{"k${i}":0}`)}]`, 'request: too many different names to be read'],
  ] as const) {
    assert.throws(() => decodeHere('logs', 'json', Buffer.from(`{"x":${unknown}}`), receivedNs), {
      name: 'OtlpDecodeError',
      message,
    })
  }
})

test('as many counts, attributes and names as a full body can have are read', () => {
  const bucketCounts = Array.from({ length: 4_000 }, () => '0')
  const explicitBounds = bucketCounts.slice(1).map((_, i) => i)
  const point = { timeUnixNano: String(receivedNs), count: '0', bucketCounts, explicitBounds }
  const dataPoints = Array.from({ length: 400 }, () => point)
  const message = {
    resourceMetrics: [{ scopeMetrics: [{ metrics: [{ name: 'm', histogram: { dataPoints } }] }] }],
  }
  const body = Buffer.from(JSON.stringify(message))
  assert.equal(decodeHere('metrics', 'json', body, receivedNs).accepted, 400)
})

test('an integer without quotes is exact as a time and a count, and is not a text', () => {
  const time = '1700000000123456789'
  const bodyOf = (record: string) =>
    Buffer.from(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":${time},${record}}]}]}]}`)
  const bodyText = (record: string) =>
    namedRows(decodeHere('logs', 'json', bodyOf(record), receivedNs).batch, 'otel_logs')[0]?.Body
  assert.equal(bodyText('"body":{"intValue":9007199254740993}'), '9007199254740993')
  assert.equal(bodyText('"body":{"intValue":-9223372036854775808}'), '-9223372036854775808')
  assert.equal(bodyText('"body":{"intValue":100000000000000000000}'), '100000000000000000000')
  assert.equal(bodyText('"body":{"stringValue":"at, 9007199254740993,"}'), 'at, 9007199254740993,')
  for (const wrong of [
    '"body":{"stringValue":9007199254740993}',
    '"severityNumber":9007199254740993',
    '"body":9007199254740993',
    '"attributes":9007199254740993',
    '9007199254740993:1',
    '"body":{"intValue":00000000000000000001}',
  ]) {
    assert.throws(() => bodyText(wrong), OtlpDecodeError, wrong)
  }
})

/** Built from the inside out, because a writer's forks would be as deep as the message. */
function nestedProtoValue(levels: number): Uint8Array {
  const parts: Buffer[] = []
  let length = 0
  for (let level = 0; level < levels; level++) {
    const inner = new BinaryWriter().tag(1, 2).uint32(length).finish()
    const outer = new BinaryWriter()
      .tag(5, 2)
      .uint32(length + inner.length)
      .finish()
    parts.push(Buffer.from(inner), Buffer.from(outer))
    length += inner.length + outer.length
  }
  return Buffer.concat(parts.reverse())
}

function countRecords(message: unknown): number {
  if (Array.isArray(message)) return message.reduce((sum: number, item) => sum + countRecords(item), 0)
  if (typeof message !== 'object' || message === null) return 0
  let count = 0
  for (const [name, member] of Object.entries(message)) {
    const isRecords = name === 'dataPoints' || name === 'logRecords' || name === 'spans'
    count += isRecords
      ? member.length
      : name === 'attributes' || name === 'metadata'
        ? 0
        : countRecords(member)
  }
  return count
}
