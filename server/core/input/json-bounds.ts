// Computes what a JSON text would cost to parse, by one pass over its bytes before anything is parsed. A few
// kilobytes of gzip can contain a text with eight million nested arrays: JSON.parse needs seconds and
// gigabytes for it, and a recursive walk over the value overflows the stack. Every text from outside is
// measured here first. The pass creates no object for a value and never throws: on a text that isn't JSON its
// counts are right as far as the text is JSON, which is as far as a parser reads.

import { randomBytes } from 'node:crypto'

export interface JsonBounds {
  /** Levels of arrays and objects inside each other. */
  readonly depth: number
  /** Arrays, objects, texts, numbers, `true`, `false`, `null`, and the names of members. */
  readonly values: number
  /** Arrays and objects: an empty one takes 60 bytes of memory for its two bytes of text. */
  readonly containers: number
  /**
   * Different beginnings of the lists of names in objects: `{"a":1,"b":2}` has two, `a` and `a, b`. V8
   * creates a hidden class for each of them, which takes a thousand times as long as a member of a known one.
   * Compared by a hash.
   */
  readonly shapes: number
}

/**
 * For a file, or a line of one, that a program of ours should have written. A manifest names each file of a
 * backup, so there may be many; ours have six levels, and code that walks or compares them is recursive.
 */
export const fileBounds: JsonBounds = {
  depth: 64,
  values: 10_000_000,
  containers: 1_000_000,
  shapes: 1_000_000,
}

/** The first bound that a text exceeds. */
export type JsonExcess = keyof JsonBounds

/** The text of an excess in a refusal. */
export const excessSentence: Readonly<Record<JsonExcess, string>> = {
  depth: 'nested too deeply',
  values: 'too many values',
  containers: 'too many arrays and objects',
  shapes: 'too many different names',
}

/**
 * A JSON text that exceeds its bounds. {@link parseBoundedJson} throws it, or the SyntaxError of JSON.parse.
 */
export class JsonExcessError extends Error {
  override readonly name = 'JsonExcessError'
  readonly excess: JsonExcess

  constructor(excess: JsonExcess) {
    super(excessSentence[excess])
    this.excess = excess
  }
}

/**
 * Parses a small JSON text, such as a line of a file or a cursor. Throws {@link JsonExcessError}, or
 * SyntaxError where it is not JSON.
 */
export function parseBoundedJson(text: string, bounds: JsonBounds): unknown {
  const excess = jsonExcess(Buffer.from(text, 'utf8'), bounds)
  if (excess !== null) throw new JsonExcessError(excess)
  return JSON.parse(text)
}

/**
 * Kinds of bytes outside of texts; 0 is white space, a colon, and every byte that JSON doesn't allow there.
 */
const quote = 1
const openArray = 2
const openObject = 3
const close = 4
const comma = 5
const word = 6

const kinds = kindsOfBytes()

function kindsOfBytes(): Uint8Array {
  const table = new Uint8Array(256)
  const put = (bytes: string, kind: number) => {
    for (const byte of Buffer.from(bytes)) table[byte] = kind
  }
  put('"', quote)
  put('[', openArray)
  put('{', openObject)
  put(']}', close)
  put(',', comma)
  put('+-.0123456789Eaeflnrstu', word)
  return table
}

/**
 * Returns the bound that a text exceeds first; null where it is within all of them.
 *
 * @param longIntegers where given, receives start and end of each value that is an integer of 16 digits or
 * more: JSON.parse may round it
 */
