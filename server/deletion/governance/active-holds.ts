// The legal holds of an organisation that are in force, and those that were lately. Whatever erases or
// changes telemetry reads them.

import { setImmediate as nextRound } from 'node:timers/promises'
import type { Selectable } from 'kysely'
import { readActor } from '../../control/actor-columns.ts'
import type { Control, ControlTransaction, Database } from '../../control/database.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import type { FindRelated } from '../requests/admission.ts'
import { readRange, readSignals } from '../requests/request.ts'

/** Returns the holds in force, ordered by id. */
export async function readActiveHolds(
  control: Control | ControlTransaction,
  tenantId: string,
): Promise<ActiveHold[]> {
  return (await holdsOf(control, tenantId).where('released_at_ms', 'is', null).execute()).map(toHold)
}

/** Released holds that are read at once: about two milliseconds. */
const releasedAtOnce = 500

/**
 * Returns the holds in force and those that were released since `sinceMs`. One that is released meanwhile
 * may be returned twice. A person may release tens of thousands on a day, so other work runs in between.
 */
export async function readHoldsSince(
  control: Control,
  tenantId: string,
  sinceMs: number,
): Promise<ActiveHold[]> {
  const held = await readActiveHolds(control, tenantId)
  // In the order of the index. No id is empty, so the first page begins with the instant itself.
  for (let [afterMs, afterId] = [sinceMs, '']; ; ) {
    const rows = await control
      .selectFrom('legal_holds')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where(({ eb, refTuple, tuple }) =>
        eb(refTuple('released_at_ms', 'hold_id'), '>', tuple(afterMs, afterId)),
      )
      .orderBy('released_at_ms')
      .orderBy('hold_id')
      .limit(releasedAtOnce)
      .execute()
    for (const row of rows) held.push(toHold(row))
    const last = rows.at(-1)
    if (last?.released_at_ms == null || rows.length < releasedAtOnce) return held
    ;[afterMs, afterId] = [last.released_at_ms, last.hold_id]
    await nextRound()
  }
}

/** Returns the holds with these ids, also those that were released, ordered by id. */
export async function readHolds(
  control: Control,
  tenantId: string,
  holdIds: readonly string[],
): Promise<ActiveHold[]> {
  if (holdIds.length === 0) return []
  return (await holdsOf(control, tenantId).where('hold_id', 'in', holdIds).execute()).map(toHold)
}

function holdsOf(control: Control | ControlTransaction, tenantId: string) {
  return control.selectFrom('legal_holds').selectAll().where('tenant_id', '=', tenantId).orderBy('hold_id')
}

function toHold(row: Selectable<Database['legal_holds']>): ActiveHold {
  return { holdId: row.hold_id, signals: readSignals(row.signals), range: readRange(row) }
}

/**
 * The most holds that people of an organisation may have in force. They are read before every step of an
 * erasure, and again where something is counted; each is a case that a person follows.
 */
export const activeHoldsMax = 200

/**
 * The most of one person. A hold stays until it is released, so one person could otherwise keep all others
 * from placing one while an erasure takes what they want to keep.
 */
export const activeHoldsOfPersonMax = activeHoldsMax / 2

/** The most of the operator, who must be able to place one whatever the organisation has. */
export const operatorHoldsMax = 200

/** Throws `too_many_holds` where the actor, or people of the organisation, have as many as they may have. */
export async function refuseTooManyHolds(
  trx: ControlTransaction,
  findRelated: FindRelated,
  { actor, tenantId }: { readonly tenantId: string; readonly actor: Actor },
): Promise<void> {
  const rows = await trx
    .selectFrom('legal_holds')
    .select(['placed_by_kind', 'placed_by_id', 'placed_by_name'])
    .where('tenant_id', '=', tenantId)
    .where('released_at_ms', 'is', null)
    .execute()
  const isByOperator = actor.kind === 'operator'
  const placers = rows
    .map((row) => readActor('placed_by', row))
    .filter(({ kind }) => (kind === 'operator') === isByOperator)
  if (isByOperator) {
    if (placers.length < operatorHoldsMax) return
    throw tooManyHolds(`The operator has ${placers.length} legal holds in force on this organisation`)
  }
  if (placers.length >= activeHoldsMax) {
    throw tooManyHolds(`Your organisation has ${placers.length} legal holds in force`)
  }
  if (placers.length < activeHoldsOfPersonMax) return
  const own = placers.filter(await findRelated(trx, tenantId, actor, placers)).length
  if (own >= activeHoldsOfPersonMax) {
    throw tooManyHolds(`${own} legal holds in force were placed by you, or with tokens of your line`)
  }
}

function tooManyHolds(whose: string): AppError {
  return new AppError('too_many_holds', {
    sentence: `${whose}, which is the most; release one, or place one that covers several.`,
  })
}
