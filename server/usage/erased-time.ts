// Which time of an organisation is hidden or erased, with the deletion that did it, as the gate of this node
// knows it: exactly what makes a step of a chart or a bucket of a detector unknown.

import type { z } from 'zod'
import type { ErasedTime, ErasedTimeQuery } from '../../contract/organisation/usage.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { askedRange } from '../core/input/asked-range.ts'
import { decodeCursor, pageOfRows } from '../core/input/cursor.ts'
import { overlaps } from '../core/time-range.ts'
import type { Selection, TelemetryGate } from '../telemetry/gate.ts'
import { signals } from '../telemetry/schema/tables.ts'

interface Part {
  readonly selection: Selection
  readonly state: ErasedTime['state']
}

/** Returns a page, newest deletion first. Throws InvalidInput for a foreign cursor or an empty range. */
export function listErasedTime(
  gate: TelemetryGate,
  tenantId: string,
  query: z.output<typeof ErasedTimeQuery>,
  nowNs: bigint,
): { items: ErasedTime[]; next_cursor: string | null } {
  const asked = askedRange(query, nowNs)
  const beforeId = decodeCursor(query.cursor, 1)?.[0] ?? null
  const parts = partsOf(gate, tenantId)
    .filter(({ selection: { id, range } }) => (beforeId === null || id < beforeId) && overlaps(range, asked))
    .toSorted((a, b) => (a.selection.id < b.selection.id ? 1 : -1))
  return pageOfRows(parts.slice(0, query.limit + 1), query.limit, ({ selection }) => [selection.id], toWire)
}

/** A deletion that is carried out again is hidden and has erased before; it is listed as hidden. */
function partsOf(gate: TelemetryGate, tenantId: string): Part[] {
  const hidden = gate.hidden(tenantId)
  const hiddenIds = new Set(hidden.map(({ id }) => id))
  const erased = gate.erased(tenantId).filter(({ id }) => !hiddenIds.has(id))
  return [
    ...hidden.map((selection) => ({ selection, state: 'hidden' as const })),
    ...erased.map((selection) => ({ selection, state: 'erased' as const })),
  ]
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
