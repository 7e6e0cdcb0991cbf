// Sorts points into buckets: three kinds of absence (no data, unknown, outside) that
// must not be taken for zero.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bucketStartNs, buildSeries, eraseFrom } from './series.ts'

const minuteNs = 60_000_000_000n
const span = { startNs: 1_000n * minuteNs, stepMinutes: 5, length: 4 }
const inBucket = (i: number) => span.startNs + BigInt(i) * 5n * minuteNs

test('points are sorted into their buckets whatever their order, and the other buckets have no data', () => {
  const series = buildSeries(span, [
    { timeNs: inBucket(2) + 5n * minuteNs - 1n, value: 7 },
    { timeNs: inBucket(0), value: 3, volume: 12 },
  ])
  assert.deepEqual([...series.values], [3, Number.NaN, 7, Number.NaN])
  assert.deepEqual([...(series.volumes ?? [])], [12, Number.NaN, Number.NaN, Number.NaN])
})

test('points outside the span are ignored, and the last point of a bucket wins', () => {
  const series = buildSeries(span, [
    { timeNs: inBucket(0) - 1n, value: 99 },
    { timeNs: inBucket(4), value: 99 },
    { timeNs: inBucket(1), value: 1 },
    { timeNs: inBucket(1) + 1n, value: 2 },
  ])
  assert.deepEqual([...series.values], [Number.NaN, 2, Number.NaN, Number.NaN])
  assert.equal(series.volumes, null)
})

test('infinite and enormous values are stored as the largest value', () => {
  const readings = [Number.POSITIVE_INFINITY, -Number.MAX_VALUE, Number.NaN]
  const series = buildSeries(
    span,
    readings.map((value, i) => ({ timeNs: inBucket(i), value })),
  )
  assert.deepEqual([...series.values], [1e300, -1e300, Number.NaN, Number.NaN])
})

test('a bucket that an erased range touches is unknown and has no value', () => {
  const full = buildSeries(
    span,
    [0, 1, 2, 3].map((i) => ({ timeNs: inBucket(i), value: i, volume: 9 })),
  )
  const erased = eraseFrom(full, [{ startNs: inBucket(2) - 1n, endNs: inBucket(2) + 1n }])
  assert.deepEqual([...erased.unknown], [0, 1, 1, 0])
  assert.deepEqual([...erased.values], [0, Number.NaN, Number.NaN, 3])
  assert.deepEqual([...(erased.volumes ?? [])], [9, Number.NaN, Number.NaN, 9])
  assert.deepEqual([...full.values], [0, 1, 2, 3], 'the original is left alone')
})

test('the end of an erased range is not part of it', () => {
  const series = buildSeries(span, [], [{ startNs: null, endNs: inBucket(1) }])
  assert.deepEqual([...series.unknown], [1, 0, 0, 0])
})

test('a span without whole buckets throws', () => {
  assert.throws(() => buildSeries({ ...span, stepMinutes: 0.5 }, []), RangeError)
  assert.throws(() => buildSeries({ ...span, length: -1 }, []), RangeError)
})

test('buckets start one step apart', () => {
  assert.equal(bucketStartNs(span, 3) - bucketStartNs(span, 2), 5n * minuteNs)
})
