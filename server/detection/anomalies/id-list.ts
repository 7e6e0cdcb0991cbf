// Rows of several detectors in one statement. The list in `in (...)` always has the same length, because a statement is
// prepared once per text and what is kept of texts is limited: a text for each number of ids would soon fill it.

import { type SqlBool, sql } from 'kysely'
import type { Control, ControlTransaction } from '../../control/database.ts'
import { dialectOf } from '../../control/dialect.ts'

/** Detectors asked for at once. Also runs recorded in one transaction: what costs there is the wait for the disk. */
export const idsMax = 25

/** From one to `idsMax` ids, filled up by repeating the last; RangeError otherwise. */
export function idList(ids: readonly string[]): string[] {
  const last = ids.at(-1)
  if (last === undefined || ids.length > idsMax) throw new RangeError(`From 1 to ${idsMax} ids`)
  return [...ids, ...Array.from({ length: idsMax - ids.length }, () => last)]
}

/**
 * Rows of anomalies that belong to these detectors of the organisation. By no index on the organisation: SQLite takes that
 * to be the narrower one beside a list, and would read every anomaly there ever was.
 */
export function ofDetectors(db: Control | ControlTransaction, tenantId: string, ids: readonly string[]) {
  const organisation = dialectOf(db).unindexed('tenant_id')
  return sql<SqlBool>`${organisation} = ${tenantId} and detector_id in (${sql.join(idList(ids))})`
}
