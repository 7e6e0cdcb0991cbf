// Random OTLP requests in OTLP/JSON form, for property tests. They contain what real clients send and what
// only a hostile one would: times of 0 and beyond the calendar, ids of wrong lengths, NaN, duplicate keys,
// `__proto__`, nested values around the depth limit, texts in any script. Every message is valid in form;
// only its content may be wrong.

import fc from 'fast-check'
import type { Signal } from '../../server/telemetry/schema/tables.ts'

const text = fc.string({ unit: 'binary', maxLength: 12 })
const attributeKey = fc.oneof(
  fc.constantFrom('service.name', '__proto__', 'constructor', '10', 'b', ''),
  text,
)

const double = fc.oneof(fc.double(), fc.constantFrom(0, -0, 1e21, 5e-324)).map(doubleJson)
const int64 = fc.oneof(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), fc.bigInt(-300n, 300n)).map(String)
const uint64 = fc.oneof(fc.bigInt(0n, 2n ** 64n - 1n), fc.bigInt(0n, 300n)).map(String)
const uint32 = fc.oneof(fc.nat(0xffff_ffff), fc.constantFrom(0, 1, 0xffff_ffff))
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })

const endOfTimeNs = BigInt(Date.UTC(2149, 5, 1)) * 1_000_000n
const time = fc
  .oneof(
    { weight: 20, arbitrary: fc.bigInt(1_700_000_000n * 10n ** 9n, 1_700_000_100n * 10n ** 9n) },
    { weight: 5, arbitrary: fc.bigInt(1n, endOfTimeNs - 1n) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(0n, 1n, endOfTimeNs - 1n, endOfTimeNs, 2n ** 63n, 2n ** 64n - 1n),
    },
  )
  .map(String)

const bytes = (minLength: number, maxLength: number) => fc.uint8Array({ minLength, maxLength })
const base64 = bytes(0, 9).map((value) => Buffer.from(value).toString('base64'))
const id = (byteCount: number) =>
  fc
    .oneof(
      { weight: 20, arbitrary: bytes(byteCount, byteCount) },
      { weight: 1, arbitrary: bytes(0, byteCount + 1) },
      { weight: 1, arbitrary: fc.constant(new Uint8Array(byteCount)) },
    )
    .map((value) => Buffer.from(value).toString('hex'))

const scalar = fc.oneof(
  fc.record({ stringValue: text }),
  fc.record({ boolValue: fc.boolean() }),
  fc.record({ intValue: int64 }),
  fc.record({ doubleValue: double }),
  fc.record({ bytesValue: base64 }),
  fc.constant({}),
)

const anyValue: fc.Arbitrary<object> = fc.letrec<{ value: object; entry: object }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.record({ arrayValue: fc.record({ values: fc.array(tie('value'), { maxLength: 3 }) }) }),
    fc.record({ kvlistValue: fc.record({ values: fc.array(tie('entry'), { maxLength: 3 }) }) }),
  ),
  entry: fc.record({ key: attributeKey, value: tie('value') }),
})).value

/** A value inside `levels` nested arrays, for the depth limit. */
export function nestedValue(levels: number): object {
  let value: object = { boolValue: true }
  for (let level = 0; level < levels; level++) value = { arrayValue: { values: [value] } }
  return value
}

const value = fc.oneof(
  { weight: 30, arbitrary: anyValue },
  { weight: 1, arbitrary: fc.integer({ min: 30, max: 35 }).map(nestedValue) },
)
const attributes = fc.array(fc.record({ key: attributeKey, value }, { requiredKeys: ['key'] }), {
  maxLength: 4,
})
const few = <T>(item: fc.Arbitrary<T>) => fc.array(item, { maxLength: 3 })

/** Each field may be absent. */
const message = (fields: Record<string, fc.Arbitrary<unknown>>) => fc.record(fields, { requiredKeys: [] })

const exemplar = fc
  .tuple(
    message({ filteredAttributes: attributes, timeUnixNano: time, spanId: id(8), traceId: id(16) }),
    fc.oneof(fc.record({ asDouble: double }), fc.record({ asInt: int64 }), fc.constant({})),
  )
  .map(([fields, chosen]) => ({ ...fields, ...chosen }))

const pointHead = { attributes, startTimeUnixNano: time, flags: uint32, exemplars: few(exemplar) }
const withTime = (fields: Record<string, fc.Arbitrary<unknown>>) =>
  fc.tuple(message(fields), time).map(([rest, timeUnixNano]) => ({ ...rest, timeUnixNano }))

const numberPoint = fc
  .tuple(
    withTime(pointHead),
    fc.oneof(
      { weight: 5, arbitrary: fc.record({ asDouble: double }) },
      { weight: 5, arbitrary: fc.record({ asInt: int64 }) },
      { weight: 1, arbitrary: fc.constant({}) },
    ),
  )
  .map(([fields, chosen]) => ({ ...fields, ...chosen }))

const histogramPoint = fc
  .tuple(
    withTime({ ...pointHead, count: uint64, sum: double, min: double, max: double }),
    fc.array(double, { maxLength: 4 }),
    fc.array(uint64, { minLength: 5, maxLength: 5 }),
    fc.integer({ min: 0, max: 9 }),
  )
  .map(([fields, explicitBounds, counts, mismatch]) => ({
    ...fields,
    explicitBounds,
    bucketCounts: counts.slice(0, explicitBounds.length + (mismatch === 0 ? 0 : 1)),
  }))

