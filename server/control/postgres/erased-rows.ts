// Removes erased values from the files of PostgreSQL. Deleted and overwritten rows stay in the files of their
// table, its TOAST table and its indexes until the table is rewritten. The planner's statistics of a column
// contain values too, and PostgreSQL replaces them only where it finds newer ones, so it collects none for
// columns with telemetry. The copies in `notReached` are not reached; certificates name them.

import { CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely'
import { AppError } from '../../core/app-error.ts'
import type { Control } from '../database.ts'
import { derivedTables } from '../derived-tables.ts'
import { ErasedBytesKept } from '../erased-flush.ts'
import { lockNumber } from './lock-number.ts'
import { beginUpkeep, endUpkeep } from './pool.ts'
import { type AtStep, dropCopy, NotCopied, rewriteByCopy } from './table-copy.ts'
import { canBeReplaced } from './table-description.ts'

export const notReached: readonly string[] = [
  'The write-ahead log of the control plane’s PostgreSQL server until the server has overwritten it, and archives of that log.',
  'Standbys of that server until they have applied the erasure, and what they keep of its log.',
  'Dumps, base backups and snapshots of that server or of its disk.',
  'Log files of that server, where it is set to write statements with their values.',
]

/** How long rewriting a table waits for its readers, and then they for it, milliseconds. */
const rewriteLockMs = 1_000

interface Rewriting {
  /**
   * Derived tables of this size are copied; VACUUM FULL rewrites smaller ones, so fast that readers can wait.
   */
  readonly copiedFromBytes: number
  readonly at: AtStep
}

const usualRewriting: Rewriting = { copiedFromBytes: 16 * 2 ** 20, at: async () => {} }

/**
 * Rewrites the tables. VACUUM FULL needs the table alone for that time. It keeps rows that an older
 * transaction or snapshot may still read, and reports no error, so each table is checked after it.
 */
export async function flushErased(
  control: Control,
  tables: readonly string[],
  rewriting = usualRewriting,
): Promise<void> {
  try {
    await withUpkeep(control, (connection) => flush(connection, tables, rewriting))
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'overloaded')) throw error
    throw new ErasedBytesKept(
      'The control plane’s PostgreSQL server is busy: somebody else uses the tables that must be rewritten, such as a dump',
      { cause: error },
    )
  }
}

/** {@link flushErased} of every table. */
export async function rewriteAll(control: Control): Promise<void> {
  const tables = await control.introspection.getTables()
  await flushErased(
    control,
    tables.map(({ name }) => name),
  )
}

/** One process at a time fills and removes copies. */
const flushLock = sql.lit(lockNumber('erased flush'))

async function flush(connection: Control, tables: readonly string[], rewriting: Rewriting): Promise<void> {
  await run(connection, `set lock_timeout = ${rewriteLockMs}`)
  try {
    await sql`select pg_advisory_lock(${flushLock}::bigint)`.execute(connection)
    try {
      await flushAlone(connection, tables, rewriting)
    } finally {
      await sql`select pg_advisory_unlock(${flushLock}::bigint)`.execute(connection)
    }
  } finally {
    await run(connection, 'reset lock_timeout')
  }
}

async function flushAlone(
  connection: Control,
  tables: readonly string[],
  rewriting: Rewriting,
): Promise<void> {
  for (const table of derivedTables) await dropCopy(connection, table)
  await requireOwned(connection, tables)
  const derived = tables.filter((table) => derivedTables.includes(table))
  const others = tables.filter((table) => !derivedTables.includes(table))
  await keepNoStatistics(connection, derived)
  await forgetStatistics(connection, derived)
  const xid = await newTransactionId(connection)
  for (const table of derived) await rewriteDerived(connection, table, xid, rewriting)
  for (const table of others) await rewriteTable(connection, table, 'full, analyze', xid)
  if (others.length > 0 && (await ownsDatabase(connection))) await run(connection, rewriteStatistics)
}

async function rewriteDerived(
  connection: Control,
  table: string,
  xid: string,
  { at, copiedFromBytes }: Rewriting,
): Promise<void> {
  if ((await sizeOf(connection, table)) >= copiedFromBytes && (await canBeReplaced(connection, table))) {
    const untilUnseen = (since: string) => untilUnread(connection, table, since)
    try {
      // Otherwise the copying would be in vain.
      await untilUnseen(xid)
      await rewriteByCopy(connection, table, untilUnseen, at)
      return await assertRewritten(connection, table, xid)
    } catch (error) {
      if (!(error instanceof NotCopied)) throw error
    }
  }
  await rewriteTable(connection, table, 'full', xid)
}

