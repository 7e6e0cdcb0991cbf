// What an erasure does to anomalies, and the count that a verification makes afterwards. Anomalies about
// erased time are removed; those that only learnt from it are redacted. The bytes of both leave the file,
// because the control plane overwrites freed bytes. An organisation may have a million anomalies, and the
// database answers on the event loop: they are looked at in stretches between which other work runs, and
// changed in short transactions. Each of these reads the holds and judges its anomalies again, because a hold
// may have been placed or an anomaly changed. No run records what is derived from hidden telemetry, so none
// is missed.

import { setImmediate as turn } from 'node:timers/promises'
import type { Control, ControlTransaction } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'
import { transact } from '../../control/transaction.ts'
import { Pace } from '../../core/turns/pace.ts'
import type { ErasedPart, RunAlone } from '../../telemetry/derived-store.ts'
import type { ActiveHold, HeldPart } from '../../telemetry/held-part.ts'
import { AnomalyFates, type AnomalySource, KeepingHolds } from './anomaly-fate.ts'
import { bound, isOfSignals, ns, redactedColumns, sourceColumns, sourceOf } from './anomaly-rows.ts'
import { type ReadHolds, removeVersions, versionPages, versionsErasedBy } from './held-anomalies.ts'
import { unjudgedStatuses } from './run-summary.ts'

/** Anomalies that are read at once. */
const stretchAnomalies = 500

/**
 * Anomalies that are changed in one transaction. Not more, because a trigger compares each that is deleted
 * with every hold in force, and on SQLite everything else waits for the transaction.
 */
const changedAtOnce = 100

interface DerivedCounts {
  /** Anomalies about the range. */
  readonly inRange: number
  /** Anomalies about time outside the range, with a band learnt from inside. */
  readonly learntFrom: number
}

/**
 * Removes every anomaly of the organisation that was derived from one of the signals and shares an instant
 * with the range, and every version of it that a hold has kept. Clears band, score and reason of every
 * anomaly about other time that were computed from the range; it is not counted again. Also clears what the
 * last run of each detector said, and makes the detectors run again. Leaves what the holds keep. Returns how
 * many anomalies were removed and redacted.
 */
export async function eraseAnomaliesIn(
  control: Control,
  tenantId: string,
  part: ErasedPart,
  { alone, readHolds }: { readonly alone: RunAlone; readonly readHolds: ReadHolds },
): Promise<DerivedCounts> {
  const counts = { inRange: 0, learntFrom: 0 }
  // A run that read the part before it was hidden may be recorded at this moment: the lock waits for it.
  const held = await transact(control, async (trx) => {
    await lock(trx, { tenantId })
    return readHolds(trx, tenantId)
  })
  const fates = new AnomalyFates({ ...part, held })
  for await (const stretch of stretchesOf(control, tenantId, part)) {
    const affected: string[] = []
    for await (const { id, source } of paced(stretch)) if (fates.of(source) !== 'kept') affected.push(id)
    for (let i = 0; i < affected.length; i += changedAtOnce) {
      const ids = affected.slice(i, i + changedAtOnce)
      const changed = await alone(() =>
        transact(control, async (trx) => {
          await lock(trx, { tenantId })
          return eraseThese(trx, tenantId, ids, { ...part, held: await readHolds(trx, tenantId) })
        }),
      )
      counts.inRange += changed.inRange
      counts.learntFrom += changed.learntFrom
      await turn()
    }
  }
  await removeVersions(control, tenantId, { readHolds, alone, under: versionsErasedBy(part) })
  await alone(() =>
    transact(control, async (trx) => {
      await lock(trx, { tenantId })
      await renewRunResults(trx, tenantId)
    }),
  )
  return counts
}

/** How many anomalies {@link eraseAnomaliesIn} would remove and redact. */
export async function countAnomaliesIn(
  control: Control,
  tenantId: string,
  part: ErasedPart,
  held: readonly HeldPart[] = [],
): Promise<DerivedCounts> {
  const counts = { kept: 0, redacted: 0, removed: 0 }
  const fates = new AnomalyFates({ ...part, held })
  for await (const stretch of stretchesOf(control, tenantId, part)) {
    for await (const { source } of paced(stretch)) counts[fates.of(source)]++
  }
  return { inRange: counts.removed, learntFrom: counts.redacted }
}

/**
 * The same without legal holds, and without what nobody may see while the parts `hidden` are hidden:
 * anomalies about them, and what others learnt from them.
 */
export async function countVisibleIn(
  control: Control,
  tenantId: string,
  part: ErasedPart,
  hidden: readonly ErasedPart[],
): Promise<DerivedCounts> {
  const counts = { kept: 0, redacted: 0, removed: 0 }
  const fates = new AnomalyFates({ ...part, held: [] })
  const hidings = hidden.map((other) => new AnomalyFates({ ...other, held: [] }))
  for await (const stretch of stretchesOf(control, tenantId, part)) {
    for await (const { source } of paced(stretch)) {
      const fate = fates.of(source)
      if (fate === 'kept') continue
      const isHidden = hidings.some((hiding) => {
        const seen = hiding.of(source)
        return seen === 'removed' || seen === fate
      })
      if (!isHidden) counts[fate]++
    }
  }
  return { inRange: counts.removed, learntFrom: counts.redacted }
}

