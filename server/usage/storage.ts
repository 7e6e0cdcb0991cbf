// What an organisation stores. Rows are exact, as its own readers would count them, so hidden rows are gone
// at once. Bytes are estimated by telemetry/row-weights.ts and divided among the days of a week by rows.
// Totals are the sums of the returned days. An organisation may have rows on each of the 65,000 days that the
// engine can store, in every table, so days are added up one after another, in turns.

import type { z } from 'zod'
import type { StorageUsage } from '../../contract/organisation/usage.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { mapInTurns, Pace } from '../core/turns/pace.ts'
import { partitionIdOf } from '../telemetry/partitions.ts'
import type { RowWeights, WeighRowsFor } from '../telemetry/row-weights.ts'
import { type Signal, signals, type TableName, type TableSpec, tables } from '../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql } from '../telemetry/sql.ts'
import type { From, TenantReader } from '../telemetry/tenant-reader.ts'
import { dayText, type GrowthDays, growthDays, growthOf, sumOfAmounts } from './growth.ts'

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
  weighRows: WeighRowsFor,
  { keptFor, nowMs }: { readonly keptFor: KeptFor; readonly nowMs: number },
): Promise<Usage> {
  const amounts = await readAmounts(reader, weighRows)
  const days = growthDays(nowMs)
  const perSignal = signals.map((signal) => ({ signal, stored: new StoredSum(days) }))
  const sums = new Map(perSignal.map(({ signal, stored }) => [signal, stored]))
  const pace = new Pace(reader.share.turn)
  for (const amount of amounts) {
    if (pace.isOver()) await pace.turn()
    sums.get(amount.signal)?.add(amount)
  }
  const all = perSignal.map(({ stored }) => stored)
  return {
    tenant_id: reader.place.tenantId,
    ...totalOf(all),
    ...growthOf(
      all.flatMap(({ recent }) => recent),
      days,
    ),
    signals: perSignal.map(({ signal, stored }) => ({
      signal,
      ...totalOf([stored]),
      ...growthOf(stored.recent, days),
      retention: keptFor[signal],
      days: stored.days,
    })),
  }
}

/** The sum of amounts of one signal. */
class StoredSum {
  rows = 0
  bytes = 0
  oldestNs: bigint | null = null
  newestNs: bigint | null = null
  /** Sums by day, oldest first. */
  readonly days: { readonly day: string; rows: number; bytes: number }[] = []
  /** The amounts of which growth is computed. */
  readonly recent: StoredAmount[] = []
  readonly #recentFrom: string
  readonly #recentUntil: string

  constructor({ previous, today }: GrowthDays) {
    this.#recentFrom = dayText(previous)
    this.#recentUntil = dayText(today)
  }

  /** The day of the amount is that of the last one or a later one. */
  add(amount: StoredAmount): void {
    const { bytes, day, newestNs, oldestNs, rows } = amount
    this.rows += rows
    this.bytes += bytes
    if (this.oldestNs === null || oldestNs < this.oldestNs) this.oldestNs = oldestNs
    if (this.newestNs === null || newestNs > this.newestNs) this.newestNs = newestNs
    const last = this.days.at(-1)
    if (last?.day === day) {
      last.rows += rows
      last.bytes += bytes
    } else this.days.push({ day, rows, bytes })
    if (day >= this.#recentFrom && day < this.#recentUntil) this.recent.push(amount)
  }
}

/** Returns what is stored by table and UTC day, oldest day first. */
export async function readAmounts(reader: TenantReader, weighRows: WeighRowsFor): Promise<StoredAmount[]> {
  const { placement } = reader.place
  // Weights first: what is hidden meanwhile is then missing from the rows, which are read last.
  const weights = await weighRows(reader)
  const days = await reader.rows<TableDay>((from) => {
    const each = tables.map((table) => daysOf(from, table, placement))
    return sql`SELECT * FROM (${join(each, ' UNION ALL ')}) ORDER BY day`
  })
  return mapInTurns(days, new Pace(reader.share.turn), (day) => amountOf(day, weights))
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

function totalOf(sums: readonly StoredSum[]) {
  const instants = sums.flatMap(({ newestNs, oldestNs }) =>
    oldestNs === null || newestNs === null ? [] : [{ oldestNs, newestNs }],
  )
  const [oldestNs] = instants.map((of) => of.oldestNs).sort(ascending)
  const [newestNs] = instants.map((of) => of.newestNs).sort((a, b) => ascending(b, a))
  return {
    ...sumOfAmounts(sums),
    oldest: oldestNs === undefined ? null : formatInstant(oldestNs),
    newest: newestNs === undefined ? null : formatInstant(newestNs),
  }
}

const ascending = (a: bigint, b: bigint) => (a < b ? -1 : 1)
