// What runs found goes into the control plane, several runs in one transaction: what costs is that a transaction waits
// for the disk, and that each statement is asked on its own. So what is on record is read for all of them at once, and
// each is then compared and written for itself: one that went by what no longer holds leaves nothing and holds up none.

import type { ControlTransaction } from '../../control/database.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { type RunRecord, recordedAnomalies } from './anomaly-rows.ts'
import { isSameTuning } from './feedback.ts'
import type { FeedbackStore } from './feedback-store.ts'
import type { ReadHolds } from './held-anomalies.ts'
import type { RecordedAnomaly } from './reconcile.ts'
import { recordFindings } from './write-findings.ts'

/** Runs of one organisation, at most `idsMax`, each of another detector. Answers how many were recorded. */
export async function recordRunsIn(
  trx: ControlTransaction,
  { feedback, readHolds }: { feedback: Pick<FeedbackStore, 'tuningsOf'>; readHolds: ReadHolds },
  runs: readonly RunRecord[],
): Promise<number> {
  const detectors = runs.map(({ detector }) => detector)
  const tunings = await feedback.tuningsOf(detectors, trx)
  const holding = runs.filter(({ tuning }, i) => {
    const now = tunings[i]
    return tuning === null || (now !== undefined && isSameTuning(tuning, now))
  })
  const [first] = holding
  if (first === undefined) return 0
  const recorded = await recordedAnomalies(trx, holding)
  const holds = await readHolds(trx, first.detector.tenantId)
  let count = 0
  for (const run of holding) {
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
