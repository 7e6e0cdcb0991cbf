// What a legal hold means for anomalies. An anomaly about held time is evidence: it is not removed while the
// hold is active, and its content before a change is kept as a version. Runs still update it, because an
// episode may continue. So a version is kept at the first change under a hold, and afterwards whenever the
// act of a person (another definition, a verdict, a mute) would overwrite something.

import type { Selectable } from 'kysely'
import { actorTextIn, actorValues } from '../../control/actor-columns.ts'
import type { AnomaliesTable, Control, ControlTransaction } from '../../control/database.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { type AnomalySource, type Erasure, fateOf, isHeldBy } from './anomaly-fate.ts'
import { isTouched, sourceOf } from './anomaly-rows.ts'

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
  /** Whether it overwrites the result of a person's act, or what such an act is about to change. */
  readonly isActOfPerson: boolean
}

/**
 * Each version comes from a person's act or a new hold, and takes less than a kilobyte. Somebody who
 * changes a detector in a loop must not fill the disk, so an anomaly with this many versions does not
 * change until the hold is released.
 */
export const versionsMax = 100

/** Versions deleted in one statement; each needs bound variables. */
const chunkSize = 250

/** Holds in one statement; each is a condition. */
const holdsPerStatement = 50

/** The holds that keep an anomaly. */
function holdsOn(anomaly: AnomalySource, holds: readonly ActiveHold[]): ActiveHold[] {
  return holds.filter((hold) => isHeldBy(hold, anomaly))
}

/**
 * Keeps a version of an anomaly if a hold requires it. Call it in the transaction of the change,
 * before the change. Returns false where the anomaly is held and has the largest number of versions;
 * then it must not be changed.
 */
export async function keepVersion(
  trx: ControlTransaction,
  row: Selectable<AnomaliesTable>,
  { by, holds, isActOfPerson, nowMs }: AnomalyChange,
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
  for (let i = 0; i < holds.length; i += holdsPerStatement) {
    const some = holds.slice(i, i + holdsPerStatement)
    const found = await trx
      .selectFrom('anomalies')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('detector_id', '=', detectorId)
      .where((where) => where.or(some.map(({ signals, range }) => isTouched(where, signals, range))))
      .limit(1)
      .executeTakeFirst()
    const [hold] = found === undefined ? [] : holdsOn(sourceOf(found), some)
    if (hold === undefined) continue
    throw new AppError('held', {
      sentence: `The legal hold ${hold.holdId} keeps anomalies of this detector, so it can’t be deleted before the hold is released; set enabled to false to stop it.`,
    })
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

/** The versions that an erasure removes: those about what it erases, and those that learnt from it. */
export async function versionsWithin(
  control: Control | ControlTransaction,
  tenantId: string,
  erasure: Erasure,
): Promise<VersionKey[]> {
  return versionsWhere(control, tenantId, (source) => fateOf(source, erasure) !== 'kept')
}

/** Returns what each version of an anomaly of the organisation is derived from. */
export async function readVersionSources(control: Control, tenantId: string): Promise<AnomalySource[]> {
  const sources: AnomalySource[] = []
  await visitVersions(control, tenantId, (_key, source) => sources.push(source))
  return sources
}

/** Removes every version that no active hold covers. */
export async function forgetReleasedVersions(
  trx: ControlTransaction,
  tenantId: string,
  holds: readonly ActiveHold[],
): Promise<void> {
  const released = await versionsWhere(trx, tenantId, (source) => holdsOn(source, holds).length === 0)
  await removeVersions(trx, released)
}

export async function removeVersions(
  trx: ControlTransaction,
  versions: readonly VersionKey[],
): Promise<void> {
  for (let i = 0; i < versions.length; i += chunkSize) {
    const some = versions.slice(i, i + chunkSize)
    await trx
      .deleteFrom('held_anomaly_versions')
      .where((where) =>
        where.or(
          some.map(({ anomaly_id, version }) =>
            where.and([where('anomaly_id', '=', anomaly_id), where('version', '=', version)]),
          ),
        ),
      )
      .execute()
  }
}

/** Rows per page. */
const pageSize = 500

async function versionsWhere(
  control: Control | ControlTransaction,
  tenantId: string,
  matches: (source: AnomalySource) => boolean,
): Promise<VersionKey[]> {
  const found: VersionKey[] = []
  await visitVersions(control, tenantId, (key, source) => {
    if (matches(source)) found.push(key)
  })
  return found
}

/** Calls `visit` with every version of the organisation. */
async function visitVersions(
  control: Control | ControlTransaction,
  tenantId: string,
  visit: (key: VersionKey, source: AnomalySource) => void,
): Promise<void> {
  for (let after: VersionKey = { anomaly_id: '', version: 0 }; ; ) {
    const { anomaly_id: id, version } = after
    const page = await control
      .selectFrom('held_anomaly_versions')
      .select(['anomaly_id', 'version', 'record'])
      .where('tenant_id', '=', tenantId)
      .where((where) =>
        where.or([
          where('anomaly_id', '>', id),
          where.and([where('anomaly_id', '=', id), where('version', '>', version)]),
        ]),
      )
      .orderBy('anomaly_id')
      .orderBy('version')
      .limit(pageSize)
      .execute()
    for (const row of page) {
      visit({ anomaly_id: row.anomaly_id, version: row.version }, sourceOf(JSON.parse(row.record)))
    }
    const last = page.at(-1)
    if (last === undefined || page.length < pageSize) return
    after = last
  }
}
