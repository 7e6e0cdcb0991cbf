// Records several runs in one transaction, because each transaction waits for the disk and each statement has
// its own cost. The recorded anomalies are read for all runs at once. Then each run is compared and written
// on its own: a run that used an outdated state is skipped, and the others are still recorded.

import type { ControlTransaction } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'
import { Pace } from '../../core/turns/pace.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { reportedMax } from '../alarms/newest-episodes.ts'
import { type RunRecord, recordedAnomalies } from './anomaly-rows.ts'
import type { ReadHolds } from './held-anomalies.ts'
import { ReadTime } from './read-time.ts'
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

/** A run with what is computed before the transaction, because others wait for that. */
interface PreparedRecord {
  readonly run: RunRecord
  /** Null where nothing was found. */
  readonly readTime: ReadTime | null
}

/** Prepares runs for {@link recordRunsIn}. Other work of the event loop runs in between. */
export async function preparedRecords(runs: readonly RunRecord[]): Promise<PreparedRecord[]> {
  const pace = new Pace()
  const prepared: PreparedRecord[] = []
  for (const run of runs) {
    prepared.push({ run, readTime: run.found === null ? null : await ReadTime.of(run.found, pace) })
  }
  return prepared
}

/**
 * Records runs of one organisation, at most `idsMax`, each of another detector. Returns how many were
 * recorded.
 */
export async function recordRunsIn(
  trx: ControlTransaction,
  readHolds: ReadHolds,
  prepared: readonly PreparedRecord[],
): Promise<number> {
  const [any] = prepared
  if (any === undefined) return 0
  // Before anything is read, also what is hidden: what is erased later finds what is written here.
  await lock(trx, any.run.detector)
  const current = prepared.filter(({ run }) => run.tuning?.isOutdated() !== true)
  if (current.length === 0) return 0
  const recorded = await recordedAnomalies(
    trx,
    current.map(({ run }) => run),
  )
  const holds = await readHolds(trx, any.run.detector.tenantId)
  let count = 0
  for (const one of current) {
    if (await recordRun(trx, one, { recorded: recorded.get(one.run.detector.id) ?? [], holds })) count++
  }
  return count
}

async function recordRun(
  trx: ControlTransaction,
  { readTime, run }: PreparedRecord,
  { holds, recorded }: { recorded: readonly RecordedAnomaly[]; holds: readonly ActiveHold[] },
): Promise<boolean> {
  const { detector, found: seen } = run
  if (seen?.read.some(seen.isUnknown)) return false
  let update = trx
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
  // Each verdict and each mute increments it, so feedback need not be read again.
  if (run.tuning !== null) update = update.where('tuning_revision', '=', detector.tuningRevision)
  const { numUpdatedRows } = await update.executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) return false
  if (seen !== null && readTime !== null) await recordFindings(trx, run, { recorded, seen, holds, readTime })
  return true
}
