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
  const past = series.values.subarray(0, i + 1).filter((value) => !Number.isNaN(value))
  const value = at(past, past.length - 1)
  const before = past.findLastIndex((each) => each !== value) + 1
  const equal = past.length - before
  if (equal < fewestEqual || before === 0) return false
  const changes = past.subarray(0, before).reduce((sum, each, j) => (each === past[j - 1] ? sum : sum + 1), 0)
  return equal >= (timesUsual * before) / changes
}
