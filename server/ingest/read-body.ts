// Reads a request body from its stream, within the limit for one body and the budget for all of them. What
// was read of a body that is refused is let go at once, and the rest of it is not read.

import type { Readable } from 'node:stream'
import { AppError } from '../core/app-error.ts'
import { BytePool } from '../telemetry/byte-pool.ts'
import type { BodyBudget, BodyHold } from './body-budget.ts'

interface BodyLimits {
  /** Largest body, bytes. */
  readonly limitBytes: number
  readonly budget: BodyBudget
}

/** A body on its way here. */
export interface IncomingBody {
  /** Whose it is. */
  readonly tenantId: string
  /** As it comes from the network: what its pace is measured by. */
  readonly incoming: Readable
  /** The body as it is to be counted: `incoming` itself or, of a compressed one, what comes out. */
  readonly payload: Readable
  /**
   * What its sender says that `incoming` will have, bytes; 0 where it says nothing.
   * Believed where it is too much.
   */
  readonly declaredBytes: number
}

/**
 * What comes from the network is copied here at once, so that it is garbage while it is young: what the
 * collector moves to old memory before makes it look at everything two or three times a second. Wide enough
 * for what senders have under way at once.
 */
const pool = new BytePool(64 * 1024 * 1024)

const nothing = Buffer.alloc(0)

/** A body's memory is asked for in blocks between these, however small the pieces are that it comes in. */
const smallestBlockBytes = 16 * 1024
const largestBlockBytes = 1024 * 1024

/**
 * What has arrived of a body. Its memory counts in the budget before it is asked for, and
 * doubles as the body grows.
 */
class Blocks {
  readonly #hold: BodyHold
  readonly #declaredBytes: number
  readonly #blocks: Buffer[] = []
  /** Used of the last block. */
  #used = 0
  #length = 0

  constructor(hold: BodyHold, declaredBytes: number) {
    this.#hold = hold
    this.#declaredBytes = declaredBytes
  }

  get length(): number {
    return this.#length
  }

  /** Throws `overloaded`. */
  append(chunk: Buffer): void {
    let from = 0
    while (from < chunk.length) {
      const last = this.#blocks.at(-1)
      if (last === undefined || this.#used === last.length) {
        this.#add(chunk.length - from)
      } else {
        const copied = chunk.copy(last, this.#used, from)
        this.#used += copied
        this.#length += copied
        from += copied
      }
    }
  }

  /** One buffer of the pool that begins with the body; nothing is held here any more. */
  take(): Buffer {
    const blocks = this.#blocks.splice(0)
    const [only] = blocks
    if (only !== undefined && blocks.length === 1) return only
    const whole = pool.lend(this.#length)
    let at = 0
    for (const block of blocks) {
      at += block.copy(whole, at, 0, this.#length - at)
      pool.giveBack(block)
    }
    return whole
  }

  letGo(): void {
    for (const block of this.#blocks.splice(0)) pool.giveBack(block)
  }

  /** @param here bytes that have arrived and have no room yet */
  #add(here: number): void {
    const next = Math.max(smallestBlockBytes, this.#length, here)
    const declared = this.#declaredBytes - this.#length
    const bytes = Math.min(next, largestBlockBytes, declared > 0 ? declared : next)
    this.#hold.grow(bytes)
    this.#blocks.push(pool.lend(bytes))
    this.#used = 0
  }
}

/**
 * A whole body. Whoever takes it releases it as soon as it is decoded, and holds none of its bytes from then
 * on.
 */
export class IngestBody {
  readonly #hold: BodyHold
  /** As it came from the pool. */
  readonly #lent: Buffer
  #bytes: Buffer
  #refusal: AppError | null = null

  /** @param lent begins with the body, `length` bytes */
  constructor(lent: Buffer, length: number, hold: BodyHold) {
    this.#lent = lent
    this.#bytes = lent.subarray(0, length)
    this.#hold = hold
  }

  /**
   * None any more once it is released. Throws `overloaded` where it was taken away for another organisation.
   */
  get bytes(): Buffer {
    if (this.#refusal !== null) throw this.#refusal
    return this.#bytes
  }

  /** Idempotent. */
  release(): void {
    this.#hold.release()
    pool.giveBack(this.#lent)
    this.#bytes = nothing
  }

  takeAway(reason: AppError): void {
    this.#refusal = reason
    this.release()
  }
}

/**
 * Resolves to the body, or rejects with `body_too_large`, `overloaded`, `too_many_requests`,
 * `request_timeout`, or what the stream failed with.
 */
export function readBody(
  { tenantId, incoming, payload, declaredBytes }: IncomingBody,
  { limitBytes, budget }: BodyLimits,
): Promise<IngestBody> {
  return new Promise((resolve, reject) => {
    if (declaredBytes > limitBytes) throw new AppError('body_too_large')
    let whole: IngestBody | null = null
    let isOver = false
    const end = () => {
      isOver = true
      incoming.removeListener('data', count)
      payload.removeListener('data', onData)
    }
    const refuse = (error: Error) => {
      if (isOver) return
      end()
      blocks.letGo()
      hold.release()
      // What uncompresses the rest for nobody ends; the sender's own stream has to stay for the answer.
      if (payload !== incoming) payload.destroy()
      reject(error)
    }
    const hold = budget.open(tenantId, (reason) => {
      if (whole === null) refuse(reason)
      else whole.takeAway(reason)
    })
    const blocks = new Blocks(hold, payload === incoming ? declaredBytes : 0)
    const count = (chunk: Buffer) => hold.took(chunk.length)
    const onData = (chunk: Buffer) => {
      try {
        if (blocks.length + chunk.length > limitBytes) throw new AppError('body_too_large')
        blocks.append(chunk)
      } catch (error) {
        refuse(error instanceof Error ? error : new AppError('internal', { cause: error }))
      }
    }
    incoming.on('data', count)
    payload.on('data', onData)
    payload.once('end', () => {
      if (isOver) return
      end()
      hold.isWhole()
      whole = new IngestBody(blocks.take(), blocks.length, hold)
      resolve(whole)
    })
    // Also where the sender goes away.
    payload.once('error', (error: Error) => refuse(asBadRequest(error)))
    payload.once('close', () =>
      refuse(new AppError('bad_request', { sentence: 'The body ended too early.' })),
    )
  })
}

/** What breaks on its way here is the sender's, unless it says otherwise. */
function asBadRequest(error: Error): Error {
  const hasMeaning = error instanceof AppError || ('code' in error && String(error.code).startsWith('Z_'))
  return hasMeaning ? error : new AppError('bad_request', { cause: error })
}
