// Runs: which values count as consecutive.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DenseReader, denseValuesOf } from './dense-values.ts'

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

test('a series that is read piece by piece has the same runs', () => {
  const [none, values] = [Number.NaN, [1, Number.NaN, 2, 3, ...Array(5).fill(Number.NaN), 4, 5]]
  values.push(...Array(6).fill(none), 6, none, none, 7, 8)
  const whole = [...denseValuesOf(Float64Array.from(values), [2, 18]).runs]
  for (let size = 1; size < 6; size++) {
    const reader = new DenseReader()
    const runs: number[] = []
    for (let from = 0; from < values.length; from += size) {
      const seams = [2, 18].map((seam) => seam - from).filter((seam) => seam >= 0 && seam < size)
      runs.push(...reader.read(Float64Array.from(values.slice(from, from + size)), seams).runs)
    }
    assert.deepEqual(runs, whole)
  }
})
