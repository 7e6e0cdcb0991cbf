// The legal holds of an organisation that are in force, and those that were lately. Whatever erases or
// changes telemetry reads them.

import type { Selectable } from 'kysely'
import type { Control, ControlTransaction, Database } from '../../control/database.ts'
import { AppError } from '../../core/app-error.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { readRange, readSignals } from '../requests/request.ts'

/** Returns the holds in force, ordered by id. */
export async function readActiveHolds(
  control: Control | ControlTransaction,
  tenantId: string,
): Promise<ActiveHold[]> {
  return (await holdsOf(control, tenantId).where('released_at_ms', 'is', null).execute()).map(toHold)
}

/** Returns the holds in force and those that were released since `sinceMs`, ordered by id. */
export async function readHoldsSince(
  control: Control,
  tenantId: string,
  sinceMs: number,
): Promise<ActiveHold[]> {
  // In two parts, each of which an index finds: released holds stay stored.
  const ids = control.selectFrom('legal_holds').select('hold_id').where('tenant_id', '=', tenantId)
  const wanted = ids.where('released_at_ms', 'is', null).unionAll(ids.where('released_at_ms', '>=', sinceMs))
  const rows = await holdsOf(control, tenantId).where('hold_id', 'in', wanted).execute()
  return rows.map(toHold)
}

function holdsOf(control: Control | ControlTransaction, tenantId: string) {
  return control.selectFrom('legal_holds').selectAll().where('tenant_id', '=', tenantId).orderBy('hold_id')
}

function toHold(row: Selectable<Database['legal_holds']>): ActiveHold {
  return { holdId: row.hold_id, signals: readSignals(row.signals), range: readRange(row) }
}

/**
 * The most holds that an organisation may have in force. They are read before every step of an erasure, and
 * again where something is counted; each is a case that a person follows.
 */
export const activeHoldsMax = 200

/** Throws `too_many_holds` where the organisation has as many holds as it may have. */
export async function refuseTooManyHolds(trx: ControlTransaction, tenantId: string): Promise<void> {
  const { active } = await trx
    .selectFrom('legal_holds')
    .select(({ fn }) => fn.countAll<number>().as('active'))
    .where('tenant_id', '=', tenantId)
    .where('released_at_ms', 'is', null)
    .executeTakeFirstOrThrow()
  if (Number(active) < activeHoldsMax) return
  throw new AppError('too_many_holds', {
    sentence: `Your organisation has ${active} legal holds in force, and ${activeHoldsMax} is the most; release one, or place one that covers several.`,
  })
}
