// A source file for the house rules: its text, syntax tree, comments, imports and exports. The parser is
// oxc's, so that a word in a comment or a string is never mistaken for code. A file that does not parse
// throws here, because a rule that skips a file would check nothing.

import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import {
  type Comment,
  type Declaration,
  type ImportDeclaration,
  type ImportDeclarationSpecifier,
  type ModuleExportName,
  type Program,
  parseSync,
  Visitor,
} from 'oxc-parser'

export interface Import {
  /** Path from the root for our own files, otherwise the module's name. */
  readonly target: string
  readonly isOwn: boolean
  readonly isTypeOnly: boolean
  /** Loaded when its line runs, and not with the file. */
  readonly isDynamic: boolean
  /**
   * Names as the target exports them; `default`, and `*` where any of them may be used. Empty for side
   * effects.
   */
  readonly names: readonly string[]
  readonly line: number
}

interface Export {
  readonly name: string
  readonly line: number
}

export interface SourceFile {
  /** From the root, with forward slashes. */
  readonly path: string
  readonly text: string
  readonly program: Program
  /** In order; `start` and `end` are offsets into `text`, `value` is the text between the markers. */
  readonly comments: readonly Comment[]
  readonly imports: readonly Import[]
  /** A value and a type of one name are two entries. */
  readonly exports: readonly Export[]
}

/** A broken rule, with a message for the person who corrects it. */
export interface Violation {
  readonly path: string
  readonly reason: string
}

/** Every TypeScript and JavaScript file of the repository, in order of path. */
export function readSources(root: string): SourceFile[] {
  return globSync('{contract,console,server,tests,bench,scripts}/**/*.{ts,tsx,mjs}', { cwd: root })
    .sort()
    .map((path) => parseSource(path, readFileSync(join(root, path), 'utf8')))
}

export function parseSource(path: string, text: string): SourceFile {
  const { program, comments, errors } = parseSync(path, text)
  const [error] = errors
  if (error !== undefined) throw new SyntaxError(`${path} does not parse: ${error.message}`)
  return {
    path,
    text,
    program,
    // For JavaScript the parser lists the hashbang line, `#!`, among the comments.
    comments: comments.filter(({ start }) => start !== program.hashbang?.start),
    imports: readImports(path, text, program),
    exports: readExports(text, program),
  }
}

/** The line of an offset, counted from 1. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}

function readImports(path: string, text: string, program: Program): Import[] {
  const found: Import[] = []
  const add = (
    start: number,
    specifier: string,
    rest: Pick<Import, 'names' | 'isTypeOnly' | 'isDynamic'>,
  ) => {
    const isOwn = specifier.startsWith('.')
    const target = isOwn ? normalize(join(dirname(path), specifier)).replaceAll('\\', '/') : specifier
    found.push({ ...rest, target, isOwn, line: lineAt(text, start) })
  }
  new Visitor({
    ImportDeclaration: (node) => {
      const names = node.specifiers.map(importedName)
      add(node.start, node.source.value, { names, isTypeOnly: isTypeImport(node), isDynamic: false })
    },
    ExportAllDeclaration: ({ start, source, exportKind }) => {
      add(start, source.value, { names: ['*'], isTypeOnly: exportKind === 'type', isDynamic: false })
    },
    ExportNamedDeclaration: ({ start, source, specifiers, exportKind }) => {
      const names = specifiers.map(({ local }) => nameOf(local))
      if (source !== null)
        add(start, source.value, { names, isTypeOnly: exportKind === 'type', isDynamic: false })
    },
    ImportExpression: ({ start, source }) => {
      if (source.type !== 'Literal' || typeof source.value !== 'string') return
      add(start, source.value, { names: keysRead(program), isTypeOnly: false, isDynamic: true })
    },
    TSImportType: ({ start, source }) => {
      add(start, source.value, { names: ['*'], isTypeOnly: true, isDynamic: false })
    },
  }).visit(program)
  return found
}

function importedName(specifier: ImportDeclarationSpecifier): string {
  if (specifier.type === 'ImportSpecifier') return nameOf(specifier.imported)
  return specifier.type === 'ImportDefaultSpecifier' ? 'default' : '*'
}

function isTypeImport({ importKind, specifiers }: ImportDeclaration): boolean {
  const isType = specifiers.map((one) => one.type === 'ImportSpecifier' && one.importKind === 'type')
  return importKind === 'type' || (isType.length > 0 && isType.every(Boolean))
}

/**
 * Every name that a file reads from an object, as in `(await import('./a.ts')).open()` and `const { open } =
 * await load()`; these include the names it uses from its dynamic imports.
 */
function keysRead(program: Program): string[] {
  const keys = new Set<string>()
  new Visitor({
    MemberExpression: ({ property }) => {
      if (property.type === 'Identifier') keys.add(property.name)
    },
    ObjectPattern: ({ properties }) => {
      for (const property of properties) {
        if (property.type === 'Property' && property.key.type === 'Identifier') keys.add(property.key.name)
      }
    },
  }).visit(program)
  return [...keys]
}

function readExports(text: string, program: Program): Export[] {
  const found: Export[] = []
  new Visitor({
    ExportNamedDeclaration: ({ declaration, specifiers, start }) => {
      const names = [
        ...(declaration === null ? [] : declaredNames(declaration)),
        ...specifiers.map(({ exported }) => nameOf(exported)),
      ]
      for (const name of names) found.push({ name, line: lineAt(text, start) })
    },
    ExportDefaultDeclaration: ({ start }) => found.push({ name: 'default', line: lineAt(text, start) }),
  }).visit(program)
  return found
}

function declaredNames(declaration: Declaration): string[] {
  if (declaration.type !== 'VariableDeclaration') {
    return 'id' in declaration && declaration.id?.type === 'Identifier' ? [declaration.id.name] : []
  }
  return declaration.declarations.map(({ id }) => {
    if (id.type !== 'Identifier') throw new SyntaxError('The names of a destructuring export are unknown.')
    return id.name
  })
}

function nameOf(node: ModuleExportName): string {
  return node.type === 'Literal' ? node.value : node.name
}
