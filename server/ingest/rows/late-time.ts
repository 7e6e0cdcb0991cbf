// Finds the deletion that refuses an instant, among thousands: time is divided once at all their bounds, and
// a binary search finds the piece of an instant. Of several deletions that cover a piece the first in the
// list refuses it.

import type { TimeRange } from '../../core/time-range.ts'

interface Refusing {
  readonly id: string
  readonly range: TimeRange
}

export class LateTime {
  /** The start of each piece, in order; null, the first one, is before all time. */
  readonly #starts: readonly (bigint | null)[]
  /** The deletion that refuses each piece; null for none. */
  readonly #ids: readonly (string | null)[]

  constructor(selections: readonly Refusing[]) {
    const [starts, ids] = [[null] as (bigint | null)[], [] as (string | null)[]]
    const active: number[] = []
    const edges = selections.flatMap(({ range }, order) => [
      { atNs: range.startNs, order, isStart: true },
      ...(range.endNs === null ? [] : [{ atNs: range.endNs, order, isStart: false }]),
    ])
    const sorted = edges.toSorted((a, b) => compare(a.atNs, b.atNs))
    const close = (): void => {
      const first = active[0]
      ids.push(first === undefined ? null : (selections[first]?.id ?? null))
    }
    for (const { atNs, isStart, order } of sorted) {
      if (compare(atNs, starts.at(-1) ?? null) !== 0) {
        close()
        starts.push(atNs)
      }
      const at = firstNotBelow(active, order)
      if (isStart) active.splice(at, 0, order)
      else active.splice(at, 1)
    }
    close()
    this.#starts = starts
    this.#ids = ids
  }

  /** Returns the deletion that refuses an instant; null for none. */
  at(ns: bigint): string | null {
    return this.#ids[this.#pieceOf(ns)] ?? null
  }

  /** Whether some instant from the first to the last, both included, is refused. */
  touch(firstNs: bigint, lastNs: bigint): boolean {
    const last = this.#pieceOf(lastNs)
    for (let piece = this.#pieceOf(firstNs); piece <= last; piece++)
      if (this.#ids[piece] !== null) return true
    return false
  }

  /** Returns the last piece that begins at or before an instant. */
  #pieceOf(ns: bigint): number {
    let [low, high] = [0, this.#starts.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      const start = this.#starts[middle]
      if (start === null || start === undefined || start <= ns) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** Null is before all time. */
function compare(a: bigint | null, b: bigint | null): number {
  if (a === b) return 0
  return a === null || (b !== null && a < b) ? -1 : 1
}

/** Returns the index of the first number that is not below `number`, or the length. */
function firstNotBelow(sorted: readonly number[], number: number): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? 0) < number) low = middle + 1
    else high = middle
  }
  return low
}
