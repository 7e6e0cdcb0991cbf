// Uncompresses a complete body, at the turn at which it is decoded. A few kilobytes of gzip can contain
// gigabytes, so a body that waits for its turn is kept as it was sent, and its output is limited while it is
// produced. In one call and not as a stream: the blocks of a stream come back through the event loop one by
// one, and those of four bodies of 16 MB kept it busy for a second.

import { gunzipSync, unzipSync } from 'node:zlib'
import { AppError } from '../core/app-error.ts'

/** How a body is compressed; `deflate` is the zlib format of RFC 1950. */
export type Coding = 'identity' | 'gzip' | 'deflate'

/** The magic bytes, header and trailer of a gzip member without content (RFC 1952). */
const emptyMemberBytes = 18

/** A message of this size compresses to no less than a thousandth of it. */
const deflateRatioMax = 1032

/**
 * Returns how many bytes the body claims to have uncompressed, at most `limitBytes`. Only an estimate: the
 * length at the end of a gzip body is that of its last member (RFC 1952), and the zlib format has none. At
 * least its own length, because empty blocks cost time and have no content.
 */
export function claimedBytes(coding: Coding, body: Buffer, limitBytes: number): number {
  if (coding === 'gzip' && body.length >= emptyMemberBytes)
    return Math.min(Math.max(body.readUInt32LE(body.length - 4), body.length), limitBytes)
  return Math.min(body.length, limitBytes)
}

/**
 * Returns the uncompressed body; null where it has more than `maxBytes`, which is at least 1. Throws
 * `bad_request` where it is not what its coding says, or ends too early.
 */
export function uncompress(coding: Coding, body: Buffer, maxBytes: number): Buffer | null {
  if (coding === 'identity' || body.length === 0) return body.length <= maxBytes ? body : null
  const output = Math.min(claimedBytes(coding, body, maxBytes), body.length * deflateRatioMax)
  // One byte more, so that the usual body needs no second buffer to find its end.
  const options = { maxOutputLength: maxBytes, chunkSize: Math.max(output, smallestOutput) + 1 }
  try {
    return coding === 'gzip' ? gunzipSync(body, options) : unzipSync(body, options)
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    if (code === 'ERR_BUFFER_TOO_LARGE') return null
    if (!code.startsWith('Z_')) throw cause
    const name = coding === 'gzip' ? 'gzip' : 'deflate'
    throw new AppError('bad_request', { sentence: `The body is not valid ${name}.`, cause })
  }
}

const smallestOutput = 1024
