// The legal holds of an organisation that are in force, read wherever something is erased or changed.

import type { Control, ControlTransaction } from '../../control/database.ts'
import { AppError } from '../../core/app-error.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { readRange, readSignals } from '../requests/request.ts'

/** What is held of an organisation now, by the ids of the holds. */
export async function readActiveHolds(
  control: Control | ControlTransaction,
  tenantId: string,
): Promise<ActiveHold[]> {
  const rows = await control
    .selectFrom('legal_holds')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('released_at_ms', 'is', null)
    .orderBy('hold_id')
    .execute()
  return rows.map((row) => ({
    holdId: row.hold_id,
    signals: readSignals(row.signals),
    range: readRange(row),
  }))
}

/**
 * Holds that an organisation may have in force: each is a case that somebody keeps an eye on. What is held is read before
 * every step of an erasure, and again where it is counted.
 */
export const activeHoldsMax = 200

/** Throws `too_many_holds` where another hold would be one too many. */
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
