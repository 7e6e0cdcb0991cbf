// The pause before the next attempt.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { retryDelayMs } from './queue.ts'

test('the pause between attempts grows from a second to five minutes and no further', () => {
  assert.deepEqual([1, 2, 3, 20].map(retryDelayMs), [1000, 2000, 4000, 300_000])
})
