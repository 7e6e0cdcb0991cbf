// Reads a request body from its stream, within the limit for one body and the budget for all of them. Of a
// body that is refused the received bytes are freed at once, and the rest is not read.

import type { Readable } from 'node:stream'
import { AppError } from '../core/app-error.ts'
import { BytePool } from '../telemetry/byte-pool.ts'
import type { BodyBudget, BodyReservation } from './body-budget.ts'
import type { ReadTurns } from './read-turns.ts'

interface BodyLimits {
  /** Largest body, bytes. */
  readonly limitBytes: number
  readonly budget: BodyBudget
  readonly reads: ReadTurns
}

/** A body that is being received. */
export interface IncomingBody {
  /** The organisation that sends it. */
  readonly tenantId: string
  /** The stream from the network, which measures the rate. */
  readonly incoming: Readable
  /** The body to read: `incoming` itself, or what is extracted from it. */
  readonly payload: Readable
  /**
   * The length that the sender declares for `incoming`, bytes; 0 where it declares none. Used only to refuse
   * a body that is too large.
   */
  readonly declaredBytes: number
}

/**
 * Bytes from the network are copied here at once, so that their buffers become garbage early: buffers that
 * the collector moves to old memory make it scan everything two or three times a second. Large enough for the
 * bodies that senders usually have in progress.
 */
const pool = new BytePool(64 * 1024 * 1024)

const nothing = Buffer.alloc(0)

/** Memory of a body is allocated in blocks between these sizes, however small the received pieces are. */
const smallestBlockBytes = 16 * 1024
const largestBlockBytes = 1024 * 1024

/**
 * The received part of a body. Its memory is reserved in the budget before it is allocated, and doubles as
 * the body grows.
 */
class Blocks {
  readonly #reservation: BodyReservation
  readonly #declaredBytes: number
  readonly #blocks: Buffer[] = []
  /** Used bytes of the last block. */
  #used = 0
  #length = 0

  constructor(reservation: BodyReservation, declaredBytes: number) {
    this.#reservation = reservation
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

  /** Returns one buffer of the pool that begins with the body; keeps nothing here. */
  take(): Buffer {
    const [only] = this.#blocks
    if (only !== undefined && this.#blocks.length === 1) {
      this.#blocks.pop()
      return only
    }
    const whole = pool.lend(this.#length)
    let at = 0
    for (const block of this.#blocks.splice(0)) {
      at += block.copy(whole, at, 0, this.#length - at)
      pool.giveBack(block)
    }
    return whole
  }

  letGo(): void {
    for (const block of this.#blocks.splice(0)) pool.giveBack(block)
  }

  /** @param here bytes that have arrived and do not fit yet */
  #add(here: number): void {
    const next = Math.max(smallestBlockBytes, this.#length, here)
    const declared = this.#declaredBytes - this.#length
    const bytes = Math.min(next, largestBlockBytes, declared > 0 ? declared : next)
    this.#reservation.grow(bytes)
    this.#blocks.push(pool.lend(bytes))
    this.#used = 0
  }
}

/** A complete body. Its user releases it as soon as it is decoded, and uses none of its bytes afterwards. */
export class IngestBody {
  readonly #reservation: BodyReservation
  /** The buffer from the pool. */
  readonly #lent: Buffer
  #bytes: Buffer
  #refusal: AppError | null = null

  /** @param lent begins with the body, `length` bytes */
  constructor(lent: Buffer, length: number, reservation: BodyReservation) {
    this.#lent = lent
    this.#bytes = lent.subarray(0, length)
    this.#reservation = reservation
  }

  /**
   * Empty after the release. Throws `overloaded` where the budget ended the body for another organisation.
   */
  get bytes(): Buffer {
    if (this.#refusal !== null) throw this.#refusal
    return this.#bytes
  }

  /** Idempotent. */
  release(): void {
    this.#reservation.release()
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
 * `request_timeout`, or the error of the stream.
 */
export function readBody(
  { tenantId, incoming, payload, declaredBytes }: IncomingBody,
  { limitBytes, budget, reads }: BodyLimits,
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
      reservation.release()
      // The sender's own stream must stay open for the response.
      if (payload !== incoming) payload.destroy()
      reject(error)
    }
    const reservation = budget.open(tenantId, (reason) => {
      if (whole === null) refuse(reason)
      else whole.takeAway(reason)
    })
    const blocks = new Blocks(reservation, payload === incoming ? declaredBytes : 0)
    const count = (chunk: Buffer) => {
      reservation.took(chunk.length)
      reads.took(tenantId, incoming, chunk.length)
    }
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
      reservation.isWhole()
      try {
        whole = new IngestBody(blocks.take(), blocks.length, reservation)
      } catch (error) {
        // There may be no memory for it; here an error would end the process.
        return refuse(new AppError('overloaded', { cause: error, retryAfterSeconds: 1 }))
      }
      end()
      resolve(whole)
    })
    // Also where the sender disconnects.
    payload.once('error', (error: Error) => refuse(asBadRequest(error)))
    payload.once('close', () =>
      refuse(new AppError('bad_request', { sentence: 'The body ended too early.' })),
    )
  })
}

/** An error of the stream is the sender's fault, unless it is one of ours. */
function asBadRequest(error: Error): Error {
  return error instanceof AppError ? error : new AppError('bad_request', { cause: error })
}
