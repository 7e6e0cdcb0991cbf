// What an organisation stores. Rows are exact, as its own readers would count them, so hidden rows are gone
// at once. Bytes are estimated by telemetry/row-weights.ts and divided among the days of a week by rows.
// Totals are the sums of the returned days.

import type { z } from 'zod'
import type { StorageUsage } from '../../contract/organisation/usage.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { partitionIdOf } from '../telemetry/partitions.ts'
import type { RowWeights, WeighRows } from '../telemetry/row-weights.ts'
import { type Signal, signals, type TableName, type TableSpec, tables } from '../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql } from '../telemetry/sql.ts'
import type { From, TenantReader } from '../telemetry/tenant-reader.ts'
import { growthDays, growthOf } from './growth.ts'

type Usage = z.output<typeof StorageUsage>

/** The retention rule of each signal, and the last deletion that it requested. */
export type KeptFor = Readonly<Record<Signal, Usage['signals'][number]['retention']>>

/** Rows of one table on one UTC day; instants are nanoseconds since 1970 as text. */
interface TableDay {
  readonly place: TableName
  readonly day: string
  readonly partition_id: string
  readonly total: string
  readonly oldest: string
  readonly newest: string
}

/** Rows of one table on one UTC day, and their bytes. */
export interface StoredAmount {
  readonly table: TableName
  readonly signal: Signal
  readonly partitionId: string
  readonly day: string
  readonly rows: number
  readonly bytes: number
  readonly oldestNs: bigint
  readonly newestNs: bigint
}

/** Reads one column of every row of the organisation. */
export async function readStorage(
  reader: TenantReader,
  weighRows: WeighRows,
  { keptFor, nowMs }: { readonly keptFor: KeptFor; readonly nowMs: number },
): Promise<Usage> {
  const amounts = await readAmounts(reader, weighRows)
  const days = growthDays(nowMs)
  const perSignal = signals.map((signal) => ({
    ...signalUsage(
      signal,
      amounts.filter((amount) => amount.signal === signal),
    ),
    ...growthOf(
      amounts.filter((amount) => amount.signal === signal),
      days,
    ),
    retention: keptFor[signal],
  }))
  return {
    tenant_id: reader.place.tenantId,
    rows: sumOf(perSignal, 'rows'),
    bytes: sumOf(perSignal, 'bytes'),
    ...oldestAndNewest(amounts),
    ...growthOf(amounts, days),
    signals: perSignal,
  }
}

/** Returns what is stored by table and UTC day. */
export async function readAmounts(reader: TenantReader, weighRows: WeighRows): Promise<StoredAmount[]> {
  const { placement } = reader.place
  // Weights first: what is hidden meanwhile is then missing from the rows, which are read last.
  const weights = await weighRows(reader.place)
  const days = await reader.rows<TableDay>((from) =>
    join(
      tables.map((table) => daysOf(from, table, placement)),
      ' UNION ALL ',
    ),
  )
  return days.map((day) => amountOf(day, weights))
}

/** All rows of a day are in one partition, so its id is computed once for each day and not for each row. */
function daysOf(from: From, table: TableSpec, placement: number): Sql {
  const time = raw(table.timeColumn)
  return sql`SELECT ${table.name} AS place, toString(toDate(${time})) AS day,
  ${partitionIdOf(`max(${table.timeColumn})`, placement)} AS partition_id, toString(count()) AS total,
  toString(toUnixTimestamp64Nano(min(${time}))) AS oldest, toString(toUnixTimestamp64Nano(max(${time}))) AS newest
FROM ${from(table.name)} GROUP BY toDate(${time})`
}

const signalOf = new Map(tables.map(({ name, signal }) => [name, signal]))

function amountOf(day: TableDay, weights: RowWeights): StoredAmount {
  const { partition_id: partitionId, place: table } = day
  const signal = signalOf.get(table)
  if (signal === undefined) throw new Error(`No table ${table}`)
  const rows = Number(day.total)
  return {
    table,
    signal,
    partitionId,
    day: day.day,
    rows,
    bytes: weights(table, partitionId, rows),
    oldestNs: BigInt(day.oldest),
    newestNs: BigInt(day.newest),
  }
}

function signalUsage(signal: Signal, amounts: readonly StoredAmount[]) {
  const days = [...Map.groupBy(amounts, ({ day }) => day)]
    .map(([day, sameDay]) => ({ day, rows: sumOf(sameDay, 'rows'), bytes: sumOf(sameDay, 'bytes') }))
    .sort((a, b) => (a.day < b.day ? -1 : 1))
  return { signal, rows: sumOf(days, 'rows'), bytes: sumOf(days, 'bytes'), ...oldestAndNewest(amounts), days }
}

function sumOf<Key extends string>(items: readonly Readonly<Record<Key, number>>[], key: Key): number {
  return items.reduce((sum, item) => sum + item[key], 0)
}

function oldestAndNewest(amounts: readonly StoredAmount[]): { oldest: string | null; newest: string | null } {
  const ascending = (a: bigint, b: bigint) => (a < b ? -1 : 1)
  const oldestNs = amounts.map((amount) => amount.oldestNs).sort(ascending)[0]
  const newestNs = amounts
    .map((amount) => amount.newestNs)
    .sort(ascending)
    .at(-1)
  return {
    oldest: oldestNs === undefined ? null : formatInstant(oldestNs),
    newest: newestNs === undefined ? null : formatInstant(newestNs),
  }
}
