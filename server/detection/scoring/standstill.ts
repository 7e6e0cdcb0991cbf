// A standstill: the same value again and again in a series that used to change. It is neither high nor low,
// so an alarm must say that it is a standstill. It is detected from the data and not by a method, because
// several methods react to it.

import type { Series } from './series.ts'
import { at } from './series.ts'

/** Two or three equal values in a row are no standstill in any series. */
const fewestEqual = 6
/** A standstill is this many times as long as values lasted on average before it. */
const timesUsual = 3

/**
 * Whether the value of bucket i is part of a standstill. False for a series that never changed. Buckets
 * without a value neither start nor end a standstill. Uses no bucket after i.
 */
export function standsStillAt(series: Series, i: number): boolean {
  const { values } = series
  // Most series do not stand still, which is seen from the newest values alone.
  let equal = 0
  let before = i
  let value = Number.NaN
  for (; before >= 0; before--) {
    const each = at(values, before)
    if (Number.isNaN(each)) continue
    if (equal > 0 && each !== value) break
    value = each
    equal++
  }
  if (equal < fewestEqual || before < 0) return false
  const past = values.subarray(0, before + 1).filter((each) => !Number.isNaN(each))
  const changes = past.reduce((sum, each, j) => (each === past[j - 1] ? sum : sum + 1), 0)
  return equal >= (timesUsual * past.length) / changes
}
