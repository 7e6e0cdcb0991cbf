// The time that an erasure makes unknown.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { erasedTime } from './selection.ts'

test('a full erasure makes time unknown up to its completion', () => {
  const all = { scope: 'all', signals: ['logs'], range: { startNs: null, endNs: null } } as const
  assert.deepEqual(erasedTime(all, 5), { startNs: null, endNs: 5_000_000n })
  const between = (startNs: bigint | null, endNs: bigint) => ({
    ...all,
    scope: 'range' as const,
    range: { startNs, endNs },
  })
  assert.deepEqual(erasedTime(between(1n, 4_999_999n), 5), { startNs: 1n, endNs: 4_999_999n })
  assert.deepEqual(erasedTime(between(1n, 9_000_000n), 5), { startNs: 1n, endNs: 5_000_000n })
  assert.equal(erasedTime(between(5_000_000n, 9_000_000n), 5), null)
})
