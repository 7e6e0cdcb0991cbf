// Surprise, in decimal digits of rarity, and scores that were not reported before.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unreportedScores } from './alert-once.ts'
import { rollingSteps } from './rolling.ts'
import { seededUniform } from './seeded-random.ts'
import { recordSurprisesOf, surprisesOf, twoSidedSurprisesOf } from './surprise.ts'

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

test('a low number is as unusual as a high one where both sides count', () => {
  const past = draws(1000, 2)
  for (const number of [-1, 2]) {
    assert.ok(lastOf(twoSidedSurprisesOf(Float64Array.of(...past, number))) > 2.5)
  }
  assert.ok(lastOf(twoSidedSurprisesOf(Float64Array.of(...past, 0.5))) < 0.05)
})

test('equal numbers have no surprise, and gaps are no numbers', () => {
  assert.deepEqual([...surprisesOf(new Float64Array(200).fill(7))], Array(200).fill(0))
  assert.deepEqual([...surprisesOf(new Float64Array(200).fill(Number.NaN))], Array(200).fill(0))
})

test('the surprise of a record grows with the number of values it exceeds and with the distance', () => {
  const past = draws(200, 4)
  const surpriseOf = (value: number) => lastOf(recordSurprisesOf(Float64Array.of(...past, value), 0.01))
  assert.equal(surpriseOf(0.5), 0)
  assert.equal(surpriseOf(Math.max(...past) + 0.005), 0)
  assert.ok(surpriseOf(1.1) > 2 && surpriseOf(1.1) < surpriseOf(3) && surpriseOf(-2) > 2)
})

test('among few values no record is a surprise, however far beyond the others', () => {
  const past = draws(200, 4)
  const surpriseAfter = (seen: number) =>
    lastOf(recordSurprisesOf(Float64Array.of(...past.slice(0, seen), 100), 0.01))
  assert.deepEqual([surpriseAfter(3), surpriseAfter(143)], [0, 0])
  assert.ok(surpriseAfter(144) > 2)
})

test('a fall within the range is a record of the steps where no value is a record', () => {
  const rhythm = draws(590, 7).map((noise, i) => noise + 5 * Math.abs(((i % 200) - 100) / 100))
  const fallen = Float64Array.of(...rhythm, ...Array(10).fill(0.5))
  const since = (surprises: Float64Array) => Math.max(...surprises.slice(590))
  assert.equal(since(recordSurprisesOf(fallen, 0.01)), 0)
  assert.ok(since(recordSurprisesOf(rollingSteps(fallen, 6), 0.01)) > 2)
})

test('a score is reported once, again when it is clearly higher, and again when the last report has faded', () => {
  const scores = Float64Array.of(1, 1, 1.1, 1.5, 1.5, 0, 0, 0, 0, 0, 1)
  assert.deepEqual([...unreportedScores(scores, 100)], [1, 0, 0, 1.5, 0, 0, 0, 0, 0, 0, 0])
  assert.equal(unreportedScores(scores, 3).at(-1), 1)
})
