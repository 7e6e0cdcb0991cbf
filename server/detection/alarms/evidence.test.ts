// Which buckets may be judged: erased time never has a value, whatever the policy for gaps.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Series } from '../scoring/series.ts'
import { bucketKind, evidenceOf } from './evidence.ts'

const { value, missing, thin, unknown } = bucketKind

/** A value, a gap, an erased bucket, and a value of two events. */
const series: Series = {
  startNs: 0n,
  stepMinutes: 1,
  values: Float64Array.of(5, Number.NaN, Number.NaN, 6),
  unknown: Uint8Array.of(0, 0, 1, 0),
  volumes: Float64Array.of(100, Number.NaN, Number.NaN, 2),
}

test('gaps are missing, erased buckets unknown, and neither has a value', () => {
  const evidence = evidenceOf(series, { missing: 'skip', min_volume: 0 })
  assert.deepEqual([...evidence.kinds], [value, missing, unknown, value])
  assert.deepEqual([...evidence.series.values], [5, Number.NaN, Number.NaN, 6])
})

test('the policy "zero" fills gaps but never erased time', () => {
  const evidence = evidenceOf(series, { missing: 'zero', min_volume: 0 })
  assert.deepEqual([...evidence.kinds], [value, value, unknown, value])
  assert.deepEqual([...evidence.series.values], [5, 0, Number.NaN, 6])
})

test('values of too few events are thin, and a gap filled with zero has none', () => {
  const evidence = evidenceOf(series, { missing: 'zero', min_volume: 10 })
  assert.deepEqual([...evidence.kinds], [value, thin, unknown, thin])
  assert.deepEqual([...evidence.series.values], [5, Number.NaN, Number.NaN, Number.NaN])
})

test('where the volume is not known nothing is thin', () => {
  const evidence = evidenceOf({ ...series, volumes: null }, { missing: 'skip', min_volume: 10 })
  assert.deepEqual([...evidence.kinds], [value, missing, unknown, value])
})
