// Computes the identity of a metric point's series, the column SeriesId: a hash of what identifies a series
// (metric, service, resource, scope name and attributes, in any order). It is computed over the bytes of a
// row while the row is written, because hashing two maps for each point was the largest cost of reading. For
// rows that came without it the engine computes the same number (`seriesIdExpression`). A test compares both
// over random rows. Neither may change without the other, and neither may change at all while older rows are
// kept.
//
// Two 32-bit hashes side by side (Appleby's MurmurHash3 and MurmurHash2, seed 0), because JavaScript has no
// fast 64-bit arithmetic. Hashes of attributes are added up, so that their order does not matter; the part of
// the identity that they belong to is a factor.

import type { RowBinary } from '../row-binary.ts'
import { pairsIn } from './attribute-pairs.ts'

/** The factors of hashes before they are added: odd, and different for each part of the identity. */
export const seriesParts = {
  attributes: 1,
  resource: 0x9e3779b1,
  service: 0x85ebca77,
  scope: 0xc2b2ae3d,
  metric: 0x27d4eb2f,
} as const

/** The identity of a row from its columns, as the engine computes it. */
export const seriesIdExpression = `bitOr(bitShiftLeft(toUInt64(${laneOf('murmurHash3_32')}), 32), toUInt64(${laneOf('murmurHash2_32')}))`

/** Sums overflow; only their lower half counts. */
function laneOf(hash: string): string {
  const ofPairs = (column: string) => `arraySum(pair -> ${hash}(pair), ${pairsIn(column)})`
  const { resource, service, scope, metric } = seriesParts
  return `toUInt32(${ofPairs('AttributesPairs')} + ${ofPairs('ResourceAttributesPairs')} * ${resource} + ${hash}(ServiceName) * ${service} + ${hash}(ScopeName) * ${scope} + ${hash}(MetricName) * ${metric})`
}

/**
 * Both hashes of one text; the identity of a series is a sum of such hashes. Reads texts where they are in
 * RowBinary.
 */
export class TextHash {
  upper = 0
  lower = 0

  /** Sets this to the hashes of the bytes between `start` and `stop`. */
  take({ view }: RowBinary, start: number, stop: number): void {
    const length = stop - start
    let third = 0
    let second = length
    let at = start
    for (; at + 4 <= stop; at += 4) {
      const word = view.getInt32(at, true)
      third ^= scrambled(word)
      third = (Math.imul((third << 13) | (third >>> 19), 5) + 0xe6546b64) | 0
      const mixed = Math.imul(word, murmur2)
      second = Math.imul(second, murmur2) ^ Math.imul(mixed ^ (mixed >>> 24), murmur2)
    }
    if (at < stop) {
      let rest = view.getUint8(at)
      if (at + 1 < stop) rest |= view.getUint8(at + 1) << 8
      if (at + 2 < stop) rest |= view.getUint8(at + 2) << 16
      third ^= scrambled(rest)
      second = Math.imul(second ^ rest, murmur2)
    }
    third ^= length
    third = Math.imul(third ^ (third >>> 16), 0x85ebca6b)
    third = Math.imul(third ^ (third >>> 13), 0xc2b2ae35)
    this.upper = third ^ (third >>> 16)
    second = Math.imul(second ^ (second >>> 13), murmur2)
    this.lower = second ^ (second >>> 15)
  }
}

/** The identity of one series while its parts are added. */
export class SeriesId {
  /** Signed 32-bit integers; the getters return them unsigned. */
  #upper = 0
  #lower = 0
  readonly #hash = new TextHash()

  get hi(): number {
    return this.#upper >>> 0
  }

  get lo(): number {
    return this.#lower >>> 0
  }

  clear(): void {
    this.#upper = 0
    this.#lower = 0
  }

  copy(other: SeriesId): void {
    this.#upper = other.#upper
    this.#lower = other.#lower
  }

  /** Adds the text that begins at `start` with its length and ends at `stop`. */
  addText(of: RowBinary, start: number, stop: number, part: number): void {
    this.addPair(of, afterLength(of, start), stop, part)
  }

  /** Adds an attribute as it is stored: key from `start` on, value until `stop`. */
  addPair(of: RowBinary, start: number, stop: number, part: number): void {
    this.#hash.take(of, start, stop)
    this.addHash(this.#hash, part)
  }

  /** Adds what {@link addText} and {@link addPair} add for a text that was hashed before. */
  addHash({ upper, lower }: TextHash, part: number): void {
    this.#upper = (this.#upper + Math.imul(upper, part)) | 0
    this.#lower = (this.#lower + Math.imul(lower, part)) | 0
  }
}

const murmur2 = 0x5bd1e995

function scrambled(word: number): number {
  const mixed = Math.imul(word, 0xcc9e2d51)
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593)
}

/** Returns the start of a text whose length begins at `at`. */
function afterLength({ bytes }: RowBinary, at: number): number {
  let last = at
  while ((bytes[last] ?? 0) > 127) last++
  return last + 1
}
