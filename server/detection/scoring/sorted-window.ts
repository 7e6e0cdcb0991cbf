// The last `capacity` numbers, both in ascending order and in order of arrival, so that a rolling median or
// any other rank is an array access instead of a sort. A new number finds its position by binary search, and
// one block move shifts the numbers between it and the position of the number that is removed. The time is
// linear, but the move is a few kilobytes. Up to some thousand numbers this is faster than balanced trees or
// paired heaps, which have better complexity, and it needs no rebalancing and no deletion marks.

import { at } from './series.ts'

/** Numbers for which there is room at first. */
const leastRoom = 256

export class SortedWindow {
  private readonly capacity: number
  private sorted: Float64Array
  private arrivals: Float64Array
  private count = 0
  private oldest = 0

  constructor(capacity: number) {
    this.capacity = capacity
    this.sorted = new Float64Array(Math.min(capacity, leastRoom))
    this.arrivals = new Float64Array(this.sorted.length)
  }

  get size(): number {
    return this.count
  }

  /** Adds a number, which must not be NaN. A full window drops its oldest number. */
  push(value: number): void {
    const { capacity } = this
    if (this.count < capacity) {
      if (this.count === this.sorted.length) this.grow()
      this.insert(value)
      this.arrivals[this.count - 1] = value
    } else {
      this.replace(at(this.arrivals, this.oldest), value)
      this.arrivals[this.oldest] = value
      this.oldest = (this.oldest + 1) % capacity
    }
  }

  clear(): void {
    this.count = 0
    this.oldest = 0
  }

  /** The number of a rank, 0 the smallest; NaN outside `[0, size)`. */
  rank(index: number): number {
    return index < this.count ? at(this.sorted, index) : Number.NaN
  }

  /** NaN when empty. */
  median(): number {
    const upper = this.count >> 1
    const lower = (this.count - 1) >> 1
    return this.rank(lower) / 2 + this.rank(upper) / 2
  }

  /**
   * Median of the distances to `centre`, the higher of the two middle ones for an even count; NaN when
   * empty. The nearest half of the numbers are neighbours in `sorted`, so a binary search for the
   * first of them is enough.
   */
  medianDistanceTo(centre: number): number {
    if (this.count === 0) return Number.NaN
    const half = (this.count >> 1) + 1
    let low = 0
    let high = Math.max(0, this.count - half)
    while (low < high) {
      const start = (low + high) >> 1
      if (centre - at(this.sorted, start) > at(this.sorted, start + half) - centre) low = start + 1
      else high = start
    }
    const end = Math.min(low + half, this.count) - 1
    return Math.max(centre - at(this.sorted, low), at(this.sorted, end) - centre)
  }

  /** Distance from `centre` to the nearest number that differs from it; 0 when there is none. */
  nearestOtherDistance(centre: number): number {
    const below = this.countBelow(centre) - 1
    const above = this.countUpTo(centre)
    const distanceBelow = below >= 0 ? centre - at(this.sorted, below) : Number.POSITIVE_INFINITY
    const distanceAbove = above < this.count ? at(this.sorted, above) - centre : Number.POSITIVE_INFINITY
    const nearest = Math.min(distanceBelow, distanceAbove)
    return nearest === Number.POSITIVE_INFINITY ? 0 : nearest
  }

  private grow(): void {
    const room = Math.min(this.capacity, 2 * this.count)
    const [sorted, arrivals] = [this.sorted, this.arrivals]
    this.sorted = new Float64Array(room)
    this.arrivals = new Float64Array(room)
    this.sorted.set(sorted)
    this.arrivals.set(arrivals)
  }

  private insert(value: number): void {
    const position = this.countBelow(value)
    this.sorted.copyWithin(position + 1, position, this.count)
    this.sorted[position] = value
    this.count++
  }

  private replace(leaving: number, value: number): void {
    const from = this.countBelow(leaving)
    const position = this.countBelow(value)
    if (position <= from) {
      this.sorted.copyWithin(position + 1, position, from)
      this.sorted[position] = value
    } else {
      this.sorted.copyWithin(from, from + 1, position)
      this.sorted[position - 1] = value
    }
  }

  /** How many numbers are smaller than `value`; also the lowest rank that `value` would get. */
  countBelow(value: number): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >> 1
      if (at(this.sorted, middle) < value) low = middle + 1
      else high = middle
    }
    return low
  }

  /** How many numbers are not larger than `value`. */
  countUpTo(value: number): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >> 1
      if (at(this.sorted, middle) <= value) low = middle + 1
      else high = middle
    }
    return low
  }
}
