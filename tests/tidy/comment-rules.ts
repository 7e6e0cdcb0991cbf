// Comments must fit the line width of the code. The formatter wraps code but not comments, so this rule
// checks them.

import { lineAt, type SourceFile, type Violation } from './source-file.ts'

/** Lines of comments that exceed the width and have a space at which they could be wrapped. */
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

/** An address has no space to wrap at, and an instruction to a tool must be on one line. */
function canBreak(words: string): boolean {
  return /[^\s*]\s+\S/.test(words) && !/^\s*(?:biome-|@ts-)/.test(words)
}
