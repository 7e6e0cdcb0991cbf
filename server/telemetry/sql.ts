// ClickHouse SQL as a value: text with typed holes. Only `render` writes the values of holes, as literals in
// an alphabet without syntax, so telemetry, attribute keys and ids from outside can't become syntax.
// Fragments nest.
//
// Literals are used and not the engine's own parameters, because the embedded engine runs statements with
// parameters one after another in the whole process, and resolves a cast for each of them
// (docs/decisions/0011).

import assert from 'node:assert/strict'
import type { Ns } from '../../contract/values/instant.ts'

/**
 * A value with the ClickHouse type it is bound as: `String`, `Bytes`, an integer, or an
 * `Array` or `Nullable` of these.
 */
export class Bound {
  readonly type: string
  readonly value: unknown

  constructor(type: string, value: unknown) {
    this.type = type
    this.value = value
  }
}

export class Sql {
  readonly strings: readonly string[]
  readonly parts: readonly (Sql | Bound)[]

  constructor(strings: readonly string[], parts: readonly (Sql | Bound)[]) {
    this.strings = strings
    this.parts = parts
  }
}

/**
 * A statement or fragment: ``sql`select count() from ${table} where ServiceName = ${name}` ``. Strings bind
 * as String.
 */
export function sql(strings: TemplateStringsArray, ...parts: readonly (Sql | Bound | string)[]): Sql {
  return new Sql(
    strings,
    parts.map((part) => (typeof part === 'string' ? new Bound('String', part) : part)),
  )
}

/** Trusted text of this repository, such as the name of a column. Never anything from outside. */
export function raw(text: string): Sql {
  return new Sql([text], [])
}

/** Joins fragments with a separator; `empty` where there are none. */
export function join(fragments: readonly Sql[], separator: string, empty: Sql = raw('')): Sql {
  if (fragments.length === 0) return empty
  const gaps = fragments.slice(1).map(() => separator)
  return new Sql(['', ...gaps, ''], fragments)
}

/** Joins conditions by AND; true where there are none. */
export function allOf(conditions: readonly Sql[]): Sql {
  return join(
    conditions.map((condition) => sql`(${condition})`),
    ' AND ',
    raw('1'),
  )
}

/** The sum of numbers; 0 where there are none. */
export function sumOf(terms: readonly Sql[]): Sql {
  return join(terms, ' + ', raw('0'))
}

/** A telemetry instant, exact to the nanosecond. */
export function instant(ns: Ns): Sql {
  return sql`fromUnixTimestamp64Nano(${new Bound('Int64', ns.toString())}, 'UTC')`
}

export function uint(value: number | bigint): Bound {
  return new Bound('UInt64', value.toString())
}

export function strings(values: readonly string[]): Bound {
  return new Bound('Array(String)', values)
}

/** A text that need not be UTF-8, from texts and from numbers that are bytes. */
export function bytes(...parts: readonly (string | number)[]): Bound {
  return new Bound(
    'Bytes',
    Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.of(part)))),
  )
}

/** Returns the statement as text for the engine. */
export function render(statement: Sql): string {
  return statement.strings.reduce((text, piece, i) => {
    const part = statement.parts[i - 1]
    if (part === undefined) return text + piece
    return text + (part instanceof Sql ? render(part) : literal(part)) + piece
  })
  // `reduce` without a seed starts with the first piece, so a fragment always has one more piece than parts.
}

/** A literal of exactly that type; a `UInt64` becomes a literal of the narrowest type for its value. */
function literal({ type, value }: Bound): string {
  if (type === 'String') return quoted(value)
  if (type === 'Bytes') return quotedBytes(value)
  if (type === 'UInt64') return digits(value, /^\d{1,20}$/)
  const [, outer, inner = ''] = /^(Array|Nullable)\((String|U?Int64)\)$/.exec(type) ?? []
  if (outer === 'Nullable') return value === null ? `CAST(NULL, '${type}')` : literal(new Bound(inner, value))
  if (outer === 'Array' && Array.isArray(value)) {
    const texts = value.map((one) => quoted(inner === 'String' ? one : digits(one, integer)))
    return `CAST([${texts.join(', ')}], '${type}')`
  }
  assert(type === 'Int64', `Nothing is bound as ${type}`)
  return `toInt64('${digits(value, integer)}')`
}

const integer = /^-?\d{1,20}$/

function digits(value: unknown, pattern: RegExp): string {
  const text = String(value)
  assert(pattern.test(text), 'An integer has digits only')
  return text
}

function quoted(value: unknown): string {
  assert(typeof value === 'string', 'A text is bound as a text')
  return /^[\w .,:/-]*$/.test(value) ? `'${value}'` : quotedBytes(Buffer.from(value))
}

/**
 * How each byte is written: letters, digits and a few signs as they are, every other one as its number. A
 * table, because a statement may have a hundred thousand of them, which are written on the event loop.
 */
const byteTexts: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte)
  return byte < 0x80 && /[\w .,:/-]/.test(char) ? char : `\\x${byte.toString(16).padStart(2, '0')}`
})

function quotedBytes(value: unknown): string {
  assert(value instanceof Uint8Array, 'Bytes are bound as bytes')
  let text = ''
  for (const byte of value) text += byteTexts[byte]
  return `'${text}'`
}
