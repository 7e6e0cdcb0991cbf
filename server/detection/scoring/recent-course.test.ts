// What the last hours look like: a day that does not rise, a constant reading, and a level that flaps are
// rare, where each value alone is usual.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecentCourse } from './recent-course.ts'
import { seededNormal } from './seeded-noise.ts'

const stepMinutes = 5
const perDay = 288
const calmDays = 10
const floor = 1e-6

const seasonAt = (i: number) => 20 * Math.sin((2 * Math.PI * i) / perDay)

/** The most digits of each look, then of each look at the slope, over the values after ten calm days. */
function digitsOf(valueAt: (i: number, noise: () => number) => number, length: number): number[] {
  const noise = seededNormal(3)
  const course = new RecentCourse(stepMinutes)
  const most = [0, 0, 0, 0, 0, 0, 0]
  for (let i = 0; i < calmDays * perDay + length; i++) {
    const isCalm = i < calmDays * perDay
    const value = isCalm ? 100 + seasonAt(i) + noise() : valueAt(i, noise)
    course.compare(i * stepMinutes, value, value - 100 - seasonAt(i), floor)
    for (const j of most.keys())
      if (!isCalm) most[j] = Math.max(most[j] ?? 0, [...course.digits, ...course.slopeDigits][j] ?? 0)
    course.learn(i * stepMinutes, isCalm ? 'usual' : 'rest')
  }
  return most
}

test('a calm day is not rare', () => {
  const most = digitsOf((i, noise) => 100 + seasonAt(i) + noise(), perDay)
  for (const digits of most) assert.ok(digits < 3.5, String(most))
})

test('hours that stay a little below this time of the day are rare, and change as usual', () => {
  const [hour = 0, hours = 0, restlessness = 0] = digitsOf((i, noise) => 98 + seasonAt(i) + noise(), perDay)
  assert.ok(hour > 4 && hours > 4, `${hour} ${hours}`)
  assert.ok(restlessness < 3, String(restlessness))
})

test('a constant reading is rare before it is far from the usual value of this time of the day', () => {
  const still = 100 + seasonAt(calmDays * perDay)
  const [, , restlessness = 0] = digitsOf(() => still, 30)
  assert.ok(restlessness > 4, String(restlessness))
})

test('a level that flaps within the usual range is rare', () => {
  const flapping = (i: number, noise: () => number) =>
    100 + seasonAt(i) + noise() + (i % 2 === 0 ? 2.5 : -2.5)
  const [, , restlessness = 0] = digitsOf(flapping, 60)
  assert.ok(restlessness > 4, String(restlessness))
})

test('a slow beat within the usual range is rare among means of an hour, and not among single values', () => {
  const beating = (i: number, noise: () => number) =>
    100 + seasonAt(i) + noise() + 2 * Math.sin((2 * Math.PI * i) / 24)
  const digits = digitsOf(beating, 96)
  const [single = 0, meansOfHour = 0] = [digits[4], digits[6]]
  assert.ok(meansOfHour > 4 && single < 3, `${meansOfHour} ${single}`)
})
