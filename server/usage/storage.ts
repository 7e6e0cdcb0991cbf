// What an organisation stores. Rows are exact, as its own readers would count them, so hidden rows are gone
// at once. Bytes are estimated by telemetry/row-weights.ts and distributed over the days of a week by rows.
// Totals are the sums of the returned days.

import type { z } from 'zod'
import { formatInstant } from '../../contract/instant.ts'
import type { StorageUsage } from '../../contract/usage.ts'
import { partitionIdOf } from '../telemetry/partitions.ts'
import type { RowWeights, WeighRows } from '../telemetry/row-weights.ts'
import { type Signal, signals, type TableName, type TableSpec, tables } from '../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql } from '../telemetry/sql.ts'
import type { From, TenantReader } from '../telemetry/tenant-reader.ts'

/** Rows of one table on one UTC day; instants are nanoseconds since 1970 as text. */
interface TableDay {
  readonly place: TableName
  readonly day: string
  readonly partition_id: string
  readonly total: string
  readonly oldest: string
  readonly newest: string
}

interface Amount {
  readonly signal: Signal
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
): Promise<z.infer<typeof StorageUsage>> {
  const { tenantId, placement } = reader.place
  // Weights first: what is hidden meanwhile is then missing from the rows, which are read last.
  const weights = await weighRows(reader.place)
  const days = await reader.rows<TableDay>((from) =>
    join(
      tables.map((table) => daysOf(from, table, placement)),
      ' UNION ALL ',
    ),
  )
  const amounts = days.map((day) => amountOf(day, weights))
  const perSignal = signals.map((signal) => signalUsage(signal, amounts))
  return {
    tenant_id: tenantId,
    rows: sumOf(perSignal, 'rows'),
    bytes: sumOf(perSignal, 'bytes'),
    ...boundsOf(amounts),
    signals: perSignal,
  }
}

function daysOf(from: From, table: TableSpec, placement: number): Sql {
  const time = raw(table.timeColumn)
  return sql`SELECT ${table.name} AS place, toString(toDate(${time})) AS day,
  ${partitionIdOf(table.timeColumn, placement)} AS partition_id, toString(count()) AS total,
  toString(toUnixTimestamp64Nano(min(${time}))) AS oldest, toString(toUnixTimestamp64Nano(max(${time}))) AS newest
FROM ${from(table.name)} GROUP BY day, partition_id`
}

const specOf = new Map(tables.map((table) => [table.name, table]))

function amountOf(day: TableDay, weights: RowWeights): Amount {
  const spec = specOf.get(day.place)
  if (spec === undefined) throw new Error(`No table ${day.place}`)
  const rows = Number(day.total)
  return {
    signal: spec.signal,
    day: day.day,
    rows,
    bytes: weights(day.place, day.partition_id, rows),
    oldestNs: BigInt(day.oldest),
    newestNs: BigInt(day.newest),
  }
}

function signalUsage(signal: Signal, all: readonly Amount[]) {
  const amounts = all.filter((amount) => amount.signal === signal)
  const days = [...new Set(amounts.map(({ day }) => day))].sort().map((day) => {
    const sameDay = amounts.filter((amount) => amount.day === day)
    return { day, rows: sumOf(sameDay, 'rows'), bytes: sumOf(sameDay, 'bytes') }
  })
  return { signal, rows: sumOf(days, 'rows'), bytes: sumOf(days, 'bytes'), ...boundsOf(amounts), days }
}

function sumOf<Key extends string>(items: readonly Readonly<Record<Key, number>>[], key: Key): number {
  return items.reduce((sum, item) => sum + item[key], 0)
}

function boundsOf(amounts: readonly Amount[]): { oldest: string | null; newest: string | null } {
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
