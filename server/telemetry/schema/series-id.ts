// The number that a metric point carries of its series, in the column SeriesId: a hash of what makes a
// series one (metric, service, resource, scope name and attributes, in any order). It is computed over the
// bytes of a row while that is written, because two maps hashed for each point are what reading else costs
// most; and by the engine, to the same number, for rows that came without one (`seriesIdExpression`). A test
// holds the two against each other over random rows, so neither may change without the other, nor at all
// while rows of before are kept.
//
// Two 32-bit hashes side by side (Appleby's MurmurHash3 and MurmurHash2, seed 0) because JavaScript has no
// quick 64-bit arithmetic. Hashes of attributes are added up, so that their order does not matter; what
// they are of multiplies them.

import type { RowBinary } from '../row-binary.ts'
import { pairsIn } from './attribute-pairs.ts'

/** What a hash is multiplied by before it is added, odd and different for each part of the identity. */
export const seriesParts = {
  attributes: 1,
  resource: 0x9e3779b1,
  service: 0x85ebca77,
  scope: 0xc2b2ae3d,
  metric: 0x27d4eb2f,
} as const

/** The identity of a row by its columns, as the engine computes it. */
export const seriesIdExpression = `bitOr(bitShiftLeft(toUInt64(${laneOf('murmurHash3_32')}), 32), toUInt64(${laneOf('murmurHash2_32')}))`

/** Sums wrap; only their lower half counts. */
function laneOf(hash: string): string {
  const ofPairs = (column: string) => `arraySum(pair -> ${hash}(pair), ${pairsIn(column)})`
  const { resource, service, scope, metric } = seriesParts
  return `toUInt32(${ofPairs('AttributesPairs')} + ${ofPairs('ResourceAttributesPairs')} * ${resource} + ${hash}(ServiceName) * ${service} + ${hash}(ScopeName) * ${scope} + ${hash}(MetricName) * ${metric})`
}

/**
 * Both hashes of one text, of which the identities of series are sums. Texts are taken from where
 * they stand in RowBinary.
 */
export class TextHash {
  upper = 0
  lower = 0

  /** Becomes the hashes of what stands between `start` and `stop`. */
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
  /** Of the result, as unsigned 32-bit integers once more. */
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

  /** The text that begins at `start` with its length and ends at `stop`. */
  addText(of: RowBinary, start: number, stop: number, part: number): void {
    this.addPair(of, afterLength(of, start), stop, part)
  }

  /** An attribute as it is stored: its key from `start` on, and its value until `stop`. */
  addPair(of: RowBinary, start: number, stop: number, part: number): void {
    this.#hash.take(of, start, stop)
    this.addHash(this.#hash, part)
  }

  /** What {@link addText} and {@link addPair} add, of a text that was hashed before. */
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

/** Where a text begins whose length begins at `at`. */
function afterLength({ bytes }: RowBinary, at: number): number {
  let last = at
  while ((bytes[last] ?? 0) > 127) last++
  return last + 1
}
