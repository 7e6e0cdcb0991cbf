// Half-open ranges of telemetry time, in nanoseconds since 1970. A range is exactly what was requested, never
// limited to existing data, so that late data is still inside it.

import type { Ns } from '../../contract/values/instant.ts'

/** `[startNs, endNs)`; a null bound is open on that side. */
export interface TimeRange {
  readonly startNs: Ns | null
  readonly endNs: Ns | null
}

/** A range with both bounds. */
export interface BoundedRange {
  readonly startNs: Ns
  readonly endNs: Ns
}

export const allTime: TimeRange = { startNs: null, endNs: null }

/** Whether some instant of `[minNs, maxNs]` (both inclusive) is in the range. */
export function touches(range: TimeRange, minNs: Ns, maxNs: Ns): boolean {
  return (range.startNs === null || maxNs >= range.startNs) && (range.endNs === null || minNs < range.endNs)
}

/** Whether every instant of `narrow` is in `wide`. */
export function covers(wide: TimeRange, narrow: TimeRange): boolean {
  const startsBefore = wide.startNs === null || (narrow.startNs !== null && wide.startNs <= narrow.startNs)
  const endsAfter = wide.endNs === null || (narrow.endNs !== null && narrow.endNs <= wide.endNs)
  return startsBefore && endsAfter
}

/** Whether two half-open ranges share an instant. */
export function overlaps(a: TimeRange, b: TimeRange): boolean {
  const startsBefore = (x: TimeRange, y: TimeRange) =>
    x.startNs === null || y.endNs === null || x.startNs < y.endNs
  return startsBefore(a, b) && startsBefore(b, a)
}

/** Consecutive steps of equal length, of which some at the ends may be outside a range. */
interface Steps extends BoundedRange {
  /** The start of the step with the number 0; at most `startNs`. */
  readonly originNs: Ns
  readonly stepNs: bigint
}

/** Returns the first and the last step that share an instant with both ranges; null where none does. */
export function stepsTouched(
  range: TimeRange,
  { endNs, originNs, startNs, stepNs }: Steps,
): { readonly first: number; readonly last: number } | null {
  const fromNs = range.startNs === null || range.startNs < startNs ? startNs : range.startNs
  const untilNs = range.endNs === null || range.endNs > endNs ? endNs : range.endNs
  if (fromNs >= untilNs) return null
  const numberOf = (ns: Ns) => Number((ns - originNs) / stepNs)
  return { first: numberOf(fromNs), last: numberOf(untilNs - 1n) }
}

/** Sets to 1 the steps that share an instant with one of the ranges; by number from the origin. */
export function markTouched(into: Uint8Array, ranges: readonly TimeRange[], steps: Steps): void {
  // There may be thousands of ranges, so no work is for each range and step.
  for (const range of ranges) {
    const found = stepsTouched(range, steps)
    if (found !== null) into.fill(1, found.first, found.last + 1)
  }
}

/**
 * Returns how much time the ranges cover together, nanoseconds; overlapping time counts once. All have both
 * bounds.
 */
export function coveredNs(ranges: readonly BoundedRange[]): bigint {
  const ordered = ranges.toSorted((a, b) => (a.startNs < b.startNs ? -1 : a.startNs > b.startNs ? 1 : 0))
  let sumNs = 0n
  let untilNs: Ns | null = null
  for (const { startNs, endNs } of ordered) {
    const fromNs: Ns = untilNs === null || untilNs < startNs ? startNs : untilNs
    if (fromNs < endNs) sumNs += endNs - fromNs
    if (untilNs === null || untilNs < endNs) untilNs = endNs
  }
  return sumNs
}

/** Returns the parts of a range outside the holes, in order of time; empty where none remain. */
export function without(range: TimeRange, holes: readonly TimeRange[]): TimeRange[] {
  const parts: TimeRange[] = []
  let rest: TimeRange | null = range
  // In order of time, so that one pass is enough for thousands of them.
  for (const hole of union(holes.filter((one) => overlaps(range, one)))) {
    if (rest === null || !overlaps(rest, hole)) continue
    if (hole.startNs !== null && (rest.startNs === null || rest.startNs < hole.startNs))
      parts.push({ startNs: rest.startNs, endNs: hole.startNs })
    const isEnd: boolean = hole.endNs === null || (rest.endNs !== null && rest.endNs <= hole.endNs)
    rest = isEnd ? null : { startNs: hole.endNs, endNs: rest.endNs }
  }
  if (rest !== null) parts.push(rest)
  return parts
}

/**
 * Returns the same instants as disjoint ranges in order of time; adjacent ranges become one. A range that
 * remains as it is is the same object.
 */
export function union(ranges: readonly BoundedRange[]): BoundedRange[]
export function union(ranges: readonly TimeRange[]): TimeRange[]
export function union(ranges: readonly TimeRange[]): TimeRange[] {
  const sorted = ranges.toSorted((a, b) => compareStarts(a.startNs, b.startNs))
  const merged: TimeRange[] = []
  for (const range of sorted) {
    const last = merged.at(-1)
    const isBeyond =
      last === undefined || (last.endNs !== null && range.startNs !== null && last.endNs < range.startNs)
    if (isBeyond) merged.push(range)
    else if (last.endNs !== null && (range.endNs === null || range.endNs > last.endNs))
      merged[merged.length - 1] = { startNs: last.startNs, endNs: range.endNs }
  }
  return merged
}

/** Compares the starts of two ranges, for sorting; none is before all others. */
export function compareStarts(a: Ns | null, b: Ns | null): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null)
  return a < b ? -1 : Number(a > b)
}

/** Compares the ends of two ranges, for sorting; none is after all others. */
export function compareEnds(a: Ns | null, b: Ns | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null)
  return a < b ? -1 : Number(a > b)
}

/**
 * Formats an instant for a DateTime64(9) of the engine: seconds padded to ten digits, because fewer are
 * refused or misread.
 */
export function engineInstant(ns: Ns): string {
  const digits = ns.toString().padStart(19, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`
}
