// What a legal hold means for anomalies. An anomaly about held time is evidence: it is not removed while the
// hold is active, and its content before a change is kept as a version. Runs still update it, because an
// episode may continue. So a version is kept at the first change under a hold, and afterwards whenever the
// act of a person (another definition, a verdict, a mute) would overwrite something.

import { setImmediate as turn } from 'node:timers/promises'
import type { Selectable } from 'kysely'
import { actorTextIn, actorValues } from '../../control/actor-columns.ts'
import type { AnomaliesTable, Control, ControlTransaction } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'
import { transact } from '../../control/transaction.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import type { ErasedPart, RunAlone } from '../../telemetry/derived-store.ts'
import type { ActiveHold, HeldPart } from '../../telemetry/held-part.ts'
import { AnomalyFates, type AnomalySource, HeldTime, isHeldBy } from './anomaly-fate.ts'
import { sourceColumns, sourceOf } from './anomaly-rows.ts'
import { ofDetector } from './id-list.ts'

/** The holds of an organisation that are in force now. */
export type ReadHolds = (
  control: Control | ControlTransaction,
  tenantId: string,
) => Promise<readonly ActiveHold[]>

/** A change that is about to be made to a stored anomaly. */
interface AnomalyChange {
  readonly holds: readonly ActiveHold[]
  readonly nowMs: number
  readonly by: Actor
  readonly versionsMax: number
  /** Whether it overwrites the result of a person's act, or what such an act is about to change. */
  readonly isActOfPerson: boolean
}

/**
 * Each version comes from a person's act or a new hold, and takes a few kilobytes. Somebody who
 * changes a detector in a loop must not fill the disk, so an anomaly with this many versions does not
 * change until the hold is released. The limit of members is the lowest, so that their verdicts do not keep
 * runs from updating the anomaly. That of owners and admins is the highest, so that they can judge it also
 * where members change the detector again and again, and each run then stores a version.
 */
export const versionsMaxOf = { member: 80, run: 90, administrator: 100 } as const

/** Versions or anomalies that are read at once: the record of a version is parsed, which takes some 10 µs. */
const pageSize = 250

/** Versions that are deleted in one transaction. */
const chunkSize = 100

/** The holds that keep an anomaly. */
function holdsOn(anomaly: AnomalySource, holds: readonly ActiveHold[]): ActiveHold[] {
  return holds.filter((hold) => isHeldBy(hold, anomaly))
}

/**
 * Keeps a version of an anomaly if a hold requires it. Call it in the transaction of the change,
 * before the change. Returns false where the anomaly is held and has `versionsMax` versions or more; then it
 * must not be changed.
 */
export async function keepVersion(
  trx: ControlTransaction,
  row: Selectable<AnomaliesTable>,
  { by, holds, isActOfPerson, nowMs, versionsMax }: AnomalyChange,
): Promise<boolean> {
  const covering = holdsOn(sourceOf(row), holds).map(({ holdId }) => holdId)
  if (covering.length === 0) return true
  const kept = await trx
    .selectFrom('held_anomaly_versions')
    .select(['version', 'holds'])
    .where('anomaly_id', '=', row.id)
    .orderBy('version')
    .execute()
  const knownHolds = new Set(kept.flatMap(({ holds: named }): string[] => JSON.parse(named)))
  if (!isActOfPerson && covering.every((holdId) => knownHolds.has(holdId))) return true
  if (kept.length >= versionsMax) return false
  await trx
    .insertInto('held_anomaly_versions')
    .values({
      anomaly_id: row.id,
      version: (kept.at(-1)?.version ?? 0) + 1,
      tenant_id: row.tenant_id,
      detector_id: row.detector_id,
      holds: JSON.stringify(covering),
      record: JSON.stringify(row),
      replaced_at_ms: nowMs,
      ...actorValues('replaced_by', by),
    })
    .execute()
  return true
}

/** Throws `held` where a hold keeps an anomaly of the detector. */
export async function refuseHeldDetector(
  trx: ControlTransaction,
  tenantId: string,
  detectorId: string,
  holds: readonly ActiveHold[],
): Promise<void> {
  if (holds.length === 0) return
  const held = new HeldTime(holds)
  for (let after = { started_at_ns: '', id: '' }; ; ) {
    const { id, started_at_ns } = after
    const rows = await trx
      .selectFrom('anomalies')
      .select(['id', ...sourceColumns])
      .where(ofDetector(trx, tenantId, detectorId))
      .where((where) => where(where.refTuple('started_at_ns', 'id'), '>', where.tuple(started_at_ns, id)))
      .orderBy('started_at_ns')
      .orderBy('id')
      .limit(pageSize)
      .execute()
    const found = rows.map(sourceOf).find((source) => held.keeps(source))
    const [hold] = found === undefined ? [] : holdsOn(found, holds)
    if (hold !== undefined) {
      throw new AppError('held', {
        sentence: `The legal hold ${hold.holdId} keeps anomalies of this detector, so it can’t be deleted before the hold is released; set enabled to false to stop it.`,
      })
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageSize) return
    after = last
  }
}

