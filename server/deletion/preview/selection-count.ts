// Counts a selection as its own organisation sees it: exact rows, bytes estimated from its own rows,
// services, first and last time. Nothing here depends on what a neighbour in the same placement has or
// writes. What another deletion has hidden is neither counted nor named: nobody may see it, and that deletion
// will erase it.

import type { TimeRange } from '../../core/time-range.ts'
import { partitionIdOf } from '../../telemetry/partitions.ts'
import type { RowWeights } from '../../telemetry/row-weights.ts'
import { shownName } from '../../telemetry/schema/shown-names.ts'
import { type Signal, signals, type TableName, tablesOf } from '../../telemetry/schema/tables.ts'
import { join, raw, sql, uint } from '../../telemetry/sql.ts'
import { rangeCondition, type TenantReader } from '../../telemetry/tenant-reader.ts'
import { selectedIn } from '../attempt/planner.ts'
import type { DeletionSelection, ErasureTarget } from '../requests/selection.ts'

/** How many services are named per signal; enough to recognise what would be erased. */
const servicesMax = 100

interface SignalCount {
  readonly signal: Signal
  readonly rows: number
  /** Their size on disk, estimated from what the organisation may know. */
  readonly bytes: number
  /** Null where nothing is selected. */
  readonly firstNs: bigint | null
  readonly lastNs: bigint | null
  /** The busiest first, at most {@link servicesMax}; long names are cut. */
  readonly services: readonly string[]
  readonly servicesTotal: number
}

interface ErasureWork {
  /** Partitions in which no row of the organisation would be left. */
  readonly partitionsDropped: number
  readonly partitionsRewritten: number
  /** Bytes of the organisation's own rows that stay. */
  readonly bytesRewritten: number
}

export interface SelectionCount {
  readonly signals: readonly SignalCount[]
  readonly work: ErasureWork
}

/** Selected rows per signal; every selected signal is present, also at zero. */
export type RowCounts = Readonly<Partial<Record<Signal, number>>>

/** Counts of one partition of one table; times are nanoseconds since 1970 as text. */
interface PartitionCount {
  readonly place: TableName
  readonly partition_id: string
  readonly total: string
  readonly first: string
  readonly last: string
}

/** Reads one column of every selected row. */
export async function countRows(reader: TenantReader, selection: DeletionSelection): Promise<RowCounts> {
  return rowsBySignal(selection, await countPartitions(reader, selection))
}

/** Counts the selection of `target`, and estimates the work of erasing what no hold keeps of it. */
export async function countSelection(
  reader: TenantReader,
  target: ErasureTarget,
  weights: RowWeights,
): Promise<SelectionCount> {
  const work = workOf(await countSurvivors(reader, target), weights)
  const found = await countPartitions(reader, target)
  const rows = rowsBySignal(target, found)
  const counts: SignalCount[] = []
  for (const signal of target.signals) {
    const own = found.filter((partition) => signalOf(partition) === signal)
    counts.push({
      signal,
      rows: rows[signal] ?? 0,
      bytes: own.reduce((sum, one) => sum + weights(one.place, one.partition_id, Number(one.total)), 0),
      firstNs: least(own.map(({ first }) => BigInt(first))),
      lastNs: greatest(own.map(({ last }) => BigInt(last))),
      ...(await countServices(reader, target, signal)),
    })
  }
  return { signals: counts, work }
}

/** The organisation's rows in one partition, without hidden ones. */
interface SurvivorCount {
  readonly place: TableName
  readonly partition_id: string
  readonly total: string
  readonly erased: string
}

function workOf(partitions: readonly SurvivorCount[], weights: RowWeights): ErasureWork {
  const work = { partitionsDropped: 0, partitionsRewritten: 0, bytesRewritten: 0 }
  for (const { erased, partition_id, place, total } of partitions) {
    const survivors = Number(total) - Number(erased)
    if (survivors === 0) work.partitionsDropped++
    else {
      work.partitionsRewritten++
      work.bytesRewritten += weights(place, partition_id, survivors)
    }
  }
  return work
}

