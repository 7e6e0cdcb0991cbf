// Opaque cursors: where the page before ended, in text a client hands back unread. A cursor is checked like
// any other input, because clients do write their own.

import { InvalidInput, problem } from '../core/app-error.ts'
import { parseBoundedJson } from '../core/json-bounds.ts'

/** A list of texts; ours have four at most. */
const cursorBounds = { depth: 1, values: 16, containers: 1, shapes: 0 }

export function encodeCursor(position: readonly string[]): string {
  return Buffer.from(JSON.stringify(position), 'utf8').toString('base64url')
}

/** The `parts` texts of a cursor, or null where none was given. Throws InvalidInput on anything we didn't make. */
export function decodeCursor(cursor: string | undefined, parts: number): string[] | null {
  if (cursor === undefined) return null
  try {
    const text = Buffer.from(cursor, 'base64url').toString('utf8')
    const position = parseBoundedJson(text, cursorBounds)
    if (
      Array.isArray(position) &&
      position.length === parts &&
      position.every((part) => typeof part === 'string')
    ) {
      return position
    }
  } catch {
    // Falls through to the one refusal below: why it can't be read helps nobody.
  }
  throw invalidCursor(cursor)
}

/** The refusal of a cursor that isn't one of ours, for those who read its parts. */
export function invalidCursor(cursor: string | undefined): InvalidInput {
  return new InvalidInput([
    problem(['query', 'cursor'], 'value_error', 'Pass next_cursor of the page before, unchanged', cursor),
  ])
}

/** A page of `limit` items cut from up to `limit + 1` rows read; `positionOf` the last shown item becomes the cursor. */
export function pageOfRows<Row, Item>(
  rows: readonly Row[],
  limit: number,
  positionOf: (row: Row) => readonly string[],
  toItem: (row: Row) => Item,
): { items: Item[]; next_cursor: string | null } {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    items: shown.map(toItem),
    next_cursor: rows.length > limit && last !== undefined ? encodeCursor(positionOf(last)) : null,
  }
}
