// Values by the number of their bucket.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BucketRing } from './bucket-ring.ts'

test('a bucket is found by its number until the capacity is passed, and gaps have no value', () => {
  const ring = new BucketRing(4)
  ring.set(-2, 1)
  ring.set(0, 2)
  assert.deepEqual(
    [-2, -1, 0, 1].map((bucket) => ring.get(bucket)),
    [1, Number.NaN, 2, Number.NaN],
  )
  ring.set(2, 3)
  assert.deepEqual(
    [-2, 0, 1, 2].map((bucket) => ring.get(bucket)),
    [Number.NaN, 2, Number.NaN, 3],
  )
  ring.set(1000, 4)
  assert.deepEqual(
    [2, 997, 999, 1000].map((bucket) => ring.get(bucket)),
    [Number.NaN, Number.NaN, Number.NaN, 4],
  )
})

test('an hour that comes twice is written again, and what is too old is not written', () => {
  const ring = new BucketRing(4)
  ring.set(10, 1)
  ring.set(8, 2)
  ring.set(8, 3)
  ring.set(6, 9)
  assert.deepEqual(
    [6, 8, 10].map((bucket) => ring.get(bucket)),
    [Number.NaN, 3, 1],
  )
})
