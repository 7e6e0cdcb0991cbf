// Slows clients that repeat refused requests at once. A refusal by a limit says when to repeat, and costs the
// event loop some tenths of a millisecond. A client that does not wait gets thousands of them in a second,
// which takes a large part of a core from everybody. So an organisation has some refusals at once, and gets
// further ones a second later. A client that waits as it was told notices nothing. What is delayed is only
// the response: a connection and the memory of one request, and connections are limited.

import type { Clock } from '../../core/clock.ts'
import { organisationsKept, RateLimit } from './rate-limit.ts'

/** Refusals of an organisation that are sent at once: a console and some programs that repeat too early. */
const burst = 50
const perSecond = 10

/** No longer than any Retry-After, milliseconds. */
const delayMs = 1_000

export class RefusalPace {
  readonly #clock: Pick<Clock, 'elapsedMs' | 'sleep'>
  readonly #limit: RateLimit

  constructor(clock: Pick<Clock, 'elapsedMs' | 'sleep'>) {
    this.#clock = clock
    this.#limit = new RateLimit({ clock, burst, perSecond, keysMax: organisationsKept })
  }

  /** Resolves when a refusal of the organisation may be sent, or when `signal` aborts. */
  async turnOf(tenantId: string, signal: AbortSignal): Promise<void> {
    if (this.#limit.take(tenantId) !== null) await this.#clock.sleep(delayMs, signal)
  }
}
