// Records several runs in one transaction, because each transaction waits for the disk and each statement has
// its own cost. The recorded anomalies are read for all runs at once. Then each run is compared and written
// on its own: a run that used an outdated state is skipped, and the others are still recorded.
//
// With SQLite a transaction occupies the event loop. So one creates a limited number of anomalies; a run that
// has more is written by several transactions, its result by the last one. Each of them makes all comparisons
// again, so that nothing is written after the detector was changed or what the run read was hidden. Where the
// last one is missing, the detector is still due, and its next run finds the anomalies that were created.

import type { ExpressionBuilder } from 'kysely'
import type { ControlTransaction, Database } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'
import { Pace } from '../../core/turns/pace.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { type RunRecord, recordedAnomalies } from './anomaly-rows.ts'
import type { ReadHolds } from './held-anomalies.ts'
import { ReadTime } from './read-time.ts'
import type { RecordedAnomaly } from './reconcile.ts'
import { changesOf, createAnomalies, recordChanges } from './write-findings.ts'

/**
 * Findings that one transaction records at most, or those of one run, and anomalies that one creates. A new
 * anomaly takes some 70 µs, and several times that where cores are short.
 */
export const createdAtOnce = 200

/** Divides runs, in order, into those that are recorded in one transaction. */
export function transactionsOf(runs: readonly RunRecord[]): RunRecord[][] {
  const parts: RunRecord[][] = []
  let room = 0
  for (const run of runs) {
    const findings = run.found?.findings.length ?? 0
    if (parts.length === 0 || findings > room) {
      parts.push([])
      room = createdAtOnce
    }
    parts.at(-1)?.push(run)
    room -= findings
  }
  return parts
}

/** A run with what is computed before the transaction, because others wait for that. */
export interface PreparedRecord {
  readonly run: RunRecord
  /** Null where nothing was found. */
  readonly readTime: ReadTime | null
}

/** Prepares runs for {@link recordRunsIn}, in turns of the pace. */
export async function preparedRecords(
  runs: readonly RunRecord[],
  pace = new Pace(),
): Promise<PreparedRecord[]> {
  const prepared: PreparedRecord[] = []
  for (const run of runs) {
    prepared.push({ run, readTime: run.found === null ? null : await ReadTime.of(run.found, pace) })
  }
  return prepared
}

interface RecordedRuns {
  readonly recorded: number
  /** Those that have more anomalies to create, together fewer than before, for another transaction. */
  readonly unfinished: readonly PreparedRecord[]
}

/** Records runs of one organisation, at most `idsMax`, each of another detector. */
export async function recordRunsIn(
  trx: ControlTransaction,
  readHolds: ReadHolds,
  prepared: readonly PreparedRecord[],
): Promise<RecordedRuns> {
  const [any] = prepared
  if (any === undefined) return { recorded: 0, unfinished: [] }
  // Before anything is read, also what is hidden: what is erased later finds what is written here.
  await lock(trx, any.run.detector)
  const current = prepared.filter(({ run }) => run.tuning?.isOutdated() !== true)
  if (current.length === 0) return { recorded: 0, unfinished: [] }
  const recorded = await recordedAnomalies(
    trx,
    current.map(({ run }) => run),
  )
  const holds = await readHolds(trx, any.run.detector.tenantId)
  let [count, room] = [0, createdAtOnce]
  const unfinished: PreparedRecord[] = []
  for (const one of current) {
    const ofDetector = recorded.get(one.run.detector.id) ?? []
    const { created, is } = await recordRun(trx, one, { recorded: ofDetector, holds, room })
    room -= created
    if (is === 'recorded') count++
    if (is === 'unfinished') unfinished.push(one)
  }
  return { recorded: count, unfinished }
}

interface RecordOptions {
  readonly recorded: readonly RecordedAnomaly[]
  readonly holds: readonly ActiveHold[]
  /** How many anomalies may be created. */
  readonly room: number
}

interface Outcome {
  readonly is: 'recorded' | 'unfinished' | 'skipped'
  /** Number of anomalies. */
  readonly created: number
}

const skipped: Outcome = { is: 'skipped', created: 0 }

async function recordRun(
  trx: ControlTransaction,
  { readTime, run }: PreparedRecord,
  { holds, recorded, room }: RecordOptions,
): Promise<Outcome> {
  const { found: seen } = run
  if (seen?.read.some(seen.isUnknown)) return skipped
  if (seen === null || readTime === null) {
    return (await recordResult(trx, run)) ? { is: 'recorded', created: 0 } : skipped
  }
  const changes = await changesOf(trx, run, seen, recorded)
  const effect = { recorded, seen, holds, readTime }
  if (changes.create.length > room) {
    if (!(await isCurrent(trx, run))) return skipped
    await createAnomalies(trx, run, changes.create.slice(0, room), effect)
    return { is: 'unfinished', created: room }
  }
  if (!(await recordResult(trx, run))) return skipped
  await recordChanges(trx, run, changes, effect)
  return { is: 'recorded', created: changes.create.length }
}

/** The condition that the detector, its mutes and its feedback are still as the run read them. */
function asRead({ detector, tuning }: RunRecord) {
  return (where: ExpressionBuilder<Database, 'detectors'>) =>
    where.and([
      where('tenant_id', '=', detector.tenantId),
      where('id', '=', detector.id),
      where('revision', '=', detector.revision),
      // Each verdict and each mute increments it, so feedback need not be read again.
      ...(tuning === null ? [] : [where('tuning_revision', '=', detector.tuningRevision)]),
    ])
}

async function isCurrent(trx: ControlTransaction, run: RunRecord): Promise<boolean> {
  const row = await trx.selectFrom('detectors').select('id').where(asRead(run)).executeTakeFirst()
  return row !== undefined
}

/** Writes nothing and returns false where the run is not current. */
async function recordResult(trx: ControlTransaction, run: RunRecord): Promise<boolean> {
  const { nextRunAtMs, ranAtMs, summary } = run
  const { numUpdatedRows } = await trx
    .updateTable('detectors')
    .set({
      last_run_at_ms: ranAtMs,
      last_status: summary.status,
      last_note: summary.note,
      next_run_at_ms: nextRunAtMs,
    })
    .where(asRead(run))
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}
