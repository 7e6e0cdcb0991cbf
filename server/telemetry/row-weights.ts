// Estimates how many bytes on disk a number of rows of an organisation takes, for figures that the
// organisation sees. The engine knows the sizes of partitions only, so it can measure an organisation that is
// alone in its placement. In a shared placement a figure of the partition would change with what a neighbour
// writes; there it is estimated from the organisation's own rows, so equal rows have equal weight, whatever
// other organisations store and however the engine has merged the parts.

import type { TelemetryEngine, TenantPlace } from './engine.ts'
import { type PartitionSize, partitionSizes } from './partitions.ts'
import { type Signal, type TableName, type TableSpec, tables } from './schema/tables.ts'
import { join, raw, type Sql, sql, uint } from './sql.ts'
import type { TenantReader } from './tenant-reader.ts'

/** Returns the bytes that `rows` rows of the organisation take in a partition; rounded. */
export type RowWeights = (table: string, partitionId: string, rows: number) => number

/** Measures the weight of the organisation's rows as they are now. */
export type WeighRows = (place: TenantPlace) => Promise<RowWeights>

/** The same for a response, on behalf of the reader's organisation and until its client disconnects. */
export type WeighRowsFor = (reader: Pick<TenantReader, 'place' | 'share'>) => Promise<RowWeights>

export const weightless: RowWeights = () => 0

export async function weighRows(
  engine: TelemetryEngine,
  place: TenantPlace,
  isShared: boolean,
): Promise<RowWeights> {
  return isShared ? weighByOwnRows(engine, place) : weighByBooks(engine, place)
}

/**
 * For an organisation that is alone in its placement. Rows that were added since count at most as the whole
 * partition.
 */
async function weighByBooks(engine: TelemetryEngine, place: TenantPlace): Promise<RowWeights> {
  const sizes = await partitionSizes(engine, place.placement)
  return (table, partitionId, rows) => shareOf(sizes.get(`${table} ${partitionId}`), rows)
}

function shareOf(size: PartitionSize | undefined, rows: number): number {
  return size === undefined ? 0 : Math.round(size.bytes * Math.min(1, rows / size.rows))
}

/**
 * Bytes on disk for each byte in memory of the columns without a dictionary, as measured over the demo's
 * telemetry: within a factor of three for every table.
 */
const compressedShare: Readonly<Record<Signal, number>> = { metrics: 0.08, logs: 0.25, traces: 0.1 }

/** About this many rows of a table are measured. */
const sampledRows = 20_000

/** The sample has at least one minute in this many; a smaller sample would often contain no row. */
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

/** Measures whole minutes, selected by their number, so that the sample depends on the rows only. */
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
