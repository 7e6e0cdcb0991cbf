// Which time of an organisation is hidden or erased, with the deletion that did it, as the gate of this node
// knows it: exactly what makes a step of a chart or a bucket of a detector unknown.

import type { z } from 'zod'
import type { ErasedTime, ErasedTimeQuery } from '../../contract/organisation/usage.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { askedRange } from '../core/input/asked-range.ts'
import { decodeCursor, pageOfRows } from '../core/input/cursor.ts'
import { partitionPoint } from '../core/partition-point.ts'
import { overlaps } from '../core/time-range.ts'
import type { Pace } from '../core/turns/pace.ts'
import type { Selection, TelemetryGate } from '../telemetry/gate.ts'
import { signals } from '../telemetry/schema/tables.ts'

interface Part {
  readonly selection: Selection
  readonly state: ErasedTime['state']
}

/**
 * Returns a page, newest deletion first. Throws InvalidInput for a foreign cursor or an empty range.
 *
 * @param pace an organisation may have erased hundreds of thousands of ranges
 */
export async function listErasedTime(
  gate: TelemetryGate,
  tenantId: string,
  query: z.output<typeof ErasedTimeQuery>,
  { nowNs, pace }: { readonly nowNs: bigint; readonly pace: Pace },
): Promise<{ items: ErasedTime[]; next_cursor: string | null }> {
  const asked = askedRange(query, nowNs)
  const beforeId = decodeCursor(query.cursor, 1)?.[0] ?? null
  const [hidden, erased] = [gate.hidden(tenantId), gate.erased(tenantId)]
  const hiddenIds = new Set(hidden.map(({ id }) => id))
  const newest = new NewestParts(query.limit + 1)
  const add = (selection: Selection, state: Part['state']) => {
    const isOnPage = (beforeId === null || selection.id < beforeId) && overlaps(selection.range, asked)
    if (isOnPage) newest.add({ selection, state })
  }
  for (const selection of hidden) add(selection, 'hidden')
  // The newest were marked last, and after a page of them the others are only compared.
  for (let i = erased.length - 1; i >= 0; i--) {
    if (pace.isOver()) await pace.turn()
    const selection = erased[i]
    // A deletion that is carried out again is hidden and has erased before; it is listed as hidden.
    if (selection !== undefined && !hiddenIds.has(selection.id)) add(selection, 'erased')
  }
  return pageOfRows(newest.parts, query.limit, ({ selection }) => [selection.id], toWire)
}

/** The parts with the greatest ids, the greatest first. */
class NewestParts {
  readonly #parts: Part[] = []
  readonly #count: number

  constructor(count: number) {
    this.#count = count
  }

  get parts(): readonly Part[] {
    return this.#parts
  }

  add(part: Part): void {
    const parts = this.#parts
    const { id } = part.selection
    const at = partitionPoint(parts.length, (i) => (parts[i]?.selection.id ?? '') < id)
    if (at === this.#count) return
    parts.splice(at, 0, part)
    if (parts.length > this.#count) parts.pop()
  }
}

function toWire({ selection: { id, range, signals: selected }, state }: Part): ErasedTime {
  return {
    request_id: id,
    state,
    signals: signals.filter((signal) => selected.includes(signal)),
    range_start: range.startNs === null ? null : formatInstant(range.startNs),
    range_end: range.endNs === null ? null : formatInstant(range.endNs),
  }
}
