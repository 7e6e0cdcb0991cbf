// Which backups may have a copy of what an erasure has erased: recorded in the transaction that completes it,
// because dates don't reliably show whether a backup is from before.

import { type ControlTransaction, statusesWithTelemetry } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'

/**
 * Records the backups that may have a copy of what the erasure erased: all that exist or are requested at its
 * completion. One that is requested later can't. Where a restore brought the erasure back, those of the
 * earlier completion stay recorded.
 */
export async function noteBackups(trx: ControlTransaction, requestId: string): Promise<void> {
  await lock(trx, 'backups')
  await trx
    .insertInto('erasure_backups')
    .columns(['request_id', 'backup_id'])
    .expression((from) =>
      from
        .selectFrom('backups')
        .select(({ val }) => [val(requestId).as('request_id'), 'backup_id'])
        .where('status', 'in', statusesWithTelemetry),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}
