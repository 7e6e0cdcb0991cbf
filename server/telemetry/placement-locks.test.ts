// The locks in memory, against what every implementation must keep.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryPlacementLocks, memoryLocks } from './placement-locks.ts'
import { keepsPlacementLocks } from './placement-locks-contract.ts'

keepsPlacementLocks('one process', () => new MemoryPlacementLocks())

test('an attempt that is in progress keeps nobody from writing', async () => {
  const { attempts, writes } = memoryLocks()
  await attempts.exclusively([1], async () => {
    assert.equal(writes.isTaken(1), false)
    await writes.exclusively([1], async () => {})
  })
})
