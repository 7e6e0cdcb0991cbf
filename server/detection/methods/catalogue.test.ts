// One contract suite for every method: scores must be causal and repeatable, the same in many pieces as in
// one, and difficult inputs that occur in real telemetry must not break them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type MethodKey,
  type MethodParams,
  methodKeys,
  methodParams,
} from '../../../contract/detection/methods.ts'
import type { Comparison } from '../scoring/comparison.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import { bucketStartNs, type Series } from '../scoring/series.ts'
import { methods, scoreSeries, startScorer } from './catalogue.ts'
import { copyState } from './copy-state.ts'
import { highestScore, type Scores } from './method.ts'

/** Parameters that let a method judge early, so that short inputs get past its warm-up. */
const quick: { [K in MethodKey]: MethodParams<K> } = {
  threshold: methodParams.threshold.parse({ lower: -3, upper: 3 }),
  robust_band: methodParams.robust_band.parse({ window_points: 16, warmup_points: 16 }),
  seasonal_band: methodParams.seasonal_band.parse({ warmup_points: 16, timezone: 'Europe/Berlin' }),
  record_range: methodParams.record_range.parse({ warmup_points: 16, decay_days: 1 }),
  shape_discord: methodParams.shape_discord.parse({ warmup_points: 16, lengths: [4, 9] }),
  spectral_residual: methodParams.spectral_residual.parse({ warmup_points: 16, window_points: 64 }),
  sub_pca: methodParams.sub_pca.parse({ warmup_points: 16, length: 4 }),
  level_shift: methodParams.level_shift.parse({ warmup_points: 16, window_points: 32 }),
  absence: methodParams.absence.parse({ flatline_points: 3 }),
  rate_test: methodParams.rate_test.parse({ warmup_points: 16 }),
  rcf: methodParams.rcf.parse({ warmup_points: 16, shingle_points: 2, trees: 10, sample_points: 64 }),
  peer_outlier: methodParams.peer_outlier.parse({ warmup_points: 16, window_points: 16 }),
  auto: methodParams.auto.parse({ warmup_points: 16 }),
}

const seriesOf = (values: readonly number[]): Series => ({
  startNs: 1_800_000_000_000_000_000n,
  stepMinutes: 1,
  values: Float64Array.from(values),
  unknown: new Uint8Array(values.length),
  volumes: null,
})

/** Five hosts whose values are near zero, as those of the judged series often are. */
const peersFor = (length: number): Series[] =>
  [1, 2, 3, 4, 5].map((seed) => seriesOf(Array.from({ length }, seededNormal(seed))))

const sliceOf = (series: Series, from: number, to: number): Series => ({
  ...series,
  startNs: bucketStartNs(series, from),
  values: series.values.slice(from, to),
  unknown: series.unknown.slice(from, to),
})
const slicesOf = (all: readonly Series[], from: number, to: number) =>
  all.map((series) => sliceOf(series, from, to))

const columns = ['score', 'expected', 'lower', 'upper'] as const
/** The scores of a method, among peers where it compares them. */
const scoresOf = (key: MethodKey, values: readonly number[]) =>
  scoreSeries(key, seriesOf(values), quick[key], peersFor(values.length))

const rows = (scores: Scores, count: number) => columns.map((column) => [...scores[column].slice(0, count)])

const reading = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: -5, max: 5 }) },
  { weight: 2, arbitrary: fc.constant(Number.NaN) },
  { weight: 1, arbitrary: fc.constantFrom(1e300, -1e300, 1e-300, 0.1) },
)
const readings = fc.array(reading, { minLength: 1, maxLength: 80 })

const noise = seededNormal(7)
const hardInputs: Record<string, number[]> = {
  empty: [],
  'a single point': [5],
  'two points': [1, 2],
  constant: Array(100).fill(42),
  'all without data': Array(100).fill(Number.NaN),
  sparse: Array.from({ length: 200 }, (_, i) => (i % 10 === 0 ? noise() : Number.NaN)),
  bursty: Array.from({ length: 200 }, (_, i) => (i % 20 < 2 ? 1000 + noise() : 0)),
  'a counter that resets': Array.from({ length: 200 }, (_, i) => (i % 60) * 1000),
  negative: Array.from({ length: 100 }, () => -1e6 + noise()),
  huge: Array.from({ length: 100 }, (_, i) => (i % 3 === 0 ? 1e300 : -1e300)),
  tiny: Array.from({ length: 100 }, (_, i) => (i % 2) * Number.MIN_VALUE),
  duplicated: Array.from({ length: 100 }, (_, i) => Math.floor(i / 2)),
}

