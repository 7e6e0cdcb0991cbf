// One periodic loop, the form of all background work: take the lease, run one round, sleep, repeat. The lease
// is renewed during a round, and the round is stopped where that fails. A round that throws is logged and
// tried again after the same pause; a nudge ends the pause early; stopping waits for the running round.
// Rounds of one loop never overlap.

import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../core/clock.ts'
import { type Leases, whileRenewed } from './lease.ts'

interface PeriodicOptions {
  /** Name of the loop and of its lease. */
  readonly name: string
  readonly everyMs: number
  /**
   * How long the lease lasts after a process has died. A round may take longer: the lease is renewed
   * meanwhile.
   */
  readonly leaseMs: number
  readonly clock: Clock
  readonly leases: Pick<Leases, 'take' | 'release'>
  readonly logger: Pick<FastifyBaseLogger, 'error'>
  /** One round; `signal` aborts when the loop is being stopped, and with LeaseLost when its lease is lost. */
  readonly round: (signal: AbortSignal) => Promise<void>
}

export class Periodic {
  readonly #options: PeriodicOptions
  #isStopping = false
  /** Aborts rounds; created again after a lost lease. */
  #work = new AbortController()
  #pause = new AbortController()
  #running: Promise<void> | null = null

  constructor(options: PeriodicOptions) {
    this.#options = options
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Begins the next round now, or right after the running one. */
  nudge(): void {
    this.#pause.abort()
  }

  /** Ends the loop after the running round and releases the lease. */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.#work.abort()
    this.#pause.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock, everyMs, leases, logger, name } = this.#options
    while (!this.#isStopping) {
      this.#pause = new AbortController()
      try {
        await this.#round()
      } catch (err) {
        logger.error({ err, loop: name }, 'a round of background work failed')
      }
      if (!this.#isStopping) await clock.sleep(everyMs, this.#pause.signal)
    }
    // A lease that can't be released expires; the caller still has stores to close.
    await leases.release(name).catch((err) => logger.error({ err, loop: name }, 'a lease was not released'))
  }

  async #round(): Promise<void> {
    const { leaseMs, leases, name, round } = this.#options
    if (!(await leases.take(name, leaseMs)) || this.#isStopping) return
    if (this.#work.signal.aborted) this.#work = new AbortController()
    const work = this.#work
    await whileRenewed(
      { ...this.#options, ms: leaseMs },
      (reason) => work.abort(reason),
      () => round(work.signal),
    )
  }
}
