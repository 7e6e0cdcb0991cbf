// Creates the telemetry tables and their views, and refuses to run on tables that differ from this program's:
// with a missing or foreign column values would be lost without notice, and with an unknown partition key an
// erasure would miss rows. Older tables are accepted only where they can be brought up to date without losing
// anything.

import { EngineError, type TelemetryEngine } from '../engine.ts'
import { raw, sql } from '../sql.ts'
import { bringUpToDate } from './bring-up-to-date.ts'
import { columnText, expectedColumn, type FoundColumn, foundColumns } from './column-text.ts'
import { createViews } from './exporter-views.ts'
import { type ColumnSpec, placeColumns, type TableSpec, tables } from './tables.ts'

interface SchemaOptions {
  /** Whether the engine syncs each file of an insert before the insert resolves. */
  readonly syncFiles: boolean
}

/**
 * Creates or updates the tables. Idempotent. Throws EngineError, naming the first table and the column or key
 * that differs.
 */
export async function createSchema(engine: TelemetryEngine, options: SchemaOptions): Promise<void> {
  // What the engine has is read for all tables at once: these statements take most of a start.
  let found = await foundTables(engine)
  const missing = tables.filter(({ name }) => !found.has(name))
  for (const table of missing) await engine.command(raw(createTableText(table)))
  if (missing.length > 0) found = await foundTables(engine)
  // First, because these settings ensure that rewritten data is on the disk before its sources are removed.
  for (const table of tables) await settleSettings(engine, table, found.get(table.name), options)
  let columns = await foundColumns(engine)
  let isChanged = false
  for (const table of tables) isChanged = (await bringUpToDate(engine, table, columns)) || isChanged
  if (isChanged) [found, columns] = [await foundTables(engine), await foundColumns(engine)]
  for (const table of tables) {
    assertColumns(table, columns.get(table.name) ?? [])
    assertKeys(table, found.get(table.name))
  }
  await createViews(engine, tables)
}

/** A table as the engine reports it. */
interface FoundTable {
  readonly name: string
  /** The engine of the table with its keys and settings, as text. */
  readonly own: string
  readonly partition_key: string
  readonly sorting_key: string
}

async function foundTables(engine: TelemetryEngine): Promise<ReadonlyMap<string, FoundTable>> {
  const found = await engine.select<FoundTable>(
    sql`select name, engine_full as own, partition_key, sorting_key from system.tables where database = currentDatabase()`,
  )
  return new Map(found.map((table) => [table.name, table]))
}

/**
 * Returns the columns of a table in insert order: placement and tenant; then those that all rows of one
 * resource and scope share, which a decoder writes once and copies; then the rest.
 */
export function insertColumns(table: TableSpec): readonly ColumnSpec[] {
  const isShared = ({ name }: ColumnSpec) => /^(Resource|Scope|ServiceName$)/.test(name)
  return [
    ...placeColumns,
    ...table.columns.filter(isShared),
    ...table.columns.filter((column) => !isShared(column)),
  ]
}

/**
 * Returns the text of one table. The partition key puts each week of an organisation into partitions that it
 * shares with no or few others, so that erasing is mostly a metadata operation. With the settings, removed
 * parts leave the disk within seconds instead of minutes, and only the last finished mutation stays recorded.
 */
export function createTableText(table: TableSpec): string {
  const lines = [
    // Without quotes, because a backup identifies tables by their text.
    ...placeColumns.map(({ name, type }) => `${name} ${type}`),
    ...table.columns.map(columnText),
    ...table.indexes,
  ]
  return `CREATE TABLE IF NOT EXISTS ${table.name} (
${lines.map((line) => `  ${line}`).join(',\n')}
)
ENGINE = MergeTree
PARTITION BY ${partitionKey(table)}
ORDER BY (${sortingKey(table)})
SETTINGS ${Object.entries(settingsOf(table))
    .map(([name, value]) => `${name} = ${value}`)
    .join(', ')}`
}

/** The settings that {@link settleSettings} changes too, and those that a table keeps from its creation. */
function settingsOf({ granuleRows }: TableSpec): Readonly<Record<string, number | string>> {
  return granuleRows === undefined ? tableSettings : { ...tableSettings, index_granularity: granuleRows }
}

