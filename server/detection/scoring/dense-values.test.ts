// Runs: which values count as consecutive.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { denseValuesOf } from './dense-values.ts'

const runsOf = (values: readonly number[], seams: readonly number[] = []) => [
  ...denseValuesOf(Float64Array.from(values), seams).runs,
]

test('a run continues across a short gap and ends at a long one', () => {
  const gap = (length: number) => Array<number>(length).fill(Number.NaN)
  assert.deepEqual(runsOf([1, 1, ...gap(5), 1, ...gap(6), 1, 1]), [1, 2, 3, 1, 2])
})

test('a run ends at a seam, also where the seam has no value', () => {
  assert.deepEqual(runsOf([1, 1, 1, 1], [2]), [1, 2, 1, 2])
  assert.deepEqual(runsOf([1, 1, Number.NaN, 1, 1], [2]), [1, 2, 1, 2])
  assert.deepEqual(runsOf([1, 1], [0]), [1, 2])
})
