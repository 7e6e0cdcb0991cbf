// Statements that find out whether there are rows before a time.

import type { Ns } from '../../contract/values/instant.ts'
import { type Signal, tablesOf } from '../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql } from '../telemetry/sql.ts'
import { type From, rangeCondition } from '../telemetry/tenant-reader.ts'

/** One row for each table of the signals that has such rows before the time; each read stops at the first. */
export function firstRows(
  from: From,
  signals: readonly Signal[],
  { conditions, endNs }: { readonly endNs: Ns; readonly conditions: readonly Sql[] },
): Sql {
  const found = tablesOf(signals).map(
    ({ name, timeColumn }) =>
      sql`(${from.select(name, {
        columns: raw('1 AS earlier'),
        conditions: [rangeCondition(timeColumn, { startNs: null, endNs }), ...conditions],
        limit: 1,
      })})`,
  )
  return join(found, ' UNION ALL ')
}
