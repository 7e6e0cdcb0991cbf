// Parses rows that the engine returns as lines of JSON (JSONEachRow). A large result is parsed in pieces, and
// other work uses the event loop between them.

import { setImmediate as nextRound } from 'node:timers/promises'

/** Characters of JSON that are parsed at once: about a millisecond of work. A single line may be longer. */
const parsedAtOnce = 128 * 1024

/** Returns the rows of lines of JSON. Yields the event loop between two pieces of a large result. */
export async function readLines<T>(lines: string): Promise<T[]> {
  const text = lines.trimEnd()
  if (text.length <= parsedAtOnce) return parseLines(text)
  const rows: T[] = []
  for (let from = 0; from < text.length; ) {
    const lineEnd = text.indexOf('\n', from + parsedAtOnce)
    const end = lineEnd === -1 ? text.length : lineEnd
    for (const row of parseLines<T>(text.slice(from, end))) rows.push(row)
    from = end + 1
    await nextRound()
  }
  return rows
}

function parseLines<T>(text: string): T[] {
  return text === '' ? [] : JSON.parse(`[${text.replaceAll('\n', ',')}]`)
}
