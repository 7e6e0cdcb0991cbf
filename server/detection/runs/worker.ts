// The loop that runs due detectors. A round runs until no detector is due. Organisations take turns; in each
// turn the detectors of one organisation run as a batch, the longest overdue first. So a thousand detectors
// of one organisation delay the first of another by one turn at most, and not at all where fewer than four
// organisations have a turn: during a long turn the round looks for what has become due. A detector whose
// runs were missed while the service was down is run once, not once per missed run. The failure of one
// detector is logged and does not affect the others.

import type { FastifyBaseLogger } from 'fastify'
import type { ErrorCode } from '../../../contract/errors.ts'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import type { Leases } from '../../worker/lease.ts'
import { Periodic } from '../../worker/periodic.ts'
import type { DetectionStore, DueDetector } from '../detectors/store.ts'
import type { DetectorRunner } from './runner.ts'

interface DetectionWorkerOptions {
  readonly store: DetectionStore
  readonly runner: Pick<DetectorRunner, 'runBatch'>
  readonly clock: Clock
  readonly leases: Leases
  readonly logger: Pick<FastifyBaseLogger, 'error'>
}

/** Detectors are due at a minute; a delay of a few seconds does not matter. */
const everyMs = 5000
/** A round of 1,000 detectors takes seconds. After a crash the next round may be delayed by this long. */
const leaseMs = 120_000
/**
 * Runs of one organisation in one turn: enough to read them cheaply as a batch, few enough that the next
 * organisation does not wait long. Four statements read them, and evaluating them takes seconds.
 */
const turnSize = 100
/** Due detectors, of all organisations, that one statement lists. */
const listSize = 1000
/** Organisations that have a turn at the same time: one is read while others are evaluated. */
const concurrency = 4
/** A round ends after this many runs, so that the lease is renewed. */
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

/** Runs one round. Returns how many detectors were run; each is tried once for each time that it is due. */
export async function runDueDetectors(options: RoundOptions, signal: AbortSignal): Promise<number> {
  const turns = new TurnQueue(options)
  const work = async (): Promise<void> => {
    while (!signal.aborted) {
      const turn = await turns.next(signal)
      if (turn === null) return
      // Also where it throws, because the others wait for the end of the turn.
      await runSome(options, turn, signal).finally(() => turns.end(turn))
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return turns.tried
}

/**
 * Decides which organisation has the next turn: the one that has run least in this round and, among equals,
 * the one that is longest overdue. The list of due detectors is read again from time to time, so that a
 * detector that becomes due during the round does not wait for all others.
 */
class TurnQueue {
  readonly #options: RoundOptions
  /** When each detector that was tried had been due. */
  readonly #tried = new Map<string, number>()
  readonly #ranBy = new Map<string, number>()
  readonly #running = new Set<string>()
  #listed: DueDetector[] = []
  #listedAtMs: number | null = null
  #listing: Promise<void> = Promise.resolve()
  #turnEnded = Promise.withResolvers<void>()

  constructor(options: RoundOptions) {
    this.#options = options
  }

  get tried(): number {
    return this.#tried.size
  }

  /**
   * Due detectors of one organisation. Where none is due, waits for as long as another turn is in progress;
   * then, or where the round has run enough, null.
   */
  async next(signal: AbortSignal): Promise<readonly DueDetector[] | null> {
    while (this.#tried.size < roundSize) {
      this.#listing = this.#listing.then(() => this.#refreshList())
      await this.#listing
      const turn = this.#begin()
      if (turn !== null || this.#running.size === 0 || signal.aborted) return turn
      await this.#change(signal)
    }
    return null
  }

  #begin(): readonly DueDetector[] | null {
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
    for (const { dueAtMs, id } of turn) this.#tried.set(id, dueAtMs)
    this.#ranBy.set(tenantId, ran(tenantId) + turn.length)
    this.#running.add(tenantId)
    return turn
  }

  end([first]: readonly DueDetector[]): void {
    if (first !== undefined) this.#running.delete(first.tenantId)
    this.#turnEnded.resolve()
    this.#turnEnded = Promise.withResolvers<void>()
  }

  /** Waits until a turn has ended or the list is old: then something may be due. */
  async #change(signal: AbortSignal): Promise<void> {
    const waited = new AbortController()
    const isOld = this.#options.clock.sleep(everyMs, AbortSignal.any([signal, waited.signal]))
    await Promise.race([this.#turnEnded.promise, isOld])
    waited.abort()
  }

  /**
   * Due detectors that were not tried, of organisations without a turn at present; the longest overdue first.
   */
  #waiting(): DueDetector[] {
    return this.#listed.filter(
      ({ dueAtMs, id, tenantId }) => this.#tried.get(id) !== dueAtMs && !this.#running.has(tenantId),
    )
  }

  async #refreshList(): Promise<void> {
    const { clock, store } = this.#options
    const nowMs = clock.nowMs()
    const isOld = this.#listedAtMs === null || Math.abs(nowMs - this.#listedAtMs) >= everyMs
    if (!isOld && this.#waiting().length > 0) return
    // A tried detector is still due where its run could not be recorded, so the limits
    // are higher by that number.
    const tried = this.#tried.size
    this.#listed = await store.dueDetectors(nowMs, listSize + tried, turnSize + tried)
    this.#listedAtMs = nowMs
  }
}

const expected: ReadonlySet<string> = new Set<ErrorCode>([
  'not_found',
  'detector_running',
  'erasing',
  'too_many_requests',
])

async function runSome(
  { runner, logger }: Pick<DetectionWorkerOptions, 'runner' | 'logger'>,
  due: readonly DueDetector[],
  signal: AbortSignal,
): Promise<void> {
  const [place] = due
  if (place === undefined) return
  const failures = await runner.runBatch(
    { tenantId: place.tenantId, placement: place.placement },
    due.map(({ id }) => id),
    signal,
  )
  for (const [detectorId, err] of failures) {
    // Deleted since it was listed, run by a person at the same time, or refused a read: no failure.
    const isExpected = err instanceof AppError && expected.has(err.code)
    if (!isExpected) logger.error({ err, detectorId }, 'a detector could not be run')
  }
}
