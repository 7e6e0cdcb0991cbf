// How anomalies are kept: as rows of the control plane, written by a run inside the transaction that records it, and
// compared by exact instants. Instants are decimal text at rest, because SQL integers of 64 bits don't survive
// JavaScript numbers, and are compared as 64-bit integers in the database.

import { type ExpressionBuilder, type Selectable, sql } from 'kysely'
import type { Anomaly } from '../../contract/detection.ts'
import { formatInstant, type Ns } from '../../contract/instant.ts'
import type { AnomaliesTable, Control, ControlTransaction, Database } from '../control/database.ts'
import { instantText } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import type { TimeRange } from '../core/time-range.ts'
import { signals as allSignals, type Signal } from '../telemetry/schema/tables.ts'
import type { StoredDetector } from './detector.ts'
import type { Finding } from './findings.ts'
import type { Outcome } from './outcome.ts'
import { type RecordedAnomaly, type RunWindow, reconcile } from './reconcile.ts'

export interface RunRecord {
  readonly detector: StoredDetector
  readonly ranAtMs: number
  readonly nextRunAtMs: number
  readonly outcome: Outcome
  /** Null where nothing could be evaluated: then no anomaly changes. */
  readonly found: RunFound | null
}

export interface RunFound {
  readonly findings: readonly Finding[]
  readonly window: RunWindow
  readonly signals: readonly Signal[]
  /** Whether some of `[startNs, endNs)` is erased by now. */
  readonly isUnknown: (range: { startNs: Ns; endNs: Ns }) => boolean
}

/** Creates, updates and closes what a run's findings mean for the anomalies on record. */
export async function recordFindings(trx: ControlTransaction, run: RunRecord, seen: RunFound): Promise<void> {
  const recorded = await recordedAnomalies(trx, run.detector, seen.window)
  const changes = reconcile(recorded, seen.findings, seen.window)
  const isKnown = (finding: Finding) =>
    !seen.isUnknown({ startNs: finding.startedNs, endNs: finding.seenUntilNs })
  for (const finding of changes.create.filter(isKnown)) {
    await trx
      .insertInto('anomalies')
      .values(newAnomaly(run, seen, finding))
      .execute()
  }
  for (const { id, finding } of changes.update.filter((change) => isKnown(change.finding))) {
    await trx
      .updateTable('anomalies')
      .set({ ...findingColumns(finding), updated_at_ms: run.ranAtMs })
      .where('id', '=', id)
      .execute()
  }
  for (const id of changes.close) {
    await trx
      .updateTable('anomalies')
      .set((columns) => ({ ended_at_ns: columns.ref('seen_until_ns'), updated_at_ms: run.ranAtMs }))
      .where('id', '=', id)
      .execute()
  }
}

async function recordedAnomalies(
  trx: ControlTransaction,
  detector: StoredDetector,
  window: RunWindow,
): Promise<RecordedAnomaly[]> {
  const rows = await trx
    .selectFrom('anomalies')
    .select(['id', 'group_key', 'metric_key', 'started_at_ns', 'seen_until_ns', 'ended_at_ns'])
    .where('tenant_id', '=', detector.tenantId)
    .where('detector_id', '=', detector.id)
    .where((where) =>
      where.or([where('ended_at_ns', 'is', null), where(ns('seen_until_ns'), '>', bound(window.startNs))]),
    )
    .orderBy(ns('started_at_ns'))
    .execute()
  return rows.map((row) => ({
    id: row.id,
    // Of a metric the detector no longer watches nothing can be found again: its group matches none.
    groupKey:
      row.metric_key === detector.definition.metric_key
        ? row.group_key
        : `${row.metric_key} ${row.group_key}`,
    startedNs: BigInt(row.started_at_ns),
    seenUntilNs: BigInt(row.seen_until_ns),
    isOpen: row.ended_at_ns === null,
  }))
}

