// Which scores of a sequence are unreported.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Reported, ReportedWeekly } from './alert-once.ts'

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

const week = 10_080
const noon = 720

test('a score at the same time of the next two weeks was reported, a quarter of an hour more or less', () => {
  const weekly = new ReportedWeekly(5)
  assert.equal(weekly.wasReported(noon, 2), false)
  assert.equal(weekly.wasReported(noon + 20, 2), false)
  assert.equal(weekly.wasReported(noon + week - 15, 2), true)
  assert.equal(weekly.wasReported(noon + week + 60, 2), false)
  assert.equal(weekly.wasReported(noon + 2 * week, 2), true)
  assert.equal(weekly.wasReported(noon + 5 * week, 2), false)
})

test('a clearly higher score than in the week before was not reported, nor one that was forgotten', () => {
  const weekly = new ReportedWeekly(5)
  weekly.wasReported(noon, 2)
  assert.equal(weekly.wasReported(noon + week, 2.5), false)
  weekly.forget(noon + week, noon + week + 30)
  weekly.forget(noon, noon + 30)
  assert.equal(weekly.wasReported(noon + 2 * week, 2), false)
})
