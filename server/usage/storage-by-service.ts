// What the services of an organisation store, those with the most bytes first. One statement counts rows by
// service and day and returns the largest services; others before it measure bytes. Everything is read
// through the organisation's reader, so hidden rows are in no figure. A name may be as long as any attribute,
// so statements contain hashes of names, and result and response have as many services as fit into a page.

import type { z } from 'zod'
import {
  type ServiceStorage,
  type ServiceStorageQuery,
  serviceDaysMax,
} from '../../contract/organisation/usage.ts'
import { formatInstant, instantOf } from '../../contract/values/instant.ts'
import { InvalidInput, problem } from '../core/app-error.ts'
import { fitting, pageBytes } from '../core/input/cursor.ts'
import { Pace } from '../core/turns/pace.ts'
import { usualLimits } from '../telemetry/engine.ts'
import { partitionIdOf } from '../telemetry/partitions.ts'
import type { WeighRowsFor } from '../telemetry/row-weights.ts'
import { pageResultBytes, withinPage } from '../telemetry/schema/shown-names.ts'
import { type Signal, signals, type TableName, type TableSpec, tables } from '../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql, strings, uint } from '../telemetry/sql.ts'
import type { From, TenantReader } from '../telemetry/tenant-reader.ts'
import { dayStartNs, dayText, type GrowthDays, growthDays, sumOfAmounts } from './growth.ts'
import { costOf, decimal, decimals, type RowCosts, readRowCosts } from './row-costs.ts'
import { readAmounts, type StoredAmount } from './storage.ts'

type Answer = z.output<typeof ServiceStorage>
type Service = Answer['services'][number]
type Query = z.output<typeof ServiceStorageQuery>

/** UTC days as numbers since 1970, half-open. */
interface Days {
  readonly from: number
  readonly until: number
}

/** Days that are listed where the query names no start. */
const defaultDays = 31

const nsPerDay = dayStartNs(1)

/** Throws InvalidInput for an empty range, and for more days than fit with so many services. */
export async function readServiceStorage(
  reader: TenantReader,
  weighRows: WeighRowsFor,
  query: Query,
  nowMs: number,
): Promise<Answer> {
  const days = daysAsked(query, nowMs)
  return reader.together(async () => {
    const perTable = await addUp(await readAmounts(reader, weighRows), new Pace(reader.share.turn))
    const costs = await readRowCosts(reader, (table) => perTable.get(table)?.days ?? [])
    const statement = { rates: ratesOf(perTable), costs, limit: query.limit, days, growth: growthDays(nowMs) }
    const found = await readServices(reader, statement)
    const services = found.map(serviceOf)
    const shown = services.slice(0, fitting(services, pageBytes))
    return {
      tenant_id: reader.place.tenantId,
      range_start: formatInstant(dayStartNs(days.from)),
      range_end: formatInstant(dayStartNs(days.until)),
      services: shown,
      others: othersOf(found[0], shown),
    }
  })
}

function daysAsked(query: Query, nowMs: number): Days {
  const nowNs = BigInt(nowMs) * 1_000_000n
  const until =
    query.range_end === undefined
      ? growthDays(nowMs).today + 1
      : Number((instantOf(query.range_end, nowNs) + nsPerDay - 1n) / nsPerDay)
  const from =
    query.range_start === undefined
      ? Math.max(0, until - defaultDays)
      : Number(instantOf(query.range_start, nowNs) / nsPerDay)
  if (from >= until) throw unsuited('range_end', 'The end should be after the start', dayText(until))
  const most = Math.floor(serviceDaysMax / query.limit)
  if (until - from <= most) return { from, until }
  const sentence = `This range has ${until - from} days; with limit=${query.limit} at most ${most} days are listed: shorten the range or lower limit`
  throw unsuited('range_start', sentence, dayText(from), { days_max: most })
}

function unsuited(field: string, sentence: string, input: string, ctx: Record<string, unknown> = {}) {
  return new InvalidInput([problem(['query', field], 'value_error', sentence, input, ctx)])
}

