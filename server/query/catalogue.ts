// Lists the services and metric names that have rows in a time range, by name. The catalogue is read from the
// telemetry itself and not stored, so an erased name is gone with its rows. Where there are more names than a
// statement may return, those of a newer part of the range are listed, and the response says which part that
// is.

import type { z } from 'zod'
import type { CatalogueQuery, MetricEntry, ServiceEntry } from '../../contract/telemetry/queries.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { pageOfRows } from '../core/input/cursor.ts'
import { metricKinds, tableOf } from '../series/metric-kind.ts'
import { familyColumn, familyCondition } from '../series/point-conditions.ts'
import type { StatementLimits } from '../telemetry/engine.ts'
import { pageResultBytes, shownName, withinPage } from '../telemetry/schema/shown-names.ts'
import { type Signal, signals, tables } from '../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql, uint } from '../telemetry/sql.ts'
import { rangeCondition, type TenantReader } from '../telemetry/tenant-reader.ts'
import { ifAffordable, interactiveLimits } from './search.ts'
import { isCount, type PageStart, pageStart, positionWithin } from './time-window.ts'

type Query = z.output<typeof CatalogueQuery>

interface Page<Item> {
  items: Item[]
  next_cursor: string | null
  searched: { range_start: string; range_end: string }
  warnings: string[]
}

/** How often the range is halved: a thousandth of a range with too many names has them at every instant. */
const halvings = 10

/**
 * Reads a page of the range or, where that costs too much, of its newer half, and so on. `tooMuch` returns
 * the sentence of a warning that the response begins at an instant.
 */
export async function newerPart<Item>(
  start: PageStart,
  read: (start: PageStart) => Promise<Omit<Page<Item>, 'searched'>>,
  tooMuch: (from: string) => string,
): Promise<Page<Item>> {
  const { window, position } = start
  const beganNs = BigInt(position?.[2] ?? window.startNs)
  const fromNs = beganNs > window.startNs && beganNs < window.endNs ? beganNs : window.startNs
  const spanNs = window.endNs - fromNs
  for (let halved = 0; ; halved++) {
    const part = { startNs: window.endNs - (spanNs >> BigInt(halved)), endNs: window.endNs }
    const page = await ifAffordable(read({ window: part, position }), halved === halvings)
    if (page === null) continue
    const searched = { range_start: formatInstant(part.startNs), range_end: formatInstant(part.endNs) }
    const cut = part.startNs === window.startNs ? [] : [tooMuch(searched.range_start)]
    return { ...page, searched, warnings: [...cut, ...page.warnings] }
  }
}

/** A result may have only little more than a page. */
function bounded(limits: StatementLimits = interactiveLimits): StatementLimits {
  return { ...limits, maxResultBytes: pageResultBytes }
}

const tooManyNames = (from: string): string =>
  `There are too many names in this range; listed are those seen from ${from} on.`

interface ServiceRow {
  readonly service: string
  readonly prefix: string
  readonly signals: readonly Signal[]
  readonly last_ns: string
}

/**
 * A service name may be as long as any attribute, a cursor may not: it contains this much of the name and a
 * count.
 */
const servicePrefix = raw('substringUTF8(toString(ServiceName), 1, 1024)')

/**
 * The last text of a position is the start of the listed part of the range, so that all pages list the same
 * part.
 */
const byPrefix = {
  parts: 3,
  isPosition: ([, shown, from]: readonly string[]): boolean =>
    isCount(shown) && Number(shown) <= 1_000_000 && isCount(from),
}
const byNameAndKind = { parts: 3, isPosition: ([, , from]: readonly string[]) => isCount(from) }

/** Lists services with any row in the range. */
export function listServices(
  reader: TenantReader,
  query: Query,
  nowNs: bigint,
  limits?: StatementLimits,
): Promise<Page<z.infer<typeof ServiceEntry>>> {
  return newerPart(
    pageStart(query, nowNs, byPrefix),
    (start) => readServices(reader, query, start, limits),
    tooManyNames,
  )
}

