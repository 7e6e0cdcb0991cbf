// The values of a series without its gaps, for methods that look at runs of consecutive values. A missing or
// erased bucket is left out, so no method can take it for a number. A run continues across a short gap. After
// a long gap a new run begins, because a shape across it never occurred. A run also ends where summer time
// begins or ends, in a series that follows local time: an hour is left out or comes twice.

import { at } from './series.ts'

/** More consecutive empty buckets than this end a run. */
const longestBridge = 5

export interface DenseValues {
  /** The values, oldest first. */
  readonly values: Float64Array
  /** Bucket of each value. */
  readonly buckets: Int32Array
  /** Position of each value in its run: 1 for the first. */
  readonly runs: Int32Array
}

/** Reads the values of a series piece by piece. */
export class DenseReader {
  /** Buckets before the next piece. */
  private buckets = 0
  private lastBucket = Number.NEGATIVE_INFINITY
  private lastRun = 0
  private hasSeam = false

  /**
   * The values of the next piece, with their buckets in it. `seams`: buckets of the piece at which a new run
   * begins in any case.
   */
  read(sparse: Float64Array, seams: readonly number[] = []): DenseValues {
    const count = sparse.reduce((sum, value) => (Number.isNaN(value) ? sum : sum + 1), 0)
    const values = new Float64Array(count)
    const buckets = new Int32Array(count)
    const runs = new Int32Array(count)
    let next = 0
    for (let row = 0; row < sparse.length; row++) {
      this.hasSeam ||= seams.includes(row)
      const value = at(sparse, row)
      if (Number.isNaN(value)) continue
      const bucket = this.buckets + row
      const isCut = this.hasSeam || bucket - this.lastBucket - 1 > longestBridge
      this.lastRun = isCut ? 1 : this.lastRun + 1
      this.lastBucket = bucket
      this.hasSeam = false
      runs[next] = this.lastRun
      values[next] = value
      buckets[next++] = row
    }
    this.buckets += sparse.length
    return { values, buckets, runs }
  }
}

/** The values of a whole series. */
export function denseValuesOf(sparse: Float64Array, seams: readonly number[] = []): DenseValues {
  return new DenseReader().read(sparse, seams)
}

/** Writes a column of dense values back to their buckets; NaN elsewhere. */
export function toSparse(dense: DenseValues, column: Float64Array, length: number): Float64Array {
  const sparse = new Float64Array(length).fill(Number.NaN)
  for (let i = 0; i < column.length; i++) sparse[dense.buckets[i] ?? 0] = at(column, i)
  return sparse
}

/** One array after the other. */
export function joinedValues<T extends Float64Array | Int32Array | Uint8Array>(before: T, next: T): T {
  const both = new (before.constructor as new (length: number) => T)(before.length + next.length)
  both.set(before)
  both.set(next, before.length)
  return both
}
