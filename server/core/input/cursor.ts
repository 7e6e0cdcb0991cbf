// Opaque cursors: the end of the previous page, as a text that a client sends back unread. A cursor is
// checked like any other input, because clients do write their own.

import { InvalidInput, problem } from '../app-error.ts'
import { parseBoundedJson } from './json-bounds.ts'

/** A list of texts; ours have at most four. */
const cursorBounds = { depth: 1, values: 16, containers: 1, shapes: 0 }

export function encodeCursor(position: readonly string[]): string {
  return Buffer.from(JSON.stringify(position), 'utf8').toString('base64url')
}

/**
 * Returns the `parts` texts of a cursor; null where none was given. Throws InvalidInput on any text that we
 * did not create.
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
    // Continues to the one refusal below: the reason would help nobody.
  }
  throw invalidCursor(cursor)
}

/** Returns the refusal of a foreign cursor, for code that parses its parts. */
export function invalidCursor(cursor: string | undefined): InvalidInput {
  return new InvalidInput([
    problem(['query', 'cursor'], 'value_error', 'Pass next_cursor of the page before, unchanged', cursor),
  ])
}

/**
 * JSON of the items of a page, bytes. A browser reads it, and the event loop writes it, in some tens of
 * milliseconds. A thousand clients that read slowly then occupy 4 GB and not 200.
 */
export const pageBytes = 4 << 20

/** Bytes of an item in a response, with the separator after it. */
export function jsonBytes(item: unknown): number {
  return writtenBytes(item) + 1
}

/** What JSON writes differently from the text itself. */
const escaped = /["\\\p{Cc}\ud800-\udfff]/v

/**
 * Returns the bytes of `JSON.stringify(value)`. Most long texts are counted without writing them: a copy of a
 * hundred kilobytes costs ten times as much as reading it.
 */
function writtenBytes(value: unknown): number {
  if (typeof value === 'string' && !escaped.test(value)) return Buffer.byteLength(value) + 2
  if (!isPlain(value)) return Buffer.byteLength(JSON.stringify(value) ?? 'null')
  let bytes = 2
  for (const [key, field] of Object.entries(value)) {
    if (field !== undefined) bytes += writtenBytes(key) + writtenBytes(field) + 2
  }
  return bytes === 2 ? bytes : bytes - 1
}

/** Whether JSON writes it field by field. */
export function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('toJSON' in value)
}

/**
 * Returns how many of the first items fit into a page: at least one where there is one, so that every list
 * can be read to its end.
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
 * Returns a page of `limit` items, or fewer where they are long, from up to `limit + 1` rows; `positionOf`
 * the last row of the page becomes the cursor.
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
