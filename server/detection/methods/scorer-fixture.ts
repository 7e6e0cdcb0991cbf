// Series for tests of scorers that are given piece after piece.

import type { Series } from '../scoring/series.ts'

/** A series of buckets of five minutes; its first one is bucket `firstBucket` since 1970. */
export function seriesFrom(firstBucket: number, values: readonly number[]): Series {
  return {
    startNs: BigInt(firstBucket) * 300_000_000_000n,
    stepMinutes: 5,
    values: Float64Array.from(values),
    unknown: new Uint8Array(values.length),
    volumes: null,
  }
}