/** How many versions of anomalies {@link eraseAnomaliesIn} would remove. */
export async function countVersionsIn(
  control: Control,
  tenantId: string,
  part: ErasedPart,
  held: readonly HeldPart[] = [],
): Promise<number> {
  const isRemoved = versionsErasedBy(part)(held)
  let count = 0
  for await (const page of versionPages(control, tenantId)) {
    for (const { source } of page) if (isRemoved(source)) count++
  }
  return count
}

/** Returns the ids of the holds that keep an anomaly, or a version of one, from the erasure. */
export async function keepersIn(
  control: Control,
  tenantId: string,
  part: ErasedPart,
  holds: readonly ActiveHold[],
): Promise<ReadonlySet<string>> {
  const keeping = new KeepingHolds(part, holds)
  for await (const stretch of stretchesOf(control, tenantId, part)) {
    for await (const { source } of paced(stretch)) keeping.add(source)
  }
  for await (const page of versionPages(control, tenantId)) {
    for (const { source } of page) keeping.add(source)
  }
  return new Set([...keeping.found].map(({ holdId }) => holdId))
}

/** Clears the results of the detectors' last runs, and makes the detectors run again. */
async function renewRunResults(trx: ControlTransaction, tenantId: string): Promise<void> {
  await trx.updateTable('detectors').set({ next_run_at_ms: 0 }).where('tenant_id', '=', tenantId).execute()
  await clearRunResults(trx, tenantId)
}

/**
 * Clears the results of the detectors' last runs, which are derived from telemetry too (counts of series, for
 * example). Statuses that only say that nothing was judged stay: the next run needs them to find what is new.
 * Called in the transaction that hides telemetry: a run that has read it records nothing afterwards.
 */
export async function clearRunResults(trx: ControlTransaction, tenantId: string): Promise<void> {
  await trx
    .updateTable('detectors')
    .set({ last_note: null })
    .where('tenant_id', '=', tenantId)
    .where('last_note', 'is not', null)
    .execute()
  await trx
    .updateTable('detectors')
    .set({ last_status: null })
    .where('tenant_id', '=', tenantId)
    .where('last_status', 'not in', [...unjudgedStatuses])
    .execute()
}

/** Removes or redacts those of the anomalies that the erasure affects; the ids are in ascending order. */
async function eraseThese(
  trx: ControlTransaction,
  tenantId: string,
  ids: readonly string[],
  erasure: ErasedPart & { readonly held: readonly HeldPart[] },
): Promise<DerivedCounts> {
  const wanted = new Set(ids)
  // By bounds and not by a list, because a statement is prepared once per text.
  const rows = await affectedBy(trx, tenantId, erasure)
    .where('id', '>=', ids[0] ?? '')
    .where('id', '<=', ids.at(-1) ?? '')
    .execute()
  const fates = new AnomalyFates(erasure)
  const changed = { kept: [] as string[], redacted: [] as string[], removed: [] as string[] }
  for (const row of rows) if (wanted.has(row.id)) changed[fates.of(sourceOf(row))].push(row.id)
  const { redacted, removed } = changed
  if (removed.length > 0) {
    await trx.deleteFrom('anomalies').where('tenant_id', '=', tenantId).where('id', 'in', removed).execute()
  }
  if (redacted.length > 0) {
    await trx
      .updateTable('anomalies')
      .set(redactedColumns)
      .where('tenant_id', '=', tenantId)
      .where('id', 'in', redacted)
      .execute()
  }
  return { inRange: removed.length, learntFrom: redacted.length }
}

interface FoundAnomaly {
  readonly id: string
  readonly source: AnomalySource
}

/**
 * Returns every anomaly that an erasure of the part may affect, ordered by id; those of one stretch of the
 * organisation's anomalies at a time, which may be none.
 */
async function* stretchesOf(
  control: Control,
  tenantId: string,
  part: ErasedPart,
): AsyncGenerator<readonly FoundAnomaly[]> {
  for (let after = ''; ; ) {
    const last = await control
      .selectFrom('anomalies')
      .select('id')
      .where('tenant_id', '=', tenantId)
      .where('id', '>', after)
      .orderBy('id')
      .offset(stretchAnomalies - 1)
      .limit(1)
      .executeTakeFirst()
    let query = affectedBy(control, tenantId, part).where('id', '>', after)
    if (last !== undefined) query = query.where('id', '<=', last.id)
    const rows = await query.orderBy('id').execute()
    yield rows.map((row) => ({ id: row.id, source: sourceOf(row) }))
    if (last === undefined) return
    after = last.id
    await turn()
  }
}

/** Each of a stretch; other work runs in between, because an anomaly may have read a hundred ranges. */
async function* paced(stretch: readonly FoundAnomaly[]): AsyncGenerator<FoundAnomaly> {
  const pace = new Pace()
  for (const found of stretch) {
    if (pace.isOver()) await pace.turn()
    yield found
  }
}

/** Selects what {@link stretchesOf} returns, of all anomalies. */
function affectedBy(control: Control | ControlTransaction, tenantId: string, { range, signals }: ErasedPart) {
  let query = control
    .selectFrom('anomalies')
    .select(['id', ...sourceColumns])
    .where('tenant_id', '=', tenantId)
    .where((where) => isOfSignals(where, signals))
  if (range.startNs !== null) query = query.where(ns('seen_until_ns'), '>', bound(range.startNs))
  if (range.endNs !== null) query = query.where(ns('read_from_ns', 0n), '<', bound(range.endNs))
  return query
}
