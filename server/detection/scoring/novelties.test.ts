// Records and spreads, value by value.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Novelties } from './novelties.ts'
import { seededUniform } from './seeded-random.ts'

const [extreme, smooth, step, spread] = [0, 1, 3, 5] as const

/** The digits of one look after each value. */
function digitsOf(values: readonly number[], look: number): number[] {
  const novelties = new Novelties()
  return values.map((value) => {
    novelties.compare(value)
    novelties.learn(true)
    return novelties.digits[look] ?? Number.NaN
  })
}

const draws = (count: number, seed: number) => {
  const uniform = seededUniform(seed)
  return Array.from({ length: count }, () => uniform())
}
const lastOf = (values: readonly number[]) => values.at(-1) ?? Number.NaN

test('the rarity of a new extreme grows with the number of values it exceeds and with the distance', () => {
  const past = draws(200, 4)
  const digits = (value: number) => lastOf(digitsOf([...past, value], extreme))
  assert.equal(digits(0.5), 0)
  assert.equal(digits(Math.max(...past) + 0.005), 0)
  assert.ok(digits(1.1) > 2 && digits(1.1) < digits(3) && digits(-2) > 2)
})

test('among few values no extreme is rare, however far beyond the others', () => {
  const past = draws(200, 4)
  const digitsAfter = (seen: number) => lastOf(digitsOf([...past.slice(0, seen), 100], extreme))
  assert.deepEqual([digitsAfter(3), digitsAfter(143)], [0, 0])
  assert.ok(digitsAfter(144) > 2)
})

test('a fall within the range is an extreme step where no value is extreme', () => {
  const rhythm = draws(590, 7).map((noise, i) => noise + 5 * Math.abs(((i % 200) - 100) / 100))
  const fallen = [...rhythm, ...Array(10).fill(0.5)]
  const since = (look: number) => Math.max(...digitsOf(fallen, look).slice(590))
  assert.deepEqual([since(extreme), since(smooth)], [0, 0])
  assert.ok(since(step) > 2)
})

test('values that vary much more than ever are rare, and so are values that stopped varying', () => {
  const noise = draws(1500, 8)
  const calm = lastOf(digitsOf([...noise, ...draws(36, 9)], spread))
  const wild = lastOf(digitsOf([...noise, ...draws(36, 9).map((each) => 6 * each)], spread))
  const still = lastOf(digitsOf([...noise, ...Array(36).fill(0.5)], spread))
  assert.ok(calm < 2 && wild > 3 && still > 3, `${calm}, ${wild}, ${still}`)
})
