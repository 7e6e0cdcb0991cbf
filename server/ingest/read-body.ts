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

/** A whole body. Whoever takes it releases it as soon as it is decoded, and holds none of its bytes from then on. */
export class IngestBody {
  readonly #hold: BodyHold
  #bytes: Buffer

  /** @param chunks of {@link pool}, which are given back; `length` is that of all of them */
  constructor(chunks: readonly Buffer[], length: number, hold: BodyHold) {
    this.#bytes = pool.lend(length)
    this.#hold = hold
    let at = 0
    for (const chunk of chunks) {
      at += chunk.copy(this.#bytes, at)
      pool.giveBack(chunk)
    }
  }

  /** None any more once it is released. */
  get bytes(): Buffer {
    return this.#bytes
  }

  /** Idempotent. */
  release(): void {
    this.#hold.release()
    pool.giveBack(this.#bytes)
    this.#bytes = nothing
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
  const hold = budget.open()
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let received = 0
    const refuse = (error: Error) => {
      payload.removeListener('data', onData)
      for (const chunk of chunks.splice(0)) pool.giveBack(chunk)
      hold.release()
      reject(error)
    }
    const onData = (chunk: Buffer) => {
      received += chunk.length
      try {
        if (received > limitBytes) throw new AppError('body_too_large')
        hold.grow(chunk.length)
        const copy = pool.lend(chunk.length)
        chunk.copy(copy)
        chunks.push(copy)
      } catch (error) {
        refuse(error instanceof Error ? error : new AppError('internal', { cause: error }))
      }
    }
    payload.on('data', onData)
    payload.once('end', () => resolve(new IngestBody(chunks, received, hold)))
    // Also where the sender goes away.
    payload.once('error', (error: Error) => refuse(asBadRequest(error)))
    if (Number(incoming.headers['content-length'] ?? 0) > limitBytes) refuse(new AppError('body_too_large'))
  })
}

/** What breaks on its way here is the sender's, unless it says otherwise. */
function asBadRequest(error: Error): Error {
  const hasMeaning = error instanceof AppError || ('code' in error && String(error.code).startsWith('Z_'))
  return hasMeaning ? error : new AppError('bad_request', { cause: error })
}
