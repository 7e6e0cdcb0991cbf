// The labels of a classic histogram's buckets, in every spelling that Prometheus and its clients write.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { boundOf } from './classic-histogram.ts'

test('a bound is parsed in every spelling, and any other label is not a number', () => {
  for (const [label, bound] of [
    ['0', 0],
    ['0.5', 0.5],
    ['.5', 0.5],
    ['5.', 5],
    ['-1.5e+3', -1500],
    ['+2E-1', 0.2],
    ['+Inf', Number.POSITIVE_INFINITY],
    ['inf', Number.POSITIVE_INFINITY],
    ['-infinity', Number.NEGATIVE_INFINITY],
  ] as const) {
    assert.equal(boundOf(label), bound, label)
  }
  for (const label of ['', '.', '+', 'e5', '1e', '1.2.3', ' 1', '1 ', '0x10', 'NaN', '1_000', '∞']) {
    assert.ok(Number.isNaN(boundOf(label)), label)
  }
  fc.assert(
    fc.property(fc.double({ noNaN: true }), (bound) => {
      assert.equal(boundOf(String(bound)), bound === 0 ? 0 : bound)
    }),
  )
})

test('a label of the greatest length of an attribute is parsed in one pass', () => {
  const digits = '1'.repeat(32_767)
  for (let i = 0; i < 100; i++) assert.ok(Number.isNaN(boundOf(`${digits}x`)))
})
