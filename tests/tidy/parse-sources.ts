// Sources written in a test, to show that a rule finds violations.

import { parseSource, type SourceFile } from './source-file.ts'

/** Parses a small set of files by path. */
export function parseSources(files: Readonly<Record<string, string>>): SourceFile[] {
  return Object.entries(files).map(([path, text]) => parseSource(path, text))
}
