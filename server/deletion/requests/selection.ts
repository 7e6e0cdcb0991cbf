// What a request selects of an organisation's telemetry: signals and a half-open range of event time, exactly
// as asked and never clamped to what is stored. Pure.

import { formatInstant, type Ns, nsPerMs } from '../../../contract/values/instant.ts'
import { covers, overlaps, type TimeRange } from '../../core/time-range.ts'
import type { HeldPart } from '../../telemetry/held-part.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'

/** What a request erases. `all` has no bounds. */
export interface DeletionSelection {
  readonly scope: 'range' | 'all'
  readonly signals: readonly Signal[]
  readonly range: TimeRange
}

/** What an attempt may erase now: the selection without what legal holds keep. */
export interface ErasureTarget extends DeletionSelection {
  /** Every hold of the organisation. A hold beside the selection may keep an anomaly that reaches into it. */
  readonly held: readonly HeldPart[]
}

/** Returns the bounds of a range as they are on the wire; null where a side is open. */
export function wireBounds({ startNs, endNs }: TimeRange) {
  return {
    range_start: startNs === null ? null : formatInstant(startNs),
    range_end: endNs === null ? null : formatInstant(endNs),
  }
}

/** Returns the holds that keep a part of the selection. */
export function holdsWithin<T extends HeldPart>(selection: DeletionSelection, holds: readonly T[]): T[] {
  return holds.filter(
    (hold) =>
      overlaps(hold.range, selection.range) &&
      hold.signals.some((signal) => selection.signals.includes(signal)),
  )
}

/** Whether the hold keeps the whole selection. */
export function keepsWhole(hold: HeldPart, selection: DeletionSelection): boolean {
  return (
    covers(hold.range, selection.range) && selection.signals.every((signal) => hold.signals.includes(signal))
  )
}

/** Whether erasing `wide` erases everything that `narrow` selects. */
export function includesSelection(wide: DeletionSelection, narrow: DeletionSelection): boolean {
  return covers(wide.range, narrow.range) && narrow.signals.every((signal) => wide.signals.includes(signal))
}

/**
 * Returns the time that readers take as unknown after an erasure: the range up to its completion, because
 * what arrives later for later time is new. Null where the whole range lies after the completion.
 */
export function erasedTime({ range }: Pick<DeletionSelection, 'range'>, doneAtMs: number): TimeRange | null {
  const doneNs = BigInt(doneAtMs) * nsPerMs
  const endNs = range.endNs === null || range.endNs > doneNs ? doneNs : range.endNs
  return range.startNs !== null && range.startNs >= endNs ? null : { startNs: range.startNs, endNs }
}

/** Stable text of a selection. Two selections have the same text exactly where they erase the same. */
export function selectionText({ scope, signals: selected, range }: DeletionSelection): string {
  const bound = (ns: Ns | null) => (ns === null ? '' : ns.toString())
  return [scope, selected.join('+'), bound(range.startNs), bound(range.endNs)].join('|')
}
