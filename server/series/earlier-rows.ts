// Whether an organisation has telemetry from before a time: a read of a long past need not begin before it.
// Cheap in a large organisation too, because each table stops at the first row.

import { type Signal, tablesOf } from '../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql } from '../telemetry/sql.ts'
import { type From, rangeCondition, type TenantReader } from '../telemetry/tenant-reader.ts'

/** False where the organisation has no row of these signals before the time. */
export async function hasRowsBefore(
  reader: TenantReader,
  signals: readonly Signal[],
  endNs: bigint,
): Promise<boolean> {
  const found = await reader.rows((from) => firstRows(from, signals, { endNs, conditions: [] }))
  return found.length > 0
}

/** One row for each table of the signals that has such rows before the time. */
export function firstRows(
  from: From,
  signals: readonly Signal[],
  { conditions, endNs }: { readonly endNs: bigint; readonly conditions: readonly Sql[] },
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