/** Bytes of a row, by table. */
type Rates = ReadonlyMap<TableName, { readonly mean: number; readonly newest: readonly PartitionRate[] }>
type PartitionRate = readonly [partitionId: string, bytesPerRow: number]

/**
 * Partitions of a table that have a rate of their own in the statement: six years of weeks. Older ones have
 * the rate of the table, so that the text of the statement stays short.
 */
const ratedPartitions = 300

function ratesOf(perTable: ReadonlyMap<TableName, StoredTable>): Rates {
  const rateOf = ({ bytes, rows }: Sum) => bytes / rows
  return new Map(
    [...perTable].map(([table, { partitions, total }]) => {
      const newest = [...partitions].slice(-ratedPartitions)
      const rates = newest.map(([id, own]): PartitionRate => [id, rateOf(own)])
      return [table, { mean: rateOf(total), newest: rates }]
    }),
  )
}

interface Sum {
  rows: number
  bytes: number
}

/** What is stored in one table. */
interface StoredTable {
  readonly total: Sum
  /** Oldest first. */
  readonly partitions: Map<string, Sum>
  /** Oldest first. */
  readonly days: string[]
}

async function addUp(
  amounts: readonly StoredAmount[],
  pace: Pace,
): Promise<ReadonlyMap<TableName, StoredTable>> {
  const found = new Map<TableName, StoredTable>()
  for (const { bytes, day, partitionId, rows, table } of amounts) {
    if (pace.isOver()) await pace.turn()
    const stored = found.get(table) ?? noTable()
    found.set(table, stored)
    const partition = stored.partitions.get(partitionId) ?? noRows()
    stored.partitions.set(partitionId, partition)
    for (const sum of [stored.total, partition]) {
      sum.rows += rows
      sum.bytes += bytes
    }
    stored.days.push(day)
  }
  return found
}

const noRows = (): Sum => ({ rows: 0, bytes: 0 })
const noTable = (): StoredTable => ({ total: noRows(), partitions: new Map(), days: [] })

/** Numbers as text, bytes rounded; instants are nanoseconds since 1970. */
type SignalRow = readonly [
  signal: Signal,
  rows: string,
  bytes: string,
  recentRows: string,
  recentBytes: string,
  previousRows: string,
  previousBytes: string,
  oldest: string,
  newest: string,
  days: readonly (readonly [day: string, rows: string, bytes: string])[],
]

interface ServiceRow {
  readonly service: string
  readonly parts: readonly SignalRow[]
  readonly all_services: string
  readonly all_rows: string
  readonly all_bytes: string
}

interface ServiceStatement {
  readonly rates: Rates
  readonly costs: RowCosts
  readonly limit: number
  readonly days: Days
  readonly growth: GrowthDays
}

/**
 * Rows of a table by service and day with their bytes: those of the partition, divided by rows times the cost
 * of a row of the service. Everything but counting is computed for groups and not for rows.
 */
function groupsOf(from: From, table: TableSpec, { costs, rates }: ServiceStatement, placement: number): Sql {
  const time = raw(table.timeColumn)
  const known = rates.get(table.name) ?? { mean: 0, newest: [] }
  const ids = strings(known.newest.map(([id]) => id))
  const perRow = known.newest.map(([, rate]) => rate)
  const rate =
    known.newest.length === 0
      ? raw('0.')
      : sql`transform(partition_id, ${ids}, ${decimals(perRow)}, ${raw(decimal(known.mean))})`
  return sql`SELECT service, ${raw(`'${table.signal}'`)} AS signal, day, total, oldest, newest,
  ${rate} * cost * sum(total) OVER (PARTITION BY partition_id) / sum(cost) OVER (PARTITION BY partition_id) AS bytes
FROM (SELECT service, day, partition_id, total, oldest, newest, total * ${costOf(costs, table)} AS cost
FROM (SELECT toString(ServiceName) AS service, cityHash64(service) AS service_hash, toDate(${time}) AS day,
  ${partitionIdOf(`max(${table.timeColumn})`, placement)} AS partition_id, count() AS total, min(${time}) AS oldest, max(${time}) AS newest
FROM ${from(table.name)} GROUP BY ServiceName, day))`
}

