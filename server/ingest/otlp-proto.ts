// Reading OTLP protobuf field by field, straight into rows, without an object tree in between. The wire itself is
// read by @bufbuild/protobuf; this file adds what a nested message needs (its end is checked against its parent's)
// and the messages that all signals share. Unknown fields are skipped, as proto3 says; a known field with another
// wire type is refused, because skipping it would silently lose, say, a timestamp. Invalid UTF-8 becomes U+FFFD:
// refusing, as protobuf libraries do, would lose a whole batch for one log line cut in the middle of a character, and
// JSON bodies are read the same way. In the readers below a field is written `(number << 3) | wire type`, with
// 0 = varint, 1 = 64 bits, 2 = length-delimited, 5 = 32 bits.

import { BinaryReader } from '@bufbuild/protobuf/wire'
import type { AttributeMap } from '../telemetry/rows.ts'
import {
  arrayText,
  createAttributeMap,
  doubleText,
  emptyText,
  mapText,
  noAttributes,
  stringText,
} from './attributes.ts'
import { OtlpDecodeError } from './otlp-decode-error.ts'
import { fault, maxNesting } from './record-fault.ts'
import type { RowCollector } from './row-collector.ts'
import type { Uint64 } from './uint64.ts'

/** What a signal adds to the outer messages: reading a record that stops at `end`, and adding its rows. */
export interface ProtoRecordReader {
  readRecord(end: number): void
}

/** Places of the text cache: a power of two, above the number of distinct keys, names and values of most requests. */
const cacheSlots = 512

/** Longer texts are rarely repeated and cheap to decode natively. */
const maxCachedBytes = 64

export class ProtoReader {
  readonly rows: RowCollector
  readonly wire: BinaryReader
  readonly #body: Buffer
  // Telemetry repeats its keys and values in each record. A direct-mapped cache of texts by their bytes is faster than
  // decoding and gives one string for all rows. It lives as long as one request: nothing of one organisation may
  // outlast its erasure in memory or be seen by another.
  readonly #cachedStart = new Int32Array(cacheSlots)
  readonly #cachedLength = new Int32Array(cacheSlots).fill(-1)
  readonly #cachedText: string[] = new Array(cacheSlots).fill('')

  constructor(body: Buffer, rows: RowCollector) {
    this.rows = rows
    this.#body = body
    this.wire = new BinaryReader(body)
  }

  /** The next tag of a message that stops at `end`, or 0 at its end. */
  next(end: number): number {
    const start = this.wire.pos
    if (start >= end) {
      if (start > end) throw this.error('a field runs past the end of its message')
      return 0
    }
    const tag = this.wire.uint32()
    if (tag < 8 || this.wire.pos - start > 5) throw this.error('invalid field tag')
    return tag
  }

  /** Reads a length and returns where the length-delimited field stops. */
  enter(end: number): number {
    const length = this.wire.uint32()
    const stop = this.wire.pos + length
    if (stop > end) throw this.error('truncated')
    return stop
  }

  /**
   * Passes over a field. The library's own skip is left for groups, because it makes a view of what it skips; a
   * step past the end is found by {@link next}.
   *
   * @param known bit set of the message's field numbers; one of them here has a wrong wire type
   */
  skip(tag: number, end: number, known: number): void {
    const field = tag >>> 3
    const type = tag & 7
    if (field < 32 && ((known >>> field) & 1) === 1) {
      throw this.error(`field ${field} has wire type ${type}, which is not its type`)
    }
    switch (type) {
      case 0:
        this.wire.uint32()
        break
      case 1:
        this.wire.pos += 8
        break
      case 2:
        this.wire.pos = this.enter(end)
        break
      case 5:
        this.wire.pos += 4
        break
      default:
        this.wire.skip(type, field)
    }
  }

  error(what: string): OtlpDecodeError {
    return new OtlpDecodeError(`${this.rows.place} at byte ${this.wire.pos}: ${what}`)
  }

  /** An unsigned 64-bit integer of fixed size. */
  fixed64(into: Uint64): void {
    into.lo = this.wire.fixed32()
    into.hi = this.wire.fixed32()
  }

  /** A signed 64-bit integer as the nearest double. */
  sfixed64(): number {
    const lo = this.wire.fixed32()
    return this.wire.sfixed32() * 4_294_967_296 + lo
  }

  /** Decimal digits of a `uint64` varint. */
  uint64Text(): string {
    return this.#isOneByte() ? String(this.wire.uint32()) : String(this.wire.uint64())
  }

  /** Decimal digits of an `int64` varint. */
  int64Text(): string {
    return this.#isOneByte() ? String(this.wire.uint32()) : String(this.wire.int64())
  }

