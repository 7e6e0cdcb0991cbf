// The fitted tail compared with distributions whose quantiles are known; samples come from seeds.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noises } from '../scoring/seeded-noise.ts'
import { seededUniform } from '../scoring/seeded-random.ts'
import { plausibleTails, returnLevel } from './pareto-tail.ts'
import { TailCalibration, thresholdFor } from './tail-calibration.ts'

const policy = {
  violateN: 1,
  windowM: 1,
  clearN: 3,
  budgetPerBucket: 1e-4,
  leastThreshold: 1,
  mostThreshold: Number.POSITIVE_INFINITY,
}

/** The threshold after a history in which every bucket had a score and no episode was opened. */
function thresholdAfter(scores: Float64Array, more: Partial<typeof policy> = {}): number {
  const history = { scores, isOpening: new Uint8Array(scores.length), buckets: scores.length }
  return thresholdFor(history, { ...policy, ...more })
}

/** Draws excesses from a generalised Pareto distribution, by inversion. */
function paretoDraws(shape: number, scale: number, count: number, seed: number): number[] {
  const uniform = seededUniform(seed)
  return Array.from({ length: count }, () => {
    const survival = 1 - uniform()
    return shape === 0 ? -scale * Math.log(survival) : (scale / shape) * (survival ** -shape - 1)
  })
}

const exponentialScores = (count: number, seed: number) => Float64Array.from(paretoDraws(0, 1, count, seed))

const exact = (sizes: readonly number[]) => sizes.map((size) => ({ size, below: size, isCensored: false }))

test('the plausible tails are close to the distribution that the excesses were drawn from', () => {
  for (const shape of [0, 0.2, 0.4]) {
    const tails = plausibleTails(exact(paretoDraws(shape, 3, 5000, 11)))
    const mean = (of: 'shape' | 'scale') => tails.reduce((sum, tail) => sum + tail.weight * tail[of], 0)
    assert.ok(Math.abs(mean('shape') - shape) < 0.06, `shape ${mean('shape')} for ${shape}`)
    assert.ok(Math.abs(mean('scale') - 3) < 0.25, `scale ${mean('scale')} for 3`)
  }
})

test('for a single tail the return level is its quantile, and rarer levels are larger', () => {
  const singleTail = (shape: number, scale: number) => [{ shape, scale, weight: 1 }]
  assert.equal(returnLevel(0.5, singleTail(0.3, 1)), 0)
  assert.equal(returnLevel(1, singleTail(0.3, 1)), 0)
  assert.ok(Math.abs(returnLevel(Math.E, singleTail(0, 2)) - 2) < 1e-6)
  assert.ok(Math.abs(returnLevel(16, singleTail(0.5, 1)) - 6) < 1e-6)
})

test('the fewer the peaks, the larger the return level', () => {
  const excess = (count: number) => {
    const draws = Array.from({ length: count }, (_, i) => -Math.log((i + 0.5) / count))
    return returnLevel(1000, plausibleTails(exact(draws)))
  }
  const few = excess(5)
  const some = excess(40)
  const many = excess(4000)
  assert.ok(few > 1.5 * some && some > 1.1 * many && many < 1.1 * Math.log(1000), `${few}, ${some}, ${many}`)
})

test('a peak beyond five medians counts as censored there, and a censored peak raises the return level', () => {
  const usual = Array.from({ length: 40 }, (_, i) => -Math.log((i + 0.5) / 40))
  const rare = (size: number) => returnLevel(1000, plausibleTails(exact([...usual, size])))
  assert.equal(rare(1e9), rare(10))
  const censored = usual.map((size, i) => ({ size, below: size, isCensored: i < 4 }))
  const uncensored = returnLevel(1000, plausibleTails(exact(usual)))
  assert.ok(returnLevel(1000, plausibleTails(censored)) > 1.05 * uncensored)
})

