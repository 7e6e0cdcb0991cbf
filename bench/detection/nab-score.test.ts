// The rules of NAB on a file small enough to score by hand.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seriesOf } from './judging.ts'
import type { NabFile, NabProfile } from './nab-corpus.ts'
import { fixedScore, heldOutScore, oracleScore, rateRows } from './nab-score.ts'

const profile: NabProfile = { name: 'standard', tpWeight: 1, fpWeight: 0.11, fnWeight: 1 }
const length = 100

function fileOf(path: string, windows: [number, number][]): NabFile {
  const series = seriesOf(new Float64Array(length), 5)
  const bucketOfRow = Int32Array.from({ length }, (_, i) => i)
  return { path, group: path.slice(0, 1), length, windows, probation: 15, series, bucketOfRow }
}

const file = fileOf('a/one', [[50, 59]])
const firing = (...rows: number[]) => Float64Array.from({ length }, (_, i) => (rows.includes(i) ? 1 : 0))
const finalOf = (...rows: number[]) =>
  fixedScore(rateRows([file], new Map([['a/one', firing(...rows)]])), profile, 1)
const sigmoid = (y: number) => 2 / (1 + Math.exp(5 * y)) - 1

test('no detection scores 0, and one on the first row of the window scores 100', () => {
  assert.equal(finalOf(), 0)
  assert.equal(finalOf(50), 100)
})

test('a later hit earns less, and only the first of a window counts', () => {
  const late = (100 * (1 + sigmoid(-0.5) / sigmoid(-1))) / 2
  assert.ok(Math.abs(finalOf(55) - late) < 1e-9)
  assert.equal(finalOf(55, 57, 59), finalOf(55))
})

test('a false alarm costs its weight, less just behind a window, and nothing on probation', () => {
  assert.ok(Math.abs(finalOf(20) - (100 * -0.11) / 2) < 1e-9)
  assert.ok(finalOf(61) > finalOf(20) && finalOf(61) < 0)
  assert.ok(Math.abs(finalOf(99) - (100 * -0.11) / 2) < 1e-9)
  assert.equal(finalOf(3), 0)
})

test('the oracle finds the best threshold, and it may be never to fire', () => {
  const scores = Float64Array.from({ length }, (_, i) => (i === 50 ? 0.9 : i === 20 ? 0.5 : 0))
  const best = oracleScore(rateRows([file], new Map([['a/one', scores]])), profile)
  assert.deepEqual(best, { final: 100, threshold: 0.9 })
  assert.equal(oracleScore(rateRows([file], new Map([['a/one', firing(20)]])), profile).final, 0)
})

test('a threshold held out comes from the other groups alone', () => {
  const other = fileOf('b/two', [[50, 59]])
  const ramp = Float64Array.from({ length }, (_, i) => (i === 50 ? 0.4 : i === 20 ? 0.3 : 0))
  const scores = new Map([
    ['a/one', ramp],
    ['b/two', ramp.map((score) => score * 2)],
  ])
  // At 0.8, the best of b, a never fires; at 0.4, the best of a, b fires falsely as well.
  const expected = (100 * (0 + 2 - 0.11)) / 4
  const final = heldOutScore(rateRows([file, other], scores), profile)
  assert.ok(Math.abs(final - expected) < 1e-9, `${final} for ${expected}`)
})
