// How often an organisation may ask for what is dear: counting a selection, replaying a detector, signing. Each operation
// has a token bucket of its own per organisation, so that one asked for too often leaves the others as they were.

import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { TokenBucket } from '../core/token-bucket.ts'

/** What an operation is limited to, per organisation. */
export interface Rate {
  readonly perMinute: number
  /** How many may come at once after a pause. */
  readonly burst: number
}

/** Buckets that are full again are forgotten beyond so many; some hundred bytes each. */
const bucketsKept = 10_000

export class OperationRates {
  readonly #clock: Pick<Clock, 'nowMs'>
  readonly #buckets = new Map<string, TokenBucket>()

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.#clock = clock
  }

  /** Throws `too_many_requests` with the seconds after which the organisation may ask again. */
  take(tenantId: string, operation: string, { burst, perMinute }: Rate): void {
    const nowMs = this.#clock.nowMs()
    const key = `${tenantId} ${operation}`
    const bucket = this.#buckets.get(key) ?? new TokenBucket(perMinute / 60, burst, nowMs)
    this.#buckets.set(key, bucket)
    if (this.#buckets.size > bucketsKept) this.#forgetFull(nowMs)
    const retryAfterSeconds = bucket.take(1, nowMs)
    if (retryAfterSeconds === 0) return
    throw new AppError('too_many_requests', {
      sentence: `Your organisation may ask for this ${perMinute} times a minute; repeat after Retry-After.`,
      retryAfterSeconds,
    })
  }

  #forgetFull(nowMs: number): void {
    for (const [key, bucket] of this.#buckets) if (bucket.isFull(nowMs)) this.#buckets.delete(key)
  }
}
