// A set of attributes that is filled and written repeatedly, compared with a map that keeps the last of equal
// keys.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RowBinary } from '../../telemetry/row-binary.ts'
import { SeriesId, seriesParts } from '../../telemetry/schema/series-id.ts'
import { MapCell, TextCell } from './cells.ts'

type Entries = readonly (readonly [key: string, value: string])[]

const body = Buffer.from('a body that the keys and values stand in: service.name, ab, b, é')

function fill(cell: MapCell, entries: Entries): void {
  cell.clear()
  const [key, value] = [new TextCell(), new TextCell()]
  for (const [ownKey, ownValue] of entries) {
    // A text of the body is set as a range, as a protobuf decoder does.
    const at = body.indexOf(ownKey)
    if (ownKey !== '' && at >= 0) key.setSlice(at, at + Buffer.byteLength(ownKey))
    else key.setText(ownKey)
    value.setText(ownValue)
    cell.add(key, value, body)
  }
}

/** Of equal keys the last one stays, at its own position. */
function kept(entries: Entries): Entries {
  return entries.filter(([key], at) => !entries.slice(at + 1).some(([later]) => later === key))
}

function pairsOf(entries: Entries): Buffer {
  const all = kept(entries).map(([key, value]) =>
    Buffer.concat([Buffer.of(0xfe), Buffer.from(key), Buffer.of(0xff), Buffer.from(value)]),
  )
  return all.length === 0 ? Buffer.alloc(0) : Buffer.concat([...all, Buffer.of(0xfe)])
}

function textOf(bytes: Buffer): Buffer {
  const out = new RowBinary()
  out.varint(bytes.length)
  out.append(bytes, 0, bytes.length)
  return out.toBuffer()
}

const written = (cell: MapCell): Buffer => {
  const out = new RowBinary()
  cell.writeTo(out)
  return out.toBuffer()
}

const writtenValue = (cell: MapCell, key: string): Buffer => {
  const out = new RowBinary()
  cell.writeValueTo(out, key)
  return out.toBuffer()
}

function identityOf(cell: MapCell): readonly number[] {
  const series = new SeriesId()
  cell.addTo(series, seriesParts.resource)
  return [series.hi, series.lo]
}

const keys = [
  '',
  'a',
  'b',
  'ab',
  'é',
  'service.name',
  '\u00fe',
  '\u00ff',
  ...Array.from({ length: 20 }, (_, i) => `key.${i}`),
]
const entries = fc.array(
  fc.tuple(fc.constantFrom(...keys), fc.constantFrom('', 'x', 'é', '\u00fe', 'v'.repeat(200))),
  {
    maxLength: 60,
  },
)

function assertLikeModel(cell: MapCell, model: Entries): void {
  const unique = new MapCell()
  fill(unique, kept(model))
  const identity = identityOf(unique)
  assert.deepEqual(identityOf(cell), identity)
  const check = () => {
    for (const key of keys) {
      const value = kept(model).find(([one]) => one === key)?.[1] ?? ''
      assert.deepEqual(writtenValue(cell, key), textOf(Buffer.from(value)), key)
    }
  }
  check()
  // Writing removes the replaced entries; what is read afterwards, and written again, is the same.
  for (let time = 0; time < 2; time++) assert.deepEqual(written(cell), textOf(pairsOf(model)))
  check()
  assert.deepEqual(identityOf(cell), identity)
}

test('of equal keys the last one stays, at any position and among any number', () => {
  const cell = new MapCell()
  fc.assert(
    fc.property(entries, (model) => {
      fill(cell, model)
      assertLikeModel(cell, model)
    }),
    { numRuns: 500 },
  )
})

test('a replaced key may be the first, one between and the last, among few and among many', () => {
  const cell = new MapCell()
  for (const count of [1, 2, 3, 15, 16, 17, 18, 40])
    for (const again of new Set([0, Math.floor(count / 2), count - 1]))
      for (const times of [1, 2, 3]) {
        const first = Array.from({ length: count }, (_, i) => [`key.${i}`, String(i)] as const)
        const model = [
          ...first,
          ...Array.from({ length: times }, (_, n) => [`key.${again}`, `again ${n}`] as const),
        ]
        fill(cell, model)
        assertLikeModel(cell, model)
      }
})

test('an empty set is written as the empty text', () => {
  const cell = new MapCell()
  fill(cell, [['k', 'v']])
  cell.clear()
  assert.deepEqual(written(cell), Buffer.of(0))
  fill(cell, [['', '']])
  assert.deepEqual(written(cell), Buffer.of(3, 0xfe, 0xff, 0xfe))
})
