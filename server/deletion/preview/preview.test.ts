// When a selection counts as changed since its preview.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { differenceOf, toleranceOf, warningsAbout } from './preview.ts'

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

test('added rows do not compensate for removed rows', () => {
  assert.equal(differenceOf({ logs: 5, traces: 9 }, { logs: 5, traces: 9 }), 0)
  assert.equal(differenceOf({ logs: 5, traces: 9 }, { logs: 9, traces: 5 }), 8)
  assert.equal(differenceOf({ logs: 5 }, { traces: 5 }), 10)
})

test('a range that ends in the future has a warning; one that ends now by a clock slightly ahead has none', () => {
  const nowMs = 1_767_571_200_000
  const endingAt = (endNs: bigint | null) =>
    warningsAbout({ scope: 'range', signals: ['logs'], range: { startNs: null, endNs } }, nowMs)
  const nowNs = BigInt(nowMs) * 1_000_000n
  assert.deepEqual(endingAt(nowNs), [])
  assert.deepEqual(endingAt(nowNs + 60_000_000_000n), [])
  assert.deepEqual(endingAt(null), [])
  const [warning, ...more] = endingAt(1_798_761_600_000_000_000n)
  assert.deepEqual([warning?.code, more], ['future_end', []])
  assert.match(warning?.message ?? '', /^range_end is 2027-01-01T00:00:00Z, which has not come yet/)
})
