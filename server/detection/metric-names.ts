// The metrics that an organisation has sent recently, as choices for a detector. Reads the metric
// tables directly. Names that a detector would refuse are left out. A classic histogram of Prometheus
// is listed by its own name too.

import { MetricKey } from '../../contract/detection/detectors.ts'
import type { Ns } from '../../contract/values/instant.ts'
import { tableOf } from '../series/metric-kind.ts'
import { familyColumn, familyCondition } from '../series/point-conditions.ts'
import { tablesOf } from '../telemetry/schema/tables.ts'
import { join, sql, uint } from '../telemetry/sql.ts'
import { rangeCondition, type TenantReader } from '../telemetry/tenant-reader.ts'

const namesMax = 1000

/** At most 1,000 names with a point at or after `sinceNs`, in alphabetical order. */
export async function readMetricNames(reader: TenantReader, sinceNs: Ns): Promise<string[]> {
  const rows = await reader.rows<{ name: string }>((from) => {
    const names = tablesOf(['metrics']).map(({ name, timeColumn }) => {
      const source = from(name, rangeCondition(timeColumn, { startNs: sinceNs, endNs: null }))
      return sql`SELECT DISTINCT MetricName AS name FROM ${source}`
    })
    const families = from(
      tableOf.classic_histogram,
      rangeCondition('TimeUnix', { startNs: sinceNs, endNs: null }),
      familyCondition(),
    )
    names.push(sql`SELECT DISTINCT ${familyColumn} AS name FROM ${families}`)
    return sql`SELECT DISTINCT name FROM (${join(names, ' UNION ALL ')}) ORDER BY name LIMIT ${uint(namesMax)}`
  })
  return rows.map(({ name }) => name).filter((name) => MetricKey.safeParse(name).success)
}
