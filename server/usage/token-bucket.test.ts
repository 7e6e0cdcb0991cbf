// The rate is kept, bursts fit, a large amount is not refused for ever, and the returned time to wait is
// right.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { TokenBucket } from './token-bucket.ts'

test('a full bucket gives its burst at once and then the rate', () => {
  const bucket = new TokenBucket(10, 100, 0)
  assert.equal(bucket.take(100, 0), 0)
  assert.equal(bucket.take(1, 0), 1)
  assert.equal(bucket.take(10, 999), 1)
  assert.equal(bucket.take(10, 1000), 0)
  assert.equal(bucket.take(30, 1000), 3)
})

test('an amount larger than the bucket is accepted when it is full, and must be refilled before anything else', () => {
  const bucket = new TokenBucket(10, 100, 0)
  assert.equal(bucket.take(250, 0), 0)
  assert.equal(bucket.take(1, 0), 16)
  assert.equal(bucket.take(1, 15_000), 1)
  assert.equal(bucket.take(1, 15_100), 0)
  const half = new TokenBucket(10, 100, 0)
  assert.equal(half.take(50, 0), 0)
  assert.equal(half.take(250, 0), 5, 'not while it is half empty')
})

test('an amount of zero is accepted, also in debt', () => {
  const bucket = new TokenBucket(1, 1, 0)
  assert.equal(bucket.take(1000, 0), 0)
  assert.equal(bucket.take(0, 0), 0)
})

test('tokens that are given back can be taken again, and no more than fit into the bucket', () => {
  const bucket = new TokenBucket(1, 10, 0)
  assert.equal(bucket.take(10, 0), 0)
  bucket.giveBack(10)
  bucket.giveBack(10)
  assert.equal(bucket.take(10, 0), 0)
  assert.equal(bucket.take(1, 0), 1)
})

test('a clock that goes back neither fills nor empties it', () => {
  const bucket = new TokenBucket(10, 100, 1_000_000)
  assert.equal(bucket.take(100, 1_000_000), 0)
  assert.equal(bucket.take(1, 0), 1)
  assert.equal(bucket.take(1, 100), 0)
})

test('over any time no more is taken than burst, rate and one large amount allow, and the returned wait is enough', () => {
  const step = fc.record({
    waitMs: fc.integer({ min: 0, max: 5000 }),
    rows: fc.integer({ min: 1, max: 300 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const bucket = new TokenBucket(20, 100, 0)
      let [nowMs, taken] = [0, 0]
      for (const { waitMs, rows } of steps) {
        nowMs += waitMs
        const wait = bucket.take(rows, nowMs)
        if (wait > 0) {
          nowMs += wait * 1000
          assert.equal(bucket.take(rows, nowMs), 0)
        }
        taken += rows
        assert.ok(taken <= 100 + (20 * nowMs) / 1000 + 300, `${taken} rows in ${nowMs} ms`)
      }
    }),
  )
})