/** Distributions of a score, with the probability to exceed a threshold. */
const distributions = {
  exponential: {
    draws: seededUniform,
    score: (uniform: number) => -Math.log(1 - uniform),
    chance: (threshold: number) => Math.exp(-threshold),
  },
  'Pareto of shape 0.2': {
    draws: seededUniform,
    score: (uniform: number) => ((1 - uniform) ** -0.2 - 1) / 0.2,
    chance: (threshold: number) => (1 + 0.2 * threshold) ** -5,
  },
  'Poisson of mean 0.4': { draws: seededUniform, score: poissonCount, chance: poissonBeyond },
  'Student of 3 degrees': {
    draws: noises.heavy,
    score: Math.abs,
    chance: (threshold: number) => {
      const ratio = threshold / Math.sqrt(3)
      return 1 - (2 / Math.PI) * (Math.atan(ratio) + ratio / (1 + ratio * ratio))
    },
  },
}

/** Counts of mean 0.4 by inversion. */
function poissonCount(uniform: number): number {
  let count = 0
  for (let below = Math.exp(-0.4), term = below; below < uniform; below += term) term *= 0.4 / ++count
  return count
}

function poissonBeyond(threshold: number): number {
  let chance = 1
  for (let count = 0, term = Math.exp(-0.4); count <= threshold; term *= 0.4 / ++count) chance -= term
  return chance
}

for (const [name, { draws, score, chance }] of Object.entries(distributions)) {
  test(`after a short or long history with distribution ${name}, later alarms keep to the budget`, () => {
    for (const [length, repeats] of [
      [100, 40],
      [500, 60],
      [2000, 60],
    ] as const) {
      for (const budgetPerBucket of [7 / 2016, 1 / 2016]) {
        let rate = 0
        for (let seed = 1; seed <= repeats; seed++) {
          const next = draws(1000 * length + seed)
          // In a unit so small that the least threshold does not matter.
          const scores = Float64Array.from({ length }, () => 100 * score(next()))
          rate += chance(thresholdAfter(scores, { budgetPerBucket }) / 100) / repeats
        }
        const ratio = rate / budgetPerBucket
        assert.ok(ratio < 1.5, `${ratio.toFixed(2)} times ${budgetPerBucket} after ${length} scores`)
      }
    }
  })
}

test('the threshold is near the true quantile where the history is long', () => {
  const thresholds = Array.from({ length: 10 }, (_, seed) =>
    thresholdAfter(exponentialScores(20_000, seed), { budgetPerBucket: 1e-3 }),
  )
  const mean = thresholds.reduce((sum, each) => sum + each, 0) / thresholds.length
  const truth = Math.log(1e3)
  assert.ok(Math.abs(mean - truth) < 0.1 * truth, `mean threshold ${mean} for ${truth}`)
})

test('with few scores the band stays that of the method', () => {
  assert.equal(thresholdAfter(exponentialScores(15, 1)), 1)
  assert.ok(thresholdAfter(exponentialScores(64, 1)) > 1)
})

test('a score that occurs again and again is a step: the threshold is above the next step, not just below it', () => {
  const counts = Float64Array.from({ length: 400 }, (_, i) => (i % 8 === 0 ? 1 : 0))
  const threshold = thresholdAfter(counts, { clearN: 1, budgetPerBucket: 1 / 2016 })
  assert.ok(threshold >= 2 && threshold < 4, `${threshold}, where only 0 and 1 were seen`)
})

test('a frequent side with a short tail does not hide a rare side with a long one', () => {
  const both = new TailCalibration({ ...policy, budgetPerBucket: 1e-3 }, true)
  const uniform = seededUniform(5)
  for (let i = 0; i < 2000; i++) {
    if (i % 10 === 0) both.learn(-0.15 * Math.log(1 - uniform()), false, 'above')
    else both.learn(0.9 + 0.05 * uniform(), false, 'below')
  }
  // One in a hundred on the rare side is one in a thousand of all: 0.15 times the logarithm of a hundred.
  const truth = 0.15 * Math.log(100)
  assert.equal(both.below, both.threshold)
  assert.equal(both.threshold, 1, 'both in one')
  const rare = new TailCalibration({ ...policy, budgetPerBucket: 1e-3, leastThreshold: 0.1 }, true)
  for (let i = 0; i < 2000; i++) {
    if (i % 10 === 0) rare.learn(-Math.log(1 - uniform()), false, 'above')
    else rare.learn(0.9 + 0.05 * uniform(), false, 'below')
  }
  assert.ok(rare.above > 0.7 * (truth / 0.15) && rare.above < 1.6 * (truth / 0.15), `${rare.above}`)
})

