// Decompresses the engine's column files: a search that looked only at compressed bytes would miss most
// texts. The format is ClickHouse's: blocks of a 16-byte checksum, a byte for the codec, the compressed size
// (including this header of nine bytes), the uncompressed size, both little-endian, and the data.

import { zstdDecompressSync } from 'node:zlib'

const checksumBytes = 16
const headerBytes = 9

/**
 * Decompressed blocks one after the other, until something that isn't such a block. Codecs other than plain
 * LZ4, ZSTD or none are left out.
 */
export function unpackColumns(file: Buffer): Buffer {
  const blocks: Buffer[] = []
  let at = 0
  while (at + checksumBytes + headerBytes <= file.length) {
    const head = at + checksumBytes
    const sizeBytes = file.readUInt32LE(head + 1)
    if (sizeBytes < headerBytes || head + sizeBytes > file.length) break
    const data = file.subarray(head + headerBytes, head + sizeBytes)
    const block = unpack(file.readUInt8(head), data, file.readUInt32LE(head + 5))
    if (block !== null) blocks.push(block)
    at = head + sizeBytes
  }
  return Buffer.concat(blocks)
}

function unpack(codec: number, data: Buffer, unpackedBytes: number): Buffer | null {
  if (codec === 0x02) return data
  if (codec === 0x82) return unpackLz4(data, unpackedBytes)
  if (codec === 0x90) return zstdDecompressSync(data)
  // 0x91: several codecs, such as Delta before ZSTD; the codec applied last is the outermost.
  if (codec === 0x91) return unpackSeveral(data, unpackedBytes)
  return null
}

/**
 * Codecs in the order in which they were applied, then a block of the last one. What Delta made of a number
 * is not undone.
 */
function unpackSeveral(data: Buffer, unpackedBytes: number): Buffer | null {
  const count = data.readUInt8(0)
  const codecs = [...data.subarray(1, 1 + count)]
  const block = data.subarray(1 + count)
  const outermost = codecs.at(-1)
  return outermost === undefined ? null : unpack(outermost, block.subarray(headerBytes), unpackedBytes)
}

/**
 * LZ4 block format: a token's high four bits count literals, its low four bits count repeated bytes, from a
 * 16-bit distance.
 */
function unpackLz4(data: Buffer, unpackedBytes: number): Buffer {
  const out = Buffer.alloc(unpackedBytes)
  let [from, to] = [0, 0]
  const lengthFrom = (nibble: number) => {
    let length = nibble
    for (let more = nibble === 15 ? 255 : 0; more === 255; length += more) more = data.readUInt8(from++)
    return length
  }
  while (from < data.length) {
    const token = data.readUInt8(from++)
    const literals = lengthFrom(token >> 4)
    data.copy(out, to, from, from + literals)
    from += literals
    to += literals
    if (from >= data.length) break
    const distance = data.readUInt16LE(from)
    from += 2
    // Byte by byte, because the repeated bytes may overlap the new ones.
    for (let left = lengthFrom(token & 15) + 4; left > 0; left--, to++) out[to] = out[to - distance] ?? 0
  }
  return out
}
