// Leases: which process may do a piece of periodic work. One row per lease, taken and renewed by
// compare-and-set, so that two processes on one control database never both have it. A lease that is not
// renewed expires; work that takes longer than its lease renews it meanwhile, and is stopped where that
// fails. A lease does not fence: a process that was suspended may act once more before it notices that its
// lease has expired. An act that must not happen twice has its own fence.

import type { FastifyBaseLogger } from 'fastify'
import type { Control } from '../control/database.ts'
import type { Clock } from '../core/clock.ts'

export class Leases {
  readonly #control: Control
  readonly #clock: Clock
  readonly #holder: string

  /** `holder` names this process and must be unique among those that share the database. */
  constructor(control: Control, clock: Clock, holder: string) {
    this.#control = control
    this.#clock = clock
    this.#holder = holder
  }

  /** Takes or renews the lease for `ms` from now; false while another process has it. */
  async take(name: string, ms: number): Promise<boolean> {
    const nowMs = this.#clock.nowMs()
    const result = await this.#control
      .insertInto('leases')
      .values({ name, holder: this.#holder, until_ms: nowMs + ms })
      .onConflict((conflict) =>
        conflict
          .column('name')
          .doUpdateSet({ holder: this.#holder, until_ms: nowMs + ms })
          .where((where) =>
            where.or([where('leases.holder', '=', this.#holder), where('leases.until_ms', '<=', nowMs)]),
          ),
      )
      .executeTakeFirst()
    return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
  }

  /** Releases the lease, so that another process need not wait until it expires. */
  async release(name: string): Promise<void> {
    await this.#control
      .deleteFrom('leases')
      .where('name', '=', name)
      .where('holder', '=', this.#holder)
      .execute()
  }
}

/**
 * The lease of some work expired, or another process has it: the reason with which the work's signal aborts.
 */
export class LeaseLost extends Error {
  constructor(name: string) {
    super(`The lease "${name}" was lost while its work was running.`)
    this.name = 'LeaseLost'
  }
}

/**
 * Runs `work` with a signal that aborts where `signal` does because a lease was lost. It doesn't abort where
 * the service is stopped: then a step that has begun is finished first.
 */
export async function underLease<T>(
  signal: AbortSignal,
  work: (lease: AbortSignal) => Promise<T>,
): Promise<T> {
  const [lease, ended] = [new AbortController(), new AbortController()]
  const look = () => {
    if (signal.reason instanceof LeaseLost) lease.abort(signal.reason)
  }
  if (signal.aborted) look()
  signal.addEventListener('abort', look, { once: true, signal: ended.signal })
  try {
    return await work(lease.signal)
  } finally {
    ended.abort()
  }
}

interface LeaseRenewal {
  readonly name: string
  /** How long each renewal lasts. */
  readonly ms: number
  readonly leases: Pick<Leases, 'take'>
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'error'>
}

/**
 * Interval of renewals, as a share of the lease: a failed one is tried twice more before the lease is lost.
 */
const renewEveryShare = 1 / 5

/** The share of the lease after which it counts as lost: in the rest of it the work must stop. */
const lostAfterShare = 3 / 4

/**
 * Runs `work` with a lease that was just taken, and renews it until the work has ended. Where it can't be
 * renewed `onLost` is called once, while the last renewal still has a quarter of its time, or as soon as
 * another process is found to have the lease. The work must then stop; its result or error is passed on
 * unchanged.
 */
export async function whileRenewed<T>(
  renewal: LeaseRenewal,
  onLost: (reason: LeaseLost) => void,
  work: () => Promise<T>,
): Promise<T> {
  const ended = new AbortController()
  const renewing = renewUntil(ended.signal, renewal, onLost)
  try {
    return await work()
  } finally {
    ended.abort()
    await renewing
  }
}

async function renewUntil(
  ended: AbortSignal,
  renewal: LeaseRenewal,
  onLost: (reason: LeaseLost) => void,
): Promise<void> {
  const { clock, logger, ms, name } = renewal
  // By the monotonic clock, and from before the renewal was sent: its result may come late.
  let renewedMs = clock.steady().ms
  const lostInMs = () => renewedMs + ms * lostAfterShare - clock.steady().ms
  for (;;) {
    await clock.sleep(Math.min(ms * renewEveryShare, lostInMs()), ended)
    if (ended.aborted) return
    const askedMs = clock.steady().ms
    const result = lostInMs() > 0 ? await renew(renewal, lostInMs(), ended) : 'late'
    if (ended.aborted) return
    if (result === 'renewed') renewedMs = askedMs
    if (result !== 'taken' && result !== 'late') continue
    logger.error({ loop: name }, 'a lease was lost while its work was running; the work is stopped')
    return onLost(new LeaseLost(name))
  }
}

/**
 * `taken`: another process has it. `late`: no result came in time. `failed`: the store failed; the renewal is
 * tried again.
 */
type Renewed = 'renewed' | 'taken' | 'late' | 'failed'

async function renew(
  { clock, leases, logger, ms, name }: LeaseRenewal,
  withinMs: number,
  ended: AbortSignal,
): Promise<Renewed> {
  const answered = new AbortController()
  const stop = () => answered.abort()
  ended.addEventListener('abort', stop, { once: true })
  const taking = leases.take(name, ms).then(
    (isOurs): Renewed => (isOurs ? 'renewed' : 'taken'),
    (err: unknown): Renewed => {
      logger.error({ err, loop: name }, 'a lease was not renewed; it is tried again')
      return 'failed'
    },
  )
  try {
    return await Promise.race([taking, clock.sleep(withinMs, answered.signal).then((): Renewed => 'late')])
  } finally {
    stop()
    ended.removeEventListener('abort', stop)
  }
}
