// Maximum length of files and functions. Those that were longer when the rule began may not grow, and no
// other may become longer.

import { type ArrowFunctionExpression, type Function as FunctionNode, type Node, Visitor } from 'oxc-parser'
import { lineAt, type SourceFile, type Violation } from './source-file.ts'

/** Lines by file, and by `file function` for functions. */
interface Sizes {
  readonly files: Readonly<Record<string, number>>
  readonly functions: Readonly<Record<string, number>>
}

const fileLinesMax = 400
const functionLinesMax = 70

/**
 * Everything longer than the limits. A test file is a list of cases and may have any length; a benchmark is
 * one program that is read from top to bottom.
 */
export function measureSizes(sources: readonly SourceFile[]): Sizes {
  const files: Record<string, number> = {}
  const functions: Record<string, number> = {}
  for (const source of sources.filter(isMeasured)) {
    const { path, text } = source
    const lines = text.trimEnd().split('\n').length
    if (lines > fileLinesMax) files[path] = lines
    for (const [name, length] of functionLengths(source)) {
      if (length > functionLinesMax) functions[`${path} ${name}`] = length
    }
  }
  return { files, functions }
}

const isMeasured = ({ path }: SourceFile) => !path.endsWith('.test.ts') && !path.startsWith('bench/')

/** What became too long or grew, and entries of the list that are no longer needed. */
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
    .map((path) => ({ path, reason: `no longer over ${max} lines: remove it from tests/tidy/sizes.json` }))
  return [...grown, ...spare]
}

interface Head {
  readonly name: string
  /** Offset of the statement, property or method that names the function. */
  readonly start: number
}

/** Functions and methods, outer ones first, each with its length in lines from its head to its end. */
export function functionLengths({ text, program }: SourceFile): [name: string, lines: number][] {
  const found: [string, number][] = []
  const heads = new Map<Node, Head>()
  const span = ({ start, end }: Node) => text.slice(start, end)
  const record = (node: FunctionNode | ArrowFunctionExpression) => {
    const name = node.id === null ? (span(node).split('\n')[0] ?? '').slice(0, 60) : node.id.name
    const head = heads.get(node) ?? { name, start: node.start }
    found.push([head.name, lineAt(text, node.end) - lineAt(text, head.start) + 1])
  }
  const nameProperty = ({ key, value, start }: { key: Node; value: Node | null; start: number }) => {
    if (value !== null) heads.set(value, { name: span(key), start })
  }
  new Visitor({
    ExportNamedDeclaration: ({ declaration, start }) => {
      if (declaration?.type === 'FunctionDeclaration' && declaration.id !== null) {
        heads.set(declaration, { name: declaration.id.name, start })
      }
    },
    VariableDeclarator: ({ id, init, start }) => {
      if (init !== null) heads.set(init, { name: span(id), start })
    },
    Property: nameProperty,
    PropertyDefinition: nameProperty,
    MethodDefinition: nameProperty,
    FunctionDeclaration: record,
    FunctionExpression: record,
    ArrowFunctionExpression: record,
  }).visit(program)
  return found
}