/** A stored version. */
export interface KeptVersion {
  readonly version: number
  readonly heldBy: readonly string[]
  readonly replacedAtMs: number
  readonly replacedBy: string
  readonly row: Selectable<AnomaliesTable>
}

/** Oldest first. */
export async function readVersions(
  control: Control | ControlTransaction,
  tenantId: string,
  anomalyId: string,
): Promise<KeptVersion[]> {
  const rows = await control
    .selectFrom('held_anomaly_versions')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('anomaly_id', '=', anomalyId)
    .orderBy('version')
    .execute()
  return rows.map((row) => ({
    version: row.version,
    heldBy: JSON.parse(row.holds),
    replacedAtMs: row.replaced_at_ms,
    replacedBy: actorTextIn('replaced_by', row),
    row: JSON.parse(row.record),
  }))
}

interface VersionKey {
  readonly anomaly_id: string
  readonly version: number
}

interface StoredVersion extends VersionKey {
  /** What it is derived from. */
  readonly source: AnomalySource
}

/** Whether a version is to be removed. */
type IsRemoved = (source: AnomalySource) => boolean

/** Which versions are removed, and how. */
interface VersionRemoval {
  readonly readHolds: ReadHolds
  /** Prepared once for the holds that are in force. */
  readonly under: (holds: readonly ActiveHold[]) => IsRemoved
  readonly alone: RunAlone
  /** Only those of this detector's anomalies. */
  readonly detectorId?: string | undefined
}

/** Those about what an erasure erases, and those that learnt from it. */
export function versionsErasedBy(part: ErasedPart): (held: readonly HeldPart[]) => IsRemoved {
  return (held) => {
    const fates = new AnomalyFates({ ...part, held })
    return (source) => fates.of(source) !== 'kept'
  }
}

/**
 * Removes every version that no active hold covers; only those of the anomalies of one detector where it is
 * given. Nothing depends on the moment: such a version keeps nothing, and an erasure of what it is derived
 * from counts and removes it.
 */
export async function forgetReleasedVersions(
  control: Control,
  tenantId: string,
  readHolds: ReadHolds,
  detectorId?: string,
): Promise<void> {
  const under = (holds: readonly ActiveHold[]): IsRemoved => {
    const held = new HeldTime(holds)
    return (source) => !held.keeps(source)
  }
  await removeVersions(control, tenantId, { readHolds, under, detectorId, alone: (work) => work() })
}

/**
 * Removes versions in short transactions. Each reads the holds again, because one may have been placed; what
 * a version is derived from never changes.
 */
export async function removeVersions(
  control: Control,
  tenantId: string,
  { alone, detectorId, readHolds, under }: VersionRemoval,
): Promise<void> {
  const isRemoved = under(await readHolds(control, tenantId))
  for await (const page of versionPages(control, tenantId, detectorId)) {
    const found = page.filter(({ source }) => isRemoved(source))
    for (let i = 0; i < found.length; i += chunkSize) {
      const some = found.slice(i, i + chunkSize)
      await alone(() =>
        transact(control, async (trx) => {
          await lock(trx, { tenantId })
          const isStillRemoved = under(await readHolds(trx, tenantId))
          for (const version of some) if (isStillRemoved(version.source)) await deleteVersion(trx, version)
        }),
      )
      await turn()
    }
  }
}

async function deleteVersion(trx: ControlTransaction, { anomaly_id, version }: VersionKey): Promise<void> {
  await trx
    .deleteFrom('held_anomaly_versions')
    .where('anomaly_id', '=', anomaly_id)
    .where('version', '=', version)
    .execute()
}

/**
 * Returns the versions of an organisation, or of one of its detectors, page by page; other work runs in
 * between.
 */
export async function* versionPages(
  control: Control,
  tenantId: string,
  detectorId?: string,
): AsyncGenerator<readonly StoredVersion[]> {
  for (let after: VersionKey = { anomaly_id: '', version: 0 }; ; ) {
    const { anomaly_id: id, version } = after
    let query = control
      .selectFrom('held_anomaly_versions')
      .select(['anomaly_id', 'version', 'record'])
      .where('tenant_id', '=', tenantId)
      // One condition, because the index is entered by one.
      .where((where) => where(where.refTuple('anomaly_id', 'version'), '>', where.tuple(id, version)))
    if (detectorId !== undefined) {
      const own = control.selectFrom('anomalies').select('id')
      query = query.where('anomaly_id', 'in', own.where(ofDetector(control, tenantId, detectorId)))
    }
    const rows = await query.orderBy('anomaly_id').orderBy('version').limit(pageSize).execute()
    yield rows.map((row) => ({
      anomaly_id: row.anomaly_id,
      version: row.version,
      source: sourceOf(JSON.parse(row.record)),
    }))
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageSize) return
    after = last
    await turn()
  }
}
