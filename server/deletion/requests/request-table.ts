// The statements that insert and update deletion requests, for store.ts alone. A request that somebody else
// has moved since it was seen is not updated. Each gets its number in the transaction that inserts it.

import type { Updateable } from 'kysely'
import type { ControlTransaction, DeletionRequestsTable } from '../../control/database.ts'
import { nextSeq } from './admission.ts'
import { noteBackups } from './backups-with-copy.ts'
import { requireRow } from './queries.ts'
import { type NewRequest, newRow, type StoredDeletion, toStored } from './request.ts'

/**
 * Updates a request that is still as it was seen; returns null otherwise. The number of attempts is compared
 * too, because the same state may have been left and entered again since.
 */
export async function updateSeen(
  trx: ControlTransaction,
  seen: StoredDeletion,
  columns: Updateable<DeletionRequestsTable>,
): Promise<StoredDeletion | null> {
  const { numUpdatedRows } = await trx
    .updateTable('deletion_requests')
    .set(columns)
    .where('request_id', '=', seen.requestId)
    .where('status', '=', seen.status)
    .where('attempts', '=', seen.attempts)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) return null
  return toStored(await requireRow(trx, seen.tenantId, seen.requestId))
}

/** Inserts a request with the next number; returns it as it is stored. */
export async function insertRequest(trx: ControlTransaction, request: NewRequest): Promise<StoredDeletion> {
  const seq = await nextSeq(trx)
  await trx.insertInto('deletion_requests').values(newRow(request, seq)).execute()
  if (request.status === 'completed') await noteBackups(trx, request.requestId)
  return toStored(await requireRow(trx, request.tenantId, request.requestId))
}

/** Adds to the counts of late rows of requests. Throws where a request is unknown. */
export async function addLateRows(
  trx: ControlTransaction,
  counts: ReadonlyMap<string, number>,
): Promise<void> {
  // In one order, so that two processes that count at once wait for each other in one direction only.
  for (const [requestId, rows] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const { numUpdatedRows } = await trx
      .updateTable('deletion_requests')
      .set((columns) => ({ late_rows: columns('late_rows', '+', rows) }))
      .where('request_id', '=', requestId)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows !== 1n) throw new Error(`Late rows were counted for ${requestId}, which is unknown.`)
  }
}
