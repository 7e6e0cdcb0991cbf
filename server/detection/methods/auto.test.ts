// `auto` on what repeats every week: it is reported once, unless a person confirmed it, and it does not hide
// an incident at another time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { methodParams } from '../../../contract/detection/methods.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import { minuteOf, type Series } from '../scoring/series.ts'
import { auto } from './auto.ts'

const stepMinutes = 5
const perDay = 288
const perWeek = 7 * perDay
/** The weekly cleaning, at noon of the fourth day. */
const firstCleaning = 3 * perDay + 144
const cleanings = [1, 2, 3].map((week) => firstCleaning + week * perWeek)

/** A disk that fills for a week, until it is cleaned. */
function disk(length: number): Series {
  const noise = seededNormal(5)
  let used = 60
  const values = Float64Array.from({ length }, (_, i) => {
    used = i % perWeek === firstCleaning ? 30 : used + 0.02 + 0.005 * noise()
    return used
  })
  return { startNs: 0n, stepMinutes, values, unknown: new Uint8Array(length), volumes: null }
}

/** Whether an episode opens within half an hour of each bucket. */
function opensAt(series: Series, buckets: readonly number[], confirmed: readonly number[] = []): boolean[] {
  const { unreported } = auto.start(methodParams.auto.parse({}), stepMinutes, confirmed).score(series)
  return buckets.map((bucket) => unreported?.subarray(bucket, bucket + 6).some((each) => each > 1) ?? false)
}

test('a disk that is cleaned every week is reported at first, and not again', () => {
  const series = disk(4 * perWeek)
  assert.deepEqual(opensAt(series, [firstCleaning, ...cleanings]), [true, false, false, false])
})

test('a cleaning that a person confirmed is reported again in the next week', () => {
  const series = disk(2 * perWeek)
  const [second = 0] = cleanings
  assert.deepEqual(opensAt(series, [second], [minuteOf(series, firstCleaning)]), [true])
})

test('a disk that is cleaned at another time is reported, though it is cleaned every week', () => {
  const series = disk(4 * perWeek)
  const [, second = 0] = cleanings
  const early = second + perDay
  series.values.fill(30, early, early + 12)
  assert.deepEqual(opensAt(series, [early]), [true])
})
