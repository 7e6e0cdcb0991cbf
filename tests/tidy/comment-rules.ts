// Comments keep to the line width of the code. The formatter wraps code and leaves comments as they are
// written, so nothing else holds them to it.

import { lineAt, type SourceFile, type Violation } from './source-file.ts'

/** Lines of comments that end beyond the width and have a space at which they could have been broken. */
export function findWideComments(sources: readonly SourceFile[], lineWidth: number): Violation[] {
  return sources.flatMap(({ path, text, comments }) => {
    const lines = text.split('\n')
    return comments.flatMap((comment) => {
      const first = lineAt(text, comment.start)
      return comment.value.split('\n').flatMap((words, index) => {
        const width = [...(lines[first + index - 1] ?? '')].length
        if (width <= lineWidth || !canBreak(words)) return []
        return [
          { path: `${path}:${first + index}`, reason: `a comment of ${width} columns, at most ${lineWidth}` },
        ]
      })
    })
  })
}

/** An address has no space to break it at, and an instruction to a tool has to be on one line. */
function canBreak(words: string): boolean {
  return /[^\s*]\s+\S/.test(words) && !/^\s*(?:biome-|@ts-)/.test(words)
}
