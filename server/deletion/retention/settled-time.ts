// What retention need not look at again on a day, by signal: what was handled, and what a legal hold keeps or
// has kept on that day, since that is erased in the night. It only grows, and ranges that touch become one:
// when everything was handled it is one range, however many holds are placed and released afterwards.

import { partitionPoint } from '../../core/partition-point.ts'
import { compareEnds, compareStarts, type TimeRange } from '../../core/time-range.ts'
import type { HeldPart } from '../../telemetry/held-part.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'

export class SettledTime {
  /** By signal: disjoint ranges that do not touch, in order of time. */
  readonly #ranges = new Map<Signal, TimeRange[]>()

  add({ range, signals }: HeldPart): void {
    for (const signal of signals) {
      const ranges = this.#ranges.get(signal) ?? []
      this.#ranges.set(signal, ranges)
      addTo(ranges, range)
    }
  }

  /**
   * What is not settled of a signal before an instant, in order of time. Must not be read on after
   * {@link add}.
   */
  *gaps(signal: Signal, untilNs: bigint): Generator<TimeRange, void> {
    let startNs: bigint | null = null
    for (const range of this.#ranges.get(signal) ?? []) {
      if (range.startNs !== null && range.startNs >= untilNs) break
      if (range.startNs !== null) yield { startNs, endNs: range.startNs }
      if (range.endNs === null || range.endNs >= untilNs) return
      startNs = range.endNs
    }
    yield { startNs, endNs: untilNs }
  }
}

function addTo(ranges: TimeRange[], { endNs, startNs }: TimeRange): void {
  const at = (index: number) => ranges[index]
  const from = partitionPoint(ranges.length, (index) => {
    const end = at(index)?.endNs ?? null
    return startNs === null || end === null || end >= startNs
  })
  const until = partitionPoint(ranges.length, (index) => {
    const start = at(index)?.startNs ?? null
    return endNs !== null && start !== null && start > endNs
  })
  const [first, last] = until > from ? [at(from), at(until - 1)] : []
  const isEarlier = first !== undefined && compareStarts(first.startNs, startNs) < 0
  const isLater = last !== undefined && compareEnds(last.endNs, endNs) > 0
  const merged = { startNs: isEarlier ? first.startNs : startNs, endNs: isLater ? last.endNs : endNs }
  ranges.splice(from, until - from, merged)
}
