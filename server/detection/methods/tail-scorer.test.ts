// Scoring a bounded tail again and again: the same as scoring everything while the tail contains everything,
// and independent of how the series was divided into pieces.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { methodParams } from '../../../contract/detection/methods.ts'
import { at, type Series, sliceOf } from '../scoring/series.ts'
import { startScorer } from './catalogue.ts'
import { stateBytes } from './copy-state.ts'
import { blankScores, type Scores } from './method.ts'
import { seriesFrom } from './scorer-fixture.ts'
import { TailScorer } from './tail-scorer.ts'

const tailBuckets = 8
/** Of a value, and whether it is unknown. */
const bytesPerBucket = 9

/** Scores a bucket by the number of buckets that were known with it. */
const lengthSoFar = (series: Series): Scores => ({
  ...blankScores(series.values.length),
  score: series.values.map((_, i) => i + 1),
  unreported: series.values.map((value) => value),
})

test('a bucket is scored with one to two tails before it, wherever pieces end', () => {
  const cut = fc.integer({ min: 1, max: 11 })
  fc.assert(
    fc.property(fc.nat(30), fc.nat(60), fc.array(cut, { minLength: 1 }), (first, length, cuts) => {
      const series = seriesFrom(
        first,
        Array.from({ length }, (_, i) => i),
      )
      const scorer = new TailScorer(lengthSoFar, tailBuckets)
      for (let from = 0, turn = 0; from < length; turn++) {
        const to = Math.min(length, from + (cuts[turn % cuts.length] ?? 1))
        const piece = sliceOf(series, from, to)
        const { score, unreported } = scorer.score(piece)
        for (let i = from; i < to; i++) {
          const block = Math.floor((first + i) / tailBuckets)
          const known = first + i - Math.max(first, (block - 1) * tailBuckets) + 1
          assert.equal(at(score, i - from), known)
          assert.equal(unreported?.[i - from], i)
        }
        from = to
      }
    }),
  )
})

test('the tail of an expensive forest is short, whatever history it has', () => {
  const expensive = { trees: 100, sample_points: 512, shingle_points: 32, history_points: 65_536 }
  const keptBuckets = (params: Partial<typeof expensive>) => {
    const scorer = startScorer('rcf', methodParams.rcf.parse(params), 5)
    scorer.score(seriesFrom(0, Array(6000).fill(Number.NaN)))
    return stateBytes(scorer) / bytesPerBucket
  }
  assert.ok(keptBuckets({ history_points: 65_536 }) > 5000)
  assert.ok(keptBuckets(expensive) < 1500)
})
