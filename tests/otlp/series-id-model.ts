// The id of a metric row's series, computed directly from its definition and without optimisation, to compare
// with the service, which computes it over bytes, and the engine, which computes it over columns.

import type { AttributeMap, Cell } from '../../server/telemetry/row-fixture.ts'

const two32 = 2n ** 32n

/** Returns decimal text, for a row by column names. */
export function seriesIdOf(row: Readonly<Record<string, Cell>>): string {
  const text = (column: string) => Buffer.from(String(row[column]))
  const lane = (hash: (bytes: Buffer) => bigint) => {
    const ofMap = (column: string) =>
      Object.entries((row[column] ?? {}) as AttributeMap)
        .map(([key, value]) =>
          hash(Buffer.concat([Buffer.from(key), Buffer.from([255]), Buffer.from(value)])),
        )
        .reduce((sum, one) => sum + one, 0n)
    const sum =
      ofMap('Attributes') +
      ofMap('ResourceAttributes') * 0x9e3779b1n +
      hash(text('ServiceName')) * 0x85ebca77n +
      hash(text('ScopeName')) * 0xc2b2ae3dn +
      hash(text('MetricName')) * 0x27d4eb2fn
    return sum % two32
  }
  return String(lane(murmurHash3) * two32 + lane(murmurHash2))
}

const rotated = (value: bigint, bits: bigint) => ((value << bits) | (value >> (32n - bits))) % two32

/** Little-endian words, the last one padded with zeros. */
function wordsOf(bytes: Buffer): { whole: bigint[]; rest: bigint | undefined } {
  const padded = Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])
  const words = Array.from({ length: padded.length / 4 }, (_, i) => BigInt(padded.readUInt32LE(i * 4)))
  const rest = bytes.length % 4 === 0 ? undefined : words.pop()
  return { whole: words, rest }
}

/** MurmurHash3_x86_32 of Austin Appleby, seed 0. */
function murmurHash3(bytes: Buffer): bigint {
  const scrambled = (word: bigint) => (rotated((word * 0xcc9e2d51n) % two32, 15n) * 0x1b873593n) % two32
  const { whole, rest } = wordsOf(bytes)
  let hash = 0n
  for (const word of whole) hash = (rotated(hash ^ scrambled(word), 13n) * 5n + 0xe6546b64n) % two32
  if (rest !== undefined) hash ^= scrambled(rest)
  hash ^= BigInt(bytes.length)
  hash = ((hash ^ (hash >> 16n)) * 0x85ebca6bn) % two32
  hash = ((hash ^ (hash >> 13n)) * 0xc2b2ae35n) % two32
  return hash ^ (hash >> 16n)
}

/** MurmurHash2 of the same, seed 0. */
function murmurHash2(bytes: Buffer): bigint {
  const factor = 0x5bd1e995n
  const { whole, rest } = wordsOf(bytes)
  let hash = BigInt(bytes.length)
  for (const word of whole) {
    const mixed = (word * factor) % two32
    hash = ((hash * factor) % two32) ^ (((mixed ^ (mixed >> 24n)) * factor) % two32)
  }
  if (rest !== undefined) hash = ((hash ^ rest) * factor) % two32
  hash = ((hash ^ (hash >> 13n)) * factor) % two32
  return hash ^ (hash >> 15n)
}