  text(end: number): string {
    const stop = this.enter(end)
    const start = this.wire.pos
    this.wire.pos = stop
    return stop - start > maxCachedBytes
      ? this.#body.toString('utf8', start, stop)
      : this.#cached(start, stop)
  }

  /** Whether a packed list that stops at `stop` goes on. */
  isInside(stop: number): boolean {
    if (this.wire.pos > stop) throw this.error('a packed list ends inside a number')
    return this.wire.pos < stop
  }

  /** {@link text}, with too long a text noted. */
  boundedText(end: number): string {
    const text = this.text(end)
    this.rows.noteLongText(text)
    return text
  }

  /** Lower-case hex of an id; '' when absent or all zeros, null when it has another length than `byteCount`. */
  id(end: number, byteCount: number): string | null {
    const stop = this.enter(end)
    const start = this.wire.pos
    this.wire.pos = stop
    if (stop === start) return ''
    if (stop - start !== byteCount) return null
    const text = this.#body.toString('hex', start, stop)
    return /^0+$/.test(text) ? '' : text
  }

  base64(end: number): string {
    const stop = this.enter(end)
    const start = this.wire.pos
    this.wire.pos = stop
    return this.#body.toString('base64', start, stop)
  }

  #isOneByte(): boolean {
    return (this.#body[this.wire.pos] ?? 0x80) < 0x80
  }

  #cached(start: number, stop: number): string {
    const body = this.#body
    const length = stop - start
    let hash = length
    for (let at = start; at < stop; at++) hash = (Math.imul(hash, 31) + (body[at] ?? 0)) | 0
    const slot = (hash ^ (hash >>> 9)) & (cacheSlots - 1)
    if (this.#cachedLength[slot] === length && this.#isSame(this.#cachedStart[slot] ?? 0, start, length)) {
      return this.#cachedText[slot] ?? ''
    }
    const text = body.toString('utf8', start, stop)
    this.#cachedStart[slot] = start
    this.#cachedLength[slot] = length
    this.#cachedText[slot] = text
    return text
  }

  #isSame(a: number, b: number, length: number): boolean {
    const body = this.#body
    let same = 0
    while (same < length && body[a + same] === body[b + same]) same++
    return same === length
  }
}

/**
 * Reads an `Export<Signal>ServiceRequest`; the three signals have the same outer messages. A resource may stand
 * behind its records on the wire, so each outer message is walked twice: once for its own fields, once for what it
 * contains. The first walk jumps over the contents, so reading stays linear in the size of the body.
 *
 * @throws OtlpDecodeError
 */
export function readProtoRequest(reader: ProtoReader, records: ProtoRecordReader): void {
  try {
    readResourceGroups(reader, records)
  } catch (error) {
    throw translate(reader, error)
  }
}

/**
 * The wire library throws RangeError for a read past the body's end and a plain Error for what no encoder writes. Any
 * other error is a mistake of ours and must not be blamed on the client.
 */
function translate(reader: ProtoReader, error: unknown): unknown {
  if (error instanceof RangeError) return reader.error('truncated')
  const isPlain = error instanceof Error && error.constructor === Error
  return isPlain ? reader.error('malformed field') : error
}

function readResourceGroups(reader: ProtoReader, records: ProtoRecordReader): void {
  const end = reader.wire.len
  const { place } = reader.rows
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag !== ((1 << 3) | 2)) {
      reader.skip(tag, end, 1 << 1)
      continue
    }
    place.resource++
    place.scope = -1
    readResourceGroup(reader, reader.enter(end), records)
  }
}

function readResourceGroup(reader: ProtoReader, end: number, records: ProtoRecordReader): void {
  const { place, resource } = reader.rows
  const start = reader.wire.pos
  reader.rows.startResource()
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) readResource(reader, reader.enter(end))
    else if (tag === ((2 << 3) | 2)) reader.wire.pos = reader.enter(end)
    else if (tag === ((3 << 3) | 2)) resource.schemaUrl = reader.text(end)
    else reader.skip(tag, end, 0b1110)
  }
  reader.rows.finishResource()
  reader.wire.pos = start
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag !== ((2 << 3) | 2)) {
      reader.skip(tag, end, 0)
      continue
    }
    place.scope++
    place.record = -1
    readScopeGroup(reader, reader.enter(end), records)
    place.record = -1
  }
  place.scope = -1
}

