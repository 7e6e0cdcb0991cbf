// Our own candidates: the product, used over HTTP, and two baselines in the same engine, which have the same
// rows in tables partitioned by day and otherwise like the product's: the plain ALTER DELETE, and the
// lightweight DELETE followed by the merge that removes its bytes. The baselines use the product's settings
// for prompt removal of old parts, which are better for them than the engine's defaults (old parts stay eight
// minutes).

import { join } from 'node:path'
import { createTableText } from '../../server/telemetry/schema/create-schema.ts'
import { tables } from '../../server/telemetry/schema/tables.ts'
import { type Erasure, watchErasure } from './erasure.ts'
import { filesUnder, type WatchedFile } from './files.ts'
import { eraseOverHttp, type Product, type Range, settle } from './product.ts'
import { dayStart, type History, historyDays, insertSql, organisationCount, tenantOf } from './rows.ts'

/** Whose rows are erased, and how long to wait for their bytes. */
interface Wanted {
  readonly organisation: number
  /** Null for everything. */
  readonly range: Range | null
  readonly limitMs: number
}

const database = 'baseline'

/** Fills the product's tables. */
export async function fillProduct(product: Product, history: History): Promise<void> {
  for (let organisation = 0; organisation < organisationCount; organisation++)
    for (const table of history.tables)
      await product.rows(insertSql(history, table, { organisation, fromDay: 0, toDay: historyDays }))
  await settle(product)
}

/** Copies every row of the product into day-partitioned tables. */
export async function fillBaseline(product: Product, history: History): Promise<void> {
  await product.rows(`CREATE DATABASE ${database}`)
  for (const table of filledTables(history)) {
    const text = createTableText(table)
      .replace(table.name, `${database}.${table.name}`)
      .replace(/PARTITION BY .*/, `PARTITION BY toDate(${table.timeColumn})`)
    await product.rows(text)
  }
  for (let day = 0; day < historyDays; day++)
    for (const { name, timeColumn } of filledTables(history))
      await product.rows(`
        INSERT INTO ${database}.${name} SELECT * FROM default.${name}
        WHERE ${rangeText(timeColumn, { start: dayStart(day), end: dayStart(day + 1) })}
        SETTINGS max_threads = 2, max_insert_threads = 2, max_block_size = 131072,
          min_insert_block_size_rows = 524288, min_insert_block_size_bytes = 0`)
  await settle(product)
}

/** Erases over HTTP and waits until the files of the selection are gone. */
export function eraseInProduct(product: Product, history: History, wanted: Wanted): Promise<Erasure> {
  return erased(product, 'default', history, wanted, () =>
    eraseOverHttp(product, wanted.organisation, wanted.range),
  )
}

export function alterDelete(product: Product, history: History, wanted: Wanted): Promise<Erasure> {
  return erased(product, database, history, wanted, async () => {
    for (const { name, timeColumn } of filledTables(history))
      await product.rows(
        `ALTER TABLE ${database}.${name} DELETE WHERE ${selection(wanted, timeColumn)} SETTINGS mutations_sync = 2`,
      )
  })
}

/** The lightweight DELETE, which only marks rows, and the merges that remove their bytes. */
export function lightweightAndMerge(product: Product, history: History, wanted: Wanted): Promise<Erasure> {
  return erased(product, database, history, wanted, async () => {
    for (const { name, timeColumn } of filledTables(history))
      await product.rows(`DELETE FROM ${database}.${name} WHERE ${selection(wanted, timeColumn)}`)
    for (const { name } of filledTables(history))
      await product.rows(`OPTIMIZE TABLE ${database}.${name} FINAL`)
  })
}

async function erased(
  product: Product,
  of: string,
  history: History,
  wanted: Wanted,
  erase: () => Promise<void>,
): Promise<Erasure> {
  const files = await filesWith(product, of, history, wanted)
  const { limitMs } = wanted
  return watchErasure({ pid: product.pid, folder: product.folder, files, limitMs }, erase)
}

/** The files of every part that has a selected row. */
async function filesWith(
  product: Product,
  of: string,
  history: History,
  wanted: Wanted,
): Promise<WatchedFile[]> {
  const files: WatchedFile[] = []
  for (const { name, timeColumn } of filledTables(history)) {
    const [at] = await product.rows<{ path: string }>(
      `SELECT data_paths[1] AS path FROM system.tables WHERE database = '${of}' AND name = '${name}'`,
    )
    const parts = await product.rows<{ part: string }>(
      `SELECT DISTINCT _part AS part FROM ${of}.${name} WHERE ${selection(wanted, timeColumn)}`,
    )
    for (const { part } of parts) files.push(...filesUnder(join(at?.path ?? '', part)))
  }
  return files
}

const filledTables = ({ tables: filled }: History) =>
  tables.filter(({ name }) => filled.some((wanted) => wanted === name))

function selection({ organisation, range }: Wanted, timeColumn: string): string {
  const tenant = `TenantId = '${tenantOf(organisation)}'`
  return range === null ? tenant : `${tenant} AND ${rangeText(timeColumn, range)}`
}

function rangeText(timeColumn: string, { start, end }: Range): string {
  const instant = (date: Date) =>
    `toDateTime64('${date.toISOString().slice(0, 19).replace('T', ' ')}', 9, 'UTC')`
  return `${timeColumn} >= ${instant(start)} AND ${timeColumn} < ${instant(end)}`
}