export function jsonExcess(
  bytes: Uint8Array,
  bounds: JsonBounds,
  longIntegers?: number[],
): JsonExcess | null {
  const shapes = new Shapes(bounds, bytes)
  const isObject = new Uint8Array(bounds.depth + 1)
  let [depth, values, containers, isName] = [0, 0, 0, false]
  for (let at = 0; at < bytes.length; at++) {
    const kind = kinds[bytes[at] as number]
    if (kind === quote) {
      const end = endOfText(bytes, at + 1)
      if (isName && shapes.add(depth, at + 1, end)) return 'shapes'
      isName = false
      values++
      at = end
    } else if (kind === comma) {
      isName = isObject[depth] === 1
    } else if (kind === word) {
      const end = endOfWord(bytes, at)
      if (end - at >= longDigits) addLongInteger(bytes, at, end, longIntegers)
      values++
      at = end - 1
    } else if (kind === openArray || kind === openObject) {
      if (++depth > bounds.depth) return 'depth'
      if (++containers > bounds.containers) return 'containers'
      isName = kind === openObject
      isObject[depth] = isName ? 1 : 0
      if (isName) shapes.open(depth)
      values++
    } else if (kind === close) {
      if (depth > 0) depth--
      isName = false
    }
    if (values > bounds.values) return 'values'
  }
  return null
}

/** Returns the position of the quote that ends a text, or the end of the bytes. */
function endOfText(bytes: Uint8Array, start: number): number {
  const { length } = bytes
  let at = start
  while (at < length) {
    const byte = bytes[at++]
    if (byte === 0x22) return at - 1
    if (byte === 0x5c) at++
  }
  return length
}

function endOfWord(bytes: Uint8Array, start: number): number {
  let end = start + 1
  while (end < bytes.length && kinds[bytes[end] as number] === word) end++
  return end
}

/** Integers with fewer digits are exact as a double. */
const longDigits = 16

/**
 * Adds a word that is an integer in the syntax of JSON and not a name; ignores anything that only looks like
 * one.
 */
function addLongInteger(bytes: Uint8Array, start: number, end: number, into: number[] | undefined): void {
  if (into === undefined) return
  const first = bytes[start] === 0x2d ? start + 1 : start
  if (end - first < longDigits || bytes[first] === 0x30) return
  for (let at = first; at < end; at++) {
    const byte = bytes[at] as number
    if (byte < 0x30 || byte > 0x39) return
  }
  let next = end
  while (next < bytes.length && isSpace(bytes[next] as number)) next++
  const after = kinds[bytes[next] ?? 0]
  if (next === bytes.length || after === comma || after === close) into.push(start, end)
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** Different in each process, so that nobody can prepare names with equal hashes. */
const seed = randomBytes(4).readInt32LE()

/** Counts the different beginnings of lists of names: a set of hashes, and the hash of each open object. */
class Shapes {
  readonly #bytes: Uint8Array
  readonly #limit: number
  readonly #open: Int32Array
  readonly #table: Int32Array
  #count = 0

  constructor(bounds: JsonBounds, bytes: Uint8Array) {
    this.#bytes = bytes
    this.#limit = bounds.shapes
    this.#open = new Int32Array(bounds.depth + 1)
    // At most half full; a name with its colon takes three bytes.
    const most = Math.min(bounds.shapes + 1, Math.ceil(bytes.length / 3))
    this.#table = new Int32Array(2 << Math.ceil(Math.log2(most + 1)))
  }

  open(depth: number): void {
    this.#open[depth] = seed
  }

  /** Adds a name to the open object at `depth`; returns whether that is one shape too many. */
  add(depth: number, start: number, end: number): boolean {
    let hash = this.#open[depth] as number
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ (this.#bytes[at] as number), 0x01000193)
    // Marks the end of a name, so that `ab` differs from `a, b`.
    hash = Math.imul(hash ^ 0xff ^ (hash >>> 15), 0x2c1b3c6d)
    this.#open[depth] = hash
    const table = this.#table
    const mask = table.length - 1
    const key = hash === 0 ? 1 : hash
    let slot = key & mask
    while (table[slot] !== 0 && table[slot] !== key) slot = (slot + 1) & mask
    if (table[slot] === key) return false
    table[slot] = key
    return ++this.#count > this.#limit
  }
}
