// How a piece of a partition is divided into slices.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { render } from '../../telemetry/sql.ts'
import { copyMs, usualSliceMs } from './copy-cost.ts'
import { slicesOfPiece } from './copy-slices.ts'
import { type ActivePart, inPiece, type Piece } from './pieces.ts'

/** Parts of one block each. */
const partsOf = (...sizes: readonly number[]): ActivePart[] =>
  sizes.map((rows, i) => {
    const block = i + 1
    return {
      name: `0-20260105_${block}_${block}_0`,
      first: block,
      last: block,
      rows,
      bytes: 0,
      mutation: 0,
      contents: '',
    }
  })

const pieceOf = (first: number, last: number): Piece => ({ first, last, rows: 0, mutation: 0 })
const blocks = (first: number, last: number) => render(inPiece({ first, last }))
const offsets = (block: number, from: number, until: number) =>
  `(_part = '0-20260105_${block}_${block}_0' AND _part_offset >= ${from} AND _part_offset < ${until})`

/** A slice may have so many rows. */
const rows = (count: number) => () => copyMs({ rows: count, bytes: 0 })
const texts = (parts: readonly ActivePart[], piece: Piece, count: number) =>
  slicesOfPiece(piece, parts, rows(count)).map(render)

test('parts that are small together are one slice, and a large part has several', () => {
  const parts = partsOf(100, 40, 30, 30, 500, 250, 10)
  assert.deepEqual(texts(parts, pieceOf(2, 6), 200), [
    blocks(2, 4),
    offsets(5, 0, 167),
    offsets(5, 167, 333),
    offsets(5, 333, 500),
    offsets(6, 0, 125),
    offsets(6, 125, 250),
  ])
  assert.deepEqual(texts(parts, pieceOf(1, 7), 10_000), [blocks(1, 7)])
})

test('no slice is without rows', () => {
  assert.deepEqual(texts(partsOf(2), pieceOf(1, 1), 0.1), [offsets(1, 0, 1), offsets(1, 1, 2)])
})

test('a piece has at most sixteen slices until each takes four seconds', () => {
  for (const [pieceMs, slices] of [
    [900, 1],
    [8_000, 8],
    [16_000, 16],
    [60_000, 16],
    [64_000, 16],
    [640_000, 160],
  ] as const)
    assert.equal(Math.ceil(pieceMs / usualSliceMs(pieceMs)), slices, `${pieceMs}`)
})
