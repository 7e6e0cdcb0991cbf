// The band compared with its formula, and what follows from it: short episodes do not move the
// band, lasting levels do.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { methodParams } from '../../../contract/detection/methods.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import type { Series } from '../scoring/series.ts'
import { highestScore, type Scores } from './method.ts'
import { robustBand } from './robust-band.ts'

const window = 32

function scoresOf(values: readonly number[]): Scores {
  const series: Series = {
    startNs: 0n,
    stepMinutes: 1,
    values: Float64Array.from(values),
    unknown: new Uint8Array(values.length),
    volumes: null,
  }
  const params = methodParams.robust_band.parse({ window_points: window, warmup_points: 16, k: 4 })
  return robustBand.score(series, params)
}

const repeat = (count: number, value: number) => Array<number>(count).fill(value)
const noiseAround = (level: number, count: number, seed: number) => {
  const next = seededNormal(seed)
  return Array.from({ length: count }, () => level + next())
}

test('the band is the median plus and minus k times 1.4826 MAD of the values before', () => {
  const scores = scoresOf([...Array.from({ length: 17 }, (_, i) => i), 100])
  assert.equal(scores.expected[17], 8)
  assert.equal(scores.upper[17], 8 + 4 * 1.4826 * 4)
  assert.equal(scores.lower[17], 8 - 4 * 1.4826 * 4)
  assert.equal(scores.score[17], 92 / (4 * 1.4826 * 4))
})

test('nothing is judged until enough values have been seen, and gaps are not values', () => {
  const gappy = Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? i : Number.NaN))
  const scores = scoresOf(gappy)
  assert.ok(Number.isNaN(scores.score[30]), 'the 16th value')
  assert.ok(Number.isFinite(scores.score[32]), 'the 17th value')
  assert.ok(Number.isFinite(scores.expected[33]), 'a gap still has a band to draw')
})

test('any change of a constant series has the highest score, and no change scores 0', () => {
  const scores = scoresOf([...repeat(20, 100), 101])
  assert.equal(scores.score[19], 0)
  assert.equal(scores.score[20], highestScore)
})

test('on a mostly flat series a value as far out as an earlier one is inside the band', () => {
  const flat = [...repeat(10, 0), 1, ...repeat(10, 0)]
  assert.equal(scoresOf([...flat, 1]).score.at(-1), 1)
  assert.equal(scoresOf([...flat, 3]).score.at(-1), 3)
})

test('an episode shorter than half a window does not change the baseline', () => {
  const before = noiseAround(100, 60, 1)
  const calm = scoresOf([...before, 100])
  const after = scoresOf([...before, ...repeat(window / 2 - 1, 500), 100])
  assert.ok(Math.abs((after.expected.at(-1) ?? 0) - (calm.expected.at(-1) ?? 0)) < 1)
  assert.ok((after.upper.at(-1) ?? 0) < 115, 'the band is not wider')
})

test('a level that lasts half a window becomes the baseline, and the old level then scores high', () => {
  const shifted = [...noiseAround(100, 60, 1), ...noiseAround(500, window / 2, 2)]
  const scores = scoresOf([...shifted, 500, 100])
  assert.ok((scores.score[75] ?? 0) > 10, 'the last value on trial still scores high')
  assert.ok((scores.score[76] ?? 9) < 1, 'the next one does not')
  assert.ok((scores.score[77] ?? 0) > 10, 'the old level does')
})

test('noise does not shrink its own band, however narrow the band is', () => {
  const values = noiseAround(0, 4000, 3)
  const series = { startNs: 0n, stepMinutes: 1, unknown: new Uint8Array(4000), volumes: null }
  const params = methodParams.robust_band.parse({ window_points: 288, k: 1 })
  const { upper, lower } = robustBand.score({ ...series, values: Float64Array.from(values) }, params)
  const widths = Array.from(upper.slice(1000), (edge, i) => (edge - (lower[1000 + i] ?? 0)) / 2)
  const mean = widths.reduce((sum, width) => sum + width, 0) / widths.length
  assert.ok(mean > 0.85 && mean < 1.15, `mean half-width ${mean} of 1 sigma`)
})

test('scores do not change when all values are shifted and scaled alike', () => {
  const values = fc.array(fc.integer({ min: -1000, max: 1000 }), { minLength: 17, maxLength: 120 })
  const exponent = fc.integer({ min: -20, max: 20 })
  fc.assert(
    fc.property(
      values,
      fc.integer({ min: -1000, max: 1000 }),
      exponent,
      fc.boolean(),
      (base, shift, power, flip) => {
        const scale = 2 ** power * (flip ? -1 : 1)
        const plain = scoresOf(base)
        const moved = scoresOf(base.map((value) => (value + shift) * scale))
        assert.deepEqual([...moved.score], [...plain.score])
        const movedBack = (edge: number) => (edge + shift) * scale
        const [low, high] = flip ? [moved.upper, moved.lower] : [moved.lower, moved.upper]
        for (const [i, edge] of plain.lower.entries()) closeTo(low[i], movedBack(edge))
        for (const [i, edge] of plain.upper.entries()) closeTo(high[i], movedBack(edge))
      },
    ),
  )
})

function closeTo(actual: number | undefined, expected: number): void {
  if (Number.isNaN(expected)) assert.ok(Number.isNaN(actual))
  else assert.ok(Math.abs((actual ?? Number.NaN) - expected) <= 1e-9 * Math.max(1, Math.abs(expected)))
}
