// Reads a request body from its stream, within the limit for one body and the budget for all of them. What was read of
// a body that is refused is let go at once, and the rest of it is not read.

import type { IncomingMessage } from 'node:http'
import { AppError } from '../core/app-error.ts'
import { BytePool } from '../telemetry/byte-pool.ts'
import type { BodyBudget, BodyHold } from './body-budget.ts'

export interface BodyLimits {
  /** Largest body, bytes. */
  readonly limitBytes: number
  readonly budget: BodyBudget
}

/**
 * What comes from the network is copied here at once, so that it is garbage while it is young: what the collector moves
 * to old memory before makes it look at everything two or three times a second. Wide enough for what senders have under
 * way at once.
 */
const pool = new BytePool(64 * 1024 * 1024)

/** Memory of a body whose sender declares how large it is, as a multiple of what has come: who declares much and sends little holds little. */
const aheadFactor = 4
const firstBytes = 64 * 1024

/** A body from its first byte on. Whoever takes it whole releases it as soon as it is decoded. */
export class IngestBody {
  readonly #hold: BodyHold
  readonly #declaredBytes: number
  #memory: Buffer = nothing
  #length = 0

  /** @param declaredBytes what its sender says that it will have, or zero */
  constructor(hold: BodyHold, declaredBytes: number) {
    this.#hold = hold
    this.#declaredBytes = declaredBytes
  }

  /** Of what has come; not to be held, and none any more once it is released. */
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#length)
  }

  /** Copies the chunk. Throws `overloaded` where there is no room for it. */
  add(chunk: Buffer): void {
    const length = this.#length + chunk.length
    if (length > this.#memory.length) this.#growTo(length)
    chunk.copy(this.#memory, this.#length)
    this.#length = length
  }

  /** Idempotent. */
  release(): void {
    this.#hold.release()
    pool.giveBack(this.#memory)
    this.#memory = nothing
    this.#length = 0
  }

  /** To what was declared, but to no more than {@link aheadFactor} times what has come, and at least that. */
  #growTo(length: number): void {
    const ahead = Math.max(aheadFactor * length, firstBytes)
    const size = this.#declaredBytes >= length ? Math.min(this.#declaredBytes, ahead) : 2 * length
    this.#hold.grow(size - this.#memory.length)
    const larger = pool.lend(size)
    this.#memory.copy(larger, 0, 0, this.#length)
    pool.giveBack(this.#memory)
    this.#memory = larger
  }
}

const nothing = Buffer.alloc(0)

/**
 * Resolves to the body, or rejects with `body_too_large`, `overloaded`, or what the stream failed with.
 *
 * @param payload the body as it is to be counted: `incoming` itself or, of a compressed one, what comes out
 */
export function readBody(
  incoming: IncomingMessage,
  payload: NodeJS.ReadableStream,
  { limitBytes, budget }: BodyLimits,
): Promise<IngestBody> {
  const declared = Number(incoming.headers['content-length'] ?? 0)
  const body = new IngestBody(budget.open(), payload === incoming ? declared : 0)
  return new Promise((resolve, reject) => {
    let received = 0
    const refuse = (error: Error) => {
      payload.removeListener('data', onData)
      body.release()
      reject(error)
    }
    const onData = (chunk: Buffer) => {
      received += chunk.length
      try {
        if (received > limitBytes) throw new AppError('body_too_large')
        body.add(chunk)
      } catch (error) {
        refuse(error instanceof Error ? error : new AppError('internal', { cause: error }))
      }
    }
    payload.on('data', onData)
    payload.once('end', () => resolve(body))
    // Also where the sender goes away.
    payload.once('error', (error: Error) => refuse(asBadRequest(error)))
    if (declared > limitBytes) refuse(new AppError('body_too_large'))
  })
}

/** What breaks on its way here is the sender's, unless it says otherwise. */
function asBadRequest(error: Error): Error {
  const hasMeaning = error instanceof AppError || ('code' in error && String(error.code).startsWith('Z_'))
  return hasMeaning ? error : new AppError('bad_request', { cause: error })
}
