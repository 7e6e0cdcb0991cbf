// The fitted tail against laws whose quantiles are known, drawn from seeds.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededUniform } from './repeatable-chance.ts'
import { excessPassedOnceIn, fitPareto, TailCalibration, thresholdFor } from './tail-calibration.ts'

const policy = { violateN: 1, windowM: 1, clearN: 3, budgetPerBucket: 1e-4 }

/** Excesses of a generalised Pareto law by inversion. */
function paretoDraws(shape: number, scale: number, count: number, seed: number): number[] {
  const uniform = seededUniform(seed)
  return Array.from({ length: count }, () => {
    const survival = 1 - uniform()
    return shape === 0 ? -scale * Math.log(survival) : (scale / shape) * (survival ** -shape - 1)
  })
}

const exponentialScores = (count: number, seed: number) => Float64Array.from(paretoDraws(0, 1, count, seed))

test('the fit finds the law that the excesses were drawn from', () => {
  for (const shape of [0, 0.2, 0.4]) {
    const tail = fitPareto(paretoDraws(shape, 3, 5000, 11))
    assert.ok(Math.abs(tail.shape - shape) < 0.06, `shape ${tail.shape} for ${shape}`)
    assert.ok(Math.abs(tail.scale - 3) < 0.25, `scale ${tail.scale} for 3`)
  }
})

test('equal excesses, the most bounded tail there is, are fitted as an exponential one', () => {
  assert.deepEqual(fitPareto([2, 2, 2, 2]), { shape: 0, scale: 2 })
})

test('the rarer the excess, the larger', () => {
  assert.equal(excessPassedOnceIn(0.5, { shape: 0.3, scale: 1 }), 0)
  assert.equal(excessPassedOnceIn(1, { shape: 0.3, scale: 1 }), 0)
  assert.equal(excessPassedOnceIn(Math.E, { shape: 0, scale: 2 }), 2)
  assert.equal(excessPassedOnceIn(16, { shape: 0.5, scale: 1 }), 6)
})

test('the threshold is near the true quantile far beyond what was seen', () => {
  const thresholds = Array.from({ length: 20 }, (_, seed) =>
    thresholdFor(exponentialScores(2000, seed), policy),
  )
  const mean = thresholds.reduce((sum, each) => sum + each, 0) / thresholds.length
  const truth = Math.log(1e4)
  assert.ok(Math.abs(mean - truth) < 0.15 * truth, `mean threshold ${mean} for ${truth}`)
})

test('a short history leaves the band to the method', () => {
  assert.equal(thresholdFor(exponentialScores(159, 1), policy), 1)
  assert.ok(thresholdFor(exponentialScores(160, 1), policy) > 1)
})

test('a short history of long bursts is calibrated from a thicker tail', () => {
  const single = exponentialScores(120, 4)
  const bursts = Float64Array.from({ length: 1440 }, (_, i) => single[Math.floor(i / 12)] ?? 0)
  const calibrated = thresholdFor(bursts, policy)
  const truth = Math.log(1e4 / 12)
  assert.ok(calibrated > 0.7 * truth && calibrated < 1.5 * truth, `${calibrated} for ${truth}`)
})

test('a history without a tail leaves the band to the method', () => {
  assert.equal(thresholdFor(new Float64Array(1000), policy), 1)
  assert.equal(thresholdFor(new Float64Array(1000).fill(5), policy), 1)
})

test('scores inside the band never narrow it', () => {
  const low = exponentialScores(2000, 1).map((score) => score / 100)
  assert.equal(thresholdFor(low, policy), 1)
})

test('one giant spike raises the threshold by half at most', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const scores = exponentialScores(2000, seed)
    const before = thresholdFor(scores, policy)
    scores[1000] = 1e9
    const after = thresholdFor(scores, policy)
    assert.ok(after < 1.5 * before, `${after} after ${before}, seed ${seed}`)
  }
})

test('scores that come in bursts count as one alarm each', () => {
  const single = exponentialScores(1000, 3)
  const bursts = Float64Array.from({ length: 4000 }, (_, i) => single[i >> 2] ?? 0)
  const spread = thresholdFor(single, policy)
  const clustered = thresholdFor(bursts, { ...policy, budgetPerBucket: policy.budgetPerBucket / 4 })
  assert.ok(Math.abs(clustered - spread) < 0.2 * spread, `${clustered} for ${spread}`)
})

test('a lone high score teaches nothing when two of three are needed to alarm', () => {
  const lonely = new TailCalibration({ ...policy, violateN: 2, windowM: 3 }, 4000)
  const paired = new TailCalibration({ ...policy, violateN: 1, windowM: 3 }, 4000)
  const uniform = seededUniform(2)
  for (let i = 0; i < 4000; i++) {
    const score = i % 20 === 0 ? 5 + uniform() : uniform() / 2
    lonely.learn(score)
    paired.learn(score)
  }
  assert.equal(lonely.threshold, 1)
  assert.ok(paired.threshold > 5)
})