function newAnomaly(run: RunRecord, seen: RunFound, finding: Finding) {
  return {
    id: newId('ano', run.ranAtMs),
    tenant_id: run.detector.tenantId,
    detector_id: run.detector.id,
    group_key: finding.groupKey,
    metric_key: run.detector.definition.metric_key,
    signal: seen.signals.join(','),
    started_at_ns: finding.startedNs.toString(),
    ...findingColumns(finding),
    created_at_ms: run.ranAtMs,
    updated_at_ms: run.ranAtMs,
  }
}

function findingColumns(finding: Finding) {
  return {
    ended_at_ns: finding.isOpen ? null : finding.seenUntilNs.toString(),
    seen_until_ns: finding.seenUntilNs.toString(),
    peak_at_ns: finding.peakNs.toString(),
    value: finding.value,
    expected: finding.expected,
    lower: finding.lower,
    upper: finding.upper,
    score: finding.score,
    reason: finding.reason,
  }
}

/** The wire form. */
export function toAnomaly(row: Selectable<AnomaliesTable>): Anomaly {
  return {
    id: row.id,
    detector_id: row.detector_id,
    metric_key: row.metric_key,
    group: JSON.parse(row.group_key),
    signals: allSignals.filter((signal) => row.signal.split(',').includes(signal)),
    started_at: instantOf(row.started_at_ns),
    ended_at: row.ended_at_ns === null ? null : instantOf(row.ended_at_ns),
    seen_until: instantOf(row.seen_until_ns),
    peak_at: instantOf(row.peak_at_ns),
    value: row.value,
    expected: row.expected,
    lower: row.lower,
    upper: row.upper,
    score: row.score,
    reason: row.reason,
    created_at: instantText(row.created_at_ms),
    updated_at: instantText(row.updated_at_ms),
  }
}

function instantOf(text: string): string {
  return formatInstant(BigInt(text))
}

/**
 * Removes every anomaly of the organisation that was derived from one of the signals and shares an instant with
 * the range, and makes its detectors due, so that their statuses forget as well. Answers how many it removed.
 */
export async function removeAnomaliesIn(
  trx: ControlTransaction,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
): Promise<number> {
  const { numDeletedRows } = await trx
    .deleteFrom('anomalies')
    .where('tenant_id', '=', tenantId)
    .where((where) => isTouched(where, signals, range))
    .executeTakeFirstOrThrow()
  await trx.updateTable('detectors').set({ next_run_at_ms: 0 }).where('tenant_id', '=', tenantId).execute()
  return Number(numDeletedRows)
}

/** How many anomalies {@link removeAnomaliesIn} would remove. */
export async function countAnomaliesIn(
  control: Control,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
): Promise<number> {
  const row = await control
    .selectFrom('anomalies')
    .select((select) => select.fn.countAll<number | string>().as('count'))
    .where('tenant_id', '=', tenantId)
    .where((where) => isTouched(where, signals, range))
    .executeTakeFirstOrThrow()
  return Number(row.count)
}

type AnomalyColumns = ExpressionBuilder<Database, 'anomalies'>

/** `signal` lists what the values came from, such as `traces` or `metrics,logs,traces`. */
export function isTouched(where: AnomalyColumns, signals: readonly Signal[], range: TimeRange) {
  const conditions = [where.or(signals.map((signal) => where('signal', 'like', `%${signal}%`)))]
  if (range.startNs !== null) conditions.push(where(ns('seen_until_ns'), '>', bound(range.startNs)))
  if (range.endNs !== null) conditions.push(where(ns('started_at_ns'), '<', bound(range.endNs)))
  return where.and(conditions)
}

/** Nanoseconds are kept as text; compared as 64-bit integers. */
export function ns(column: 'started_at_ns' | 'seen_until_ns') {
  return sql<bigint>`cast(${sql.ref(column)} as bigint)`
}

export function bound(instantNs: Ns) {
  return sql<bigint>`cast(${instantNs.toString()} as bigint)`
}
