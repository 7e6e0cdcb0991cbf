// One alarm of a series, from the bucket that opened it to the last one that violated: what an anomaly is
// before it is about time.

import type { Comparison } from '../scoring/comparison.ts'

/** Indexes are buckets since the start of the series. */
export interface Episode {
  /** At the peak: above or below the expected value, odd where there is none, or silent without data. */
  readonly kind: 'high' | 'low' | 'odd' | 'silent'
  /** First of the violating buckets that opened the episode. */
  readonly startIndex: number
  /** The bucket after which the alarm was raised; `openedIndex - startIndex` is the delay. */
  readonly openedIndex: number
  /** The last violating bucket so far. */
  readonly lastIndex: number
  /** Equal to `lastIndex` once closed, null while open. */
  readonly endIndex: number | null
  readonly peakIndex: number
  /** Null for silence. */
  readonly peakValue: number | null
  /** Expected value at the peak; null for methods without one, and before warm-up. */
  readonly expected: number | null
  /** Edges at the peak; null where the method has none. */
  readonly lower: number | null
  readonly upper: number | null
  /** At the peak. 1 is the edge of alarm, also for silence. */
  readonly score: number
  /** What the peak was compared with, where the method says it. */
  readonly compared?: Comparison
}
