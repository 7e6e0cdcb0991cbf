// The forest against the definition: its trees stay what they would be if drawn of their sample anew, and what lies apart
// scores higher than what lies among others.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CutForest, type ForestShape } from './cut-forest.ts'
import { seededNormal } from './seeded-noise.ts'

const shape: ForestShape = { trees: 20, samplePoints: 64, shinglePoints: 2, historyPoints: 200 }

/** Scores of all values in order, each learnt after it was scored. */
function scoresOf(values: Float64Array, more: Partial<ForestShape> = {}): number[] {
  const forest = new CutForest(values, { ...shape, ...more })
  const first = (more.shinglePoints ?? shape.shinglePoints) - 1
  return Array.from(values.subarray(first), (_, i) => {
    const score = forest.scoreOf(first + i)
    forest.learn(first + i)
    return score
  })
}

const mean = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length

test('a point far from all others scores several times what those in the crowd do', () => {
  const values = Float64Array.from({ length: 600 }, seededNormal(3)).fill(25, 599)
  const scores = scoresOf(values)
  const crowd = mean(scores.slice(200, -1))
  assert.ok((scores.at(-1) ?? 0) > 3 * crowd, `${scores.at(-1)} against ${crowd}`)
  assert.ok((scores.at(-1) ?? 0) > Math.max(...scores.slice(200, -1)))
})

test('an order of values that never was stands out, though each value is usual', () => {
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

test('what a tree holds is forgotten when it leaves: after a whole history of others, nothing remains of the first', () => {
  const later = Float64Array.from({ length: 400 }, seededNormal(4))
  const lastScore = (first: number) =>
    scoresOf(Float64Array.from([...Array(8).fill(first), ...later]), {
      shinglePoints: 1,
      samplePoints: 8,
      historyPoints: 8,
    }).at(-1) ?? 0
  // Cuts are drawn by lot from the boxes, so the trees differ; boxes that still held 1e6 would hide every difference.
  assert.ok(Math.abs(lastScore(1e6) / lastScore(0) - 1) < 0.5)
})
