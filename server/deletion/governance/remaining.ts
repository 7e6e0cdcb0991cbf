// What a deletion would leave of its signals, read before it is requested: a range may be all that a young
// organisation has, or one with a short retention. A time of a row that stays is remembered and not a count,
// so that the transaction that writes the request can check it against requests that came meanwhile. What
// is not known counts as nothing left.

import type { Ns } from '../../../contract/values/instant.ts'
import { touches } from '../../core/time-range.ts'
import type { TenantPlace } from '../../telemetry/engine.ts'
import type { HeldPart } from '../../telemetry/held-part.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import type { DeletionSelection } from '../requests/selection.ts'

/** What a selection erases and leaves now. */
export interface Remaining {
  /** Signals of which something is erased, hidden or not. */
  readonly erased: ReadonlySet<Signal>
  /** The time of a row that stays, of each signal that has one. */
  readonly left: ReadonlyMap<Signal, Ns>
}

/**
 * Looks for rows of the selection, and for rows before `untilNs` beside it and beside the parts `apart`.
 * Throws the reason of the signal, EngineError, and the AppErrors of the engine's `select`.
 */
export type ReadRemaining = (
  place: TenantPlace,
  selection: Pick<DeletionSelection, 'range' | 'signals'>,
  beside: {
    readonly apart: readonly HeldPart[]
    readonly untilNs: Ns
    /** Aborts when the result is no longer needed. */
    readonly signal?: AbortSignal | undefined
  },
) => Promise<Remaining>

/** A selection that erases nothing. */
export const nothingErased: Remaining = { erased: new Set(), left: new Map() }

/** Whether of some signal that is erased nothing is known to stay beside the parts `apart`. */
export function leavesNothing({ erased, left }: Remaining, apart: readonly HeldPart[]): boolean {
  return [...erased].some((signal) => {
    const at = left.get(signal)
    return (
      at === undefined || apart.some((part) => part.signals.includes(signal) && touches(part.range, at, at))
    )
  })
}
