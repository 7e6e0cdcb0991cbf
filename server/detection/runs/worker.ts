// The loop that runs due detectors. A round runs until no detector is due. Organisations take turns; in each
// turn the detectors of one organisation run as a batch, the longest overdue first. So a thousand detectors
// of one organisation delay the first of another by one turn at most, and not at all where fewer than four
// organisations have a turn: a round lasts as long as a turn does, and looks for what has become due
// meanwhile, however much it has run. A detector whose runs were missed while the service was down is run
// once, not once per missed run. The failure of one detector is logged and does not affect the others.

import type { FastifyBaseLogger } from 'fastify'
import type { ErrorCode } from '../../../contract/errors.ts'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import type { Leases } from '../../worker/lease.ts'
import { Periodic } from '../../worker/periodic.ts'
import type { DetectionStore, DueDetector } from '../detectors/store.ts'
import type { DetectorRunner } from './runner.ts'

interface DetectionWorkerOptions {
  readonly store: Pick<DetectionStore, 'dueDetectors'>
  readonly runner: Pick<DetectorRunner, 'runBatch'>
  readonly clock: Clock
  readonly leases: Leases
  readonly logger: Pick<FastifyBaseLogger, 'error'>
}

/**
 * Interval of rounds, and of looks and repeated tries in a round. Detectors are due at a minute; a delay of a
 * few seconds does not matter.
 */
const everyMs = 5000
/** After a crash the next round may be delayed by this long. During a round the lease is renewed. */
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

/**
 * Runs one round. Returns the number of runs that were tried. A run that fails is tried again in the next
 * round, and in this one while others have a turn.
 */
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
  return turns.tries
}

/** A run that was tried. */
interface Try extends Pick<DueDetector, 'dueAtMs' | 'tenantId'> {
  /** When its turn ended; null during the turn. */
  readonly endedAtMs: number | null
}

/**
 * Decides which organisation has the next turn: the one that has run least and, among equals, the one that is
 * longest overdue. One that comes later counts as having run as much as the one that has run least, so that
 * it is not ahead of the others for what it did not need. The list of due detectors is read again from time
 * to time, so that a detector that becomes due during the round does not wait for all others.
 */
class TurnQueue {
  readonly #options: RoundOptions
  /** Tries that may not have been recorded, by detector. */
  readonly #tried = new Map<string, Try>()
  #tries = 0
  /** Runs of the organisations that have run more than {@link #leastRuns}. */
  readonly #ranBy = new Map<string, number>()
  /** Runs of the organisation that has had the last turn, before that turn. */
  #leastRuns = 0
  readonly #running = new Set<string>()
  #listed: DueDetector[] = []
  #listedAtMs: number | null = null
  #listing: Promise<void> = Promise.resolve()
  #turnEnded = Promise.withResolvers<void>()

  constructor(options: RoundOptions) {
    this.#options = options
  }

  /** Runs that were tried. */
  get tries(): number {
    return this.#tries
  }

  /**
   * Due detectors of one organisation. Where none is due, waits for as long as another turn is in progress;
   * then, or where the signal aborts, null.
   */
  async next(signal: AbortSignal): Promise<readonly DueDetector[] | null> {
    while (!signal.aborted) {
      this.#listing = this.#listing.then(() => this.#refreshList())
      await this.#listing
      const turn = this.#begin()
      if (turn !== null || this.#running.size === 0) return turn
      await this.#change(signal)
    }
    return null
  }

  #begin(): readonly DueDetector[] | null {
    const ran = (tenantId: string) => this.#ranBy.get(tenantId) ?? this.#leastRuns
    const waiting = this.#waiting()
    const first = waiting.reduce<DueDetector | null>(
      (best, one) => (best === null || ran(one.tenantId) < ran(best.tenantId) ? one : best),
      null,
    )
    if (first === null) return null
    const { tenantId } = first
    const turn = waiting.filter((one) => one.tenantId === tenantId).slice(0, turnSize)
    for (const { dueAtMs, id } of turn) this.#tried.set(id, { tenantId, dueAtMs, endedAtMs: null })
    this.#tries += turn.length
    this.#leastRuns = ran(tenantId)
    this.#ranBy.set(tenantId, ran(tenantId) + turn.length)
    for (const [other, runs] of this.#ranBy) if (runs <= this.#leastRuns) this.#ranBy.delete(other)
    this.#running.add(tenantId)
    return turn
  }

  end(turn: readonly DueDetector[]): void {
    const endedAtMs = this.#options.clock.nowMs()
    for (const { dueAtMs, id, tenantId } of turn) {
      this.#running.delete(tenantId)
      if (this.#tried.has(id)) this.#tried.set(id, { tenantId, dueAtMs, endedAtMs })
    }
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
   * Due detectors of organisations without a turn at present: those that were not tried, the longest overdue
   * first, then those whose run was not recorded some seconds ago. Those alone don't continue a round.
   */
  #waiting(): DueDetector[] {
    const free = this.#listed.filter(({ tenantId }) => !this.#running.has(tenantId))
    const untried = free.filter((one) => this.#tryOf(one) === undefined)
    if (this.#running.size === 0) return untried
    const nowMs = this.#options.clock.nowMs()
    const isPast = (endedAtMs: number) => Math.abs(nowMs - endedAtMs) >= everyMs
    return [...untried, ...free.filter((one) => isPast(this.#tryOf(one)?.endedAtMs ?? nowMs))]
  }

  #tryOf({ dueAtMs, id }: DueDetector): Try | undefined {
    const tried = this.#tried.get(id)
    return tried?.dueAtMs === dueAtMs ? tried : undefined
  }

  async #refreshList(): Promise<void> {
    const { clock, store } = this.#options
    const nowMs = clock.nowMs()
    const isOld = this.#listedAtMs === null || Math.abs(nowMs - this.#listedAtMs) >= everyMs
    if (!isOld && this.#waiting().length > 0) return
    // A tried detector is still due where its run could not be recorded, so the limits are higher by that
    // number.
    const [limit, ofOne] = [listSize + this.#tried.size, turnSize + this.#tried.size]
    this.#listed = await store.dueDetectors(nowMs, limit, ofOne)
    this.#listedAtMs = nowMs
    this.#forgetRecorded(limit, ofOne)
  }

  /**
   * Forgets tries of detectors that are no longer due as they were: a round may last, and lists get longer by
   * the number of tries. A list that has reached a limit says nothing of detectors that come after its end.
   */
  #forgetRecorded(limit: number, ofOne: number): void {
    const endOf = (part: readonly DueDetector[], most: number) =>
      part.length < most ? Number.POSITIVE_INFINITY : (part.at(-1)?.dueAtMs ?? 0)
    const end = endOf(this.#listed, limit)
    const byTenant = Map.groupBy(this.#listed, ({ tenantId }) => tenantId)
    const due = new Map(this.#listed.map(({ dueAtMs, id }) => [id, dueAtMs]))
    for (const [id, { dueAtMs, tenantId }] of this.#tried) {
      const ownEnd = endOf(byTenant.get(tenantId) ?? [], ofOne)
      if (due.get(id) !== dueAtMs && dueAtMs < end && dueAtMs < ownEnd) this.#tried.delete(id)
    }
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
