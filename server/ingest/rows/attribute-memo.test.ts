// Attributes that are repeated in a body, compared with the same points each sent alone: a point must be read
// the same after others as by itself. Bodies are written byte for byte, because an encoder would write no
// invalid text, no repeated field and no unknown one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeHere } from '../../../tests/otlp/decode-here.ts'
import { maxAttributes } from './faults.ts'

function lengthDelimited(field: number, ...parts: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.concat(parts)
  const length: number[] = []
  let rest = bytes.length
  for (; rest > 127; rest >>>= 7) length.push((rest & 127) | 128)
  return Buffer.concat([Buffer.of((field << 3) | 2, ...length, rest), bytes])
}

const text = (value: string) => Buffer.from(value, 'latin1')

function keyValue(key: Uint8Array, value: Uint8Array): Buffer {
  return Buffer.concat([lengthDelimited(1, key), lengthDelimited(2, value)])
}

const named = (key: string, value: string) => keyValue(text(key), lengthDelimited(1, text(value)))

/** A point of a gauge with these attributes; its value identifies it. */
function point(attributes: readonly Uint8Array[], at: number): Buffer {
  const value = Buffer.alloc(8)
  value.writeDoubleLE(at)
  return lengthDelimited(
    1,
    ...attributes.map((attribute) => lengthDelimited(7, attribute)),
    Buffer.of((3 << 3) | 1, 0, 0, 0, 0, 1, 2, 3, 4, (4 << 3) | 1),
    value,
  )
}

function bodyOf(points: readonly Uint8Array[]): Buffer {
  const metric = Buffer.concat([lengthDelimited(1, text('rooms')), lengthDelimited(5, ...points)])
  return lengthDelimited(1, lengthDelimited(2, lengthDelimited(2, metric)))
}

function rowsOf(points: readonly Uint8Array[]) {
  const { batch, accepted, rejected } = decodeHere('metrics', 'protobuf', bodyOf(points), 0n)
  return { bytes: Buffer.concat(batch.map(({ bytes }) => bytes)), accepted, rejected }
}

function assertReadAsAlone(records: readonly (readonly Uint8Array[])[]): void {
  const points = records.map(point)
  const alone = points.map((one) => rowsOf([one]))
  const together = rowsOf(points)
  assert.equal(
    together.rejected,
    alone.reduce((sum, { rejected }) => sum + rejected, 0),
  )
  const expected = Buffer.concat(alone.map(({ bytes }) => bytes))
  const isSame = together.bytes.equals(expected)
  assert.ok(isSame, `${together.bytes.length} bytes together and ${expected.length} alone are not the same`)
}

const bytesOf = (maxLength: number) => fc.uint8Array({ maxLength })
const anyValue = fc.oneof(
  fc
    .constantFrom('GET', 'POST', '/api/v2/cart/{id}/step-1', '/api/v2/cart/{id}/step-2', 'v'.repeat(130))
    .map((value) => lengthDelimited(1, text(value))),
  bytesOf(12).map((bytes) => lengthDelimited(1, bytes)),
  fc.nat(127).map((number) => Buffer.of(3 << 3, number)),
  fc.boolean().map((is) => Buffer.of(2 << 3, is ? 1 : 0)),
  bytesOf(6).map((bytes) => lengthDelimited(7, bytes)),
  bytesOf(6).map((bytes) => lengthDelimited(5, lengthDelimited(1, lengthDelimited(1, bytes)))),
  // Two members of the oneof, of which the last one counts, and an unknown field.
  fc.constant(Buffer.concat([lengthDelimited(1, text('first')), Buffer.of(3 << 3, 7)])),
  fc.constant(Buffer.concat([lengthDelimited(1, text('known')), Buffer.of(9 << 3, 1)])),
)
const attribute = fc.oneof(
  fc
    .tuple(fc.constantFrom('http.request.method', 'http.route', 'a', ''), anyValue)
    .map(([key, value]) => keyValue(text(key), value)),
  fc.tuple(bytesOf(20), anyValue).map(([key, value]) => keyValue(key, value)),
  // Longer than a key may be, so its point is always refused.
  fc.constant(named('k'.repeat(1_025), 'v')),
)
/** Few attributes, of which many points are made. */
const records = fc
  .array(attribute, { minLength: 1, maxLength: 8 })
  .chain((pool) => fc.array(fc.array(fc.constantFrom(...pool), { maxLength: 20 }), { maxLength: 30 }))

test('a point is read the same after others with the same attributes as alone', () => {
  fc.assert(
    fc.property(records, (made) => assertReadAsAlone(made)),
    { numRuns: 300 },
  )
})

test('attributes that differ in only one byte are different, whichever byte it is', () => {
  const one = named('http.response.header', 'abcdefghijklmnopqrstuvwxyz')
  const others = Array.from({ length: one.length }, (_, at) => {
    const other = Buffer.from(one)
    // Lengths and tags stay, otherwise it would be another message.
    other[at] = (one[at] ?? 0) < 0x60 ? (one[at] ?? 0) : (one[at] ?? 0) ^ 1
    return [other]
  })
  assertReadAsAlone([[one], ...others, [one], ...others])
})

test('more distinct attributes than are kept, and pairs that share a slot, change nothing', () => {
  const many = Array.from({ length: 3_000 }, (_, at) => [
    named('id', `value-${at}`),
    named('server.address', 'shop'),
  ])
  assertReadAsAlone([...many, ...many.toReversed()])
  const { accepted } = rowsOf([...many, ...many].map(point))
  assert.equal(accepted, 6_000)
})

test('a point with too many attributes is refused although each of them was read before', () => {
  const distinct = Array.from({ length: maxAttributes + 1 }, (_, at) => named(`key.of.it.${at}`, 'v'))
  const few = distinct.slice(0, 400)
  const most = distinct.slice(0, maxAttributes)
  assertReadAsAlone([few, most, distinct, [...most, ...few], most, few])
  assert.equal(rowsOf([few, most, distinct].map(point)).rejected, 1)
})

test('an attribute that did not fit into a full point is read correctly the next time', () => {
  const often = Array.from({ length: maxAttributes }, () => named('http.route', '/'))
  const late = named('http.response.status_code', '200')
  assertReadAsAlone([[...often, late], [late], [named('http.route', '/')]])
})

test('a key that grows when invalid bytes are replaced is still the same key', () => {
  const key = Buffer.alloc(100, 0xff)
  const [one, other] = ['1', '2'].map((value) => keyValue(key, lengthDelimited(1, text(value))))
  if (one === undefined || other === undefined) throw new Error('There are two.')
  assertReadAsAlone([[one], [other], [one, other], [other, one, one]])
  const once = rowsOf([[other]].map(point)).bytes
  assert.equal(rowsOf([[one], [one, other]].map(point)).bytes.length, once.length * 2)
})

test('an attribute that a point repeats with another value has the last value', () => {
  const [get, post] = [named('http.request.method', 'GET'), named('http.request.method', 'POST')]
  const route = named('http.route', '/')
  assertReadAsAlone([[get, route], [post, route], [get, route, post], [post, get, route, get], [get]])
})
