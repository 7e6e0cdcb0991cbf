// Lets requests of an operation begin one after another where an organisation sends many at once: a hundred
// changes, each with commits on the event loop, would take it from everybody in the same moment. They wait
// instead of being refused, because a client then needs to repeat nothing. The next one is always of the
// branch of tokens that was served least, so one token can't keep the others of its organisation waiting.

import type { OperationPace } from '../../../contract/operation.ts'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import { FairQueue } from '../../core/turns/fair-queue.ts'
import { organisationsKept, RateLimit } from './rate-limit.ts'
import type { Requester } from './rates.ts'

/** How long the requests of an organisation that wait may take together: less than clients wait, seconds. */
const waitSeconds = 5

/** Returns false where its client is gone. */
type Begin = () => boolean

export class OperationPaces {
  readonly #clock: Pick<Clock, 'elapsedMs' | 'sleep'>
  readonly #limits = new Map<string, RateLimit>()
  /** What waits, by operation and organisation. */
  readonly #waiting = new Map<string, FairQueue<Begin>>()

  constructor(clock: Pick<Clock, 'elapsedMs' | 'sleep'>) {
    this.#clock = clock
  }

  /**
   * Resolves when the request may begin, or its client is gone. Throws `too_many_requests` where too many of
   * the organisation wait, and one of them is of the same branch.
   */
  async turnOf(
    { line, tenantId }: Requester,
    operation: string,
    pace: OperationPace,
    signal: AbortSignal,
  ): Promise<void> {
    const key = `${operation} ${tenantId}`
    const limit = this.#limits.get(operation) ?? limitOf(pace, this.#clock)
    this.#limits.set(operation, limit)
    const known = this.#waiting.get(key)
    if (known === undefined && limit.take(key) === null) return
    const waiting = known ?? new FairQueue()
    const branch = `${line?.root ?? ''} ${line?.branch ?? ''}`
    requireRoom(waiting, branch, pace)
    const { promise, resolve } = Promise.withResolvers<void>()
    const begin = () => {
      resolve()
      return !signal.aborted
    }
    waiting.push(branch, 1, begin)
    signal.addEventListener('abort', () => resolve())
    if (known === undefined) {
      this.#waiting.set(key, waiting)
      void this.#serve(key, waiting, limit, 1000 / pace.perSecond)
    }
    return promise
  }

  async #serve(key: string, waiting: FairQueue<Begin>, limit: RateLimit, stepMs: number): Promise<void> {
    while (waiting.waiting > 0) {
      await this.#clock.sleep(stepMs)
      if (limit.take(key) === null) beginNext(waiting)
    }
    this.#waiting.delete(key)
  }
}

/** Those whose clients are gone take no time of the others. */
function beginNext(waiting: FairQueue<Begin>): void {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) if (next.item()) return
}

function limitOf({ atOnce, perSecond }: OperationPace, clock: Pick<Clock, 'elapsedMs'>): RateLimit {
  return new RateLimit({ clock, burst: atOnce, perSecond, keysMax: organisationsKept })
}

function requireRoom(waiting: FairQueue<Begin>, branch: string, { perSecond }: OperationPace): void {
  const hasOne = waiting.hasNext((owner) => owner !== branch)
  if (!hasOne || waiting.waiting < waitSeconds * perSecond) return
  throw new AppError('too_many_requests', {
    sentence: `${waiting.waiting} such requests of your organisation wait; wait for a response before the next one.`,
    retryAfterSeconds: 1,
  })
}
