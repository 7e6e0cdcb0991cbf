// Compares the forest with its definition: a tree that was updated many times scores like one that was newly
// drawn from the same sample, and a point that lies apart scores higher than one among others.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type ForestShape, forestScores } from './cut-forest.ts'
import { denseValuesOf } from './dense-values.ts'
import { seededNormal } from './seeded-noise.ts'

const shape: ForestShape = { trees: 20, samplePoints: 64, shinglePoints: 2, historyPoints: 200 }

/** Scores of all values that end a point. */
function scoresOf(values: Float64Array, more: Partial<ForestShape> = {}): number[] {
  const scores = forestScores(denseValuesOf(values), { ...shape, ...more })
  return [...scores.subarray((more.shinglePoints ?? shape.shinglePoints) - 1)]
}

const mean = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length

test('a point far from all others scores several times as high as the points that lie together', () => {
  const values = Float64Array.from({ length: 600 }, seededNormal(3)).fill(25, 599)
  const scores = scoresOf(values)
  const crowd = mean(scores.slice(200, -1))
  assert.ok((scores.at(-1) ?? 0) > 3 * crowd, `${scores.at(-1)} against ${crowd}`)
  assert.ok((scores.at(-1) ?? 0) > Math.max(...scores.slice(200, -1)))
})

test('a new order of values scores high, though each value is usual', () => {
  const values = Float64Array.from({ length: 800 }, (_, i) => i % 2)
  const noise = seededNormal(5)
  for (let i = 0; i < values.length; i++) values[i] = (values[i] ?? 0) + noise() / 50
  values[790] = values[789] ?? 0
  const scores = scoresOf(values)
  const [odd, usual] = [scores[789] ?? 0, mean(scores.slice(300, 780))]
  assert.ok(odd > 2 * usual, `${odd} against ${usual}`)
})

test('a new level is odd at first and usual once the old points have faded', () => {
  const noise = seededNormal(8)
  const values = Float64Array.from({ length: 3000 }, (_, i) => (i < 1500 ? 0 : 40) + noise())
  const scores = scoresOf(values)
  const [before, at, after] = [
    mean(scores.slice(1000, 1490)),
    scores[1500] ?? 0,
    mean(scores.slice(2700)),
  ] as const
  assert.ok(at > 3 * before, `${at} at the step, ${before} before`)
  assert.ok(after < 1.2 * before, `${after} long after, ${before} before`)
})

test('scores are finite and not negative, whatever the values', () => {
  const value = fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: -3, max: 3 }) },
    fc.constantFrom(1e300, -1e300, 1e-300, Number.MIN_VALUE, -0),
    fc.double({ min: -1e300, max: 1e300, noNaN: true }),
  )
  fc.assert(
    fc.property(
      fc.array(value, { minLength: 3, maxLength: 200 }),
      fc.integer({ min: 1, max: 3 }),
      (list, width) => {
        const more = { shinglePoints: width, samplePoints: 8, historyPoints: 8, trees: 3 }
        for (const score of scoresOf(Float64Array.from(list), more))
          assert.ok(score >= 0 && score < 100, `${score}`)
      },
    ),
  )
})

test('a tree whose points were all replaced many times scores like one that was newly drawn from its sample', () => {
  const both = { shinglePoints: 2, samplePoints: 16, historyPoints: 16, trees: 10 }
  const meanOfProbe = (before: number) => {
    const each = Array.from({ length: 80 }, (_, seed) => {
      const values = Float64Array.from({ length: before + 1 }, seededNormal(1000 + seed)).fill(2.5, before)
      return scoresOf(values, both).at(-1) ?? 0
    })
    return mean(each)
  }
  const [drawn, kept] = [meanOfProbe(17), meanOfProbe(300)]
  assert.ok(Math.abs(kept / drawn - 1) < 0.06, `${kept} for ${drawn}`)
})

test('with two points in the tree the score is the expectation that can be calculated by hand', () => {
  // With two points, trees differ only in where their one cut is, and that does not change the score here.
  const both = { shinglePoints: 1, samplePoints: 8, historyPoints: 8, trees: 3 }
  const third = (value: number) => scoresOf(Float64Array.of(0, 10, value), both)[2] ?? 0
  const seen = (1 - 1 / 4) / (1 + 1)
  assert.ok(Math.abs(third(0) - seen * Math.log2(3)) < 1e-12)
  // The value lies 10 beyond a box of width 10: half of the cuts fall between them.
  assert.ok(Math.abs(third(20) - (0.5 + 0.5 / 2) * Math.log2(3)) < 1e-12)
  assert.ok(Math.abs(third(5) - 0.5 * Math.log2(3)) < 1e-12)
})

test('a gap interrupts a point, and new points begin after it', () => {
  const values = Float64Array.from({ length: 60 }, seededNormal(6)).fill(Number.NaN, 30, 40)
  const scores = forestScores(denseValuesOf(values), { ...shape, shinglePoints: 4 })
  const cut = [...scores].flatMap((score, i) => (Number.isNaN(score) ? [i] : []))
  assert.deepEqual(cut, [0, 1, 2, 30, 31, 32])
})
