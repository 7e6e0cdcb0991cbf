// Finds names in a request for a series that no row in the range has: the metric, the service, an attribute
// key. Read only where the response would otherwise be an empty series, or one empty group, without an
// explanation.

import { attributesColumn, eventSeriesOf } from '../series/event-series.ts'
import type { SeriesSet } from '../series/series.ts'
import { type GroupBy, labelsOf } from '../series/series-statement.ts'
import { knowsAttribute } from '../telemetry/attribute.ts'
import type { StatementLimits } from '../telemetry/engine.ts'
import { type TableSpec, tables, tablesOf } from '../telemetry/schema/tables.ts'
import { join, type Sql, sql } from '../telemetry/sql.ts'
import { rangeCondition, type TenantReader } from '../telemetry/tenant-reader.ts'

/** The names in a request. */
interface SeriesNames {
  readonly metric: string
  readonly service: string | undefined
  readonly attribute: readonly (readonly [key: string, value: string])[]
  readonly groupBy: GroupBy | undefined
}

/** Returns one sentence for each name that is missing; none where all exist. */
export async function warningsOf(
  reader: TenantReader,
  names: SeriesNames,
  set: SeriesSet,
  limits?: StatementLimits,
): Promise<string[]> {
  const doubtful = doubtfulIn(names, set)
  if (doubtful === null) return []
  const found = await readKnown(reader, names, { keys: doubtful, range: set.counted }, limits)
  const metric = JSON.stringify(names.metric)
  if (!found.some(({ any }) => any === 1)) return [`Nothing in this range is named ${metric}.`]
  const isKnown = (n: number) => found.some(({ known }) => known[n] === 1)
  const isService = names.service === undefined || found.some(({ service }) => service === 1)
  return [
    ...(isService
      ? []
      : [`Nothing of ${metric} in this range is of the service ${JSON.stringify(names.service)}.`]),
    ...doubtful
      .filter((_, n) => !isKnown(n))
      .map((key) => `Nothing of ${metric} in this range has an attribute ${JSON.stringify(key)}.`),
  ]
}

/**
 * Returns attribute keys that the result does not prove to exist; null where there is no reason to read
 * anything.
 */
function doubtfulIn({ attribute, groupBy }: SeriesNames, set: SeriesSet): string[] | null {
  const isEmpty = set.groups.every(({ volume }) => volume.every((amount) => amount === 0))
  const grouped = [groupBy ?? []].flat().filter((key) => key !== 'service')
  if (isEmpty) return [...new Set([...attribute.map(([key]) => key), ...grouped])]
  const labels = set.groups.flatMap(({ group }) => labelsOf(groupBy, group))
  const unseen = grouped.filter((key) => labels.every(([own, value]) => own !== key || value === ''))
  return unseen.length === 0 ? null : unseen
}

interface Known {
  readonly any: number
  readonly service: number
  /** By key. */
  readonly known: readonly number[]
}

/** One row for each table in which the series may be. */
function readKnown(
  reader: TenantReader,
  { metric, service = '' }: SeriesNames,
  asked: {
    readonly keys: readonly string[]
    readonly range: { readonly startNs: bigint; readonly endNs: bigint }
  },
  limits: StatementLimits | undefined,
): Promise<Known[]> {
  const builtIn = eventSeriesOf(metric)
  const of = builtIn === undefined ? sql`MetricName = ${metric}` : builtIn.of
  const metricTables = tables.filter((table) => table.signal === 'metrics')
  const found = builtIn === undefined ? metricTables : tablesOf(builtIn.signals)
  const known = (table: TableSpec): Sql =>
    sql`CAST([${join(
      asked.keys.map((key) => sql`toUInt8(countIf(${knowsAttribute(attributesColumn(table), key)}) > 0)`),
      ', ',
    )}], 'Array(UInt8)')`
  return reader.rows<Known>(
    (from) =>
      join(
        found.map(
          (table) =>
            sql`(${from.select(table.name, {
              columns: sql`toUInt8(count() > 0) AS any, toUInt8(countIf(ServiceName = ${service}) > 0) AS service, ${known(table)} AS known`,
              conditions: [rangeCondition(table.timeColumn, asked.range), of],
            })})`,
        ),
        ' UNION ALL ',
      ),
    limits,
  )
}
