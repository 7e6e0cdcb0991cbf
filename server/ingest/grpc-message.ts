// Extracts the single message of a gRPC call from its frame: a byte that says whether it is compressed, four
// bytes of length, and the message ("Length-Prefixed-Message" in gRPC over HTTP/2). Passes on the
// uncompressed message as it arrives and buffers nothing, so that the reader counts every byte; nothing
// beyond the limit is passed on.

import { Transform, type TransformCallback } from 'node:stream'
import { createUnzip, type Unzip } from 'node:zlib'
import { AppError } from '../core/app-error.ts'

const prefixBytes = 5

/**
 * The supported values of `grpc-encoding`. A decompressor distinguishes gzip and deflate by their first
 * bytes.
 */
export const grpcEncodings = ['identity', 'gzip', 'deflate'] as const
export type GrpcEncoding = (typeof grpcEncodings)[number]

export class GrpcMessage extends Transform {
  readonly #encoding: GrpcEncoding
  readonly #limitBytes: number
  readonly #prefix = Buffer.alloc(prefixBytes)
  #prefixLength = 0
  /** Bytes of the message that have not arrived yet. */
  #missing = 0
  #unzip: Unzip | null = null
  #produced = 0

  /**
   * @param limitBytes the most bytes of the message, compressed and uncompressed; above it the stream fails
   * with `body_too_large`
   */
  constructor(encoding: GrpcEncoding, limitBytes: number) {
    super()
    this.#encoding = encoding
    this.#limitBytes = limitBytes
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      const rest = this.#readPrefix(chunk)
      if (rest.length > this.#missing) throw badCall('Send one message in a call.')
      this.#missing -= rest.length
      if (rest.length === 0) done()
      else if (this.#unzip === null) done(null, rest)
      else this.#unzip.write(rest, () => done())
    } catch (error) {
      done(error instanceof Error ? error : new AppError('internal', { cause: error }))
    }
  }

  override _flush(done: TransformCallback): void {
    if (this.#prefixLength === 0) done(badCall('The call has no message.'))
    else if (this.#prefixLength < prefixBytes || this.#missing > 0) done(cutShort())
    else if (this.#unzip === null) done()
    else this.#unzip.once('end', () => done()).end()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#unzip?.destroy()
    done(error)
  }

  /** Returns the bytes after the prefix. Throws where the message can't be accepted. */
  #readPrefix(chunk: Buffer): Buffer {
    if (this.#prefixLength === prefixBytes) return chunk
    const copied = chunk.copy(this.#prefix, this.#prefixLength)
    this.#prefixLength += copied
    if (this.#prefixLength === prefixBytes) {
      this.#missing = this.#prefix.readUInt32BE(1)
      if (this.#missing > this.#limitBytes) throw new AppError('body_too_large')
      if (this.#prefix[0] !== 0) this.#unzip = this.#openUnzip()
    }
    return chunk.subarray(copied)
  }

  #openUnzip(): Unzip {
    if (this.#encoding === 'identity') {
      throw badCall('The message is marked as compressed; name its compression in grpc-encoding.')
    }
    const unzip = createUnzip()
    unzip.on('data', (chunk: Buffer) => {
      this.#produced += chunk.length
      if (this.#produced > this.#limitBytes) this.destroy(new AppError('body_too_large'))
      else this.push(chunk)
    })
    unzip.on('error', (cause) => {
      this.destroy(
        new AppError('bad_request', { sentence: 'The message is not valid gzip or deflate.', cause }),
      )
    })
    return unzip
  }
}

/** The error for a call that ended, or whose client disconnected, before its message was complete. */
export function cutShort(): AppError {
  return badCall('The call ended before its message was whole.')
}

function badCall(sentence: string): AppError {
  return new AppError('bad_request', { sentence })
}
