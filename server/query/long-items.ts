// Measures items that may be long, such as a span with thousands of events or a log record with megabytes of
// attributes: between two values of a list or an object it waits for its next turn, so that one item occupies
// the event loop no longer than one text does.

import { isPlain, jsonBytes } from '../core/input/cursor.ts'
import type { Pace } from '../core/turns/pace.ts'

/** A list or an object whose values are being counted. */
interface Open {
  readonly values: Iterator<unknown, unknown, undefined>
  isEmpty: boolean
}

/**
 * Returns {@link jsonBytes} of a plain object; where that is above `enough`, some number above it, at no more
 * cost than counting that far.
 */
export async function jsonBytesInTurns(item: object, pace: Pace, enough = Infinity): Promise<number> {
  // The separator behind the item, and its brackets.
  let bytes = 3
  const open: Open[] = [openOf(item)]
  for (let last = open.at(-1); last !== undefined && bytes <= enough; last = open.at(-1)) {
    if (pace.isOver()) await pace.turn()
    const { done, value } = last.values.next()
    if (done === true) {
      open.pop()
      // There is no separator after the last value.
      if (!last.isEmpty) bytes -= 1
      continue
    }
    last.isEmpty = false
    if (value instanceof Key) bytes += jsonBytes(value.name)
    else if (Array.isArray(value) || isPlain(value)) {
      bytes += 3
      open.push(openOf(value))
    } else bytes += jsonBytes(value)
  }
  return bytes
}

class Key {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

function openOf(value: object): Open {
  return { values: Array.isArray(value) ? value.values() : fieldsOf(value), isEmpty: true }
}

/** JSON leaves undefined fields out. */
function* fieldsOf(value: object): Generator<unknown, void, undefined> {
  for (const [key, field] of Object.entries(value)) {
    if (field === undefined) continue
    yield new Key(key)
    yield field
  }
}