/**
 * Counts every partition from which something would be erased now: what no hold keeps and no other deletion
 * hides.
 */
async function countSurvivors(reader: TenantReader, target: ErasureTarget): Promise<SurvivorCount[]> {
  const { placement, tenantId } = reader.place
  return reader.rows<SurvivorCount>((from) =>
    join(
      tablesOf(target.signals).map(
        (
          table,
        ) => sql`SELECT ${table.name} AS place, ${partitionIdOf(table.timeColumn, placement)} AS partition_id,
  toString(count()) AS total, toString(countIf(${selectedIn(table, tenantId, target)}) AS selected) AS erased
FROM ${from(table.name, rangeCondition(table.timeColumn, wholeWeeks(target.range)))}
GROUP BY partition_id HAVING selected > 0`,
      ),
      ' UNION ALL ',
    ),
  )
}

const weekNs = 7n * 86_400_000_000_000n
/** 1970 began on a Thursday. */
const firstMondayNs = -3n * 86_400_000_000_000n

/** Returns the whole weeks that the range touches: they are the engine's partitions. */
function wholeWeeks({ startNs, endNs }: TimeRange): TimeRange {
  const mondayBefore = (ns: bigint) => ns - ((ns - firstMondayNs) % weekNs)
  const start = startNs === null ? null : mondayBefore(startNs)
  return {
    startNs: start === null || start < 0n ? null : start,
    endNs: endNs === null ? null : mondayBefore(endNs - 1n) + weekNs,
  }
}

async function countPartitions(
  reader: TenantReader,
  selection: DeletionSelection,
): Promise<PartitionCount[]> {
  return reader.rows<PartitionCount>((from) =>
    join(
      tablesOf(selection.signals).map((table) => {
        const time = raw(table.timeColumn)
        return sql`SELECT ${table.name} AS place, ${partitionIdOf(table.timeColumn, reader.place.placement)} AS partition_id,
  toString(count()) AS total, toString(toUnixTimestamp64Nano(min(${time}))) AS first, toString(toUnixTimestamp64Nano(max(${time}))) AS last
FROM ${from(table.name, rangeCondition(table.timeColumn, selection.range))} GROUP BY partition_id`
      }),
      ' UNION ALL ',
    ),
  )
}

async function countServices(
  reader: TenantReader,
  selection: DeletionSelection,
  signal: Signal,
): Promise<Pick<SignalCount, 'services' | 'servicesTotal'>> {
  const rows = await reader.rows<{ shown: string; services: string }>((from) => {
    const branches = tablesOf([signal]).map(
      (table) =>
        sql`SELECT toString(ServiceName) AS service, count() AS n FROM ${from(table.name, rangeCondition(table.timeColumn, selection.range))} GROUP BY service`,
    )
    return sql`SELECT ${shownName('service')} AS shown, toString(count() OVER ()) AS services FROM (${join(branches, ' UNION ALL ')})
GROUP BY service ORDER BY sum(n) DESC, service LIMIT ${uint(servicesMax)}`
  })
  return { services: rows.map(({ shown }) => shown), servicesTotal: Number(rows[0]?.services ?? 0) }
}

function rowsBySignal(selection: DeletionSelection, found: readonly PartitionCount[]): RowCounts {
  const counts = selection.signals.map((signal) => {
    const own = found.filter((partition) => signalOf(partition) === signal)
    return [signal, own.reduce((sum, { total }) => sum + Number(total), 0)] as const
  })
  return Object.fromEntries(counts)
}

const signalOfTable = new Map(tablesOf(signals).map((table) => [table.name, table.signal]))

const signalOf = ({ place }: PartitionCount) => signalOfTable.get(place)

function least(instants: readonly bigint[]): bigint | null {
  return instants.reduce<bigint | null>((a, b) => (a === null || b < a ? b : a), null)
}

function greatest(instants: readonly bigint[]): bigint | null {
  return instants.reduce<bigint | null>((a, b) => (a === null || b > a ? b : a), null)
}
