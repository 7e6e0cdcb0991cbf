// Rows of several detectors in one statement. The list in `in (...)` always has the same length, because a
// statement is prepared once per text and the cache of prepared statements is limited: one text for each
// number of ids would soon fill it.

import { type SqlBool, sql } from 'kysely'
import type { Control, ControlTransaction } from '../../control/database.ts'
import { dialectOf } from '../../control/dialect.ts'

/**
 * Detectors in one statement, and runs recorded in one transaction; the cost of the latter
 * is the wait for the disk.
 */
export const idsMax = 25

/**
 * Takes 1 to `idsMax` ids and repeats the last one up to `idsMax`. Throws RangeError for any other number.
 */
export function idList(ids: readonly string[]): string[] {
  const last = ids.at(-1)
  if (last === undefined || ids.length > idsMax) throw new RangeError(`From 1 to ${idsMax} ids`)
  return [...ids, ...Array.from({ length: idsMax - ids.length }, () => last)]
}

/**
 * Condition for anomalies of these detectors of the organisation. The `+` keeps the query planner from
 * using the index on the organisation, which it estimates to be narrower than a list: it would read every
 * anomaly of the organisation.
 */
export function ofDetectors(db: Control | ControlTransaction, tenantId: string, ids: readonly string[]) {
  const organisation = dialectOf(db).unindexed('tenant_id')
  return sql<SqlBool>`${organisation} = ${tenantId} and detector_id in (${sql.join(idList(ids))})`
}

/** The same for one detector; lists of its anomalies are then in the order of the index. */
export function ofDetector(db: Control | ControlTransaction, tenantId: string, id: string) {
  return sql<SqlBool>`${dialectOf(db).unindexed('tenant_id')} = ${tenantId} and detector_id = ${id}`
}
