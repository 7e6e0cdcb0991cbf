// Creates, updates and closes the anomalies that a run found, inside the transactions that record it.
// For an anomaly under a legal hold, a version of it is kept before the change; where none can be kept, the
// anomaly does not change. Of a detector only the newest anomalies are kept.

import { appendAudit } from '../../audit/log.ts'
import type { ControlTransaction } from '../../control/database.ts'
import { systemActor } from '../../core/actor.ts'
import { newId } from '../../core/ids.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { type RunFound, type RunRecord, sortableInstant, withheldColumns } from './anomaly-rows.ts'
import type { Finding } from './findings.ts'
import { keepVersion, versionsMaxOf } from './held-anomalies.ts'
import { forgetOldest, keepableOf } from './kept-anomalies.ts'
import type { ReadTime } from './read-time.ts'
import { type AnomalyChanges, type RecordedAnomaly, reconcile } from './reconcile.ts'

/** Who changes an anomaly when a run does. */
const actor = systemActor('detection')

/** Rows read in one statement; each needs a bound variable. */
const chunkSize = 500

/** Rows written in one statement, because each statement has its own cost. */
const rowsAtOnce = 100

interface RunEffect {
  /** The recorded anomalies of the detector in the time of the run. */
  readonly recorded: readonly RecordedAnomaly[]
  readonly seen: RunFound
  readonly readTime: ReadTime
  /** Those of the organisation that are in force. */
  readonly holds: readonly ActiveHold[]
}

interface FoundChanges extends AnomalyChanges {
  /**
   * Findings that are new and kept, in the order of {@link keepableOf}. Open ones come last, because the
   * transaction that finds them recorded writes them again.
   */
  readonly create: readonly Finding[]
  /** Whether any finding is new. */
  readonly hasNew: boolean
}

/** What a run changes. `recorded` are the anomalies before it. */
export async function changesOf(
  trx: ControlTransaction,
  { detector }: RunRecord,
  { findings, window }: RunFound,
  recorded: readonly RecordedAnomaly[],
): Promise<FoundChanges> {
  const changes = reconcile(recorded, findings, window)
  const create = await keepableOf(trx, detector, changes.create)
  return { ...changes, create, hasNew: changes.create.length > 0 }
}

/** Creates an anomaly for each of these findings. */
export async function createAnomalies(
  trx: ControlTransaction,
  run: RunRecord,
  findings: readonly Finding[],
  { readTime, seen }: Pick<RunEffect, 'seen' | 'readTime'>,
): Promise<void> {
  for (let i = 0; i < findings.length; i += rowsAtOnce) {
    const rows = findings.slice(i, i + rowsAtOnce).map((one) => newAnomaly(run, seen, one, readTime))
    await trx.insertInto('anomalies').values(rows).execute()
  }
}

/** Creates, updates and closes anomalies, and removes the oldest beyond the number that is kept. */
export async function recordChanges(
  trx: ControlTransaction,
  run: RunRecord,
  changes: FoundChanges,
  { recorded, seen, holds, readTime }: RunEffect,
): Promise<void> {
  await createAnomalies(trx, run, changes.create, { seen, readTime })
  const changed = [...changes.update.map(({ id }) => id), ...changes.close]
  const unchanged = await keepHeld(trx, run, holds, changed)
  const seenUntil = new Map(recorded.map(({ id, seenUntilNs }) => [id, seenUntilNs]))
  for (const { id, finding } of changes.update) {
    if (unchanged.has(id)) continue
    const columns = findingColumns(finding, readTime)
    // Time under a hold stays part of the anomaly's own time, so that the hold still applies to it.
    const before = holds.length > 0 ? (seenUntil.get(id) ?? 0n) : 0n
    await trx
      .updateTable('anomalies')
      // An anomaly that alarmed once is never muted again, whatever a later window shows.
      .set({
        ...columns,
        ...(before > finding.seenUntilNs && { seen_until_ns: sortableInstant(before) }),
        ...(finding.isMuted ? {} : { muted: 0 }),
        judged_by: judgedBy(run),
        updated_at_ms: run.ranAtMs,
      })
      .where('id', '=', id)
      .execute()
  }
  for (const id of changes.close) {
    if (unchanged.has(id)) continue
    await trx
      .updateTable('anomalies')
      .set((columns) => ({
        ended_at_ns: columns.ref('seen_until_ns'),
        judged_by: judgedBy(run),
        updated_at_ms: run.ranAtMs,
      }))
      .where('id', '=', id)
      .execute()
  }
  if (!changes.hasNew) return
  const forgotten = await forgetOldest(trx, run.detector, holds)
  if (forgotten >= manyForgotten) await noteForgotten(trx, run, forgotten)
}

/** A detector that alarms often replaces one at a run; one that finds a past full of them, hundreds. */
const manyForgotten = 50

/** Whoever makes a detector find very much removes what it had found, so that is in the audit log. */
async function noteForgotten(trx: ControlTransaction, run: RunRecord, anomalies: number): Promise<void> {
  await appendAudit(trx, run.detector.tenantId, run.ranAtMs, {
    actor,
    action: 'detector.anomalies_forgotten',
    target: run.detector.id,
    outcome: 'accepted',
    facts: { anomalies },
  })
}

/** The definition and tuning that a run used. */
function judgedBy({ detector }: RunRecord): string {
  return `${detector.revision}.${detector.tuningRevision}`
}

/**
 * Keeps versions of the held anomalies that are about to change. Returns the ids of
 * those that must not change.
 */
async function keepHeld(
  trx: ControlTransaction,
  run: RunRecord,
  holds: readonly ActiveHold[],
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const unchanged = new Set<string>()
  if (holds.length === 0) return unchanged
  for (let i = 0; i < ids.length; i += chunkSize) {
    const rows = await trx
      .selectFrom('anomalies')
      .selectAll()
      .where('id', 'in', ids.slice(i, i + chunkSize))
      .execute()
    for (const row of rows) {
      const isActOfPerson = row.judged_by !== judgedBy(run)
      const versionsMax = versionsMaxOf.run
      const change = { holds, nowMs: run.ranAtMs, by: actor, isActOfPerson, versionsMax }
      if (!(await keepVersion(trx, row, change))) unchanged.add(row.id)
    }
  }
  return unchanged
}

function newAnomaly(run: RunRecord, seen: RunFound, finding: Finding, readTime: ReadTime) {
  return {
    id: newId('ano', run.ranAtMs),
    tenant_id: run.detector.tenantId,
    detector_id: run.detector.id,
    group_key: finding.groupKey,
    metric_key: run.detector.definition.metric_key,
    signal: seen.signals.join(','),
    started_at_ns: sortableInstant(finding.startedNs),
    ...findingColumns(finding, readTime),
    muted: finding.isMuted ? 1 : 0,
    judged_by: judgedBy(run),
    created_at_ms: run.ranAtMs,
    updated_at_ms: run.ranAtMs,
  }
}

/** Every run judges its whole window again, so its values replace those of the runs before. */
function findingColumns(finding: Finding, readTime: ReadTime) {
  const read = readTime.columnsOf(finding)
  return {
    ended_at_ns: finding.isOpen ? null : sortableInstant(finding.seenUntilNs),
    seen_until_ns: sortableInstant(finding.seenUntilNs),
    peak_at_ns: finding.peakNs.toString(),
    value: finding.value,
    ...(read === null ? withheldColumns : { ...read, ...learntColumns(finding) }),
  }
}

function learntColumns({ edgeFactor, expected, lower, reason, score, upper }: Finding) {
  return { expected, lower, upper, score, reason, edge_factor: edgeFactor === 1 ? null : edgeFactor }
}
