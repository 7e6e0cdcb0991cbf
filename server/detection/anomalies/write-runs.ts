// Records several runs in one transaction, because each transaction waits for the disk and each statement has
// its own cost. The recorded anomalies are read for all runs at once. Then each run is compared and written
// on its own: a run that used an outdated state is skipped, and the others are still recorded.

import type { ControlTransaction } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { reportedMax } from '../alarms/newest-episodes.ts'
import { type RunRecord, recordedAnomalies } from './anomaly-rows.ts'
import { isSameTuning } from './feedback.ts'
import type { FeedbackStore } from './feedback-store.ts'
import type { ReadHolds } from './held-anomalies.ts'
import type { RecordedAnomaly } from './reconcile.ts'
import { recordFindings } from './write-findings.ts'

/**
 * Findings that one transaction records at most, or those of one run. With SQLite a transaction occupies the
 * event loop, and each new anomaly takes some 50 µs.
 */
const findingsAtOnce = reportedMax

/** Divides runs, in order, into those that are recorded in one transaction. */
export function transactionsOf(runs: readonly RunRecord[]): RunRecord[][] {
  const parts: RunRecord[][] = []
  let room = 0
  for (const run of runs) {
    const findings = run.found?.findings.length ?? 0
    if (parts.length === 0 || findings > room) {
      parts.push([])
      room = findingsAtOnce
    }
    parts.at(-1)?.push(run)
    room -= findings
  }
  return parts
}

/**
 * Records runs of one organisation, at most `idsMax`, each of another detector. Returns how many were
 * recorded.
 */
export async function recordRunsIn(
  trx: ControlTransaction,
  { feedback, readHolds }: { feedback: Pick<FeedbackStore, 'tuningsOf'>; readHolds: ReadHolds },
  runs: readonly RunRecord[],
): Promise<number> {
  const [any] = runs
  if (any === undefined) return 0
  // Before anything is read, also what is hidden: what is erased later finds what is written here.
  await lock(trx, any.detector)
  const detectors = runs.map(({ detector }) => detector)
  const tunings = await feedback.tuningsOf(detectors, trx)
  const current = runs.filter(({ tuning }, i) => {
    const present = tunings[i]
    return tuning === null || (present !== undefined && isSameTuning(tuning, present))
  })
  const [first] = current
  if (first === undefined) return 0
  const recorded = await recordedAnomalies(trx, current)
  const holds = await readHolds(trx, first.detector.tenantId)
  let count = 0
  for (const run of current) {
    if (await recordRun(trx, run, { recorded: recorded.get(run.detector.id) ?? [], holds })) count++
  }
  return count
}

async function recordRun(
  trx: ControlTransaction,
  run: RunRecord,
  { holds, recorded }: { recorded: readonly RecordedAnomaly[]; holds: readonly ActiveHold[] },
): Promise<boolean> {
  const { detector, found: seen } = run
  if (seen?.read.some(seen.isUnknown)) return false
  const { numUpdatedRows } = await trx
    .updateTable('detectors')
    .set({
      last_run_at_ms: run.ranAtMs,
      last_status: run.summary.status,
      last_note: run.summary.note,
      next_run_at_ms: run.nextRunAtMs,
    })
    .where('tenant_id', '=', detector.tenantId)
    .where('id', '=', detector.id)
    .where('revision', '=', detector.revision)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) return false
  if (seen !== null) await recordFindings(trx, run, { recorded, seen, holds })
  return true
}
