// The values of a series without its gaps, for methods that look at runs of values: what is missing or erased is not
// there at all, so it can't be taken for a number. A short gap is stepped over; after a long one a new run begins,
// because a shape across it would be made of two ends that never met. So would one across a change to or from summer time,
// in a series that follows people's clocks: an hour is left out or comes twice.

import { at } from './series.ts'

/** More empty buckets than this in a row end a run. */
const longestBridge = 5

export interface DenseValues {
  /** The values, oldest first. */
  readonly values: Float64Array
  /** Bucket of each value. */
  readonly buckets: Int32Array
  /** How many values of its run each value completes: 1 for the first of a run. */
  readonly runs: Int32Array
}

/** `seams`: buckets with which a new run begins in any case, in order. */
export function denseValuesOf(sparse: Float64Array, seams: readonly number[] = []): DenseValues {
  const count = sparse.reduce((sum, value) => (Number.isNaN(value) ? sum : sum + 1), 0)
  const values = new Float64Array(count)
  const buckets = new Int32Array(count)
  const runs = new Int32Array(count)
  let next = 0
  for (let bucket = 0; bucket < sparse.length; bucket++) {
    const value = at(sparse, bucket)
    if (Number.isNaN(value)) continue
    const before = next > 0 ? (buckets[next - 1] ?? 0) : Number.NEGATIVE_INFINITY
    const isCut = bucket - before - 1 > longestBridge || seams.some((seam) => before < seam && seam <= bucket)
    runs[next] = isCut ? 1 : (runs[next - 1] ?? 0) + 1
    values[next] = value
    buckets[next++] = bucket
  }
  return { values, buckets, runs }
}

/** Lays a column of dense values back onto buckets; NaN elsewhere. */
export function spreadOut(dense: DenseValues, column: Float64Array, length: number): Float64Array {
  const sparse = new Float64Array(length).fill(Number.NaN)
  for (let i = 0; i < column.length; i++) sparse[dense.buckets[i] ?? 0] = at(column, i)
  return sparse
}
