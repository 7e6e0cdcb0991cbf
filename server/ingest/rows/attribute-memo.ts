// Attributes of a protobuf body that were read before. Most records of a body repeat attributes of earlier
// ones, byte for byte: comparing some forty bytes and copying them at once is a third of the work of reading
// them anew (docs/decisions/0021). A memo belongs to one body and goes with it, so nothing gets from one
// sender to another. What it answers depends on the bytes of the attribute and on nothing else.

import { RowBinary } from '../../telemetry/row-binary.ts'
import { type SeriesId, TextHash } from '../../telemetry/schema/series-id.ts'

/**
 * Powers of two. A small body gets few slots, because making many of them would cost it more than they save.
 */
const fewestSlots = 16
const mostSlots = 1_024

/** Of a body for each slot, bytes: about an attribute's. */
const bytesPerSlot = 32

/**
 * Bytes of an attribute on the wire: its last two words are looked at, and a long one costs as
 * much to copy either way.
 */
const shortest = 8
const longest = 120

/** The attributes of one body that were read so far, by numbers that stay theirs. */
export class AttributeMemo {
  /** Of the body that all places below are in. */
  readonly #view: DataView
  /**
   * One more than the number of the attribute in it, 0 for none. Who comes first stays:
   * what repeats comes early.
   */
  readonly #slots: Uint16Array
  readonly #starts: number[] = []
  readonly #lengths: number[] = []
  readonly #keyLengths: number[] = []
  /** As they are stored, one behind the other. */
  readonly #pairs = new RowBinary()
  /** Where each ends, behind the 0 that the first begins at. */
  readonly #stops: number[] = [0]
  readonly #hashes: TextHash[] = []
  /** The slot of what was last looked for and not found, -1 where it isn't to be kept. */
  #free = -1

  constructor(view: DataView) {
    this.#view = view
    let slots = fewestSlots
    while (slots < mostSlots && slots * bytesPerSlot < view.byteLength) slots *= 2
    this.#slots = new Uint16Array(slots)
  }

  /** The number of an attribute with the same bytes as those from `start` to `stop`, or -1. */
  find(start: number, stop: number): number {
    const length = stop - start
    this.#free = -1
    if (length < shortest || length > longest) return -1
    const view = this.#view
    const last = view.getInt32(stop - 4, true)
    const hash = hashOf(
      length,
      last,
      view.getInt32(stop - 8, true),
      view.getInt32(start + (length >> 1), true),
    )
    const slot = hash & (this.#slots.length - 1)
    const known = (this.#slots[slot] ?? 0) - 1
    if (known < 0) {
      this.#free = slot
      return -1
    }
    if (this.#lengths[known] !== length) return -1
    let other = this.#starts[known] ?? 0
    if (view.getInt32(other + length - 4, true) !== last) return -1
    for (let at = start; at + 4 <= stop; at += 4, other += 4) {
      if (view.getInt32(at, true) !== view.getInt32(other, true)) return -1
    }
    return known
  }

  /**
   * Keeps what {@link find} was just asked for and did not find.
   *
   * @param start where its bytes begin in the body
   * @param pairs holds it at the end, from `pairStart` on, as it is stored
   * @param keyLength bytes of its key in there
   */
  keep(start: number, stop: number, pairs: RowBinary, pairStart: number, keyLength: number): void {
    if (this.#free < 0) return
    this.#starts.push(start)
    this.#lengths.push(stop - start)
    this.#keyLengths.push(keyLength)
    this.#pairs.append(pairs.bytes, pairStart, pairs.length)
    this.#stops.push(this.#pairs.length)
    this.#slots[this.#free] = this.#starts.length
    this.#free = -1
  }

  keyLengthOf(known: number): number {
    return this.#keyLengths[known] ?? 0
  }

  /** Writes it as it is stored. */
  writeTo(known: number, out: RowBinary): void {
    out.appendWords(this.#pairs, this.#stops[known] ?? 0, this.#stops[known + 1] ?? 0)
  }

  /** Adds it to the identity of a series. */
  addTo(known: number, series: SeriesId, part: number): void {
    series.addHash(this.#hashes[known] ?? this.#hash(known), part)
  }

  #hash(known: number): TextHash {
    const hash = new TextHash()
    hash.take(this.#pairs, (this.#stops[known] ?? 0) + 1, this.#stops[known + 1] ?? 0)
    this.#hashes[known] = hash
    return hash
  }
}

/**
 * Of an attribute's length and three of its words; the last ones tell most values apart,
 * the middle one most keys.
 */
function hashOf(length: number, last: number, beforeLast: number, middle: number): number {
  const ends = Math.imul(last ^ length, 0x9e3779b1) ^ Math.imul(beforeLast, 0x85ebca77)
  const hash = Math.imul(ends ^ middle, 0xc2b2ae3d)
  return hash ^ (hash >>> 15)
}
