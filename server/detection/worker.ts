// The loop that runs detectors when they are due. A round takes what is due, the longest overdue first, a few at a
// time, until nothing is left, those of one organisation together; so a detector whose runs were missed while the service was down is run once, not once
// per missed run. One detector's failure is logged and leaves the others alone.

import type { FastifyBaseLogger } from 'fastify'
import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import type { Leases } from '../worker/lease.ts'
import { Periodic } from '../worker/periodic.ts'
import type { DetectorRunner } from './runner.ts'
import type { DetectionStore, DueDetector } from './store.ts'

export interface DetectionWorkerOptions {
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
/** Much of it belongs to the same organisations, and what is read together is read cheaply. */
const batchSize = 1000
/** The engine answers one query with all cores; two at a time hide the waiting between them. */
const concurrency = 2
/** After so many batches the round ends, so that the lease is renewed. */
const batchesMax = 2

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

/** One round. Answers how many detectors were run; each is tried at most once. */
export async function runDueDetectors(
  options: Pick<DetectionWorkerOptions, 'store' | 'runner' | 'clock' | 'logger'>,
  signal: AbortSignal,
): Promise<number> {
  const tried = new Set<string>()
  for (let batch = 0; batch < batchesMax && !signal.aborted; batch++) {
    const due = await options.store.dueDetectors(options.clock.nowMs(), batchSize)
    const fresh = due.filter(({ id }) => !tried.has(id))
    for (const { id } of fresh) tried.add(id)
    await runAll(options, fresh, signal)
    if (fresh.length < batchSize) break
  }
  return tried.size
}

async function runAll(
  options: Pick<DetectionWorkerOptions, 'runner' | 'logger'>,
  due: readonly DueDetector[],
  signal: AbortSignal,
): Promise<void> {
  const queue = [...Map.groupBy(due, ({ tenantId }) => tenantId).values()]
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) {
      await runSome(options, next, signal)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
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