test('a short history of long bursts is calibrated from more of its scores', () => {
  const single = exponentialScores(120, 4)
  const bursts = Float64Array.from({ length: 1440 }, (_, i) => single[Math.floor(i / 12)] ?? 0)
  const calibrated = thresholdAfter(bursts)
  const truth = Math.log(1e4 / 12)
  assert.ok(calibrated > 0.7 * truth && calibrated < 2.5 * truth, `${calibrated} for ${truth}`)
})

test('with a history without a tail the band stays that of the method', () => {
  assert.equal(thresholdAfter(new Float64Array(1000)), 1)
  assert.equal(thresholdAfter(new Float64Array(1000).fill(5)), 1)
})

test('scores inside the band narrow it only as far as is allowed', () => {
  const low = exponentialScores(2000, 1).map((score) => score / 100)
  assert.equal(thresholdAfter(low), 1)
  assert.equal(thresholdAfter(low, { leastThreshold: 0.5 }), 0.5)
  const middling = exponentialScores(20_000, 1).map((score) => score / 10)
  const between = thresholdAfter(middling, { leastThreshold: 0.5, budgetPerBucket: 1e-3 })
  assert.ok(between > 0.5 && between < 1, `${between}`)
})

test('the budget counts time, not scores: where nine of ten buckets are empty, more of the others may alarm', () => {
  const full = new TailCalibration({ ...policy, budgetPerBucket: 1e-3 })
  const sparse = new TailCalibration({ ...policy, budgetPerBucket: 1e-3 })
  for (const score of exponentialScores(2000, 1)) {
    full.learn(score)
    sparse.learn(score)
    for (let i = 0; i < 9; i++) sparse.addEmptyBucket()
  }
  const apart = full.threshold - sparse.threshold
  assert.ok(apart > 1.5 && apart < 5, `${apart}, where the true quantiles are ${Math.log(10)} apart`)
})

test('one very large spike raises the threshold by half at most', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const scores = exponentialScores(2000, seed)
    const before = thresholdAfter(scores)
    scores[1000] = 1e9
    const after = thresholdAfter(scores)
    assert.ok(after < 1.5 * before, `${after} after ${before}, seed ${seed}`)
  }
})

test('a burst of scores counts as one alarm', () => {
  const single = exponentialScores(1000, 3)
  const bursts = Float64Array.from({ length: 4000 }, (_, i) => single[i >> 2] ?? 0)
  const spread = thresholdAfter(single)
  const clustered = thresholdAfter(bursts, { budgetPerBucket: policy.budgetPerBucket / 4 })
  assert.ok(Math.abs(clustered - spread) < 0.3 * spread, `${clustered} for ${spread}`)
})

test('a single high score does not change the threshold when two of three are needed to alarm', () => {
  const lonely = new TailCalibration({ ...policy, violateN: 2, windowM: 3 })
  const paired = new TailCalibration({ ...policy, violateN: 1, windowM: 3 })
  const uniform = seededUniform(2)
  for (let i = 0; i < 4000; i++) {
    const score = i % 20 === 0 ? 5 + uniform() : uniform() / 2
    lonely.learn(score)
    paired.learn(score)
  }
  assert.equal(lonely.threshold, 1)
  assert.ok(paired.threshold > 5)
})

