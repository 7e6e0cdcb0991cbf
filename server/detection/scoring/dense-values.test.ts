// Runs: which values stand next to each other.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { denseValuesOf } from './dense-values.ts'

const runsOf = (values: readonly number[], seams: readonly number[] = []) => [
  ...denseValuesOf(Float64Array.from(values), seams).runs,
]

test('a short gap is stepped over, and after a long one a new run begins', () => {
  const gap = (length: number) => Array<number>(length).fill(Number.NaN)
  assert.deepEqual(runsOf([1, 1, ...gap(5), 1, ...gap(6), 1, 1]), [1, 2, 3, 1, 2])
})

test('a run ends at a seam, also where the seam has no value', () => {
  assert.deepEqual(runsOf([1, 1, 1, 1], [2]), [1, 2, 1, 2])
  assert.deepEqual(runsOf([1, 1, Number.NaN, 1, 1], [2]), [1, 2, 1, 2])
  assert.deepEqual(runsOf([1, 1], [0]), [1, 2])
})
