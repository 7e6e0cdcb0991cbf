// The doors through which an erasure reaches anomalies, and a verification counts what is left of them. Anomalies
// about erased time are removed, those that only learnt from it are redacted. Both leave the file with the freed
// bytes: the control plane overwrites them.

import type { Control, ControlTransaction } from '../../control/database.ts'
import type { TimeRange } from '../../core/time-range.ts'
import type { HeldPart } from '../../telemetry/held-part.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { fateOf } from './anomaly-fate.ts'
import { bound, isOfSignals, ns, redactedColumns, sourceColumns, sourceOf } from './anomaly-rows.ts'
import { removeVersions, versionsWithin } from './held-anomalies.ts'
import { blindStatuses } from './run-summary.ts'

/** Rows per statement; each is a variable bound to it. */
const pageSize = 500

interface DerivedCounts {
  /** About the range. */
  readonly inRange: number
  /** About time outside the range, with a band learnt from inside. */
  readonly learntFrom: number
}

/**
 * Removes every anomaly of the organisation that was derived from one of the signals and shares an instant with
 * the range, with every version that a hold has kept of it, and makes its detectors forget what their last run said and run again. Answers how many it removed.
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
  await forgetOutcomes(trx, tenantId)
  return removed.length
}

/**
 * Takes band, score and reason from every anomaly about other time that were computed from the range. Answers how
 * many it redacted; none of them is found again.
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

/**
 * What a run said about a detector is derived as well, counts of series for one. Statuses that say no more than
 * that nothing was judged stay: the next run needs them to know what is news.
 */
async function forgetOutcomes(trx: ControlTransaction, tenantId: string): Promise<void> {
  await trx
    .updateTable('detectors')
    .set({ next_run_at_ms: 0, last_note: null })
    .where('tenant_id', '=', tenantId)
    .execute()
  await trx
    .updateTable('detectors')
    .set({ last_status: null })
    .where('tenant_id', '=', tenantId)
    .where('last_status', 'not in', [...blindStatuses])
    .execute()
}

/** Ids by what an erasure means for them; what it leaves alone is in neither. */
async function fatesIn(
  control: Control | ControlTransaction,
  tenantId: string,
  signals: readonly Signal[],
  range: TimeRange,
  held: readonly HeldPart[],
): Promise<{ removed: string[]; redacted: string[] }> {
  const fates = { removed: [] as string[], redacted: [] as string[], kept: [] as string[] }
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
    for (const row of page) fates[fateOf(sourceOf(row), { signals, range, held })].push(row.id)
    if (page.length < pageSize) return fates
    after = page.at(-1)?.id ?? after
  }
}

function* chunksOf(ids: readonly string[]): Generator<readonly string[]> {
  for (let i = 0; i < ids.length; i += pageSize) yield ids.slice(i, i + pageSize)
}
