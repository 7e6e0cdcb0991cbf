// What may stand in a file: where time, chance and the environment enter, how a file opens, what must not be left
// behind, and how long a file or function may be. Sizes are a ratchet: what was long when the rule began may
// not grow, and nothing else may become long unnoticed.

import { isTest } from './import-rules.ts'
import { lineAt, type SourceFile, type Violation } from './source-file.ts'

interface WordRule {
  readonly words: RegExp
  /** Files the rule doesn't bind. */
  readonly except: (path: string) => boolean
  readonly reason: string
}

const isTime = (path: string) =>
  isTest(path) || path === 'server/core/clock.ts' || path.startsWith('server/worker/')

const codeRules: readonly WordRule[] = [
  {
    words: /\bprocess\.env\b/g,
    except: (path) => isTest(path) || path.startsWith('server/cli/'),
    reason: 'settings are read in config.ts from what the command line hands it',
  },
  {
    words:
      /\bDate\.now\b|\bnew Date\(\s*\)|\bDate\(\s*\)|\bperformance\.now\b|\bprocess\.hrtime\b|\bTemporal\.Now\b/g,
    except: isTime,
    reason: 'wall time comes from the Clock that is passed in',
  },
  {
    words: /\b(?:setTimeout|setInterval)\b|\bAbortSignal\.timeout\b/g,
    except: isTime,
    reason: 'waiting goes through the Clock that is passed in',
  },
  {
    words: /\bMath\.random\b/g,
    except: () => false,
    reason: 'chance comes from node:crypto, or from a seed that is passed in',
  },
  {
    words: /\bconsole\.\w+/g,
    except: (path) => /^(?:tests|bench|scripts)\//.test(path),
    reason: 'the service logs through its logger, the command line writes to standard output',
  },
]

/** Put together from halves, so that the rule doesn't find itself. */
const leftoverWords = new RegExp(
  `\\b(?:${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b`,
  'g',
)

/** Calls that only some files may make. */
export function findForbiddenCalls(sources: readonly SourceFile[]): Violation[] {
  return sources.flatMap(({ path, code }) =>
    codeRules
      .filter(({ except }) => !except(path))
      .flatMap(({ words, reason }) =>
        [...code.matchAll(words)].map((match) => ({
          path: `${path}:${lineAt(code, match.index)} ${match[0]}`,
          reason,
        })),
      ),
  )
}

/** Notes to oneself that were left behind, in code and comments alike. */
export function findLeftovers(sources: readonly SourceFile[]): Violation[] {
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(leftoverWords)].map((match) => ({
      path: `${path}:${lineAt(text, match.index)} ${match[0]}`,
      reason: 'do it, or write down what is so and why',
    })),
  )
}

