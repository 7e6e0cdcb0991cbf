// Bytes of ClickHouse's RowBinary, appended to one growing buffer: integers little-endian, a text as its
// length in LEB128 and its UTF-8, an array or a map as the number of its entries and the entries. Whoever
// appends keeps the order of the columns; nothing here knows a table. What is written is always valid: text
// that is no UTF-8 gets U+FFFD in place of what can't be read.

import { isUtf8 } from 'node:buffer'
import type { BytePool } from './byte-pool.ts'

/**
 * Texts up to this length are copied by a loop that checks them as it goes: two native calls take as long.
 */
const shortText = 40

/** The same for bytes that need no check. */
const shortBytes = 16

const firstBytes = 256

/**
 * Up to this size memory comes from a slab that the runtime shares out, which is cheaper than to ask for
 * each.
 */
const slabBytes = 2048
const empty = Buffer.alloc(0)

export class RowBinary {
  /** Holds what was written up to {@link length}, and rubbish behind it. */
  bytes: Buffer = empty
  length = 0
  /** Of {@link bytes}, and only until more are written. */
  view = new DataView(empty.buffer, 0, 0)

  clear(): void {
    this.length = 0
  }

  /** Makes room for `count` more bytes. */
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

  /** Also takes a signed integer, as its two's complement. */
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

  /** Every NaN is written as the one quiet NaN, so that equal rows have equal bytes. */
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

  /** A text without its length. */
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

  /** The text whose UTF-8 stands in `from` between `start` and `stop`. */
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

  /** The same without its length. */
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

  /** What `from` holds between `start` and `stop`, as it stands. */
  append(from: Uint8Array, start: number, stop: number): void {
    const count = stop - start
    this.reserve(count)
    if (count > shortBytes) this.bytes.set(from.subarray(start, stop), this.length)
    else for (let at = 0; at < count; at++) this.bytes[this.length + at] = from[start + at] ?? 0
    this.length += count
  }

  /**
   * The same from another one, of a few dozen bytes: for these a loop by words is quicker than a native call.
   */
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

  /** All of `from`, which is best made once for many copies: to cut it out costs as much as to copy it. */
  appendBytes(from: Uint8Array): void {
    this.reserve(from.length)
    this.bytes.set(from, this.length)
    this.length += from.length
  }

  appendAll(from: RowBinary): void {
    if (from.length > 0) this.append(from.bytes, 0, from.length)
  }

  /** What was written, until more is; no copy. */
  written(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }

  /**
   * A copy of what was written that is no larger than it.
   *
   * @param memory where to put it; new memory where absent
   */
  toBuffer(memory?: BytePool): Buffer {
    const exact = memory?.lend(this.length) ?? Buffer.allocUnsafeSlow(this.length)
    exact.set(this.written())
    return exact
  }

  /** Overwrites what was written with zeros and begins anew; the memory is kept. */
  wipe(): void {
    this.bytes.fill(0, 0, this.length)
    this.length = 0
  }

  /** Whether all of it is ASCII; else what was copied is rubbish. Room must be there. */
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
