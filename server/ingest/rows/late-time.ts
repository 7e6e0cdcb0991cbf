// Which deletion refuses an instant, among thousands: time is cut at all their bounds once, and a search by
// halving finds the piece of an instant. Of several deletions that cover a piece the first given refuses it.

import type { TimeRange } from '../../core/time-range.ts'

interface Refusing {
  readonly id: string
  readonly range: TimeRange
}

export class LateTime {
  /** Where each piece begins, in order; the first begins before all time. */
  readonly #starts: readonly (bigint | null)[]
  /** Who refuses each piece; null for nobody. */
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

  /** The deletion that refuses an instant; null for none. */
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

  /** The last piece that begins at or before an instant. */
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

/** Where a number is, or would be, in a sorted array. */
function firstNotBelow(sorted: readonly number[], number: number): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? 0) < number) low = middle + 1
    else high = middle
  }
  return low
}
