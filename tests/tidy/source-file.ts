// A source file as the house rules see it: its text, its code with comments and the insides of literals blanked
// out (so that a word in a sentence is not mistaken for a call), and what it imports. Blanking keeps every
// character's place, so a match in the code points at its line in the file.

import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

export interface Import {
  /** Path from the root for our own files, the module's name otherwise. */
  readonly target: string
  readonly isOwn: boolean
  readonly isTypeOnly: boolean
  /** Loaded when its line runs, and not with the file. */
  readonly isDynamic: boolean
  /** Names between the braces; empty for default, namespace and dynamic imports. */
  readonly names: readonly string[]
  readonly line: number
}

export interface SourceFile {
  /** From the root, with forward slashes. */
  readonly path: string
  readonly text: string
  readonly code: string
  readonly imports: readonly Import[]
}

/** A broken rule, worded for whoever has to mend it. */
export interface Violation {
  readonly path: string
  readonly reason: string
}

/** Every TypeScript file of the repository, in order of path. */
export function readSources(root: string): SourceFile[] {
  return globSync('{contract,server,tests,bench,scripts}/**/*.ts', { cwd: root })
    .sort()
    .map((path) => parseSource(path, readFileSync(join(root, path), 'utf8')))
}

export function parseSource(path: string, text: string): SourceFile {
  const code = blankOut(text)
  return { path, text, code, imports: readImports(path, text, code) }
}

/** The line, counted from 1, of an offset. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}

const statement =
  /^(?:import|export)\s+(?<type>type\s+)?(?<names>[\w$*\s,{}]*?)\s*\bfrom\s*'(?<from>[^']*)'|^import\s*'(?<bare>[^']*)'|\bimport\(\s*'(?<dynamic>[^']*)'/gm

/** Statements are found in the blanked code and read from the text, so an import inside a string is none. */
function readImports(path: string, text: string, code: string): Import[] {
  return [...code.matchAll(statement)].map((match) => {
    const specifier = text.slice(match.index, match.index + match[0].length).match(/'([^']*)'/)?.[1] ?? ''
    const isOwn = specifier.startsWith('.')
    const braced = /\{([^}]*)\}/.exec(match.groups?.names ?? '')?.[1] ?? ''
    const names = braced
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '')
    const isTypeOnly =
      match.groups?.type !== undefined ||
      (names.length > 0 && names.every((name) => name.startsWith('type ')))
    return {
      target: isOwn ? normalize(join(dirname(path), specifier)).replaceAll('\\', '/') : specifier,
      isOwn,
      isTypeOnly,
      isDynamic: match.groups?.dynamic !== undefined,
      names: names.map((name) => name.replace(/^type /, '')),
      line: lineAt(text, match.index),
    }
  })
}

/**
 * Spaces for comments and for what stands inside strings, templates and regular expressions; quotes, line breaks
 * and the expressions in `${}` stay.
 */
export function blankOut(text: string): string {
  return new Blanker(text).run()
}

class Blanker {
  readonly #text: string
  #at = 0
  #out = ''

  constructor(text: string) {
    this.#text = text
  }

  run(): string {
    this.#code(false)
    return this.#out
  }

  /** Code up to its end, or up to the brace that closes a template's expression. */
  #code(isInTemplate: boolean): void {
    let depth = 0
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at] ?? ''
      if (isInTemplate && char === '}' && depth === 0) return
      if (char === '{') depth++
      if (char === '}') depth--
      if (this.#text.startsWith('//', this.#at)) this.#blankUntil('\n', 0)
      else if (this.#text.startsWith('/*', this.#at)) this.#blankUntil('*/', 2)
      else if (char === "'" || char === '"') this.#literal(char)
      else if (char === '`') this.#template()
      else if (char === '/' && this.#startsExpression()) this.#regularExpression()
      else this.#keep()
    }
  }

  #keep(): void {
    this.#out += this.#text[this.#at++] ?? ''
  }

  #blank(): void {
    const char = this.#text[this.#at++] ?? ''
    this.#out += char === '\n' ? '\n' : ' '
  }

  #blankUntil(end: string, length: number): void {
    const found = this.#text.indexOf(end, this.#at + length)
    const stop = found < 0 ? this.#text.length : found + length
    while (this.#at < stop) this.#blank()
  }

  #literal(quote: string): void {
    this.#keep()
    while (this.#at < this.#text.length && this.#text[this.#at] !== quote) {
      if (this.#text[this.#at] === '\\') this.#blank()
      this.#blank()
    }
    this.#keep()
  }

  #template(): void {
    this.#keep()
    while (this.#at < this.#text.length && this.#text[this.#at] !== '`') {
      if (this.#text.startsWith('${', this.#at)) {
        this.#keep()
        this.#keep()
        this.#code(true)
        this.#keep()
      } else {
        if (this.#text[this.#at] === '\\') this.#blank()
        this.#blank()
      }
    }
    this.#keep()
  }

  #regularExpression(): void {
    this.#keep()
    let isInClass = false
    while (this.#at < this.#text.length && (isInClass || this.#text[this.#at] !== '/')) {
      const char = this.#text[this.#at]
      if (char === '\n') return
      if (char === '[') isInClass = true
      if (char === ']') isInClass = false
      if (char === '\\') this.#blank()
      this.#blank()
    }
    this.#keep()
  }

  /** Whether a slash here begins a regular expression rather than divides. */
  #startsExpression(): boolean {
    const before = this.#out.trimEnd()
    return (
      before === '' ||
      /[(,=:[!&|?{};+\-*%<>~^]$/.test(before) ||
      /\b(?:return|typeof|case|in|of|await)$/.test(before)
    )
  }
}
