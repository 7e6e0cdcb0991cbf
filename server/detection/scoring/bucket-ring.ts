// The newest values of a series by the number of their bucket, NaN where a bucket has none. So "this time
// yesterday" is an array access, also across gaps. Numbers usually ascend. A bucket that was written before
// is overwritten, as in the hour that summer time repeats.

import { at } from './series.ts'

export class BucketRing {
  private readonly values: Float64Array
  private newest = Number.NEGATIVE_INFINITY

  constructor(capacity: number) {
    this.values = new Float64Array(capacity).fill(Number.NaN)
  }

  /** NaN where there is no value, and beyond the capacity. */
  get(bucket: number): number {
    if (bucket > this.newest || bucket <= this.newest - this.values.length) return Number.NaN
    return at(this.values, this.positionOf(bucket))
  }

  set(bucket: number, value: number): void {
    const capacity = this.values.length
    if (bucket <= this.newest - capacity) return
    for (let i = Math.max(this.newest + 1, bucket - capacity + 1); i < bucket; i++) {
      this.values[this.positionOf(i)] = Number.NaN
    }
    this.values[this.positionOf(bucket)] = value
    this.newest = Math.max(this.newest, bucket)
  }

  private positionOf(bucket: number): number {
    const capacity = this.values.length
    return ((bucket % capacity) + capacity) % capacity
  }
}