async function readServices(
  reader: TenantReader,
  query: Query,
  { window, position }: PageStart,
  limits: StatementLimits | undefined,
) {
  const [prefix = '', shown = '0'] = position ?? []
  const rows = await reader.rows<ServiceRow>((from) => {
    const branches = tables.map(
      (table) =>
        sql`SELECT toString(ServiceName) AS service, ${raw(`'${table.signal}'`)} AS signal, max(${raw(table.timeColumn)}) AS seen, any(${servicePrefix}) AS prefix FROM ${from(table.name, rangeCondition(table.timeColumn, window), sql`${servicePrefix} >= ${prefix}`)} GROUP BY service`,
    )
    const found = sql`SELECT service, any(prefix) AS prefix, groupUniqArray(signal) AS signals, toString(toUnixTimestamp64Nano(max(seen))) AS last_ns FROM (${join(branches, ' UNION ALL ')}) GROUP BY service ORDER BY service LIMIT ${uint(Number(shown))}, ${uint(query.limit + 1)}`
    const columns = raw('service, prefix, signals, last_ns')
    return withinPage(found, columns, raw('length(service)'), raw('service'))
  }, bounded(limits))
  /** Number of names with the prefix of a row that were shown up to it. */
  const shownWith = (last: ServiceRow, index: number): number =>
    rows.slice(0, index + 1).filter((row) => row.prefix === last.prefix).length +
    (position !== null && last.prefix === prefix ? Number(shown) : 0)
  const page = pageOfRows(
    rows,
    query.limit,
    (row, index) =>
      positionWithin(window, [row.prefix, String(shownWith(row, index)), window.startNs.toString()]),
    (row) => ({
      service: row.service,
      signals: signals.filter((signal) => row.signals.includes(signal)),
      last_seen: formatInstant(BigInt(row.last_ns)),
    }),
  )
  return { ...page, warnings: [] }
}

interface MetricRow {
  readonly metric: string
  readonly kind: (typeof metricKinds)[number]
  readonly unit: string
  readonly description: string
  readonly services: readonly string[]
  readonly last_ns: string
}

/**
 * Lists metric names with any point in the range; a name used for two kinds appears for each. The first 100
 * services are named, long names cut. A classic histogram of Prometheus is listed beside its counters.
 */
export function listMetrics(
  reader: TenantReader,
  query: Query,
  nowNs: bigint,
  limits?: StatementLimits,
): Promise<Page<z.infer<typeof MetricEntry>>> {
  return newerPart(
    pageStart(query, nowNs, byNameAndKind),
    (start) => readMetrics(reader, query, start, limits),
    tooManyNames,
  )
}

async function readMetrics(
  reader: TenantReader,
  query: Query,
  { window, position }: PageStart,
  limits: StatementLimits | undefined,
) {
  const rows = await reader.rows<MetricRow>((from) => {
    const within = rangeCondition('TimeUnix', window)
    const branches = [
      ...metricKinds.map((kind) => ({ kind, name: raw('MetricName'), table: tableOf[kind], of: [within] })),
      {
        kind: 'histogram' as const,
        name: familyColumn,
        table: tableOf.classic_histogram,
        of: [within, familyCondition()],
      },
    ].map(({ kind, name, of, table }) => {
      const after = position === null ? [] : [isAfter(name, kind, position)]
      return sql`SELECT toString(${name}) AS metric, ${raw(`'${kind}'`)} AS kind, toString(argMax(MetricUnit, TimeUnix)) AS unit,
  toString(argMax(MetricDescription, TimeUnix)) AS description, groupUniqArray(100)(${shownName('toString(ServiceName)')}) AS services,
  max(TimeUnix) AS last
FROM ${from(table, ...of, ...after)} GROUP BY metric`
    })
    const found = sql`SELECT metric, kind, argMax(unit, last) AS unit, argMax(description, last) AS description,
  arraySlice(arraySort(groupUniqArrayArray(services)), 1, 100) AS services, toString(toUnixTimestamp64Nano(max(last))) AS last_ns
FROM (${join(branches, ' UNION ALL ')}) GROUP BY metric, kind ORDER BY metric, kind LIMIT ${uint(query.limit + 1)}`
    const columns = raw('metric, kind, unit, description, services, last_ns')
    const bytes = raw('length(unit) + length(description) + length(arrayStringConcat(services))')
    return withinPage(found, columns, bytes, raw('metric, kind'))
  }, bounded(limits))
  const page = pageOfRows(
    rows,
    query.limit,
    (row) => positionWithin(window, [row.metric, row.kind, window.startNs.toString()]),
    ({ last_ns, ...row }) => ({
      ...row,
      metric_key: row.metric,
      services: [...row.services],
      last_seen: formatInstant(BigInt(last_ns)),
    }),
  )
  return { ...page, warnings: [] }
}

/** The kinds of one name are in the order of their text, so a kind at or before the position was shown. */
function isAfter(name: Sql, own: string, [metric = '', kind = '']: readonly string[]): Sql {
  return own > kind ? sql`${name} >= ${metric}` : sql`${name} > ${metric}`
}
