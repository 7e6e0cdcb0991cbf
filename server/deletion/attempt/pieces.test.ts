// How a partition is divided into pieces, and when a piece is still what it was.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isUnchanged, joinMerged, newPieces, type Piece, rowsOutside, together } from './pieces.ts'

const piece = (first: number, last: number, rows: number, mutation = 0): Piece => ({
  first,
  last,
  rows,
  mutation,
})
/** Parts of one block each. */
const partsOf = (...sizes: readonly number[]) => sizes.map((rows, i) => piece(i + 1, i + 1, rows))
const edges = (pieces: readonly Piece[]) => pieces.map(({ first, last, rows }) => [first, last, rows])

/** No piece is too small. */
const all = { rowsMin: 0, rowsLeft: 0 }

test('a partition without parts has no pieces', () => {
  assert.deepEqual(newPieces([], [], [], all), [])
})

test('each piece has at least half of what is left, and none but the last has fewer rows than the least', () => {
  const parts = partsOf(1000, 300, 100, 100, 50, 10, 10)
  assert.deepEqual(edges(newPieces(parts, [], [], all)), [
    [1, 1, 1000],
    [2, 2, 300],
    [3, 4, 200],
    [5, 5, 50],
    [6, 6, 10],
    [7, 7, 10],
  ])
  assert.deepEqual(edges(newPieces(parts, [], [], { rowsMin: 150, rowsLeft: 0 })), [
    [1, 1, 1000],
    [2, 2, 300],
    [3, 4, 200],
    [5, 7, 70],
  ])
})

test('a last piece that is smaller than what may be left is no piece, also where it is the only one', () => {
  const parts = partsOf(1000, 300, 40, 30)
  const found = (rowsLeft: number) => edges(newPieces(parts, [], [], { rowsMin: 100, rowsLeft }))
  assert.deepEqual(found(71), [
    [1, 1, 1000],
    [2, 2, 300],
  ])
  assert.deepEqual(found(70).at(-1), [3, 4, 70])
  assert.deepEqual(newPieces(partsOf(40, 30), [], [], { rowsMin: 100, rowsLeft: 71 }), [])
})

test('no piece ends inside a merge in progress', () => {
  const parts = partsOf(1000, 300, 100, 100, 50)
  assert.deepEqual(edges(newPieces(parts, [], [{ first: 1, last: 3 }], all)), [
    [1, 3, 1400],
    [4, 4, 100],
    [5, 5, 50],
  ])
})

test('no piece reaches over one that is there already', () => {
  const parts = partsOf(10, 1000, 10, 10)
  const found = newPieces(parts, [piece(2, 2, 1000)], [], { rowsMin: 100, rowsLeft: 0 })
  assert.deepEqual(edges(found), [
    [1, 1, 10],
    [3, 4, 20],
  ])
  assert.equal(rowsOutside(parts, [piece(2, 2, 1000)]), 30)
})

test('a piece is unchanged while its rows are in parts of its own, merged or not', () => {
  const copied = piece(2, 4, 60)
  const [before, after] = [piece(1, 1, 10), piece(5, 5, 20)]
  assert.ok(isUnchanged(copied, [before, ...partsOf(0, 10, 20, 30).slice(1), after]))
  assert.ok(isUnchanged(copied, [before, piece(2, 4, 60), after]))
  assert.ok(!isUnchanged(copied, [before, piece(2, 3, 30), piece(4, 5, 50)]), 'mixed with later rows')
  assert.ok(!isUnchanged(copied, [piece(1, 2, 20), piece(3, 4, 50), after]), 'mixed with earlier rows')
  assert.ok(!isUnchanged(copied, [before, piece(2, 4, 59), after]), 'fewer rows')
  assert.ok(!isUnchanged(copied, [before, piece(2, 4, 60, 6), after]), 'mutated')
  assert.ok(!isUnchanged(copied, []), 'dropped')
})

test('pieces whose rows are merged into one part are unchanged together, if it has no other rows', () => {
  const pieces = [piece(3, 4, 20), piece(1, 2, 40), piece(5, 5, 10)]
  const joined = (...parts: Piece[]) => joinMerged(pieces, parts, together)
  assert.deepEqual(edges(joined(...partsOf(20, 20, 10, 10, 10))), [
    [1, 2, 40],
    [3, 4, 20],
    [5, 5, 10],
  ])
  assert.deepEqual(edges(joined(piece(1, 1, 20), piece(2, 3, 30), piece(4, 5, 20))), [[1, 5, 70]])
  const merged = [piece(1, 4, 60), piece(5, 5, 10)]
  assert.deepEqual(edges(joined(...merged)), [
    [1, 4, 60],
    [5, 5, 10],
  ])
  assert.ok(joined(...merged).every((one) => isUnchanged(one, merged)))
  const mixed = [piece(1, 3, 50), piece(4, 6, 90)]
  assert.ok(joined(...mixed).every((one) => !isUnchanged(one, mixed)))
})
