// Copies the rows of a control plane into another one, between any two databases, and compares them: table by
// table, in the order of each table's key. Both have the same schema. What is copied is read page by page, so
// that a copy that was interrupted continues after the last row that arrived.

import { createHash } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import type { Control, ControlTransaction, Database } from './database.ts'
import { copyNameOf } from './derived-tables.ts'

/** The tables that are copied: all but the mark of a move, which says something of one database. */
type ControlTable = Exclude<keyof Database, 'control_moves'>

/**
 * The key of every table, in an order in which a row comes after those that it refers to. The marks of
 * migrations are not in it: each database has its own.
 */
const keys = {
  organisations: ['tenant_id'],
  access_tokens: ['id'],
  sessions: ['id'],
  sign_in_codes: ['code_hash'],
  deletion_requests: ['request_id'],
  deletion_steps: ['request_id', 'ordinal'],
  deletion_previews: ['preview_id'],
  deletion_policies: ['tenant_id'],
  legal_holds: ['hold_id'],
  retention_policies: ['tenant_id', 'signal'],
  retention_changes: ['tenant_id', 'signal'],
  signing_keys: ['kid'],
  certificates: ['request_id'],
  backups: ['backup_id'],
  erasure_backups: ['request_id', 'backup_id'],
  ledger_entries: ['tenant_id', 'seq'],
  audit_entries: ['tenant_id', 'seq'],
  detectors: ['id'],
  anomalies: ['id'],
  held_anomaly_versions: ['anomaly_id', 'version'],
  ingest_quotas: ['tenant_id'],
  ingest_usage: ['tenant_id', 'day'],
  detector_mutes: ['id'],
  leases: ['name'],
  instance: ['key'],
} as const satisfies { readonly [T in ControlTable]: readonly (keyof Database[T])[] }

/** All tables of the control plane, in the order in which they can be filled. */
export const controlTables = Object.keys(keys) as readonly ControlTable[]

/** Rows of a page. Times the columns of the widest table they stay below the parameters of a statement. */
const pageRows = 500

type Row = Readonly<Record<string, unknown>>
type Key = readonly unknown[]

/**
 * Copies the rows of `source` whose key comes after the last one of `target`; all of them where that is
 * empty. `onPage` is awaited after each page, with the rows copied so far. Returns how many rows were copied.
 */
export async function copyTable(
  source: Control,
  target: Control,
  table: ControlTable,
  onPage: (rows: number) => Promise<void> | void = () => {},
): Promise<number> {
  let copied = 0
  for await (const rows of pages(source, table, await lastKey(target, table))) {
    await insertRows(target, table, rows)
    copied += rows.length
    await onPage(copied)
  }
  return copied
}

interface TableDigest {
  readonly rows: number
  /** SHA-256 over every value of every row in the order of the key, hexadecimal. */
  readonly digest: string
}

/**
 * Returns the digest of a table. Rows that are the same in two databases have the same digest, whatever the
 * databases are.
 */
export async function digestTable(control: Control, table: ControlTable): Promise<TableDigest> {
  const hash = createHash('sha256')
  let count = 0
  for await (const rows of pages(control, table, null)) {
    for (const row of rows) {
      hash.update(`${JSON.stringify(canonicalRow(row))}\n`)
    }
    count += rows.length
  }
  return { rows: count, digest: hash.digest('hex') }
}

/** Returns the digest of a table that has the same rows in both databases; null where the rows differ. */
export async function sameDigest(
  source: Control,
  target: Control,
  table: ControlTable,
): Promise<TableDigest | null> {
  const [there, here] = [await digestTable(source, table), await digestTable(target, table)]
  return there.rows === here.rows && there.digest === here.digest ? here : null
}

/** Columns by name, because a column that a migration added has another position in a newer database. */
function canonicalRow(row: Row): unknown[] {
  return Object.keys(row)
    .sort()
    .map((column) => [column, canonicalValue(row[column], column)])
}

/** Numbers are written as text, so that nothing that JSON lacks becomes null; zero has no sign everywhere. */
function canonicalValue(value: unknown, column: string): unknown {
  if (value === null || typeof value === 'string') return value
  if (typeof value === 'number') return { number: String(value) }
  throw new Error(`The column ${column} has a ${typeof value}, which is not a value of a control plane.`)
}

/** Whether no table has a row; a database without tables has none. */
export async function isEmptyOf(control: Control, tables: readonly string[]): Promise<boolean> {
  for (const table of tables) {
    const { rows } = await sql`select 1 from ${sql.table(table)} limit 1`.execute(control)
    if (rows.length > 0) return false
  }
  return true
}

async function* pages(control: Control, table: ControlTable, after: Key | null): AsyncGenerator<Row[]> {
  const from = sql.table(table)
  const key = keyColumns(table)
  for (let last = after; ; ) {
    const where = last === null ? sql`` : sql`where (${key}) > (${sql.join(last)})`
    const { rows } = await sql<Row>`
      select * from ${from} ${where} order by ${key} limit ${sql.lit(pageRows)}`.execute(control)
    if (rows.length > 0) yield rows
    const end = rows.at(-1)
    if (rows.length < pageRows || end === undefined) return
    last = keyOf(table, end)
  }
}

async function lastKey(control: Control, table: ControlTable): Promise<Key | null> {
  const order = sql.join(keys[table].map((column) => sql`${sql.ref(column)} desc`))
  const { rows } = await sql<Row>`
    select * from ${sql.table(table)} order by ${order} limit 1`.execute(control)
  const [row] = rows
  return row === undefined ? null : keyOf(table, row)
}

function keyOf(table: ControlTable, row: Row): Key {
  return keys[table].map((column) => row[column])
}

function keyColumns(table: ControlTable): RawBuilder<unknown> {
  return sql.join(keys[table].map((column) => sql.ref(column)))
}

async function insertRows(target: Control, table: ControlTable, rows: readonly Row[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {})
  const values = rows.map((row) => sql`(${sql.join(columns.map((column) => row[column]))})`)
  const names = sql.join(columns.map((column) => sql.ref(column)))
  await sql`insert into ${sql.table(table)} (${names}) values ${sql.join(values)}`.execute(target)
}

/** Drops every table of the control plane, and what migrations remember of it. */
export async function dropTables(trx: ControlTransaction): Promise<void> {
  const present = (await trx.introspection.getTables({ withInternalKyselyTables: true })).map(
    ({ name }) => name,
  )
  const known = [
    ...present.filter((name) => name.startsWith(copyNameOf(''))),
    ...controlTables.toReversed(),
    ...['control_moves', 'kysely_migration', 'kysely_migration_lock'],
  ]
  for (const table of known.filter((name) => present.includes(name))) {
    await sql`drop table ${sql.table(table)}`.execute(trx)
  }
}
