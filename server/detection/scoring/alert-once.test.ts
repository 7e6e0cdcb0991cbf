// What of a sequence of scores is news.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Reported } from './alert-once.ts'

const newsOf = (scores: readonly number[], edge?: number) => {
  const reported = new Reported(100)
  return scores.map((score) => reported.newsOf(score, edge))
}

test('a score is news once, and again where it is clearly higher', () => {
  assert.deepEqual(newsOf([2, 2, 2.1, 3, 3]), [2, 0, 0, 3, 0])
})

test('what grows slowly is news when it exceeds the edge, because nothing below it was reported', () => {
  const slow = [0.8, 0.9, 1, 1.1, 1.2]
  assert.deepEqual(newsOf(slow, 1), [0.8, 0.9, 1, 1.1, 0])
  assert.deepEqual(newsOf(slow, 0), [0.8, 0, 0, 0, 0])
})
