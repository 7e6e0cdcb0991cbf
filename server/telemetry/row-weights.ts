// How many bytes on disk so many rows of an organisation take, for figures that the organisation sees. The
// engine's books know partitions, so they tell only of an organisation that has its placement to itself. In a
// shared placement any figure that comes from the books follows what a neighbour writes; there it is an
// estimate from the organisation's own rows: the same rows weigh the same, whoever lives beside them and
// however the engine has merged them.

import type { TelemetryEngine, TenantPlace } from './engine.ts'
import { type PartitionSize, partitionSizes } from './partitions.ts'
import { type Signal, type TableName, type TableSpec, tables } from './schema/tables.ts'
import { join, raw, type Sql, sql, uint } from './sql.ts'

/** Bytes that so many rows of the organisation take in a partition; rounded. */
export type RowWeights = (table: string, partitionId: string, rows: number) => number

/** Weighs the rows of an organisation as they are now. */
export type WeighRows = (place: TenantPlace) => Promise<RowWeights>

export const weightless: RowWeights = () => 0

export async function weighRows(
  engine: TelemetryEngine,
  place: TenantPlace,
  isShared: boolean,
): Promise<RowWeights> {
  return isShared ? weighByOwnRows(engine, place) : weighByBooks(engine, place)
}

/**
 * Only for an organisation that has its placement to itself. Rows that came since count at
 * most the whole partition.
 */
async function weighByBooks(engine: TelemetryEngine, place: TenantPlace): Promise<RowWeights> {
  const sizes = await partitionSizes(engine, place.placement)
  return (table, partitionId, rows) => shareOf(sizes.get(`${table} ${partitionId}`), rows)
}

function shareOf(size: PartitionSize | undefined, rows: number): number {
  return size === undefined ? 0 : Math.round(size.bytes * Math.min(1, rows / size.rows))
}

/**
 * Bytes on disk for each byte in memory of the columns that are not words of a dictionary, as measured over
 * the demo's telemetry: within a factor of three for every table.
 */
const compressedShare: Readonly<Record<Signal, number>> = { metrics: 0.08, logs: 0.25, traces: 0.1 }

/** About so many rows of a table are measured. */
const sampledRows = 20_000

/** A sample of fewer minutes than one in so many would often find no row at all. */
const sparsestSample = 256

async function weighByOwnRows(engine: TelemetryEngine, place: TenantPlace): Promise<RowWeights> {
  const counts = await engine.select<{ place: TableName; total: string }>(
    join(
      tables.map(
        (table) => sql`SELECT ${table.name} AS place, toString(count()) AS total ${ownRows(table, place)}`,
      ),
      ' UNION ALL ',
    ),
  )
  const bytesPerRow = new Map<string, number>()
  for (const table of tables) {
    const rows = Number(counts.find((count) => count.place === table.name)?.total ?? 0)
    if (rows > 0) bytesPerRow.set(table.name, await averageRow(engine, place, table, rows))
  }
  return (table, _partitionId, rows) => Math.round(rows * (bytesPerRow.get(table) ?? 0))
}

/**
 * Measures whole minutes, picked by their number: which rows are in the sample depends
 * on nothing but the rows.
 */
async function averageRow(
  engine: TelemetryEngine,
  place: TenantPlace,
  table: TableSpec,
  rows: number,
): Promise<number> {
  const columns = table.columns.filter(({ type }) => !type.startsWith('LowCardinality'))
  const size = join(
    columns.map(({ name }) => raw(`\`${name}\``)),
    ', ',
  )
  const minute = raw(`intDiv(toUnixTimestamp64Nano(${table.timeColumn}), 60000000000)`)
  for (let oneIn = Math.min(sparsestSample, Math.ceil(rows / sampledRows)); ; oneIn = Math.ceil(oneIn / 16)) {
    const [found] = await engine.select<{ total: string; bytes: string }>(
      sql`SELECT toString(count()) AS total, toString(sum(byteSize(${size}))) AS bytes
${ownRows(table, place)} AND cityHash64(${minute}) % ${uint(oneIn)} = 0`,
    )
    const total = Number(found?.total ?? 0)
    if (total > 0) return (Number(found?.bytes) / total) * compressedShare[table.signal]
    if (oneIn === 1) return 0
  }
}

function ownRows(table: TableSpec, { placement, tenantId }: TenantPlace): Sql {
  return sql`FROM ${raw(table.name)} WHERE Placement = ${uint(placement)} AND TenantId = ${tenantId}`
}
