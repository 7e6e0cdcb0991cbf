// A scorer that begins again with each block: what it knows of the past is bounded, and does not depend on
// how the series was divided into pieces.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { at, type Series, sliceOf } from '../scoring/series.ts'
import { copyState } from './copy-state.ts'
import { blankScores, type Scorer, type Scores } from './method.ts'
import { RestartedScorer } from './restarted-scorer.ts'
import { seriesFrom } from './scorer-fixture.ts'

const blockBuckets = 8

/** Scores a bucket by the number of buckets that were known with it. */
class CountingScorer implements Scorer {
  private known = 0

  score({ values }: Series): Scores {
    return { ...blankScores(values.length), score: values.map(() => ++this.known) }
  }
}

test('a bucket is scored with one to two blocks before it, wherever pieces end', () => {
  const cut = fc.integer({ min: 1, max: 11 })
  fc.assert(
    fc.property(fc.nat(30), fc.nat(60), fc.array(cut, { minLength: 1 }), (first, length, cuts) => {
      const series = seriesFrom(first, Array(length).fill(0))
      let scorer = new RestartedScorer(() => new CountingScorer(), blockBuckets)
      for (let from = 0, turn = 0; from < length; turn++) {
        const to = Math.min(length, from + (cuts[turn % cuts.length] ?? 1))
        const piece = sliceOf(series, from, to)
        const copy = copyState(scorer)
        const { score } = scorer.score(piece)
        if (turn % 2 === 0) {
          assert.deepEqual(copy.score(piece).score, score)
          scorer = copy
        }
        for (let i = from; i < to; i++) {
          const block = Math.floor((first + i) / blockBuckets)
          assert.equal(at(score, i - from), first + i - Math.max(first, (block - 1) * blockBuckets) + 1)
        }
        from = to
      }
    }),
  )
})
