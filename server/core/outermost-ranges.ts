// Items with a time range each, of which none covers another. So both their starts and their ends ascend, and
// a binary search finds what a range covers or overlaps, and what covers it.

import { partitionPoint } from './partition-point.ts'
import { compareEnds, compareStarts, covers, type TimeRange } from './time-range.ts'

export class OutermostRanges<Item extends { readonly range: TimeRange }> {
  /** In order of time, so that an item later than all others is appended. */
  readonly #items: Item[] = []

  /** Whether one of the items covers the range. */
  hasCovering(range: TimeRange): boolean {
    // Of the items that start in time this one ends last.
    const last = this.#items[this.#indexAfter(range) - 1]
    return last !== undefined && covers(last.range, range)
  }

  /**
   * Adds an item. Returns the items that are not, or no longer, among the outermost: those that it covers, or
   * itself where another one covers it. Of two with the same range the one that was added last stays.
   */
  add(item: Item): readonly Item[] {
    const covered = this.takeCovered(item.range)
    if (this.hasCovering(item.range)) return [item]
    this.#items.splice(this.#indexAfter(item.range), 0, item)
    return covered
  }

  /** Removes the items that the range covers, and returns them. */
  takeCovered(range: TimeRange): readonly Item[] {
    const from = this.#search((one) => compareStarts(one.startNs, range.startNs) >= 0)
    const until = this.#search((one) => compareEnds(one.endNs, range.endNs) > 0)
    return until > from ? this.#items.splice(from, until - from) : []
  }

  /** Returns the items that share an instant with the range, in order of time. */
  overlapping(range: TimeRange): readonly Item[] {
    const { from, until } = this.#indexesOf(range)
    return this.#items.slice(from, until)
  }

  /** Whether one of the items shares an instant with the range. */
  hasOverlapping(range: TimeRange): boolean {
    const { from, until } = this.#indexesOf(range)
    return from < until
  }

  /** Returns the indexes of the items that share an instant with the range. */
  #indexesOf({ endNs, startNs }: TimeRange): { readonly from: number; readonly until: number } {
    const from = this.#search((one) => startNs === null || one.endNs === null || one.endNs > startNs)
    const until = this.#search((one) => endNs !== null && one.startNs !== null && one.startNs >= endNs)
    return { from, until }
  }

  /** Returns the index of the first item that starts after the range does. */
  #indexAfter({ startNs }: TimeRange): number {
    return this.#search((one) => compareStarts(one.startNs, startNs) > 0)
  }

  #search(holds: (range: TimeRange) => boolean): number {
    return partitionPoint(this.#items.length, (index) => {
      const item = this.#items[index]
      return item !== undefined && holds(item.range)
    })
  }
}