function readServices(reader: TenantReader, statement: ServiceStatement): Promise<ServiceRow[]> {
  const { days, growth, limit } = statement
  const within = (from: number, until: number) => `toUInt32(day) >= ${from} AND toUInt32(day) < ${until}`
  const recent = within(growth.recent, growth.today)
  const previous = within(growth.previous, growth.recent)
  const rounded = (sum: string) => raw(`toString(toUInt64(round(${sum})))`)
  const nanoseconds = (instant: string) => raw(`toString(toUnixTimestamp64Nano(${instant}))`)
  const groups = (from: From) =>
    join(
      tables.map((table) => groupsOf(from, table, statement, reader.place.placement)),
      ' UNION ALL ',
    )
  const found = (
    from: From,
  ) => sql`SELECT service, groupArray(part) AS parts, sum(own_bytes) AS size, toString(count() OVER ()) AS all_services,
  toString(sum(sum(own_rows)) OVER ()) AS all_rows, ${rounded('sum(sum(own_bytes)) OVER ()')} AS all_bytes
FROM (SELECT service, sum(day_rows) AS own_rows, sum(day_bytes) AS own_bytes, tuple(signal, toString(own_rows), ${rounded('own_bytes')},
  toString(sumIf(day_rows, ${raw(recent)})), ${rounded(`sumIf(day_bytes, ${recent})`)},
  toString(sumIf(day_rows, ${raw(previous)})), ${rounded(`sumIf(day_bytes, ${previous})`)},
  ${nanoseconds('min(oldest)')}, ${nanoseconds('max(newest)')},
  arraySort(groupArrayIf(tuple(toString(day), toString(day_rows), ${rounded('day_bytes')}), ${raw(within(days.from, days.until))}))) AS part
FROM (SELECT service, signal, day, sum(total) AS day_rows, sum(bytes) AS day_bytes, min(oldest) AS oldest, max(newest) AS newest
FROM (${groups(from)}) GROUP BY service, signal, day) GROUP BY service, signal)
GROUP BY service ORDER BY size DESC, service LIMIT ${uint(limit)}`
  const columns = raw('service, parts, all_services, all_rows, all_bytes')
  return reader.rows<ServiceRow>(
    (from) => withinPage(found(from), columns, raw('length(service)'), raw('size DESC, service')),
    { ...usualLimits, maxResultBytes: pageResultBytes },
  )
}

function serviceOf({ parts, service }: ServiceRow): Service {
  const ordered = signals.flatMap((signal) => parts.filter(([name]) => name === signal))
  const own = ordered.map(
    ([signal, rows, bytes, recentRows, recentBytes, previousRows, previousBytes, oldest, newest, days]) => ({
      signal,
      ...amountOf(rows, bytes),
      oldest: formatInstant(BigInt(oldest)),
      newest: formatInstant(BigInt(newest)),
      last_7_days: amountOf(recentRows, recentBytes),
      previous_7_days: amountOf(previousRows, previousBytes),
      days: days.map(([day, dayRows, dayBytes]) => ({ day, ...amountOf(dayRows, dayBytes) })),
    }),
  )
  const [newestNs = 0n] = ordered.map((row) => BigInt(row[8])).toSorted((a, b) => (a < b ? 1 : -1))
  return {
    service,
    ...sumOfAmounts(own),
    newest: formatInstant(newestNs),
    last_7_days: sumOfAmounts(own.map(({ last_7_days }) => last_7_days)),
    previous_7_days: sumOfAmounts(own.map(({ previous_7_days }) => previous_7_days)),
    signals: own,
  }
}

function amountOf(rows: string, bytes: string) {
  return { rows: Number(rows), bytes: Number(bytes) }
}

function othersOf(any: ServiceRow | undefined, shown: readonly Service[]): Answer['others'] {
  const { bytes, rows } = sumOfAmounts(shown)
  return {
    services: Number(any?.all_services ?? 0) - shown.length,
    rows: Number(any?.all_rows ?? 0) - rows,
    // Each sum is rounded by itself.
    bytes: Math.max(0, Number(any?.all_bytes ?? 0) - bytes),
  }
}
