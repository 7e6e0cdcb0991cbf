// Remembers attributes of a protobuf body. Most records of a body repeat attributes of earlier ones byte for
// byte, and comparing some forty bytes and copying them at once takes a third of the time of reading them
// again (docs/decisions/0021). A memo belongs to one body and is dropped with it, so nothing passes from one
// sender to another. A result depends only on the bytes of the attribute.

import { RowBinary } from '../../telemetry/row-binary.ts'
import { type SeriesId, TextHash } from '../../telemetry/schema/series-id.ts'

/** Powers of two. A small body gets few slots, because creating many would cost more than they save. */
const fewestSlots = 16
const mostSlots = 1_024

/** Bytes of the body for each slot: about the size of an attribute. */
const bytesPerSlot = 32

/**
 * Limits of an attribute on the wire, bytes: the hash uses its last two words, and a long one costs as much
 * to copy as to read.
 */
const shortest = 8
const longest = 120

/** The attributes of one body that were read so far; each has a number that does not change. */
export class AttributeMemo {
  /** The body that all offsets below refer to. */
  readonly #view: DataView
  /**
   * The number of the attribute in each slot plus one, 0 for none. The first attribute of a slot stays: what
   * repeats comes early.
   */
  readonly #slots: Uint16Array
  readonly #starts: number[] = []
  readonly #lengths: number[] = []
  readonly #keyLengths: number[] = []
  /** The attributes as they are stored, one after another. */
  readonly #pairs = new RowBinary()
  /** The end of each, after a 0 for the start of the first. */
  readonly #stops: number[] = [0]
  readonly #hashes: TextHash[] = []
  /** The slot of the last search that found nothing; -1 where the attribute can't be kept. */
  #free = -1

  constructor(view: DataView) {
    this.#view = view
    let slots = fewestSlots
    while (slots < mostSlots && slots * bytesPerSlot < view.byteLength) slots *= 2
    this.#slots = new Uint16Array(slots)
  }

  /**
   * Returns the number of an attribute with the same bytes as those from `start` to `stop`; -1 where there is
   * none.
   */
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
   * Keeps the attribute that {@link find} has just searched for and not found.
   *
   * @param start where its bytes begin in the body
   * @param pairs has the attribute at its end, from `pairStart` on, as it is stored
   * @param keyLength bytes of its key there
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

  /** Writes the attribute as it is stored. */
  writeTo(known: number, out: RowBinary): void {
    out.appendWords(this.#pairs, this.#stops[known] ?? 0, this.#stops[known + 1] ?? 0)
  }

  /** Adds the attribute to the identity of a series. */
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
 * Hashes the attribute's length and three of its words: the last ones differ between most values, the middle
 * one between most keys.
 */
function hashOf(length: number, last: number, beforeLast: number, middle: number): number {
  const ends = Math.imul(last ^ length, 0x9e3779b1) ^ Math.imul(beforeLast, 0x85ebca77)
  const hash = Math.imul(ends ^ middle, 0xc2b2ae3d)
  return hash ^ (hash >>> 15)
}
