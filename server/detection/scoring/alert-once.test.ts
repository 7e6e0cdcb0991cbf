// Which scores of a sequence are unreported.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Reported } from './alert-once.ts'

const unreportedOf = (scores: readonly number[], edge?: number) => {
  const reported = new Reported(100)
  return scores.map((score) => reported.unreportedOf(score, edge))
}

test('a score is reported once, and again where it is clearly higher', () => {
  assert.deepEqual(unreportedOf([2, 2, 2.1, 3, 3]), [2, 0, 0, 3, 0])
})

test('a slow rise is reported when it exceeds the edge, because nothing below it was reported', () => {
  const slow = [0.8, 0.9, 1, 1.1, 1.2]
  assert.deepEqual(unreportedOf(slow, 1), [0.8, 0.9, 1, 1.1, 0])
  assert.deepEqual(unreportedOf(slow, 0), [0.8, 0, 0, 0, 0])
})
