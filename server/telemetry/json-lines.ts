// Parses rows that the engine returns as lines of JSON (JSONEachRow). A large result is parsed in pieces, and
// other work uses the event loop between them. Lines are decoded together and parsed one by one: a text of
// more than a megabyte is outside the heap of V8, and a line is a view of it. Joining lines to pieces, as one
// array of JSON, would take four to six times as long, most of it to get new memory from the system.

import { setImmediate as nextRound } from 'node:timers/promises'

/** Characters of JSON that are parsed at once: about a millisecond of work. A single line may be longer. */
const parsedAtOnce = 128 * 1024

/**
 * Returns the rows of lines of JSON in UTF-8.
 *
 * @param turn resolves when the next piece of a large result may be parsed; absent: in the next round of the
 * event loop
 */
export async function readLines<T>(
  lines: Uint8Array,
  turn: () => Promise<unknown> = nextRound,
): Promise<T[]> {
  const { buffer, byteLength, byteOffset } = lines
  if (byteLength > parsedAtOnce) await turn()
  const text = Buffer.from(buffer, byteOffset, byteLength).toString('utf8')
  const rows: T[] = []
  for (let from = 0, pieceStart = 0; from < text.length; ) {
    const lineEnd = text.indexOf('\n', from)
    const end = lineEnd === -1 ? text.length : lineEnd
    rows.push(JSON.parse(text.slice(from, end)))
    from = end + 1
    if (from - pieceStart < parsedAtOnce || from >= text.length) continue
    await turn()
    pieceStart = from
  }
  return rows
}
