// The seeded random numbers of the demo: equal keys give equal draws, and distributions have the right
// parameters.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { logNormalShareBelow, mix, normal, openRandom, poisson, smoothNoise } from './random.ts'

test('the same key always gives the same sequence, and another key gives another one', () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer({ min: 0 }), (seed, minute) => {
      const draws = (key: number) => Array.from({ length: 5 }, openRandom(seed, key))
      assert.deepEqual(draws(minute), draws(minute))
      assert.notDeepEqual(draws(minute), draws(minute + 1))
    }),
  )
})

test('neighbouring keys give independent first draws', () => {
  const firsts = Array.from({ length: 20_000 }, (_, minute) => openRandom(1, 2, minute)())
  const mean = average(firsts)
  const lagged = average(
    firsts.slice(1).map((value, index) => (value - mean) * ((firsts[index] ?? 0) - mean)),
  )
  assert.ok(Math.abs(mean - 0.5) < 0.01, `mean ${mean}`)
  assert.ok(Math.abs(lagged) < 0.003, `autocovariance ${lagged}`)
})

for (const mean of [0.3, 4, 29, 31, 900]) {
  test(`a Poisson count of mean ${mean} has that mean and that variance`, () => {
    const random = openRandom(3, mean)
    const counts = Array.from({ length: 20_000 }, () => poisson(random, mean))
    const found = average(counts)
    const variance = average(counts.map((count) => (count - found) ** 2))
    assert.ok(Math.abs(found / mean - 1) < 0.03, `mean ${found}`)
    assert.ok(Math.abs(variance / mean - 1) < 0.06, `variance ${variance}`)
  })
}

test('a Poisson count of no events is zero', () => {
  assert.equal(poisson(openRandom(1), 0), 0)
  assert.equal(poisson(openRandom(1), -1), 0)
})

test('the share below a value agrees with drawn values', () => {
  const random = openRandom(5)
  const draws = Array.from({ length: 50_000 }, () => 0.2 * Math.exp(0.4 * normal(random)))
  for (const value of [0.1, 0.2, 0.3, 0.5]) {
    const drawn = draws.filter((draw) => draw < value).length / draws.length
    assert.ok(Math.abs(drawn - logNormalShareBelow(value, 0.2, 0.4)) < 0.01)
  }
  assert.equal(logNormalShareBelow(0, 0.2, 0.4), 0)
  assert.equal(logNormalShareBelow(1e9, 0.2, 0.4), 1)
})

test('smooth noise stays within its bounds and never jumps', () => {
  for (let minute = 0; minute < 5_000; minute++) {
    const step = smoothNoise(minute + 1, 20, 9) - smoothNoise(minute, 20, 9)
    assert.ok(Math.abs(smoothNoise(minute, 20, 9)) <= 1)
    assert.ok(Math.abs(step) < 0.2, `a step of ${step} at ${minute}`)
  }
})

test('mixing depends on the order of its parts', () => {
  assert.notEqual(mix(1, 2), mix(2, 1))
})

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
