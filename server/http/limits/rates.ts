// Limits how often an organisation may use expensive operations: counting a selection, replaying a detector,
// signing. Each operation has a rate of its own for each organisation, so that using one too often does not
// limit the others.

import type { Rate } from '../../../contract/operation.ts'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import { organisationsKept, RateLimit } from './rate-limit.ts'

export class OperationRates {
  readonly #clock: Pick<Clock, 'elapsedMs'>
  /** By operation. */
  readonly #limits = new Map<string, RateLimit>()

  constructor(clock: Pick<Clock, 'elapsedMs'>) {
    this.#clock = clock
  }

  /** Throws `too_many_requests` with the seconds after which the organisation may retry. */
  take(tenantId: string, operation: string, { burst, perMinute }: Rate): void {
    const limit =
      this.#limits.get(operation) ??
      new RateLimit({ clock: this.#clock, burst, perSecond: perMinute / 60, keysMax: organisationsKept })
    this.#limits.set(operation, limit)
    const retryAfterSeconds = limit.take(tenantId)
    if (retryAfterSeconds === null) return
    throw new AppError('too_many_requests', {
      sentence: `Your organisation may ask for this ${perMinute} times a minute; repeat after Retry-After.`,
      retryAfterSeconds,
    })
  }
}