/** A file opens with a comment that says what it is: at least one sentence. */
export function findMuteFiles(sources: readonly SourceFile[]): Violation[] {
  return sources
    .filter(
      ({ text }) => !/^(?:#!.*\n)?(?:\/\/ (?:.*\n\/\/ )*.*[.:)]\n|\/\*\*? [^*]*[.:)]\s*\*\/)/.test(text),
    )
    .map(({ path }) => ({ path, reason: 'open with a comment: what it is, and the invariant it keeps' }))
}

/** Folders of somebody's machine, which mean nothing on another. */
export function findMachinePaths(files: readonly { path: string; text: string }[]): Violation[] {
  const folders = /(?<![\w.:/-])\/(?:home|Users|root|work|mnt)\/[\w.-]+/g
  return files.flatMap(({ path, text }) =>
    [...text.matchAll(folders)].map((match) => ({
      path: `${path}:${lineAt(text, match.index)} ${match[0]}`,
      reason: 'a path of one machine; compute it or leave it out',
    })),
  )
}

/** Codes of the catalogue that no production file ever names, so that no client can ever meet them. */
export function findUnusedCodes(sources: readonly SourceFile[], codes: readonly string[]): Violation[] {
  const users = sources.filter(({ path }) => path.startsWith('server/') && !isTest(path))
  return codes
    .filter((code) => !users.some(({ text }) => text.includes(`'${code}'`)))
    .map((code) => ({ path: `contract/errors.ts ${code}`, reason: 'nothing answers with this code' }))
}

/** Lines by file, and by `file function` for functions. */
export interface Sizes {
  readonly files: Readonly<Record<string, number>>
  readonly functions: Readonly<Record<string, number>>
}

export const fileLinesMax = 400
export const functionLinesMax = 70

/**
 * Everything past the yardsticks. A test file is a list of cases and may be as long as there are cases; a benchmark
 * is one program that is read from top to bottom.
 */
export function measureSizes(sources: readonly SourceFile[]): Sizes {
  const files: Record<string, number> = {}
  const functions: Record<string, number> = {}
  for (const { path, code } of sources.filter(isMeasured)) {
    const lines = code.trimEnd().split('\n').length
    if (lines > fileLinesMax) files[path] = lines
    for (const [name, length] of functionLengths(code)) {
      if (length > functionLinesMax) functions[`${path} ${name}`] = length
    }
  }
  return { files, functions }
}

const isMeasured = ({ path }: SourceFile) => !path.endsWith('.test.ts') && !path.startsWith('bench/')

/** What became long or grew, and what the list still excuses although it needn't. */
export function compareSizes(now: Sizes, allowed: Sizes): Violation[] {
  return [
    ...compare(now.files, allowed.files, fileLinesMax),
    ...compare(now.functions, allowed.functions, functionLinesMax),
  ]
}

function compare(
  now: Readonly<Record<string, number>>,
  allowed: Readonly<Record<string, number>>,
  max: number,
): Violation[] {
  const grown = Object.entries(now)
    .filter(([name, lines]) => lines > (allowed[name] ?? max))
    .map(([path, lines]) => ({
      path,
      reason: `${lines} lines, at most ${allowed[path] ?? max}: are there two nouns in it?`,
    }))
  const spare = Object.keys(allowed)
    .filter((name) => now[name] === undefined)
    .map((path) => ({ path, reason: `no longer over ${max} lines: take it off tests/tidy/sizes.json` }))
  return [...grown, ...spare]
}

/**
 * Functions of formatted code with their length in lines, header included. It relies on the formatter: a block ends
 * at the first line of its own indentation that begins with a closing brace.
 */
export function functionLengths(code: string): [name: string, lines: number][] {
  const lines = code.split('\n')
  return lines.flatMap((line, end): [string, number][] => {
    const indent = /^( *)\}/.exec(line)?.[1]?.length
    if (indent === undefined) return []
    const isAtIndent = (text: string | undefined) => /^ *\S/.exec(text ?? '')?.[0].length === indent + 1
    let open = end - 1
    while (open >= 0 && !isAtIndent(lines[open])) open--
    let head = open
    while (head >= 0 && !(isAtIndent(lines[head]) && !/^ *[)>\]}]/.test(lines[head] ?? ''))) head--
    const header = lines.slice(head, open + 1).join('\n')
    const name = head < 0 ? null : functionName(header.trim())
    return name === null ? [] : [[name, end - head + 1]]
  })
}

function functionName(header: string): string | null {
  if (!header.endsWith('{')) return null
  const declared = /^(?:export )?(?:default )?(?:async )?function\b\*? ?([\w$]*)/.exec(header)
  if (declared !== null) return declared[1] || 'function'
  if (header.endsWith('=> {')) return header.split('\n')[0]?.slice(0, 60).replace(/\s+/g, ' ') ?? null
  const method = /^(?:(?:static|async|get|set|override) |\*)*(#?[\w$]+)(?:<|\()/.exec(header)?.[1]
  const keywords = ['if', 'for', 'while', 'switch', 'catch', 'with', 'return']
  if (method === undefined || keywords.includes(method) || /[,(]\s*\{$/.test(header)) return null
  return method
}
