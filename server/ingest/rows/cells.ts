// Contains a record while it is read, in cells that are reused: a decoder reads fields in any order, the row
// has its own order. Cells contain bytes or offsets and create no objects; a text of a protobuf body stays
// there until it is copied into the row. Both encodings fill the same cells, so their rows are equal.

import { RowBinary } from '../../telemetry/row-binary.ts'
import { pairMiddle, pairStart } from '../../telemetry/schema/attribute-pairs.ts'
import type { SeriesId } from '../../telemetry/schema/series-id.ts'
import type { AttributeMemo } from './attribute-memo.ts'
import { maxAttributes } from './faults.ts'
import type { Uint64 } from './uint64.ts'

/** A text: a range of the body, or a string. */
export class TextCell {
  #start = 0
  #stop = 0
  #text = ''

  clear(): void {
    this.#start = 0
    this.#stop = 0
    this.#text = ''
  }

  /** Sets the UTF-8 of the body between `start` and `stop`. */
  setSlice(start: number, stop: number): void {
    this.#start = start
    this.#stop = stop
    this.#text = ''
  }

  setText(text: string): void {
    this.#start = 0
    this.#stop = 0
    this.#text = text
  }

  isEmpty(): boolean {
    return this.#start === this.#stop && this.#text === ''
  }

