// The rows that are copied in a time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rowsCopiedIn } from './copy-cost.ts'

test('fewer rows are copied in a time the larger they are, and an empty partition has rows of no size', () => {
  const points = rowsCopiedIn(150, { rows: 30_000, bytes: 300_000 })
  const logs = rowsCopiedIn(150, { rows: 30_000, bytes: 4_500_000 })
  assert.deepEqual([points, logs], [50_000, 8_823])
  assert.equal(rowsCopiedIn(150, { rows: 0, bytes: 0 }), 75_000)
})
