// Opaque cursors: where the page before ended, in text a client hands back unread. A cursor is checked like
// any other input, because clients do write their own.

import { InvalidInput, problem } from './app-error.ts'
import { parseBoundedJson } from './json-bounds.ts'

/** A list of texts; ours have four at most. */
const cursorBounds = { depth: 1, values: 16, containers: 1, shapes: 0 }

export function encodeCursor(position: readonly string[]): string {
  return Buffer.from(JSON.stringify(position), 'utf8').toString('base64url')
}

/**
 * The `parts` texts of a cursor, or null where none was given. Throws InvalidInput on
 * anything we didn't make.
 */
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

/**
 * JSON of the items of a page, bytes. A browser reads it, and the event loop writes it, in some tens of
 * milliseconds, and a thousand clients that read slowly hold 4 GB and not 200.
 */
export const pageBytes = 4 << 20

/** Bytes of an item in an answer, with what stands between items. */
export function jsonBytes(item: unknown): number {
  return Buffer.byteLength(JSON.stringify(item)) + 1
}

/**
 * How many of the first items fit into a page: at least one where there is one, so that
 * every list comes to its end.
 */
export function fitting(items: readonly unknown[], bytes: number): number {
  let left = bytes
  const end = items.findIndex((item, i) => {
    left -= jsonBytes(item)
    return left < 0 && i > 0
  })
  return end < 0 ? items.length : end
}

/**
 * A page of `limit` items, or fewer where they are long, cut from up to `limit + 1` rows read; `positionOf`
 * the last shown row becomes the cursor.
 */
export function pageOfRows<Row, Item>(
  rows: readonly Row[],
  limit: number,
  positionOf: (row: Row, index: number) => readonly string[],
  toItem: (row: Row) => Item,
  bytes = pageBytes,
): { items: Item[]; next_cursor: string | null } {
  const items = rows.slice(0, limit).map(toItem)
  const shown = fitting(items, bytes)
  const last = rows[shown - 1]
  return {
    items: items.slice(0, shown),
    next_cursor: rows.length > shown && last !== undefined ? encodeCursor(positionOf(last, shown - 1)) : null,
  }
}
