// Sources that are written in a test, so that a rule can be shown to find what it looks for.

import { parseSource, type SourceFile } from './source-file.ts'

/** A small house of files by path. */
export function house(files: Readonly<Record<string, string>>): SourceFile[] {
  return Object.entries(files).map(([path, text]) => parseSource(path, text))
}
