// Snappy's block format, as Prometheus remote write uses it (google/snappy, format_description.txt). The
// declared length is checked before memory is allocated, every element is checked against both ends, and
// nothing is written beyond the declared length. Any body results in exactly that many bytes or in an error,
// in time linear in both lengths.

import { AppError } from '../../core/app-error.ts'

const broken = () => new AppError('bad_request', { sentence: 'The body is not valid Snappy (block format).' })

/**
 * Returns the declared length of the uncompressed body. Throws `body_too_large` above the limit,
 * `bad_request` where there is none.
 */
export function snappyLength(compressed: Buffer, limitBytes: number): number {
  const { value } = readLength(compressed)
  if (value > limitBytes) throw new AppError('body_too_large')
  return value
}

/**
 * Returns the uncompressed body. Throws like {@link snappyLength}, and `bad_request` where the bytes are
 * not Snappy.
 */
export function uncompressSnappy(compressed: Buffer, limitBytes: number): Buffer {
  const into = Buffer.allocUnsafe(snappyLength(compressed, limitBytes))
  const written = expand(compressed, readLength(compressed).next, into)
  // With fewer bytes than declared, the rest would be old content of the memory.
  if (written !== into.length) throw broken()
  return into
}

/** Reads a varint of at most 32 bits. */
function readLength(from: Buffer): { value: number; next: number } {
  let value = 0
  for (let at = 0; at < 5; at++) {
    const byte = from[at]
    if (byte === undefined) throw broken()
    value += (byte & 0x7f) * 2 ** (7 * at)
    if (byte < 0x80) return { value, next: at + 1 }
  }
  throw broken()
}

/** Returns the number of written bytes. */
function expand(from: Buffer, start: number, into: Buffer): number {
  let at = start
  let to = 0
  while (at < from.length) {
    const tag = from[at++] ?? 0
    const kind = tag & 3
    if (kind === 0) {
      const extra = Math.max(0, (tag >>> 2) - 59)
      if (at + extra > from.length) throw broken()
      const length = (extra === 0 ? tag >>> 2 : from.readUIntLE(at, extra)) + 1
      at += extra
      if (at + length > from.length || to + length > into.length) throw broken()
      from.copy(into, to, at, at + length)
      at += length
      to += length
      continue
    }
    const extra = kind === 3 ? 4 : kind
    if (at + extra > from.length) throw broken()
    const length = kind === 1 ? ((tag >>> 2) & 7) + 4 : (tag >>> 2) + 1
    const low = from.readUIntLE(at, extra)
    const offset = kind === 1 ? ((tag >>> 5) << 8) + low : low
    at += extra
    if (offset === 0 || offset > to || to + length > into.length) throw broken()
    to = copyBack(into, to, offset, length)
  }
  return to
}

/** The source of a copy may overlap its target, which repeats the source. */
function copyBack(into: Buffer, to: number, offset: number, length: number): number {
  if (offset >= length) into.copyWithin(to, to - offset, to - offset + length)
  else for (let i = to; i < to + length; i++) into[i] = into[i - offset] ?? 0
  return to + length
}
