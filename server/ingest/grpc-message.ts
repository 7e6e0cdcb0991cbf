// Extracts the single message of a gRPC call from its frame: a byte that says whether it is compressed, four
// bytes of length, and the message ("Length-Prefixed-Message" in gRPC over HTTP/2). Passes on the message as
// it arrives, compressed or not, and buffers nothing, so that the reader counts every byte; nothing beyond
// the limit is passed on.

import { Transform, type TransformCallback } from 'node:stream'
import { AppError } from '../core/app-error.ts'
import type { Coding } from './uncompress.ts'

const prefixBytes = 5

/** The supported values of `grpc-encoding`. */
export const grpcEncodings = ['identity', 'gzip', 'deflate'] as const satisfies readonly Coding[]
export type GrpcEncoding = (typeof grpcEncodings)[number]

export class GrpcMessage extends Transform {
  readonly #encoding: GrpcEncoding
  readonly #limitBytes: number
  readonly #prefix = Buffer.alloc(prefixBytes)
  #prefixLength = 0
  /** Bytes of the message that have not arrived yet. */
  #missing = 0
  #coding: Coding = 'identity'

  /**
   * @param limitBytes the most bytes of the message as it is sent; above it the stream fails with
   * `body_too_large`
   */
  constructor(encoding: GrpcEncoding, limitBytes: number) {
    super()
    this.#encoding = encoding
    this.#limitBytes = limitBytes
  }

  /** How the message is compressed, once its first byte has arrived: single messages may be uncompressed. */
  get coding(): Coding {
    return this.#coding
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      const rest = this.#readPrefix(chunk)
      if (rest.length > this.#missing) throw badCall('Send one message in a call.')
      this.#missing -= rest.length
      if (rest.length === 0) done()
      else done(null, rest)
    } catch (error) {
      done(error instanceof Error ? error : new AppError('internal', { cause: error }))
    }
  }

  override _flush(done: TransformCallback): void {
    if (this.#prefixLength === 0) done(badCall('The call has no message.'))
    else if (this.#prefixLength < prefixBytes || this.#missing > 0) done(incompleteMessage())
    else done()
  }

  /** Returns the bytes after the prefix. Throws where the message can't be accepted. */
  #readPrefix(chunk: Buffer): Buffer {
    if (this.#prefixLength === prefixBytes) return chunk
    const copied = chunk.copy(this.#prefix, this.#prefixLength)
    this.#prefixLength += copied
    if (this.#prefixLength === prefixBytes) {
      this.#missing = this.#prefix.readUInt32BE(1)
      if (this.#missing > this.#limitBytes) throw new AppError('body_too_large')
      if (this.#prefix[0] !== 0) this.#coding = this.#namedCoding()
    }
    return chunk.subarray(copied)
  }

  #namedCoding(): Coding {
    if (this.#encoding !== 'identity') return this.#encoding
    throw badCall('The message is marked as compressed; name its compression in grpc-encoding.')
  }
}

/** The error for a call that ended, or whose client disconnected, before its message was complete. */
export function incompleteMessage(): AppError {
  return badCall('The call ended before its message was whole.')
}

function badCall(sentence: string): AppError {
  return new AppError('bad_request', { sentence })
}
