// What earlier days and weeks say about a bucket.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DailyPast } from './daily-past.ts'

const perDay = 288
const wave = (bucket: number) => 100 + 50 * Math.sin((2 * Math.PI * bucket) / perDay)

function learnt(days: number, valueAt: (bucket: number) => number): DailyPast {
  const past = new DailyPast(5)
  for (let bucket = 0; bucket < days * perDay; bucket++) {
    const value = valueAt(bucket)
    if (!Number.isNaN(value)) past.learn(5 * bucket, value)
  }
  return past
}

test('nothing is expected of the time of the day before the third day', () => {
  assert.ok(Number.isNaN(learnt(1, wave).at(1440).atThisTime))
  assert.ok(Math.abs(learnt(2, wave).at(2 * 1440).atThisTime - 100) < 1e-9)
})

test('an outage on one of the days does not change what is expected', () => {
  const past = learnt(6, (bucket) => (Math.floor(bucket / perDay) === 4 ? 0 : wave(bucket)))
  assert.ok(Math.abs(past.at(6 * 1440).atThisTime - 100) < 1e-9)
})

test('a day that is higher as a whole is expected to stay as much higher', () => {
  const past = learnt(6.5, (bucket) => wave(bucket) + (bucket >= 6 * perDay ? 30 : 0))
  const { atThisLevel, atThisTime, lastHour } = past.at(6.5 * 1440)
  assert.ok(Math.abs(atThisTime - 100) < 1e-9)
  assert.ok(Math.abs(atThisLevel - 130) < 1, String(atThisLevel))
  assert.ok(lastHour > 130 && lastHour < 140)
})

test('a weekday is known after a week, and its weekend does not belong to it', () => {
  const past = learnt(14, (bucket) => (Math.floor(bucket / perDay) % 7 >= 5 ? 10 : 100))
  assert.equal(past.at(14 * 1440).onThisWeekday, 100)
  assert.equal(past.at((7 + 5) * 1440).onThisWeekday, 10)
})

test('gaps are no values', () => {
  const past = learnt(4, (bucket) => (bucket % 2 === 0 ? 7 : Number.NaN))
  const { atThisLevel, atThisTime, lastHour, onThisWeekday } = past.at(4 * 1440)
  assert.deepEqual([atThisTime, lastHour, onThisWeekday], [7, 7, Number.NaN])
  assert.ok(Number.isNaN(atThisLevel) || atThisLevel === 7)
  assert.ok(Number.isNaN(past.at(4 * 1440 + 5).atThisTime))
})