/** A band of a season is fitted at each step, which takes ten times as long as with any other method. */
const runsOf = (key: MethodKey) => ({ numRuns: key === 'seasonal_band' ? 30 : 100 })

for (const key of methodKeys) {
  const runs = runsOf(key)
  const score = (values: readonly number[]) => scoresOf(key, values)

  test(`${key} is in the catalogue under its own key`, () => {
    assert.equal(methods[key].key, key)
  })

  test(`${key} is causal: later values never change an earlier row`, () => {
    fc.assert(
      fc.property(readings, readings, readings, (past, oneFuture, otherFuture) => {
        const one = score([...past, ...oneFuture])
        const other = score([...past, ...otherFuture])
        assert.deepEqual(rows(one, past.length), rows(other, past.length))
      }),
      runs,
    )
  })

  test(`${key} judges a value by a band that does not depend on that value`, () => {
    fc.assert(
      fc.property(readings, reading, reading, (past, one, other) => {
        // Without a band there is nothing to draw in a gap, so a method may have no expected value there.
        const isGap = Number.isNaN(one) || Number.isNaN(other)
        const hasBand = !score([...past, 0]).upper.every(Number.isNaN)
        if (isGap && !hasBand) return
        for (const column of ['expected', 'lower', 'upper'] as const) {
          const last = (value: number) => score([...past, value])[column].at(-1)
          assert.deepEqual(last(one), last(other))
        }
      }),
      runs,
    )
  })

  test(`${key} returns the same scores twice and does not change its input`, () => {
    fc.assert(
      fc.property(readings, (values) => {
        const series = seriesOf(values)
        const before = series.values.slice()
        const first = scoreSeries(key, series, quick[key])
        assert.deepEqual(scoreSeries(key, series, quick[key]), first)
        assert.deepEqual(series.values, before)
      }),
      runs,
    )
  })

  test(`${key} gives the same scores in many pieces as in one, and from a copy of its state`, () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 9 })
    fc.assert(
      fc.property(readings, cuts, (values, lengths) => {
        const [whole, peers] = [seriesOf(values), peersFor(values.length)]
        const expected = startScorer(key, quick[key], 1).score(whole, peers)
        let scorer = startScorer(key, quick[key], 1)
        const found: number[][] = columns.map(() => [])
        const compared = new Map<number, Comparison>()
        for (let from = 0, turn = 0; from < values.length; turn++) {
          const to = Math.min(values.length, from + (lengths[turn % lengths.length] ?? 1))
          // What a copy scores does not reach the original, which continues as if there were no copy.
          copyState(scorer).score(sliceOf(seriesOf(values.toReversed()), from, to), slicesOf(peers, from, to))
          scorer = copyState(scorer)
          const scores = scorer.score(sliceOf(whole, from, to), slicesOf(peers, from, to))
          for (const [i, column] of columns.entries()) found[i]?.push(...scores[column])
          for (const [row, comparison] of scores.compared ?? []) compared.set(from + row, comparison)
          from = to
        }
        assert.deepEqual(found, rows(expected, values.length))
        assert.deepEqual(compared, expected.compared ?? new Map())
      }),
      runs,
    )
  })

  for (const [name, values] of Object.entries(hardInputs)) {
    test(`${key} gives valid scores on input that is ${name}`, () => {
      const scores = score(values)
      for (const [i, value] of values.entries()) {
        const each = scores.score[i] ?? Number.NEGATIVE_INFINITY
        assert.ok(Number.isNaN(each) || (each >= 0 && each <= highestScore), `score ${each} at ${i}`)
        if (Number.isNaN(value)) assert.ok(Number.isNaN(each), `a gap is scored at ${i}`)
        assert.equal(
          scores.compared?.has(i) ?? each > 1,
          each > 1,
          `whether ${i} says what it was compared with`,
        )
        assert.ok(!((scores.lower[i] ?? 0) > (scores.upper[i] ?? 0)), `edges crossed at ${i}`)
      }
    })
  }
}
