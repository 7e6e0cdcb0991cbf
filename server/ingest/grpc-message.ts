// The one message of a gRPC call, out of its frame: a byte that says whether it is compressed, four bytes of
// length, and then the message ("Length-Prefixed-Message" in gRPC over HTTP/2). What comes out is the
// message, uncompressed, as it arrives. Nothing is gathered here, so that whoever reads it counts every byte,
// and nothing beyond the limit comes out.

import { Transform, type TransformCallback } from 'node:stream'
import { createUnzip, type Unzip } from 'node:zlib'
import { AppError } from '../core/app-error.ts'

const prefixBytes = 5

/**
 * The values of `grpc-encoding` that are understood. A decompressor tells gzip and deflate
 * apart by their first bytes.
 */
export const grpcEncodings = ['identity', 'gzip', 'deflate'] as const
export type GrpcEncoding = (typeof grpcEncodings)[number]

export class GrpcMessage extends Transform {
  readonly #encoding: GrpcEncoding
  readonly #limitBytes: number
  readonly #prefix = Buffer.alloc(prefixBytes)
  #prefixLength = 0
  /** Bytes of the message that are still to come. */
  #missing = 0
  #unzip: Unzip | null = null
  #produced = 0

  /**
   * @param limitBytes of the message, compressed and not; beyond it the stream fails with `body_too_large`
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

  /** Answers what is behind the prefix. Throws where the message can't be taken. */
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

/** A call that ended, or whose sender went away, before its message was whole. */
export function cutShort(): AppError {
  return badCall('The call ended before its message was whole.')
}

function badCall(sentence: string): AppError {
  return new AppError('bad_request', { sentence })
}