const partitionKey = (table: TableSpec) => `(Placement, toMonday(${table.timeColumn}))`
const sortingKey = (table: TableSpec) => ['TenantId', ...table.orderBy].join(', ')

/** docs/decisions/0002 and 0007 have what was measured of each. */
const tableSettings = {
  old_parts_lifetime: 0,
  cleanup_delay_period: 1,
  cleanup_delay_period_random_add: 0,
  max_cleanup_delay_period: 1,
  merge_tree_clear_old_parts_interval_seconds: 1,
  merge_tree_clear_old_temporary_directories_interval_seconds: 10,
  finished_mutations_to_keep: 1,
  // The sources of a merge leave the disk within a second, so its result must be on the disk by then.
  min_rows_to_fsync_after_merge: 1,
  // Ten parts of a size are merged, not five: then each row is rewritten less often (docs/decisions/0014).
  merge_selector_base: 10,
  // No statement here is planned by statistics, and estimating the distinct values of each column takes a
  // tenth of every merge (docs/decisions/0021).
  auto_statistics_types: "''",
}

/**
 * The engine counts the parts of all organisations: with its limit of 100,000 a few of them, with rows of
 * very many weeks, would make every insert fail. What an organisation may have is limited instead
 * (ingest/rows/distant-weeks.ts). Not in the text of a table, like {@link brokenPartSettings}.
 */
const partSettings = { max_parts_in_total: 10_000_000 }

/**
 * A power loss may leave any number of broken parts that were never acknowledged. With these limits the
 * engine starts nevertheless, and the broken parts are examined when all are loaded (docs/decisions/0022).
 * Not in the text of a table: that text identifies the tables into which a backup can be restored.
 */
const brokenPartSettings = {
  max_suspicious_broken_parts: 1_000_000,
  max_suspicious_broken_parts_bytes: 1_000_000_000_000_000,
}

/**
 * Sets the settings of a table that an earlier build created, or that was created before the operator changed
 * how commits are synced.
 */
async function settleSettings(
  engine: TelemetryEngine,
  table: TableSpec,
  found: FoundTable | undefined,
  { syncFiles }: SchemaOptions,
): Promise<void> {
  const sync = syncFiles ? 1 : 0
  const wanted = {
    ...tableSettings,
    ...brokenPartSettings,
    ...partSettings,
    fsync_after_insert: sync,
    fsync_part_directory: sync,
  }
  const own = new Set(found?.own.split(/ SETTINGS |, /))
  const missing = Object.entries(wanted)
    .map(([name, value]) => `${name} = ${value}`)
    .filter((setting) => !own.has(setting))
  if (missing.length === 0) return
  await engine.command(raw(`ALTER TABLE ${table.name} MODIFY SETTING ${missing.join(', ')}`))
}

function assertColumns(table: TableSpec, found: readonly FoundColumn[]): void {
  const expected = [...placeColumns, ...table.columns].map(expectedColumn)
  for (let i = 0; i < Math.max(expected.length, found.length); i++) {
    const [should, there] = [textOf(expected[i]), textOf(found[i])]
    if (should !== there) throw drift(table, `should have ${should} as column ${i + 1} but has ${there}`)
  }
}

const textOf = (column: FoundColumn | undefined) =>
  column === undefined ? 'nothing' : [column.name, column.type, column.kind.toLowerCase()].join(' ').trim()

function assertKeys(table: TableSpec, found: FoundTable | undefined): void {
  if (found?.partition_key !== partitionKey(table)) {
    throw drift(table, `should be partitioned by ${partitionKey(table)} but is by ${found?.partition_key}`)
  }
  if (found.sorting_key !== sortingKey(table)) {
    throw drift(table, `should be sorted by ${sortingKey(table)} but is by ${found.sorting_key}`)
  }
}

function drift(table: TableSpec, difference: string): EngineError {
  return new EngineError(
    `Table ${table.name} ${difference}; this data folder belongs to another version.`,
    {},
  )
}
