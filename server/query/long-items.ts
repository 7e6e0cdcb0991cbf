// Measures items that may have long lists, such as a span with thousands of events: between the elements of a
// list it waits for its next turn, so that one item occupies the event loop no longer than one element does.

import { jsonBytes } from '../core/input/cursor.ts'
import type { Pace } from '../core/turns/pace.ts'

/** Returns {@link jsonBytes} of a plain object. */
export async function jsonBytesInTurns(item: object, pace: Pace): Promise<number> {
  const rest: Record<string, unknown> = {}
  let bytes = 0
  for (const [key, field] of Object.entries(item)) {
    rest[key] = Array.isArray(field) ? [] : field
    if (!Array.isArray(field) || field.length === 0) continue
    for (const element of field) {
      if (pace.isOver()) await pace.turn()
      bytes += jsonBytes(element)
    }
    // There is no separator after the last one.
    bytes -= 1
  }
  return jsonBytes(rest) + bytes
}
