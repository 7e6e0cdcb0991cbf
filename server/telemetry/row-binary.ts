// Writes ClickHouse's RowBinary into one growing buffer: integers little-endian, a text as its length in
// LEB128 and its UTF-8, an array or a map as the number of its entries and the entries. The caller keeps the
// order of the columns; this file knows no table. The bytes are always valid: in a text that is not UTF-8,
// U+FFFD replaces what can't be decoded.

import { isUtf8 } from 'node:buffer'
import type { BytePool } from './byte-pool.ts'

/** Up to this length a text is copied by a loop that checks it as it goes: two native calls take as long. */
const shortText = 40

/** The same for bytes that need no check. */
const shortBytes = 16

const firstBytes = 256

/**
 * Up to this size memory comes from a slab that the runtime shares, which is cheaper than allocating each
 * buffer.
 */
const slabBytes = 2048
const empty = Buffer.alloc(0)

export class RowBinary {
  /** The bytes that were written, up to {@link length}; undefined bytes after it. */
  bytes: Buffer = empty
  length = 0
  /** Number of written {@link bytes}; valid until the next write. */
  view = new DataView(empty.buffer, 0, 0)

  clear(): void {
    this.length = 0
  }

  /** Ensures space for `count` more bytes. */
  reserve(count: number): void {
    if (this.length + count > this.bytes.length) this.#grow(count)
  }

  uint8(value: number): void {
    this.reserve(1)
    this.bytes[this.length++] = value
  }

  uint16(value: number): void {
    this.reserve(2)
    this.view.setUint16(this.length, value, true)
    this.length += 2
  }

  /** Also accepts a signed integer, as its two's complement. */
  uint32(value: number): void {
    this.reserve(4)
    this.view.setUint32(this.length, value, true)
    this.length += 4
  }

  uint64(hi: number, lo: number): void {
    this.reserve(8)
    this.view.setUint32(this.length, lo, true)
    this.view.setUint32(this.length + 4, hi, true)
    this.length += 8
  }

  /** Writes every NaN as the same quiet NaN, so that equal rows have equal bytes. */
  float64(value: number): void {
    if (Number.isNaN(value)) {
      this.uint64(0x7ff8_0000, 0)
      return
    }
    this.reserve(8)
    this.view.setFloat64(this.length, value, true)
    this.length += 8
  }

  /** @param value from 0 to 2^32 - 1 */
  varint(value: number): void {
    this.reserve(5)
    let rest = value
    while (rest > 127) {
      this.bytes[this.length++] = (rest & 127) | 128
      rest >>>= 7
    }
    this.bytes[this.length++] = rest
  }

  text(value: string): void {
    const { length } = value
    if (length <= shortText) {
      this.reserve(length + 1)
      if (this.#copyAscii(value, this.length + 1)) {
        this.bytes[this.length] = length
        this.length += length + 1
        return
      }
    }
    this.varint(Buffer.byteLength(value))
    this.#writeLong(value)
  }

  /** Writes a text without its length. */
  bareText(value: string): void {
    const { length } = value
    if (length <= shortText) {
      this.reserve(length)
      if (this.#copyAscii(value, this.length)) {
        this.length += length
        return
      }
    }
    this.#writeLong(value)
  }

  /** Writes the text whose UTF-8 is in `from` between `start` and `stop`. */
  utf8(from: Buffer, start: number, stop: number): void {
    const count = stop - start
    if (count <= shortText) {
      this.reserve(count + 1)
      if (this.#copyAsciiBytes(from, start, stop, this.length + 1)) {
        this.bytes[this.length] = count
        this.length += count + 1
        return
      }
    }
    if (isUtf8(from.subarray(start, stop))) {
      this.varint(count)
      this.append(from, start, stop)
    } else this.text(from.toString('utf8', start, stop))
  }

  /** The same without the length. */
  bareUtf8(from: Buffer, start: number, stop: number): void {
    const count = stop - start
    if (count <= shortText) {
      this.reserve(count)
      if (this.#copyAsciiBytes(from, start, stop, this.length)) {
        this.length += count
        return
      }
    }
    if (isUtf8(from.subarray(start, stop))) this.append(from, start, stop)
    else this.#writeLong(from.toString('utf8', start, stop))
  }

  /** Copies the bytes of `from` between `start` and `stop` unchanged. */
  append(from: Uint8Array, start: number, stop: number): void {
    const count = stop - start
    this.reserve(count)
    if (count > shortBytes) this.bytes.set(from.subarray(start, stop), this.length)
    else for (let at = 0; at < count; at++) this.bytes[this.length + at] = from[start + at] ?? 0
    this.length += count
  }

  /** The same for a few dozen bytes: a loop by words is quicker than a native call. */
  appendWords(from: RowBinary, start: number, stop: number): void {
    const count = stop - start
    this.reserve(count)
    const { view, length } = this
    const source = from.view
    const words = count & ~3
    for (let at = 0; at < words; at += 4) view.setInt32(length + at, source.getInt32(start + at, true), true)
    for (let at = words; at < count; at++) view.setUint8(length + at, source.getUint8(start + at))
    this.length += count
  }

  /** Copies all of `from`. For many copies make `from` once: slicing it costs as much as copying it. */
  appendBytes(from: Uint8Array): void {
    this.reserve(from.length)
    this.bytes.set(from, this.length)
    this.length += from.length
  }

  appendAll(from: RowBinary): void {
    if (from.length > 0) this.append(from.bytes, 0, from.length)
  }

  /** Returns what was written, without copying; valid until the next write. */
  written(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }

  /**
   * Returns a copy of what was written, of exactly its length.
   *
   * @param memory where to write it; new memory where absent
   */
  toBuffer(memory?: BytePool): Buffer {
    const exact = memory?.lend(this.length) ?? Buffer.allocUnsafeSlow(this.length)
    exact.set(this.written())
    return exact
  }

  /** Overwrites what was written with zeros and starts again; keeps the memory. */
  wipe(): void {
    this.bytes.fill(0, 0, this.length)
    this.length = 0
  }

  /**
   * Copies the text and returns true where all of it is ASCII; otherwise the copied bytes are undefined. The
   * caller ensures space.
   */
  #copyAscii(value: string, into: number): boolean {
    const { length } = value
    const { bytes } = this
    let seen = 0
    for (let at = 0; at < length; at++) {
      const unit = value.charCodeAt(at)
      seen |= unit
      bytes[into + at] = unit
    }
    return seen < 0x80
  }

  #copyAsciiBytes(from: Buffer, start: number, stop: number, into: number): boolean {
    const { bytes } = this
    let seen = 0
    for (let at = start, to = into; at < stop; at++, to++) {
      const byte = from[at] ?? 0
      seen |= byte
      bytes[to] = byte
    }
    return seen < 0x80
  }

  #writeLong(value: string): void {
    this.reserve(Buffer.byteLength(value))
    this.length += this.bytes.write(value, this.length, 'utf8')
  }

  #grow(count: number): void {
    const size = Math.max(firstBytes, this.bytes.length * 2, this.length + count)
    const larger = size <= slabBytes ? Buffer.allocUnsafe(size) : Buffer.allocUnsafeSlow(size)
    if (this.length > 0) larger.set(this.written())
    this.bytes = larger
    this.view = new DataView(larger.buffer, larger.byteOffset, larger.length)
  }
}