test('where most scores are 0, the tail is that of the others', () => {
  const uniform = seededUniform(8)
  const next = noises.normal(8)
  const length = 20_000
  const scores = Float64Array.from({ length }, () => (uniform() < 0.01 ? 5 + Math.abs(next()) : 0))
  const threshold = thresholdAfter(scores, { budgetPerBucket: 0.001 })
  // One in ten of the scores above 0: 5 plus 1.645 deviations.
  assert.ok(Math.abs(threshold - 6.645) < 0.2, `${threshold}`)
})

test('after more alarms than the budget allows, the threshold is higher', () => {
  const thrifty = new TailCalibration({ ...policy, budgetPerBucket: 1e-3 })
  const lavish = new TailCalibration({ ...policy, budgetPerBucket: 1e-3 })
  for (const [i, score] of exponentialScores(2000, 1).entries()) {
    thrifty.learn(score)
    // Low scores, so that the tail itself is the same.
    lavish.learn(score, i % 20 === 0 && score < 1)
  }
  const apart = lavish.threshold - thrifty.threshold
  assert.ok(apart > Math.log(20) && apart < 20, `${apart} after sixty alarms instead of two`)
})

test('where the distribution of scores is known, the past moves the edge out a little, and more only when the budget is exceeded', () => {
  const length = 4000
  const known = { ...policy, budgetPerBucket: 1e-3, mostThreshold: 1.25 }
  const calm = new TailCalibration(known)
  const spending = new TailCalibration(known)
  const unknown = new TailCalibration({ ...known, mostThreshold: Number.POSITIVE_INFINITY })
  for (const [i, score] of exponentialScores(length, 6).entries()) {
    calm.learn(score)
    unknown.learn(score)
    // Ten times as many alarms as are allowed.
    spending.learn(score, i % 100 === 0)
  }
  assert.ok(unknown.threshold > 5, `${unknown.threshold}`)
  assert.ok(Math.abs(calm.threshold - 1.25) < 1e-9, `${calm.threshold}`)
  assert.ok(
    spending.threshold > 1.6 && spending.threshold < 1.8,
    `${spending.threshold} for half a score more`,
  )
})

test('until the budget allows one alarm, the past may move the edge further out than afterwards', () => {
  const known = { ...policy, budgetPerBucket: 1e-3, mostThreshold: 1.25 }
  const young = new TailCalibration(known)
  for (const score of exponentialScores(100, 6)) young.learn(score)
  assert.ok(
    young.threshold > 1.6 && young.threshold < 1.85,
    `${young.threshold} after a tenth of the time for one`,
  )
})

test('an episode keeps the edge it began with, and only later episodes get an edge that counts it', () => {
  const tail = new TailCalibration({ ...policy, budgetPerBucket: 1e-3 }, true)
  for (const score of exponentialScores(1000, 4)) tail.learn(score, false, 'above')
  const before = [tail.threshold, tail.above]
  tail.learn(30, true, 'above')
  assert.deepEqual([tail.threshold, tail.above], before)
  tail.learn(0, false, 'above')
  assert.ok(tail.above > (before[1] ?? 0), `${tail.above} after ${before[1]}`)
})

test('where openings follow each other for long, each counts against the budget at once, and the tail is fitted to them later', () => {
  const [calm, restless] = [new TailCalibration(policy), new TailCalibration(policy)]
  const learn = (score: number, opens = false) => {
    for (const each of [calm, restless]) each.learn(score, opens)
  }
  for (const score of exponentialScores(1000, 5)) learn(score)
  let before = 0
  for (let openings = 0; openings < 60; openings++) {
    before = calm.threshold
    learn(9, true)
    for (let i = 0; i < 3; i++) learn(0)
  }
  assert.ok(calm.threshold > before, `${calm.threshold} after ${before}`)
  for (const score of [20, 0, 0, 0, 20]) {
    calm.learn(0)
    restless.learn(score)
  }
  before = calm.threshold
  learn(9, true)
  learn(0)
  assert.equal(restless.threshold, calm.threshold, 'the newest scores are not in the tail')
  assert.ok(calm.threshold > before, `${calm.threshold} after ${before}`)
  for (let i = 0; i < 40; i++) learn(0)
  assert.notEqual(restless.threshold, calm.threshold)
})
