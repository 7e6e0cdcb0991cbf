// Surprise, in decimal digits of rarity, and scores that were not reported before.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unreportedScores } from './alert-once.ts'
import { seededUniform } from './seeded-random.ts'
import { surprisesOf } from './surprise.ts'

const draws = (count: number, seed: number) => {
  const uniform = seededUniform(seed)
  return Array.from({ length: count }, () => uniform())
}
const lastOf = (values: Float64Array) => values.at(-1) ?? Number.NaN

test('a number larger than 99 in 100 has a surprise of 2', () => {
  const past = draws(10_000, 1)
  assert.ok(Math.abs(lastOf(surprisesOf(Float64Array.of(...past, 0.99))) - 2) < 0.1)
  assert.ok(Math.abs(lastOf(surprisesOf(Float64Array.of(...past, 0.9))) - 1) < 0.05)
})

test('above every number seen before, surprise grows up to a limit', () => {
  const past = draws(1000, 1)
  const surpriseOf = (number: number) => lastOf(surprisesOf(Float64Array.of(...past, number)))
  assert.ok(surpriseOf(1.01) > 3 && surpriseOf(1.01) < surpriseOf(1.02))
  assert.ok(surpriseOf(1e300) <= 3.01 + 2)
})

test('one number in ten has a surprise above 1, whatever the unit', () => {
  const numbers = Float64Array.from(draws(5000, 3), (each) => 1e9 * each ** 8)
  const share = surprisesOf(numbers).reduce((sum, each) => sum + (each > 1 ? 1 : 0), 0) / numbers.length
  assert.ok(share > 0.08 && share < 0.12, String(share))
})

test('equal numbers have no surprise, and gaps are no numbers', () => {
  assert.deepEqual([...surprisesOf(new Float64Array(200).fill(7))], Array(200).fill(0))
  assert.deepEqual([...surprisesOf(new Float64Array(200).fill(Number.NaN))], Array(200).fill(0))
})

test('a score is reported once, again when it is clearly higher, and again when the last report has faded', () => {
  const scores = Float64Array.of(1, 1, 1.1, 1.5, 1.5, 0, 0, 0, 0, 0, 1)
  assert.deepEqual([...unreportedScores(scores, 100)], [1, 0, 0, 1.5, 0, 0, 0, 0, 0, 0, 0])
  assert.equal(unreportedScores(scores, 3).at(-1), 1)
})
