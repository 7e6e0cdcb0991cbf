// The loop that runs detectors when they are due. A round takes what is due until nothing is left, by turns between
// organisations, those of one together, the longest overdue first; so one organisation's thousand delay nobody else's
// first by more than a turn, and a detector whose runs were missed while the service was down is run once, not once
// per missed run. One detector's failure is logged and leaves the others alone.

import type { FastifyBaseLogger } from 'fastify'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import type { Leases } from '../../worker/lease.ts'
import { Periodic } from '../../worker/periodic.ts'
import type { DetectionStore, DueDetector } from '../detectors/store.ts'
import type { DetectorRunner } from './runner.ts'

interface DetectionWorkerOptions {
  readonly store: DetectionStore
  readonly runner: Pick<DetectorRunner, 'runTogether'>
  readonly clock: Clock
  readonly leases: Leases
  readonly logger: Pick<FastifyBaseLogger, 'error'>
}

/** Detectors are due by the minute; a few seconds later is soon enough. */
const everyMs = 5000
/** A round of 1,000 detectors takes seconds; a process that died may delay the next one by this. */
const leaseMs = 120_000
/**
 * Runs of one organisation in one turn: enough that what is read together is read cheaply, few enough that the next
 * organisation has its turn soon. Four statements read them, and judging them takes seconds.
 */
const turnSize = 100
/** Detectors that are listed at once, of several organisations. */
const listSize = 1000
/** Organisations that have a turn at once: reading one goes on while others are judged. */
const concurrency = 4
/** After so many runs the round ends, so that the lease is renewed. */
const roundSize = 2000

export function createDetectionWorker(options: DetectionWorkerOptions): Periodic {
  const { clock, leases, logger } = options
  return new Periodic({
    name: 'detection',
    everyMs,
    leaseMs,
    clock,
    leases,
    logger,
    round: async (signal) => {
      await runDueDetectors(options, signal)
    },
  })
}

type RoundOptions = Pick<DetectionWorkerOptions, 'store' | 'runner' | 'clock' | 'logger'>

/** One round. Answers how many detectors were run; each is tried at most once. */
export async function runDueDetectors(options: RoundOptions, signal: AbortSignal): Promise<number> {
  const turns = new Turns(options)
  const work = async (): Promise<void> => {
    while (!signal.aborted) {
      const turn = await turns.next()
      if (turn === null) return
      await runSome(options, turn, signal)
      turns.end(turn)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return turns.tried
}

/**
 * Whose turn it is: the organisation that has run least in this round, of several the one that is longest overdue. The
 * list is read anew now and then, so that what becomes due meanwhile doesn't wait until all of somebody else has run.
 */
class Turns {
  readonly #options: RoundOptions
  readonly #tried = new Set<string>()
  readonly #ranBy = new Map<string, number>()
  readonly #running = new Set<string>()
  #listed: DueDetector[] = []
  #listedAtMs: number | null = null
  #listing: Promise<void> = Promise.resolve()

  constructor(options: RoundOptions) {
    this.#options = options
  }

  get tried(): number {
    return this.#tried.size
  }

  /** Due detectors of one organisation; null where there are none, or the round is long enough. */
  async next(): Promise<readonly DueDetector[] | null> {
    if (this.#tried.size >= roundSize) return null
    this.#listing = this.#listing.then(() => this.#listAgain())
    await this.#listing
    const ran = (tenantId: string) => this.#ranBy.get(tenantId) ?? 0
    const first = this.#waiting().reduce<DueDetector | null>(
      (best, one) => (best === null || ran(one.tenantId) < ran(best.tenantId) ? one : best),
      null,
    )
    if (first === null) return null
    const { tenantId } = first
    const turn = this.#waiting()
      .filter((one) => one.tenantId === tenantId)
      .slice(0, turnSize)
    for (const { id } of turn) this.#tried.add(id)
    this.#ranBy.set(tenantId, ran(tenantId) + turn.length)
    this.#running.add(tenantId)
    return turn
  }

  end([first]: readonly DueDetector[]): void {
    if (first !== undefined) this.#running.delete(first.tenantId)
  }

  /** Listed, not tried, and of an organisation that has no turn now; the longest overdue first. */
  #waiting(): DueDetector[] {
    return this.#listed.filter(({ id, tenantId }) => !this.#tried.has(id) && !this.#running.has(tenantId))
  }

  async #listAgain(): Promise<void> {
    const { clock, store } = this.#options
    const nowMs = clock.nowMs()
    const isOld = this.#listedAtMs === null || Math.abs(nowMs - this.#listedAtMs) >= everyMs
    if (!isOld && this.#waiting().length > 0) return
    // What was tried may still be due, where its run could not be recorded.
    const tried = this.#tried.size
    this.#listed = await store.dueDetectors(nowMs, listSize + tried, turnSize + tried)
    this.#listedAtMs = nowMs
  }
}

async function runSome(
  { runner, logger }: Pick<DetectionWorkerOptions, 'runner' | 'logger'>,
  due: readonly DueDetector[],
  signal: AbortSignal,
): Promise<void> {
  const [place] = due
  if (place === undefined) return
  const failures = await runner.runTogether(
    { tenantId: place.tenantId, placement: place.placement },
    due.map(({ id }) => id),
    signal,
  )
  for (const [detectorId, err] of failures) {
    // Deleted since it was listed, or being run by hand: both are as they should be.
    const isExpected =
      err instanceof AppError && (err.code === 'not_found' || err.code === 'detector_running')
    if (!isExpected) logger.error({ err, detectorId }, 'a detector could not be run')
  }
}
