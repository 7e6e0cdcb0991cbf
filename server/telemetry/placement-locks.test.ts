// The locks in memory, with the rules of every implementation.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryPlacementLocks, memoryLocks } from './placement-locks.ts'
import { keepsPlacementLocks } from './placement-locks-contract.ts'

keepsPlacementLocks('one process', () => new MemoryPlacementLocks())

test('an attempt in progress does not prevent writes', async () => {
  const { attempts, writes } = memoryLocks()
  await attempts.exclusively([1], async () => {
    assert.equal(writes.isTaken(1), false)
    await writes.exclusively([1], async () => {})
  })
})
