// Stores shorter retention that waits for a second person: a row per signal; the signals of one request share
// an id. An approval names that id, so people approve what they have read: a signal may leave a change, and
// none is ever added.

import type { Selectable } from 'kysely'
import type { RetentionChange } from '../../../contract/deletion/governance.ts'
import { actorTextIn, actorValues } from '../../control/actor-columns.ts'
import type { Control, ControlTransaction, RetentionChangesTable } from '../../control/database.ts'
import type { Actor } from '../../core/actor.ts'
import { instantText } from '../../core/clock.ts'
import { newId } from '../../core/ids.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { approvalWaitMs } from '../requests/states.ts'

export type ChangeRow = Selectable<RetentionChangesTable>

/** Returns the changes of an organisation, oldest first, also expired ones that are still stored. */
export async function readChanges(
  control: Control | ControlTransaction,
  tenantId: string,
): Promise<ChangeRow[]> {
  return control
    .selectFrom('retention_changes')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .orderBy('change_id')
    .orderBy('signal')
    .execute()
}

/** Inserts the days of these signals with a new id and returns the rows. */
export async function insertChange(
  trx: ControlTransaction,
  tenantId: string,
  shorter: ReadonlyMap<Signal, number>,
  requestedBy: Actor,
  nowMs: number,
): Promise<ChangeRow[]> {
  const changeId = newId('rch', nowMs)
  const rows = [...shorter].map(([signal, days]) => ({
    tenant_id: tenantId,
    signal,
    change_id: changeId,
    days,
    ...actorValues('requested_by', requestedBy),
    requested_at_ms: nowMs,
    approve_by_ms: nowMs + approvalWaitMs,
  }))
  await trx.insertInto('retention_changes').values(rows).execute()
  return rows
}

export async function removeChanges(trx: ControlTransaction, rows: readonly ChangeRow[]): Promise<void> {
  for (const { change_id, signal, tenant_id } of rows) {
    await trx
      .deleteFrom('retention_changes')
      .where('tenant_id', '=', tenant_id)
      .where('signal', '=', signal)
      .where('change_id', '=', change_id)
      .execute()
  }
}

/** Groups rows by change, in the order given. */
export function byChange(rows: readonly ChangeRow[]): ChangeRow[][] {
  return [...Map.groupBy(rows, ({ change_id }) => change_id).values()]
}

/** Returns what a change would set, such as `{"logs_days": 7}`. */
export function daysOf(rows: readonly ChangeRow[]): Record<string, number> {
  return Object.fromEntries(rows.map(({ days, signal }) => [`${signal}_days`, days]))
}

export function isWaiting({ approve_by_ms }: ChangeRow, nowMs: number): boolean {
  return approve_by_ms > nowMs
}

/** Returns the wire form of the changes that wait at `nowMs`. */
export function pendingOf(rows: readonly ChangeRow[], nowMs: number): RetentionChange[] {
  return byChange(rows.filter((row) => isWaiting(row, nowMs))).flatMap((change) => {
    const [first] = change
    if (first === undefined) return []
    return {
      id: first.change_id,
      ...daysOf(change),
      requested_by: actorTextIn('requested_by', first),
      requested_at: instantText(first.requested_at_ms),
      approve_by: instantText(first.approve_by_ms),
    }
  })
}