async function sizeOf(connection: Control, table: string): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select pg_total_relation_size(${table}::text::regclass) as bytes`.execute(connection)
  return rows[0]?.bytes ?? 0
}

async function rewriteTable(connection: Control, table: string, options: string, xid: string): Promise<void> {
  await sql`vacuum (${sql.raw(options)}) ${sql.table(table)}`.execute(connection)
  await assertRewritten(connection, table, xid)
}

/** Throws where the role may not rewrite one of the tables, which would only be a warning. */
async function requireOwned(connection: Control, tables: readonly string[]): Promise<void> {
  const { rows } = await sql<{ name: string; role: string }>`
    select relname as name, current_user::text as role from pg_class
    where relnamespace = current_schema()::regnamespace and relkind = 'r'
      and relname in (${sql.join(tables)}) and not pg_has_role(relowner, 'usage')`.execute(connection)
  const [foreign] = rows
  if (foreign === undefined) return
  throw new ErasedBytesKept(
    `The role ${foreign.role} does not own the table ${foreign.name} of the control plane in PostgreSQL and can’t rewrite it; its owner must run: alter table ${foreign.name} owner to "${foreign.role}"`,
  )
}

/** The owner of a database may rewrite its catalogs, as may a superuser. */
async function ownsDatabase(connection: Control): Promise<boolean> {
  const { rows } = await sql<{ owns: number }>`
    select pg_has_role(datdba, 'usage') as owns from pg_database where datname = current_database()`.execute(
    connection,
  )
  return rows[0]?.owns === 1
}

/** The catalog of what the planner knows of columns. */
const statistics = 'pg_catalog.pg_statistic'
const rewriteStatistics = `vacuum full ${statistics}`

/** Columns whose values come from telemetry, or may: all but ids, by which the planner finds rows. */
const isDerived = sql`att.attnum > 0 and not att.attisdropped
  and att.attname <> 'id' and att.attname not like '%\\_id'`

/**
 * Makes PostgreSQL collect no values of the tables' columns from now on. Waits until a collection in progress
 * has ended. Tables that don't exist yet are left out.
 */
export async function keepNoStatistics(
  db: Pick<Kysely<unknown>, 'getExecutor'>,
  tables: readonly string[] = derivedTables,
): Promise<void> {
  if (tables.length === 0) return
  const { rows } = await sql<{ table: string; column: string }>`
    select cls.relname as table, att.attname as column
    from pg_attribute att join pg_class cls on cls.oid = att.attrelid
    where cls.relnamespace = current_schema()::regnamespace and cls.relkind = 'r'
      and cls.relname in (${sql.join(tables)}) and ${isDerived}
      and coalesce(att.attstattarget, -1) <> 0
    order by cls.relname, att.attnum`.execute(db)
  for (const [table, columns] of Map.groupBy(rows, (row) => row.table)) {
    const changes = columns.map(({ column }) => sql`alter column ${sql.ref(column)} set statistics 0`)
    await sql`alter table ${sql.table(table)} ${sql.join(changes)}`.execute(db)
  }
}

/** The comment of a table whose removed statistics may still be in the file of the catalog. */
const unfinished = 'Statistics of this table are to be removed from pg_statistic'

/**
 * Removes what was collected before {@link keepNoStatistics}, as in a database of an earlier version. Only
 * the owner of the database can remove it from the file of the catalog. Until that is done, a comment of the
 * table says so.
 */
async function forgetStatistics(connection: Control, tables: readonly string[]): Promise<void> {
  if (tables.length === 0) return
  const stale = await collectedColumns(connection, tables)
  const marked = await unfinishedTables(connection, tables)
  if (stale.length === 0 && marked.length === 0) return
  if (!(await ownsDatabase(connection))) {
    throw new ErasedBytesKept(
      'PostgreSQL keeps values of erased rows in its statistics, which only the owner of the database can remove; make the role of the control plane its owner: alter database … owner to …',
    )
  }
  const byTable = Map.groupBy(stale, ({ table }) => table)
  for (const [table, columns] of byTable) {
    await sql`comment on table ${sql.table(table)} is ${sql.lit(unfinished)}`.execute(connection)
    // A column that gets a type, even the one that it has, loses its statistics.
    const changes = columns.map(
      ({ column, type, collation }) =>
        sql`alter column ${sql.ref(column)} type ${sql.raw(type)}${collation === null ? sql`` : sql` collate ${sql.id(collation)}`}`,
    )
    await sql`alter table ${sql.table(table)} ${sql.join(changes)}`.execute(connection)
  }
  const xid = await newTransactionId(connection)
  await run(connection, rewriteStatistics)
  await assertRewritten(connection, statistics, xid)
  for (const table of new Set([...byTable.keys(), ...marked])) {
    await sql`comment on table ${sql.table(table)} is null`.execute(connection)
  }
}

interface CollectedColumn {
  readonly table: string
  readonly column: string
  readonly type: string
  readonly collation: string | null
}

/** Columns of the tables that come from telemetry and have statistics. */
async function collectedColumns(connection: Control, tables: readonly string[]): Promise<CollectedColumn[]> {
  const { rows } = await sql<CollectedColumn>`
    select cls.relname as table, att.attname as column, format_type(att.atttypid, att.atttypmod) as type,
      (select collname from pg_collation where oid = att.attcollation)::text as collation
    from pg_stats known join pg_class cls on cls.relname = known.tablename
      and cls.relnamespace = current_schema()::regnamespace and cls.relkind = 'r'
    join pg_attribute att on att.attrelid = cls.oid and att.attname = known.attname
    where known.schemaname = current_schema() and cls.relname in (${sql.join(tables)}) and ${isDerived}
    order by cls.relname, att.attnum`.execute(connection)
  return rows
}

async function unfinishedTables(connection: Control, tables: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ table: string }>`
    select relname as table from pg_class
    where relnamespace = current_schema()::regnamespace and relkind = 'r'
      and relname in (${sql.join(tables)}) and obj_description(oid, 'pg_class') = ${unfinished}`.execute(
    connection,
  )
  return rows.map(({ table }) => table)
}

/** How often a flush looks whether the transactions before it have ended, and how long it pauses, seconds. */
const [endedTries, endedPause] = [40, 0.05]

/**
 * Returns the number of a transaction of its own, once every transaction of the server that began before it
 * has ended. Rewriting would keep what those may still read, also those of other databases, because its own
 * snapshot goes back to the oldest of all. Those that don't end in two seconds are left to
 * {@link assertRewritten}.
 */
async function newTransactionId(connection: Control): Promise<string> {
  const { rows } = await sql<{ xid: string }>`select pg_current_xact_id()::text as xid`.execute(connection)
  const [begun] = rows
  if (begun === undefined) throw new Error('The control plane gives no number of a transaction.')
  await hasSoon(connection, sql`pg_snapshot_xmin(pg_current_snapshot()) > ${begun.xid}::text::xid8`)
  return begun.xid
}

/**
 * Waits until no client of the database has a snapshot from before the end of the transaction `xid`, nor an
 * older transaction keeps new snapshots from being later. Throws where that takes longer than two seconds.
 */
async function untilUnread(connection: Control, table: string, xid: string): Promise<void> {
  // Automatic vacuuming has no role, and reads no rows of another table.
  const isUnread = sql`not exists (
    select from pg_stat_activity
    where datname = current_database() and usesysid is not null and pid <> pg_backend_pid()
      and age(backend_xmin) >= age(${xid}::text::xid8::xid)
  ) and pg_snapshot_xmin(pg_current_snapshot()) > ${xid}::text::xid8`
  if (!(await hasSoon(connection, isUnread))) throw keptInTable(table)
}

async function hasSoon(connection: Control, condition: RawBuilder<unknown>): Promise<boolean> {
  for (let tries = 0; tries < endedTries; tries++) {
    const { rows } = await sql<{ holds: number }>`select (${condition}) as holds`.execute(connection)
    if (rows[0]?.holds === 1) return true
    await sql`select pg_sleep(${endedPause})`.execute(connection)
  }
  return false
}

/**
 * Throws unless the table was rewritten without any row that was deleted before the transaction `xid`. The
 * oldest transaction that the rewriting respected is in `relfrozenxid` of the table and of its TOAST table.
 * It is older where another transaction, snapshot or prepared transaction kept rows.
 */
async function assertRewritten(connection: Control, table: string, xid: string): Promise<void> {
  const { rows } = await sql<{ is_clean: number | null }>`
    select bool_and(age(file.relfrozenxid) <= age(${xid}::text::xid8::xid)) as is_clean
    from pg_class as owner join pg_class as file on file.oid in (owner.oid, owner.reltoastrelid)
    where owner.oid = ${table}::text::regclass`.execute(connection)
  if (rows[0]?.is_clean !== 1) throw keptInTable(table)
}

function keptInTable(table: string): ErasedBytesKept {
  return new ErasedBytesKept(
    `The table ${table} of PostgreSQL may still contain erased rows: a transaction or snapshot that is older than the erasure keeps them, such as of a dump`,
  )
}

/** Runs `work` on a connection whose statements may take as long as they need. */
function withUpkeep<T>(control: Control, work: (connection: Control) => Promise<T>): Promise<T> {
  return control.connection().execute(async (connection) => {
    await run(connection, beginUpkeep)
    try {
      return await work(connection)
    } finally {
      await run(connection, endUpkeep)
    }
  })
}

const run = (connection: Pick<Kysely<unknown>, 'executeQuery'>, text: string) =>
  connection.executeQuery(CompiledQuery.raw(text))
