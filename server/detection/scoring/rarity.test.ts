// Rarity against distributions whose tails are known; samples come from seeds.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Rarity } from './rarity.ts'
import { noises } from './seeded-noise.ts'

function learntFrom(next: () => number, count: number): Rarity {
  const rarity = new Rarity()
  for (let i = 0; i < count; i++) rarity.learn(next())
  return rarity
}

test('digits are the decimal logarithm of how rare a deviation is, within the past and beyond it', () => {
  const rarity = learntFrom(noises.normal(1), 20_000)
  for (const [deviation, digits] of [
    [1.645, 1],
    [2.576, 2],
    [3.29, 3],
  ] as const) {
    for (const side of [1, -1]) {
      const told = rarity.digits(side * deviation)
      assert.ok(Math.abs(told - digits) < 0.3, `${told} for ${side * deviation}`)
    }
  }
  assert.ok(rarity.digits(6) > 4 && rarity.digits(6) < rarity.digits(9))
  assert.ok(rarity.digits(1e9) > 7 && rarity.digits(1e9) <= 8)
})

test('on each side one deviation in a hundred is farther than the usual reach', () => {
  const normal = learntFrom(noises.normal(4), 20_000).usualReach()
  for (const reach of [normal.below, normal.above]) assert.ok(Math.abs(reach - 2.33) < 0.2, String(reach))
  const next = noises.laplace(5)
  const oneSided = learntFrom(() => Math.max(-1, 2 * next()), 5000).usualReach()
  assert.ok(oneSided.below < 1.2 && oneSided.above > 4, JSON.stringify(oneSided))
  assert.equal(learntFrom(noises.normal(6), 29).usualReach().above, Number.POSITIVE_INFINITY)
})

test('beyond everything seen, the same deviation is less rare in a heavy tail than in a light one', () => {
  const light = learntFrom(noises.normal(2), 5000).digits(30)
  const heavy = learntFrom(noises.heavy(2), 5000).digits(30)
  assert.ok(heavy < light - 1.5, `${heavy}, ${light}`)
})

test('a large deviation is rarer on the side that seldom has one', () => {
  const next = noises.laplace(3)
  const rarity = learntFrom(() => Math.max(-1, 2 * next()), 5000)
  assert.ok(rarity.digits(-8) > rarity.digits(8) + 0.5)
})

test('huge deviations of an incident hardly change what is rare, and many of them do', () => {
  const after = (incidents: number) => {
    const next = noises.normal(4)
    const rarity = learntFrom(next, 5000)
    for (let i = 0; i < incidents; i++) {
      for (let calm = 0; calm < 20; calm++) rarity.learn(next())
      rarity.learn(1e6)
    }
    return rarity.digits(1e3)
  }
  assert.ok(after(3) > 5, String(after(3)))
  assert.ok(after(500) < after(3) - 2, `${after(500)}, ${after(3)}`)
})

test('nothing is rare before thirty deviations were learnt, nor where all are alike', () => {
  assert.equal(learntFrom(() => 0, 29).digits(1e9), 0)
  assert.equal(learntFrom(() => 0.5, 1000).digits(0.5), 0)
})

test('the past fades: what was usual long ago is rare again', () => {
  const rarity = learntFrom(noises.normal(5), 1000)
  for (let i = 0; i < 500; i++) rarity.learn(10)
  const then = rarity.digits(10)
  const next = noises.normal(6)
  for (let i = 0; i < 200_000; i++) rarity.learn(next())
  assert.ok(then < 1 && rarity.digits(10) > 3, `${then}, ${rarity.digits(10)}`)
})