  /** Whether it has more UTF-16 units than `limit`; a text never has more of them than bytes. */
  isLongerThan(limit: number, body: Buffer): boolean {
    if (this.#stop - this.#start <= limit) return this.#text.length > limit
    return body.toString('utf8', this.#start, this.#stop).length > limit
  }

  writeTo(out: RowBinary, body: Buffer): void {
    if (this.#start < this.#stop) out.utf8(body, this.#start, this.#stop)
    else out.text(this.#text)
  }

  /** The same without its length. */
  writeBareTo(out: RowBinary, body: Buffer): void {
    if (this.#start < this.#stop) out.bareUtf8(body, this.#start, this.#stop)
    else out.bareText(this.#text)
  }
}

/** Both hex digits of each byte, in the byte order of memory. */
const hexOfBytes = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, '0')).readUint16LE(),
)

/** A trace or span id as lower-case hex; empty when absent or all zeros. */
export class IdCell {
  readonly #hex = new RowBinary()
  /** Whether it was present with a wrong length. */
  isBad = false

  clear(): void {
    this.#hex.clear()
    this.isBad = false
  }

  isEmpty(): boolean {
    return this.#hex.length === 0
  }

  /** Sets bytes of the body. No bytes make the id absent, another count than `byteCount` makes it bad. */
  setSlice(body: Buffer, start: number, stop: number, byteCount: number): void {
    this.clear()
    if (stop - start !== byteCount) {
      this.isBad = stop !== start
      return
    }
    const hex = this.#hex
    hex.reserve(byteCount * 2)
    let seen = 0
    for (let at = 0; at < byteCount; at++) {
      const byte = body[start + at] ?? 0
      seen |= byte
      hex.view.setUint16(at * 2, hexOfBytes[byte] ?? 0, true)
    }
    if (seen !== 0) hex.length = byteCount * 2
  }

  /** Sets hex digits in either case. */
  setHex(text: string, byteCount: number): void {
    this.clear()
    if (text.length !== byteCount * 2 || !/^[0-9a-fA-F]+$/.test(text)) {
      this.isBad = text !== ''
      return
    }
    if (!/^0+$/.test(text)) this.#hex.bareText(text.toLowerCase())
  }

  writeTo(out: RowBinary): void {
    out.uint8(this.#hex.length)
    out.appendWords(this.#hex, 0, this.#hex.length)
  }
}

/** An array: its items as RowBinary. */
export class ListCell {
  readonly items = new RowBinary()
  count = 0

  clear(): void {
    this.items.clear()
    this.count = 0
  }

  addUint64(value: Uint64): void {
    this.items.uint64(value.hi, value.lo)
    this.count++
  }

  addFloat64(value: number): void {
    this.items.float64(value)
    this.count++
  }

  writeTo(out: RowBinary): void {
    out.varint(this.count)
    out.appendAll(this.items)
  }
}

/**
 * A list of messages in the format of the engine: an array for each of their fields, all of the same length.
 */
export class ListsCell {
  count = 0
  readonly #lists: readonly RowBinary[]

  constructor(fields: number) {
    this.#lists = Array.from({ length: fields }, () => new RowBinary())
  }

  /** Returns the items of one field; to add a message, add to each field and to {@link count}. */
  list(field: number): RowBinary {
    const list = this.#lists[field]
    if (list === undefined) throw new Error(`There is no field ${field}.`)
    return list
  }

  clear(): void {
    if (this.count === 0) return
    this.count = 0
    for (const list of this.#lists) list.clear()
  }

  writeTo(out: RowBinary): void {
    for (const list of this.#lists) {
      out.varint(this.count)
      out.appendAll(list)
    }
  }
}

/** Above this many entries a key is searched by a hash of all entries. */
const scannedEntries = 16

/**
 * A set of attributes in the format of the engine (telemetry/schema/attribute-pairs.ts), in the order in
 * which they came. Of equal keys the last one stays. Above {@link maxAttributes} entries nothing more is
 * kept, because the record is refused; this also limits the work.
 */
export class MapCell {
  readonly #entries = new RowBinary()
  readonly #starts: number[] = []
  /** Length of each entry's key, bytes; -1 for one that a later entry replaced. */
  readonly #keyLengths: number[] = []
  /** Number of each entry in {@link #memo}; -1 for one that was not in it. */
  readonly #known: number[] = []
  #memo: AttributeMemo | null = null
  #index: Map<string, number> | null = null
  #added = 0
  #replaced = 0

  clear(): void {
    this.#entries.clear()
    this.#index = null
    this.#added = 0
    this.#replaced = 0
  }

  isFull(): boolean {
    return this.#added >= maxAttributes
  }

  add(key: TextCell, value: TextCell, body: Buffer): void {
    if (this.isFull()) return
    const at = this.#added++
    const entries = this.#entries
    this.#starts[at] = entries.length
    entries.uint8(pairStart)
    const keyStart = entries.length
    key.writeBareTo(entries, body)
    this.#keyLengths[at] = entries.length - keyStart
    this.#known[at] = -1
    this.#replaceEarlier(at)
    entries.uint8(pairMiddle)
    value.writeBareTo(entries, body)
  }

  /** Adds the attribute with that number in the memo. Use one memo only until the set is cleared. */
  addKnown(memo: AttributeMemo, known: number): void {
    if (this.isFull()) return
    const at = this.#added++
    this.#starts[at] = this.#entries.length
    memo.writeTo(known, this.#entries)
    this.#keyLengths[at] = memo.keyLengthOf(known)
    this.#known[at] = known
    this.#memo = memo
    this.#replaceEarlier(at)
  }

  /** Makes the memo keep the entry that was added last; its bytes in the body are from `start` to `stop`. */
  keepLast(memo: AttributeMemo, start: number, stop: number): void {
    // A full set may not have added the entry.
    if (this.isFull()) return
    const at = this.#added - 1
    memo.keep(start, stop, this.#entries, this.#starts[at] ?? 0, this.#keyLengths[at] ?? 0)
  }

  writeTo(out: RowBinary): void {
    if (this.#added === 0) {
      out.uint8(0)
      return
    }
    if (this.#replaced > 0) this.#leaveOutReplaced()
    out.varint(this.#entries.length + 1)
    out.appendAll(this.#entries)
    out.uint8(pairStart)
  }

  /** Writes the value of a key as text; an empty text where the key is absent. */
  writeValueTo(out: RowBinary, key: string): void {
    const wanted = Buffer.from(key)
    for (let at = 0; at < this.#added; at++) {
      const length = this.#keyLengths[at] ?? -1
      const start = (this.#starts[at] ?? 0) + 1
      if (length === wanted.length && isSame(this.#entries.bytes, start, wanted, 0, length)) {
        const stop = this.#stopOf(at)
        out.varint(stop - start - length - 1)
        out.append(this.#entries.bytes, start + length + 1, stop)
        return
      }
    }
    out.text('')
  }

  /** Adds the attributes of the row to the identity of its series. */
  addTo(series: SeriesId, part: number): void {
    for (let at = 0; at < this.#added; at++) {
      if ((this.#keyLengths[at] ?? -1) < 0) continue
      const known = this.#known[at] ?? -1
      if (known >= 0) this.#memo?.addTo(known, series, part)
      else series.addPair(this.#entries, (this.#starts[at] ?? 0) + 1, this.#stopOf(at), part)
    }
  }

  #replaceEarlier(at: number): void {
    const earlier = this.#find(at)
    if (earlier < 0) return
    this.#keyLengths[earlier] = -1
    this.#replaced++
  }

  #leaveOutReplaced(): void {
    const entries = this.#entries
    let kept = 0
    let length = 0
    for (let at = 0; at < this.#added; at++) {
      const keyLength = this.#keyLengths[at] ?? -1
      if (keyLength < 0) continue
      const start = this.#starts[at] ?? 0
      const stop = this.#stopOf(at)
      entries.bytes.copyWithin(length, start, stop)
      this.#starts[kept] = length
      this.#known[kept] = this.#known[at] ?? -1
      this.#keyLengths[kept++] = keyLength
      length += stop - start
    }
    entries.length = length
    this.#added = kept
    this.#replaced = 0
    this.#index = null
  }

  #stopOf(at: number): number {
    return at + 1 < this.#added ? (this.#starts[at + 1] ?? 0) : this.#entries.length
  }

  /** Returns the entry before `at` with the same key; -1 where there is none. */
  #find(at: number): number {
    if (at >= scannedEntries) return this.#findByHash(at)
    const { bytes } = this.#entries
    const start = (this.#starts[at] ?? 0) + 1
    const length = this.#keyLengths[at] ?? 0
    for (let other = 0; other < at; other++) {
      if (
        this.#keyLengths[other] === length &&
        isSame(bytes, (this.#starts[other] ?? 0) + 1, bytes, start, length)
      )
        return other
    }
    return -1
  }

  #findByHash(at: number): number {
    if (this.#index === null) {
      this.#index = new Map()
      for (let other = 0; other < at; other++) {
        if ((this.#keyLengths[other] ?? -1) >= 0) this.#index.set(this.#keyOf(other), other)
      }
    }
    const key = this.#keyOf(at)
    const earlier = this.#index.get(key) ?? -1
    this.#index.set(key, at)
    return earlier
  }

  #keyOf(at: number): string {
    const start = (this.#starts[at] ?? 0) + 1
    return this.#entries.bytes.toString('latin1', start, start + (this.#keyLengths[at] ?? 0))
  }
}

function isSame(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
  // From the end, because keys of one namespace have the same beginning.
  let left = length - 1
  while (left >= 0 && a[aStart + left] === b[bStart + left]) left--
  return left < 0
}
