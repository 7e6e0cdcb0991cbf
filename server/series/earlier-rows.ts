// Whether an organisation has telemetry from before a time: a read of a long past need not begin before it.
// Cheap in a large organisation too, because each table stops at the first row.

import { tablesOf } from '../telemetry/schema/tables.ts'
import { join, raw, sql } from '../telemetry/sql.ts'
import { rangeCondition, type TenantReader } from '../telemetry/tenant-reader.ts'
import { eventSeriesOf } from './event-series.ts'

/** False only where no series of this key can have a value before the time. */
export async function hasRowsBefore(
  reader: TenantReader,
  metricKey: string,
  endNs: bigint,
): Promise<boolean> {
  const signals = eventSeriesOf(metricKey)?.signals ?? (['metrics'] as const)
  const found = await reader.rows((from) =>
    join(
      tablesOf(signals).map(({ name, timeColumn }) => {
        const conditions = [rangeCondition(timeColumn, { startNs: null, endNs })]
        return sql`(${from.select(name, { columns: raw('1 AS earlier'), conditions, limit: 1 })})`
      }),
      ' UNION ALL ',
    ),
  )
  return found.length > 0
}
