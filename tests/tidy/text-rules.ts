// Text of a file: its opening comment, leftover notes, the codes of the catalogue that it names, and the
// length of a decision and of an entry of the changelog.

import { Visitor } from 'oxc-parser'
import { isTest } from './import-rules.ts'
import { lineAt, type SourceFile, type Violation } from './source-file.ts'

/** Composed of halves, so that the rule doesn't match itself. */
const leftoverWords = new RegExp(
  `\\b(?:${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b`,
  'g',
)

/** Leftover notes of authors, in code and comments. */
export function findLeftovers(sources: readonly SourceFile[]): Violation[] {
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(leftoverWords)].map((match) => ({
      path: `${path}:${lineAt(text, match.index)} ${match[0]}`,
      reason: 'do it, or document the current state and the reason',
    })),
  )
}

/** A file opens with a comment that says what it is: at least one sentence. */
export function findMuteFiles(sources: readonly SourceFile[]): Violation[] {
  return sources
    .filter((source) => !/[.:)]$/m.test(openingComment(source)))
    .map(({ path }) => ({ path, reason: 'open with a comment: what it is, and the invariant it keeps' }))
}

/** The text of the comment on the first line (after the hashbang), with the lines that continue it. */
function openingComment({ program, comments }: SourceFile): string {
  let next = program.hashbang === null ? 0 : program.hashbang.end + 1
  const lines: string[] = []
  for (const { type, value, start, end } of comments) {
    if (start !== next || (type === 'Block' && lines.length > 0)) break
    lines.push(value.trimEnd())
    next = type === 'Line' ? end + 1 : -1
  }
  return lines.join('\n')
}

/** Paths of one machine, which have no meaning on another. */
export function findMachinePaths(files: readonly { path: string; text: string }[]): Violation[] {
  const folders = /(?<![\w.:/-])\/(?:home|Users|root|work|mnt)\/[\w.-]+/g
  return files.flatMap(({ path, text }) =>
    [...text.matchAll(folders)].map((match) => ({
      path: `${path}:${lineAt(text, match.index)} ${match[0]}`,
      reason: 'a path of one machine; compute it or leave it out',
    })),
  )
}

/** Words of a page in print. The limit of decisions, so that a reader gets to the end of each. */
const pageWordsMax = 560

/**
 * Decisions that are longer than a page. `longer` has the words of those that were longer when the rule
 * began, and they may not grow.
 */
export function findLongDecisions(
  files: readonly { path: string; text: string }[],
  longer: Readonly<Record<string, number>>,
): Violation[] {
  return files
    .filter(({ path }) => /^docs\/decisions\/\d/.test(path))
    .flatMap(({ path, text }) => {
      const words = text.split(/\s+/).filter((word) => word !== '').length
      const most = longer[path] ?? pageWordsMax
      return words <= most ? [] : [{ path, reason: `${words} words, at most ${most}; keep what decides` }]
    })
}

/** Characters of an entry of the changelog with its bullet: a line of a wide terminal. */
const changeLengthMax = 120

/** Lines of the changelog below its introduction that are no heading, and no entry of one line. */
export function findLongChanges(path: string, text: string): Violation[] {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => line.startsWith('## '))
  return lines.flatMap((line, at) => {
    if (at < start || line === '' || line.startsWith('#')) return []
    const isEntry = line.startsWith('- ') && [...line].length <= changeLengthMax
    const reason = `an entry is one line of at most ${changeLengthMax} characters; a document has the details`
    return isEntry ? [] : [{ path: `${path}:${at + 1}`, reason }]
  })
}

/** Codes of the catalogue that no production file names, so no client can ever get them. */
export function findUnusedCodes(sources: readonly SourceFile[], codes: readonly string[]): Violation[] {
  const named = new Set(
    sources.filter(({ path }) => path.startsWith('server/') && !isTest(path)).flatMap(readStrings),
  )
  return codes
    .filter((code) => !named.has(code))
    .map((code) => ({ path: `contract/errors.ts ${code}`, reason: 'nothing returns this code' }))
}

function readStrings({ program }: SourceFile): string[] {
  const strings: string[] = []
  new Visitor({
    Literal: ({ value }) => {
      if (typeof value === 'string') strings.push(value)
    },
  }).visit(program)
  return strings
}
