// The window compared with its definition: sorting the last numbers each time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SortedWindow } from './sorted-window.ts'

const sorted = (numbers: number[]) => [...numbers].sort((a, b) => a - b)

/** Few distinct numbers, so that ties are common. */
const pushes = fc.array(fc.integer({ min: -4, max: 4 }), { minLength: 1, maxLength: 60 })

test('it keeps the last numbers in ascending order, and their ranks agree with sorting', () => {
  fc.assert(
    fc.property(pushes, fc.integer({ min: 1, max: 20 }), (numbers, capacity) => {
      const window = new SortedWindow(capacity)
      for (const number of numbers) window.push(number)
      const expected = sorted(numbers.slice(-capacity))
      assert.deepEqual(
        expected.map((_, i) => window.rank(i)),
        expected,
      )
      assert.equal(window.size, expected.length)
      assert.ok(Number.isNaN(window.rank(expected.length)))
    }),
  )
})

test('median, median distance and nearest other number agree with their definitions', () => {
  fc.assert(
    fc.property(pushes, fc.integer({ min: 1, max: 20 }), (numbers, capacity) => {
      const window = new SortedWindow(capacity)
      for (const number of numbers) window.push(number)
      const kept = sorted(numbers.slice(-capacity))
      const median = ((kept[(kept.length - 1) >> 1] ?? 0) + (kept[kept.length >> 1] ?? 0)) / 2
      assert.equal(window.median(), median)
      const distances = sorted(kept.map((number) => Math.abs(number - median)))
      assert.equal(window.medianDistanceTo(median), distances[kept.length >> 1])
      assert.equal(window.nearestOtherDistance(median), distances.find((distance) => distance > 0) ?? 0)
    }),
  )
})

test('it is empty at first and after clearing, and can be filled again', () => {
  const window = new SortedWindow(2)
  assert.ok(Number.isNaN(window.median()))
  assert.ok(Number.isNaN(window.medianDistanceTo(0)))
  assert.equal(window.nearestOtherDistance(0), 0)
  for (const number of [1, 2, 3]) window.push(number)
  window.clear()
  assert.ok(Number.isNaN(window.median()))
  for (const number of [9, 8, 7]) window.push(number)
  assert.deepEqual([window.rank(0), window.rank(1)], [7, 8])
})
