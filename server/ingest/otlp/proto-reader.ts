// Reads OTLP protobuf field by field, without an object tree: a text is a range of the body until it is
// copied into its row. Unknown fields are skipped, as proto3 requires. A known field with another wire type
// is refused, because skipping it would lose, for example, a timestamp without notice. Invalid UTF-8 becomes
// U+FFFD: refusing it, as protobuf libraries do, would lose a whole batch for one log line that was cut in
// the middle of a character, and JSON bodies are read the same way. In the readers a field is written
// `(number << 3) | wire type`, with 0 = varint, 1 = 64 bits, 2 = length-delimited, 5 = 32 bits. The fuzz test
// in tests/otlp compares this with another decoder.

import { AttributeMemo } from '../rows/attribute-memo.ts'
import { type IdCell, type ListCell, TextCell } from '../rows/cells.ts'
import { OtlpDecodeError } from '../rows/otlp-decode-error.ts'
import type { RowCollector } from '../rows/row-collector.ts'
import { Uint64 } from '../rows/uint64.ts'

/** The most groups inside groups, which no OTLP message has; other protobuf decoders have the same limit. */
const maxGroups = 100

export class ProtoReader {
  readonly rows: RowCollector
  readonly body: Buffer
  pos = 0
  /** The key of the attribute that is being read. */
  readonly key = new TextCell()
  readonly value = new TextCell()
  /** The attributes that were read so far. */
  readonly memo: AttributeMemo
  readonly #view: DataView
  readonly #wide = new Uint64()

  constructor(body: Buffer, rows: RowCollector) {
    this.rows = rows
    this.body = body
    this.#view = new DataView(body.buffer, body.byteOffset, body.length)
    this.memo = new AttributeMemo(this.#view)
  }

  /** Returns the next tag of a message that stops at `end`; 0 at its end. */
  next(end: number): number {
    const start = this.pos
    if (start >= end) {
      if (start > end) throw this.error('a field runs past the end of its message')
      return 0
    }
    const tag = this.uint32()
    if (tag < 8 || this.pos - start > 5) throw this.error('invalid field tag')
    return tag
  }

  /** Reads a length and returns the end of the length-delimited field. */
  enter(end: number): number {
    const length = this.uint32()
    const stop = this.pos + length
    if (stop > end) throw this.error('truncated')
    return stop
  }

  /**
   * Skips a field; {@link next} finds a step beyond the end.
   *
   * @param known bit set of the message's field numbers; one of them here has a wrong wire type
   */
  skip(tag: number, end: number, known: number): void {
    const field = tag >>> 3
    const type = tag & 7
    if (field < 32 && ((known >>> field) & 1) === 1) {
      throw this.error(`field ${field} has wire type ${type}, which is not its type`)
    }
    if (type === 3) this.#skipGroup(field, end)
    else this.#skipValue(type, end)
  }

  error(what: string): OtlpDecodeError {
    return new OtlpDecodeError(`${this.rows.location} at byte ${this.pos}: ${what}`)
  }

  /** Reads the lower 32 bits of a varint. */
  uint32(): number {
    const byte = this.body[this.pos] ?? 0x80
    if (byte < 0x80) {
      this.pos++
      return byte
    }
    this.varint(this.#wide)
    return this.#wide.lo
  }

  int32(): number {
    return this.uint32() | 0
  }

  sint32(): number {
    const zigzag = this.uint32()
    return (zigzag >>> 1) ^ -(zigzag & 1)
  }

  bool(): boolean {
    this.varint(this.#wide)
    return !this.#wide.isZero()
  }

  /** Reads a varint of up to ten bytes; ignores bits above the 64th. */
  varint(into: Uint64): void {
    let low = 0
    let middle = 0
    let high = 0
    for (let count = 0; count < 10; count++) {
      const byte = this.body[this.pos + count]
      if (byte === undefined) throw this.error('truncated')
      if (count < 4) low |= (byte & 127) << (count * 7)
      else if (count < 8) middle |= (byte & 127) << ((count - 4) * 7)
      else high |= (byte & 127) << ((count - 8) * 7)
      if (byte < 0x80) {
        this.pos += count + 1
        into.lo = (low | (middle << 28)) >>> 0
        into.hi = ((middle >>> 4) | (high << 24)) >>> 0
        return
      }
    }
    throw this.error('malformed field')
  }

  fixed32(): number {
    return this.#view.getUint32(this.#take(4), true)
  }

  /** Reads an unsigned 64-bit integer of fixed size. */
  fixed64(into: Uint64): void {
    const at = this.#take(8)
    into.lo = this.#view.getUint32(at, true)
    into.hi = this.#view.getUint32(at + 4, true)
  }

  /** Reads a signed 64-bit integer as the nearest double. */
  sfixed64(): number {
    const at = this.#take(8)
    return this.#view.getInt32(at + 4, true) * 4_294_967_296 + this.#view.getUint32(at, true)
  }

  double(): number {
    return this.#view.getFloat64(this.#take(8), true)
  }

  /** Reads an `int64` varint as decimal digits. */
  int64Text(): string {
    this.varint(this.#wide)
    const { hi, lo } = this.#wide
    if (hi === 0) return String(lo)
    return String((BigInt(hi | 0) << 32n) | BigInt(lo))
  }

  text(end: number, into: TextCell): void {
    const stop = this.enter(end)
    into.setSlice(this.pos, stop)
    this.pos = stop
  }

  /** Reads a text as a string, to be used in another text. */
  string(end: number): string {
    return this.#stringOf(end, 'utf8')
  }

  base64(end: number): string {
    return this.#stringOf(end, 'base64')
  }

  id(end: number, byteCount: number, into: IdCell): void {
    const stop = this.enter(end)
    into.setSlice(this.body, this.pos, stop, byteCount)
    this.pos = stop
  }

  /** Reads a packed list of 64-bit integers of fixed size; the engine uses the same bytes. */
  packedFixed64(end: number, into: ListCell): void {
    const stop = this.enter(end)
    const count = (stop - this.pos) / 8
    if (!Number.isInteger(count)) throw this.error('a packed list ends inside a number')
    into.items.append(this.body, this.pos, stop)
    into.count += count
    this.pos = stop
  }

  /** Whether a packed list that stops at `stop` continues. */
  isInside(stop: number): boolean {
    if (this.pos > stop) throw this.error('a packed list ends inside a number')
    return this.pos < stop
  }

  #stringOf(end: number, encoding: 'utf8' | 'base64'): string {
    const stop = this.enter(end)
    const text = this.body.toString(encoding, this.pos, stop)
    this.pos = stop
    return text
  }

  /** Skips `count` bytes and returns their start. */
  #take(count: number): number {
    const at = this.pos
    if (at + count > this.body.length) throw this.error('truncated')
    this.pos = at + count
    return at
  }

  #skipValue(type: number, end: number): void {
    switch (type) {
      case 0:
        this.varint(this.#wide)
        break
      case 1:
        this.#take(8)
        break
      case 2:
        this.pos = this.enter(end)
        break
      case 5:
        this.#take(4)
        break
      default:
        throw this.error('malformed field')
    }
  }

  #skipGroup(field: number, end: number): void {
    const open = [field]
    while (open.length > 0) {
      const tag = this.next(end)
      const type = tag & 7
      const isWrongEnd = type === 4 && open.at(-1) !== tag >>> 3
      if (tag === 0 || isWrongEnd || open.length > maxGroups) throw this.error('malformed field')
      if (type === 3) open.push(tag >>> 3)
      else if (type === 4) open.pop()
      else this.#skipValue(type, end)
    }
  }
}