const buckets = message({ offset: int32, bucketCounts: few(uint64) })
const exponentialHistogramPoint = withTime({
  ...pointHead,
  count: uint64,
  sum: double,
  scale: int32,
  zeroCount: uint64,
  positive: buckets,
  negative: buckets,
  min: double,
  max: double,
  zeroThreshold: double,
})

const summaryPoint = withTime({
  attributes,
  startTimeUnixNano: time,
  flags: uint32,
  count: uint64,
  sum: double,
  quantileValues: few(message({ quantile: double, value: double })),
})

const temporality = fc.constantFrom(0, 1, 2)
const metricData = fc.oneof(
  fc.record({ gauge: message({ dataPoints: few(numberPoint) }) }),
  fc.record({
    sum: message({
      dataPoints: few(numberPoint),
      aggregationTemporality: temporality,
      isMonotonic: fc.boolean(),
    }),
  }),
  fc.record({ histogram: message({ dataPoints: few(histogramPoint), aggregationTemporality: temporality }) }),
  fc.record({
    exponentialHistogram: message({
      dataPoints: few(exponentialHistogramPoint),
      aggregationTemporality: temporality,
    }),
  }),
  fc.record({ summary: message({ dataPoints: few(summaryPoint) }) }),
  fc.constant({}),
)

const metric = fc
  .tuple(message({ description: text, unit: text, metadata: attributes }), text, metricData)
  .map(([fields, name, data]) => ({ ...fields, name, ...data }))

const logRecord = message({
  timeUnixNano: time,
  observedTimeUnixNano: time,
  severityNumber: fc.oneof(fc.nat(24), fc.constantFrom(-1, 255, 256)),
  severityText: text,
  body: value,
  attributes,
  droppedAttributesCount: uint32,
  flags: uint32,
  traceId: id(16),
  spanId: id(8),
  eventName: text,
})

const span = fc
  .tuple(
    fc.record({ traceId: id(16), spanId: id(8), startTimeUnixNano: time }),
    message({
      parentSpanId: id(8),
      endTimeUnixNano: time,
      traceState: text,
      flags: uint32,
      name: text,
      kind: fc.integer({ min: -1, max: 7 }),
      attributes,
      droppedAttributesCount: uint32,
      events: few(message({ timeUnixNano: time, name: text, attributes })),
      links: few(message({ traceId: id(16), spanId: id(8), traceState: text, attributes, flags: uint32 })),
      status: message({ message: text, code: fc.nat(4) }),
    }),
  )
  .map(([required, optional]) => ({ ...required, ...optional }))

const resource = message({ attributes, droppedAttributesCount: uint32 })
const scope = message({ name: text, version: text, attributes, droppedAttributesCount: uint32 })

function request(groups: string, scopes: string, records: string, record: fc.Arbitrary<object>) {
  const scopeGroup = message({ scope, [records]: few(record), schemaUrl: text })
  return message({ [groups]: few(message({ resource, [scopes]: few(scopeGroup), schemaUrl: text })) })
}

/**
 * Requests of each signal in OTLP/JSON form: ids in hex, 64-bit integers as strings, NaN and infinities by
 * name.
 */
export const arbitraryExport: Readonly<Record<Signal, fc.Arbitrary<object>>> = {
  metrics: request('resourceMetrics', 'scopeMetrics', 'metrics', metric),
  logs: request('resourceLogs', 'scopeLogs', 'logRecords', logRecord),
  traces: request('resourceSpans', 'scopeSpans', 'spans', span),
}

/** Ways in which a client may write the same message in JSON. */
interface JsonStyle {
  readonly snakeCase: boolean
  readonly reversed: boolean
  readonly bareIntegers: boolean
}

export const arbitraryJsonStyle: fc.Arbitrary<JsonStyle> = fc.record({
  snakeCase: fc.boolean(),
  reversed: fc.boolean(),
  bareIntegers: fc.boolean(),
})

const integerNames =
  'timeUnixNano|startTimeUnixNano|endTimeUnixNano|observedTimeUnixNano|intValue|asInt|count|zeroCount'
const quotedInteger = new RegExp(`"(${integerNames})":"(-?\\d+)"`, 'g')

/**
 * Writes a message in one of the styles. Text inside values can't look like a field, because its quotes are
 * escaped.
 */
export function encodeJson(message: object, style: JsonStyle): Buffer {
  const ordered = style.reversed ? reverseFields(message) : message
  const plain = JSON.stringify(ordered)
  const numbered = style.bareIntegers ? plain.replace(quotedInteger, '"$1":$2') : plain
  return Buffer.from(style.snakeCase ? toSnakeCase(numbered) : numbered)
}

/** Field names are the only strings followed by a colon; attribute keys are values. */
function toSnakeCase(json: string): string {
  return json.replace(/"(?:[^"\\]|\\.)*"(:?)/g, (found, colon: string) =>
    colon === '' ? found : found.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  )
}

function reverseFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reverseFields)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reverseFields(member)]),
  )
}

function doubleJson(value: number): number | string {
  if (Object.is(value, -0)) return '-0'
  return Number.isFinite(value) ? value : String(value)
}
