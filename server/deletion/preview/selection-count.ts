// How much a selection holds, as its own organisation can see it: rows exactly, bytes by the engine's own books,
// which services, from when to when. What another deletion has hidden is neither counted nor named: nobody may see
// it any more, and it is that deletion's to erase.

import { partitionIdOf, partitionSizes } from '../../telemetry/partitions.ts'
import { type Signal, signals, type TableName, tablesOf } from '../../telemetry/schema/tables.ts'
import { join, raw, sql, uint } from '../../telemetry/sql.ts'
import type { TelemetryEngine } from '../../telemetry/telemetry.ts'
import { rangeCondition, type TenantReader } from '../../telemetry/tenant-reader.ts'
import type { DeletionSelection, ErasureTarget } from '../deletion.ts'
import { type PlannedStep, planErasure } from '../planner.ts'

/** Services named per signal; enough to recognise what one is about to erase. */
export const servicesMax = 100

export interface SignalCount {
  readonly signal: Signal
  readonly rows: number
  /** The share by rows of the partitions that hold them. */
  readonly bytes: number
  /** Null where nothing is selected. */
  readonly firstNs: bigint | null
  readonly lastNs: bigint | null
  /** The busiest first, at most {@link servicesMax}. */
  readonly services: readonly string[]
  readonly servicesTotal: number
}

export interface ErasureWork {
  readonly partitionsDropped: number
  readonly partitionsRewritten: number
  /** Bytes of survivors that are copied. */
  readonly bytesRewritten: number
}

export interface SelectionCount {
  readonly signals: readonly SignalCount[]
  readonly work: ErasureWork
}

/** Selected rows by signal; every selected signal is present, also at zero. */
export type RowCounts = Readonly<Partial<Record<Signal, number>>>

/** One partition of one table; instants are nanoseconds since 1970 as text. */
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

/** `target` is what an attempt could erase now, for the estimate of its work; the rest counts all of its selection. */
export async function countSelection(
  engine: TelemetryEngine,
  reader: TenantReader,
  target: ErasureTarget,
): Promise<SelectionCount> {
  // Sizes first: what is hidden meanwhile is then missing from the rows, which come last.
  const sizes = await partitionSizes(engine, reader.place.placement)
  const plan = await planErasure(engine, reader.place, target)
  const found = await countPartitions(reader, target)
  const rows = rowsBySignal(target, found)
  const bytesOf = (partition: PartitionCount) => {
    const size = sizes.get(placeOf(partition))
    return size === undefined ? 0 : Math.round(size.bytes * Math.min(1, Number(partition.total) / size.rows))
  }
  const counts: SignalCount[] = []
  for (const signal of target.signals) {
    const own = found.filter((partition) => signalOf(partition) === signal)
    counts.push({
      signal,
      rows: rows[signal] ?? 0,
      bytes: own.reduce((sum, partition) => sum + bytesOf(partition), 0),
      firstNs: least(own.map(({ first }) => BigInt(first))),
      lastNs: greatest(own.map(({ last }) => BigInt(last))),
      ...(await countServices(reader, target, signal)),
    })
  }
  // A partition in which nothing is visible is the work of the deletion that hides it.
  const visible = new Set(found.map(placeOf))
  const own = plan.filter((step) => visible.has(`${step.store} ${step.partitionId}`))
  return { signals: counts, work: workOf(own, sizes) }
}

function workOf(
  steps: readonly PlannedStep[],
  sizes: Awaited<ReturnType<typeof partitionSizes>>,
): ErasureWork {
  const work = { partitionsDropped: 0, partitionsRewritten: 0, bytesRewritten: 0 }
  for (const step of steps) {
    const size = sizes.get(`${step.store} ${step.partitionId}`)
    if (size === undefined || step.rows >= size.rows) work.partitionsDropped++
    else {
      work.partitionsRewritten++
      work.bytesRewritten += Math.max(0, size.bytes - step.bytes)
    }
  }
  return work
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
  const rows = await reader.rows<{ service: string; services: string }>((from) => {
    const branches = tablesOf([signal]).map(
      (table) =>
        sql`SELECT toString(ServiceName) AS service, count() AS n FROM ${from(table.name, rangeCondition(table.timeColumn, selection.range))} GROUP BY service`,
    )
    return sql`SELECT service, toString(count() OVER ()) AS services FROM (${join(branches, ' UNION ALL ')})
GROUP BY service ORDER BY sum(n) DESC, service LIMIT ${uint(servicesMax)}`
  })
  return { services: rows.map(({ service }) => service), servicesTotal: Number(rows[0]?.services ?? 0) }
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

const placeOf = ({ place, partition_id }: PartitionCount) => `${place} ${partition_id}`

function least(instants: readonly bigint[]): bigint | null {
  return instants.reduce<bigint | null>((a, b) => (a === null || b < a ? b : a), null)
}

function greatest(instants: readonly bigint[]): bigint | null {
  return instants.reduce<bigint | null>((a, b) => (a === null || b > a ? b : a), null)
}
