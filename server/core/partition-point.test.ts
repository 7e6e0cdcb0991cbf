// The binary search by a condition, compared with a search from the start.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partitionPoint } from './partition-point.ts'

test('the point is the first index at which the condition holds, or the length', () => {
  for (let length = 0; length < 20; length++) {
    for (let point = 0; point <= length; point++) {
      const asked: number[] = []
      const found = partitionPoint(length, (i) => {
        asked.push(i)
        return i >= point
      })
      assert.equal(found, point)
      assert.ok(asked.every((i) => i >= 0 && i < length))
    }
  }
})
