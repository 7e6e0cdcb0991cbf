// Finds rows whose texts are still in a file of the data folder, with the engine's columns decompressed.

import { readFile } from 'node:fs/promises'
import { filesBelow } from '../scenario/canaries.ts'
import { unpackColumns } from '../scenario/engine-files.ts'
import type { NumberedRows } from './numbered-rows.ts'

/**
 * Numbers found, each with the first file that has it. A file that vanishes during the search has nothing.
 */
export async function searchFiles(folder: string, rows: NumberedRows): Promise<Map<number, string>> {
  const found = new Map<number, string>()
  for (const path of filesBelow(folder)) {
    const file = await readFile(path).catch(() => Buffer.alloc(0))
    const contents = path.endsWith('.bin') ? [file, unpackColumns(file)] : [file]
    for (const content of contents)
      for (const n of rows.numbersIn(content.toString('latin1'))) if (!found.has(n)) found.set(n, path)
  }
  return found
}
