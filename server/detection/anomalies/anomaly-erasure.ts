// What an erasure does to anomalies, and the count that a verification makes afterwards. Anomalies about
// erased time are removed; those that only learnt from it are redacted. The bytes of both leave the file,
// because the control plane overwrites freed bytes.

import type { Control, ControlTransaction } from '../../control/database.ts'
import type { TimeRange } from '../../core/time-range.ts'
import type { ActiveHold, HeldPart } from '../../telemetry/held-part.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { type AnomalySource, fateOf, keepersOf } from './anomaly-fate.ts'
import { bound, isOfSignals, ns, redactedColumns, sourceColumns, sourceOf } from './anomaly-rows.ts'
import { readVersionSources, removeVersions, versionsWithin } from './held-anomalies.ts'
import { unjudgedStatuses } from './run-summary.ts'

/** Rows per statement; each needs a bound variable. */
const pageSize = 500

interface DerivedCounts {
  /** Anomalies about the range. */
  readonly inRange: number
  /** Anomalies about time outside the range, with a band learnt from inside. */
  readonly learntFrom: number
}

/**
 * Removes every anomaly of the organisation that was derived from one of the signals and shares an instant
 * with the range, and every version of it that a hold has kept. Also clears what the last run of each
 * detector said, and makes the detectors run again. Returns how many anomalies were removed.
 */
export async function removeAnomaliesIn(
  trx: ControlTransaction,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
  held: readonly HeldPart[] = [],
): Promise<number> {
  const { removed } = await fatesIn(trx, tenantId, signals, range, held)
  for (const ids of chunksOf(removed)) {
    await trx.deleteFrom('anomalies').where('tenant_id', '=', tenantId).where('id', 'in', ids).execute()
  }
  await removeVersions(trx, await versionsWithin(trx, tenantId, { signals, range, held }))
  await clearRunResults(trx, tenantId)
  return removed.length
}

/**
 * Clears band, score and reason of every anomaly about other time that were computed from the range. Returns
 * how many anomalies were redacted; none of them is counted or redacted again.
 */
export async function redactAnomaliesIn(
  trx: ControlTransaction,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
  held: readonly HeldPart[] = [],
): Promise<number> {
  const { redacted } = await fatesIn(trx, tenantId, signals, range, held)
  for (const ids of chunksOf(redacted)) {
    await trx
      .updateTable('anomalies')
      .set(redactedColumns)
      .where('tenant_id', '=', tenantId)
      .where('id', 'in', ids)
      .execute()
  }
  return redacted.length
}

/** How many anomalies {@link removeAnomaliesIn} would remove and {@link redactAnomaliesIn} would redact. */
export async function countAnomaliesIn(
  control: Control,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
  held: readonly HeldPart[] = [],
): Promise<DerivedCounts> {
  const { removed, redacted } = await fatesIn(control, tenantId, signals, range, held)
  return { inRange: removed.length, learntFrom: redacted.length }
}

/** How many versions of anomalies {@link removeAnomaliesIn} would remove. */
export async function countVersionsIn(
  control: Control,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
  held: readonly HeldPart[] = [],
): Promise<number> {
  return (await versionsWithin(control, tenantId, { signals, range, held })).length
}

/** Returns the ids of the holds that keep an anomaly, or a version of one, from the erasure. */
export async function keepersIn(
  control: Control,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
  holds: readonly ActiveHold[],
): Promise<ReadonlySet<string>> {
  const keepers = new Set<string>()
  const add = (source: AnomalySource) => {
    for (const { holdId } of keepersOf(source, { signals, range }, holds)) keepers.add(holdId)
  }
  await visitSources(control, tenantId, signals, range, (_id, source) => add(source))
  for (const source of await readVersionSources(control, tenantId)) add(source)
  return keepers
}

/**
 * Clears the results of the detectors' last runs, which are derived from telemetry too (counts of series, for
 * example). Statuses that only say that nothing was judged stay: the next run needs them to find what is new.
 */
async function clearRunResults(trx: ControlTransaction, tenantId: string): Promise<void> {
  await trx
    .updateTable('detectors')
    .set({ next_run_at_ms: 0, last_note: null })
    .where('tenant_id', '=', tenantId)
    .execute()
  await trx
    .updateTable('detectors')
    .set({ last_status: null })
    .where('tenant_id', '=', tenantId)
    .where('last_status', 'not in', [...unjudgedStatuses])
    .execute()
}

/** Ids of anomalies by what an erasure does to them. */
async function fatesIn(
  control: Control | ControlTransaction,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
  held: readonly HeldPart[],
): Promise<{ removed: string[]; redacted: string[] }> {
  const fates = { removed: [] as string[], redacted: [] as string[], kept: [] as string[] }
  await visitSources(control, tenantId, signals, range, (id, source) => {
    fates[fateOf(source, { signals, range, held })].push(id)
  })
  return fates
}

/** Calls `visit` with every anomaly that an erasure of the range may affect. */
async function visitSources(
  control: Control | ControlTransaction,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
  visit: (id: string, source: AnomalySource) => void,
): Promise<void> {
  for (let after = ''; ; ) {
    let query = control
      .selectFrom('anomalies')
      .select(['id', ...sourceColumns])
      .where('tenant_id', '=', tenantId)
      .where((where) => isOfSignals(where, signals))
      .where('id', '>', after)
    if (range.startNs !== null) query = query.where(ns('seen_until_ns'), '>', bound(range.startNs))
    if (range.endNs !== null) query = query.where(ns('read_from_ns', 0n), '<', bound(range.endNs))
    const page = await query.orderBy('id').limit(pageSize).execute()
    for (const row of page) visit(row.id, sourceOf(row))
    if (page.length < pageSize) return
    after = page.at(-1)?.id ?? after
  }
}

function* chunksOf(ids: readonly string[]): Generator<readonly string[]> {
  for (let i = 0; i < ids.length; i += pageSize) yield ids.slice(i, i + pageSize)
}
