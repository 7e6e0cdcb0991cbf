// How values pass between the stores and PostgreSQL, so that a store reads the same values as from SQLite:
// numbers as numbers, truth as 1 and 0, and text with every character. PostgreSQL stores no NUL in text, and
// names in telemetry can have one, so NUL is written as two characters.

import { types } from 'pg'

/**
 * The escape character and what follows it. Both codes begin with U+0001, so that encoded texts have the
 * order of the texts themselves under COLLATE "C", and equal texts stay equal.
 */
const [nul, mark] = ['\u0000', '\u0001']
const [nulCode, escapeCode] = ['\u00010', '\u00011']

const mustBeEncoded = new RegExp(`[${nul}${mark}]`, 'g')
const encoded = new RegExp(`${nulCode}|${escapeCode}`, 'g')

/** Returns the text as it is stored. Texts without NUL and U+0001, which is nearly all, are unchanged. */
function encodeText(text: string): string {
  return text.replace(mustBeEncoded, (one) => (one === nul ? nulCode : escapeCode))
}

/** The inverse of {@link encodeText}. */
function decodeText(stored: string): string {
  return stored.includes(mark) ? stored.replace(encoded, (code) => (code === nulCode ? nul : mark)) : stored
}

/** Returns the values of a statement as the driver takes them. */
export function encodeParameters(values: readonly unknown[]): unknown[] {
  return values.map((value) => (typeof value === 'string' ? encodeText(value) : value))
}

/** Throws RangeError where a number of the database is none of JavaScript's, as the driver of SQLite does. */
function wholeNumber(text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value)) return value
  throw new RangeError(`The control plane has the number ${text}, which is too large to be read exactly.`)
}

/** The sum of whole numbers has the type of decimal fractions. */
const decimal = (text: string) => (/^-?\d+$/.test(text) ? wholeNumber(text) : Number(text))

const parsers: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [types.builtins.BOOL, (text) => (text === 't' ? 1 : 0)],
  [types.builtins.INT8, wholeNumber],
  [types.builtins.NUMERIC, decimal],
  [types.builtins.TEXT, decodeText],
  [types.builtins.VARCHAR, decodeText],
])

/** The parsers of the driver, with ours before them. */
export const valueTypes = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    (format === 'binary' ? undefined : parsers.get(oid)) ??
    types.getTypeParser(oid, format as 'text')) as typeof types.getTypeParser,
}