function readScopeGroup(reader: ProtoReader, end: number, records: ProtoRecordReader): void {
  const { place, scope } = reader.rows
  const start = reader.wire.pos
  reader.rows.startScope()
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) readScope(reader, reader.enter(end))
    else if (tag === ((2 << 3) | 2)) reader.wire.pos = reader.enter(end)
    else if (tag === ((3 << 3) | 2)) scope.schemaUrl = reader.text(end)
    else reader.skip(tag, end, 0b1110)
  }
  reader.rows.finishScope()
  reader.wire.pos = start
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag !== ((2 << 3) | 2)) {
      reader.skip(tag, end, 0)
      continue
    }
    place.record++
    records.readRecord(reader.enter(end))
  }
}

function readResource(reader: ProtoReader, end: number): void {
  const { resource } = reader.rows
  let attributeCount = 0
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) {
      resource.attributes = readAttribute(reader, end, resource.attributes)
      attributeCount++
    } else reader.skip(tag, end, 1 << 1)
  }
  reader.rows.noteManyAttributes(attributeCount)
}

function readScope(reader: ProtoReader, end: number): void {
  const { scope } = reader.rows
  let attributeCount = 0
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    switch (tag) {
      case (1 << 3) | 2:
        scope.name = reader.text(end)
        break
      case (2 << 3) | 2:
        scope.version = reader.text(end)
        break
      case (3 << 3) | 2:
        scope.attributes = readAttribute(reader, end, scope.attributes)
        attributeCount++
        break
      case (4 << 3) | 0:
        scope.droppedAttributesCount = reader.wire.uint32()
        break
      default:
        reader.skip(tag, end, 0b11110)
    }
  }
  reader.rows.noteManyAttributes(attributeCount)
}

/**
 * Reads one `KeyValue` into the map and returns the map: `attributes` itself, or a new one when that is the
 * shared empty one. The caller counts the calls for {@link RowCollector.noteManyAttributes}.
 */
export function readAttribute(
  reader: ProtoReader,
  parentEnd: number,
  attributes: AttributeMap,
): AttributeMap {
  const end = reader.enter(parentEnd)
  const map = attributes === noAttributes ? createAttributeMap() : attributes
  let key = ''
  let value = ''
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) key = reader.text(end)
    else if (tag === ((2 << 3) | 2)) value = readAnyValue(reader, reader.enter(end), 0)
    else reader.skip(tag, end, 0b110)
  }
  reader.rows.noteLongAttribute(key, value)
  map[key] = value
  return map
}

/**
 * Text of the `AnyValue` that stops at `end`; of several values in it the last one wins.
 *
 * @param depth arrays and maps around it; inside one the text is JSON
 */
export function readAnyValue(reader: ProtoReader, end: number, depth: number): string {
  const nested = depth > 0
  let text = emptyText(nested)
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    switch (tag) {
      case (1 << 3) | 2:
        text = stringText(reader.text(end), nested)
        break
      case (2 << 3) | 0:
        text = reader.wire.bool() ? 'true' : 'false'
        break
      case (3 << 3) | 0:
        text = reader.int64Text()
        break
      case (4 << 3) | 1:
        text = doubleText(reader.wire.double(), nested)
        break
      case (5 << 3) | 2:
        text = readNested(reader, reader.enter(end), depth + 1, readArray)
        break
      case (6 << 3) | 2:
        text = readNested(reader, reader.enter(end), depth + 1, readMap)
        break
      case (7 << 3) | 2:
        text = stringText(reader.base64(end), nested)
        break
      default:
        reader.skip(tag, end, 0b11111110)
    }
  }
  return text
}

type ReadNested = (reader: ProtoReader, end: number, depth: number) => string

function readNested(reader: ProtoReader, end: number, depth: number, read: ReadNested): string {
  if (depth <= maxNesting) return read(reader, end, depth)
  reader.rows.note(fault.nestedTooDeep)
  reader.wire.pos = end
  return 'null'
}

function readArray(reader: ProtoReader, end: number, depth: number): string {
  const items: string[] = []
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) items.push(readAnyValue(reader, reader.enter(end), depth))
    else reader.skip(tag, end, 1 << 1)
  }
  return arrayText(items)
}

function readMap(reader: ProtoReader, end: number, depth: number): string {
  const entries = new Map<string, string>()
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) readMapEntry(reader, reader.enter(end), depth, entries)
    else reader.skip(tag, end, 1 << 1)
  }
  return mapText(entries)
}

function readMapEntry(reader: ProtoReader, end: number, depth: number, entries: Map<string, string>): void {
  let key = ''
  let value = emptyText(true)
  for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
    if (tag === ((1 << 3) | 2)) key = reader.text(end)
    else if (tag === ((2 << 3) | 2)) value = readAnyValue(reader, reader.enter(end), depth)
    else reader.skip(tag, end, 0b110)
  }
  entries.set(key, value)
}
