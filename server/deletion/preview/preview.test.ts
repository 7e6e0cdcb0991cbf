// When a selection counts as having changed since it was previewed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { differenceOf, toleranceOf } from './preview.ts'

test('the tolerance is a thousand rows or one in a hundred, whichever is more', () => {
  const cases = [
    [0, 1000],
    [100_000, 1000],
    [100_099, 1000],
    [100_100, 1001],
    [50_000_000, 500_000],
  ] as const
  for (const [rows, tolerance] of cases) assert.equal(toleranceOf(rows), tolerance, String(rows))
})

test('rows that came do not make up for rows that went', () => {
  assert.equal(differenceOf({ logs: 5, traces: 9 }, { logs: 5, traces: 9 }), 0)
  assert.equal(differenceOf({ logs: 5, traces: 9 }, { logs: 9, traces: 5 }), 8)
  assert.equal(differenceOf({ logs: 5 }, { traces: 5 }), 10)
})
