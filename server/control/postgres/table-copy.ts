// Rewrites a large table of PostgreSQL while others use it. VACUUM FULL keeps readers out for as long as it
// takes, which is seconds; here they wait for milliseconds, and writers for a read of the table.
//
// 1. A transaction fills a copy and its indexes, as of one moment. Others read and write meanwhile.
// 2. For a snapshot that is older than that commit the copy is empty. So no such snapshot may be left.
// 3. A transaction keeps writers out and brings the copy up to date. Then it keeps everybody out, drops the
//    table and renames the copy.
//
// A later snapshot that reads the table only after that sees it as of the copying. A copy that a crash left
// contains rows too: every flush removes copies first. Rows that are deleted while the copy is filled may be
// in its files; the flush of their erasure begins later and rewrites the table again.

import { sql } from 'kysely'
import { AppError } from '../../core/app-error.ts'
import type { Control, ControlTransaction } from '../database.ts'
import { copyNameOf } from '../derived-tables.ts'
import { transactOnce } from '../transaction.ts'
import { describeColumns, describeTable } from './table-description.ts'

/** A copy of the table would not be equal to it, so VACUUM FULL has to rewrite it. */
export class NotCopied extends Error {
  override readonly name = 'NotCopied'
}

/** Tests stop the rewriting at a step. */
export type RewritingStep = 'filled' | 'copied' | 'writers wait' | 'replaced'
export type AtStep = (step: RewritingStep) => Promise<void>

/**
 * How long the replacing waits for writers: longer than PostgreSQL takes to end an automatic vacuum in favour
 * of another lock, a second. Later writers queue behind it.
 */
const writersMs = 2_000

/**
 * How long it waits for readers, who queue behind it. A reader whose transaction wants to write would wait
 * for it, and it for the reader; it gives up before PostgreSQL looks for such a deadlock, after a second.
 */
const readersMs = 250

/** How often the replacing is tried, and the pause in which others are served, seconds. */
const [replaceTries, replacePause] = [8, 0.25]

/**
 * Rewrites the table, which canBeReplaced. `untilUnseen` waits until no snapshot is left that is older than a
 * transaction. Throws {@link NotCopied} where the copy is not equal, and `overloaded` where others use the
 * table all the time; the table is then as it was.
 */
export async function rewriteByCopy(
  connection: Control,
  table: string,
  untilUnseen: (xid: string) => Promise<void>,
  at: AtStep,
): Promise<void> {
  try {
    const copy = await transactOnce(connection, (trx) => fillCopy(trx, table, at))
    await at('copied')
    await untilUnseen(copy.xid)
    await replaceWhenFree(connection, copy, at)
  } catch (error) {
    // Where this fails, as without a connection, the next flush removes the copy.
    await dropCopy(connection, table).catch(() => {})
    throw error
  }
}

/** Removes a copy that a rewriting left which did not end. */
export function dropCopy(connection: Control, table: string): Promise<unknown> {
  return sql`drop table if exists ${sql.table(copyNameOf(table))}`.execute(connection)
}

interface Copy {
  readonly table: string
  readonly name: string
  readonly rows: bigint
  readonly indexes: readonly string[]
  /** The columns of the primary key. */
  readonly key: readonly string[]
  /** The transaction that filled it. */
  readonly xid: string
  /** Rows that it does not have were written by this transaction or a later one. */
  readonly oldestXid: string
}

async function fillCopy(trx: ControlTransaction, table: string, at: AtStep): Promise<Copy> {
  const name = copyNameOf(table)
  const { rows: moments } = await sql<{ oldest: string; xid: string }>`
    select pg_snapshot_xmin(pg_current_snapshot())::xid::text as oldest, pg_current_xact_id()::text as xid`.execute(
    trx,
  )
  const [moment] = moments
  if (moment === undefined) throw new Error('The control plane gives no number of a transaction.')
  // An automatic vacuum of the copy would be in the way of renaming it.
  await sql`create table ${sql.table(name)}
    (like ${sql.table(table)} including all excluding indexes excluding statistics)
    with (autovacuum_enabled = false, toast.autovacuum_enabled = false)`.execute(trx)
  await copyGrants(trx, table, name)
  await copyStatisticsTargets(trx, table, name)
  assertEqual(await describeColumns(trx, table), await describeColumns(trx, name))
  const inserted = await sql`insert into ${sql.table(name)} select * from ${sql.table(table)}`.execute(trx)
  const { indexes, key } = await createIndexes(trx, table, name)
  await sql`analyze ${sql.table(name)}`.execute(trx)
  await at('filled')
  const rows = inserted.numAffectedRows ?? 0n
  return { table, name, rows, indexes, key, xid: moment.xid, oldestXid: moment.oldest }
}

async function copyGrants(trx: ControlTransaction, table: string, name: string): Promise<void> {
  const { rows } = await sql<{ right: string; role: string | null; may_grant: number }>`
    select acl.privilege_type as right, acl.is_grantable as may_grant,
      (select rolname from pg_roles where oid = acl.grantee)::text as role
    from pg_class cls, aclexplode(cls.relacl) acl where cls.oid = ${table}::text::regclass`.execute(trx)
  for (const { right, role, may_grant } of rows) {
    const to = role === null ? sql`public` : sql.id(role)
    const option = may_grant === 1 ? sql` with grant option` : sql``
    await sql`grant ${sql.raw(right)} on ${sql.table(name)} to ${to}${option}`.execute(trx)
  }
}

async function copyStatisticsTargets(trx: ControlTransaction, table: string, name: string): Promise<void> {
  const { rows } = await sql<{ column: string; target: number }>`
    select attname as column, attstattarget as target from pg_attribute
    where attrelid = ${table}::text::regclass and attnum > 0 and not attisdropped
      and coalesce(attstattarget, -1) <> -1`.execute(trx)
  if (rows.length === 0) return
  const changes = rows.map(
    ({ column, target }) => sql`alter column ${sql.ref(column)} set statistics ${sql.lit(target)}`,
  )
  await sql`alter table ${sql.table(name)} ${sql.join(changes)}`.execute(trx)
}

interface Index {
  readonly name: string
  readonly definition: string
  /** The kind of the constraint that it belongs to. */
  readonly constraint: string | null
  /** Columns of the primary key, with commas; null for other indexes. */
  readonly key: string | null
}

/** Creates the indexes of the table on the copy, under names of their own, since names are in use. */
async function createIndexes(
  trx: ControlTransaction,
  table: string,
  name: string,
): Promise<Pick<Copy, 'indexes' | 'key'>> {
  const { rows } = await sql<Index>`
    select file.relname as name, pg_get_indexdef(file.oid) as definition,
      (select case contype when 'p' then 'primary key' when 'u' then 'unique' end from pg_constraint
        where conindid = file.oid and conrelid = own.indrelid) as constraint,
      case when own.indisprimary then (
        select string_agg(att.attname, ',' order by att.attnum) from pg_attribute att where att.attrelid = file.oid
      ) end as key
    from pg_index own join pg_class file on file.oid = own.indexrelid
    where own.indrelid = ${table}::text::regclass order by file.oid`.execute(trx)
  for (const { name: index, definition, constraint } of rows) {
    const how = definition.slice(definition.indexOf(' USING '))
    const unique = definition.startsWith('CREATE UNIQUE') ? sql`unique ` : sql``
    const own = sql.id(copyNameOf(index))
    await sql`create ${unique}index ${own} on ${sql.table(name)}${sql.raw(how)}`.execute(trx)
    if (constraint === null) continue
    await sql`alter table ${sql.table(name)} add constraint ${own} ${sql.raw(constraint)} using index ${own}`.execute(
      trx,
    )
  }
  const key = rows.find((index) => index.key !== null)?.key
  if (key === undefined || key === null) throw new NotCopied(`The table ${table} has no primary key.`)
  return { indexes: rows.map(({ name: index }) => index), key: key.split(',') }
}

/** Replaces the table by its copy, as soon as nobody keeps a lock on it for long. */
async function replaceWhenFree(connection: Control, copy: Copy, at: AtStep): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await transactOnce(connection, (trx) => replace(trx, copy, at))
      return
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'overloaded') || tries === replaceTries) throw error
    }
    await sql`select pg_sleep(${replacePause})`.execute(connection)
  }
}

async function replace(trx: ControlTransaction, copy: Copy, at: AtStep): Promise<void> {
  const [table, name] = [sql.table(copy.table), sql.table(copy.name)]
  await sql.raw(`set local lock_timeout = ${writersMs}`).execute(trx)
  await sql`lock table ${table} in share row exclusive mode`.execute(trx)
  await applyChanges(trx, copy)
  const before = await describeTable(trx, copy.table)
  const { rows: triggers } = await sql<{ definition: string }>`
    select pg_get_triggerdef(oid) as definition from pg_trigger
    where tgrelid = ${copy.table}::text::regclass and not tgisinternal order by oid`.execute(trx)
  await at('writers wait')
  await sql.raw(`set local lock_timeout = ${readersMs}`).execute(trx)
  await sql`lock table ${table} in access exclusive mode`.execute(trx)
  await sql`drop table ${table}`.execute(trx)
  await sql`alter table ${name} rename to ${sql.id(copy.table)}`.execute(trx)
  await sql`alter table ${table} reset (autovacuum_enabled, toast.autovacuum_enabled)`.execute(trx)
  for (const index of copy.indexes) {
    await sql`alter index ${sql.id(copyNameOf(index))} rename to ${sql.id(index)}`.execute(trx)
  }
  for (const { definition } of triggers) await sql.raw(definition).execute(trx)
  assertEqual(before, await describeTable(trx, copy.table))
  await at('replaced')
}

/**
 * Brings the copy up to date with the table, which nobody writes. Rows are compared by the transaction that
 * wrote them, and deleted ones are looked for only where the number of rows differs. A row that was frozen
 * long ago may look new, and is copied once more.
 */
async function applyChanges(trx: ControlTransaction, copy: Copy): Promise<void> {
  const [table, name] = [sql.table(copy.table), sql.table(copy.name)]
  const isLater = sql`age(present.xmin) <= age(${copy.oldestXid}::text::xid)`
  const hasSameKey = sql.join(
    copy.key.map((column) => sql`${sql.ref(`copied.${column}`)} = ${sql.ref(`present.${column}`)}`),
    sql` and `,
  )
  const { rows: counted } = await sql<{ all: number; later: number }>`
    select count(*) as all, count(*) filter (where ${isLater}) as later from ${table} present`.execute(trx)
  const [present] = counted
  if (present === undefined) throw new Error('The control plane does not count rows.')
  let rows = copy.rows
  if (present.later > 0) {
    const replaced = await sql`
      delete from ${name} copied using ${table} present where ${hasSameKey} and ${isLater}`.execute(trx)
    const inserted = await sql`
      insert into ${name} select * from ${table} present where ${isLater}`.execute(trx)
    rows += (inserted.numAffectedRows ?? 0n) - (replaced.numAffectedRows ?? 0n)
  }
  if (rows !== BigInt(present.all)) {
    const deleted = await sql`
      delete from ${name} copied where not exists (select from ${table} present where ${hasSameKey})`.execute(
      trx,
    )
    rows -= deleted.numAffectedRows ?? 0n
  }
  if (rows !== BigInt(present.all)) {
    throw new Error(`The copy of ${copy.table} has ${rows} rows and the table ${present.all}.`)
  }
}

function assertEqual(expected: readonly string[], found: readonly string[]): void {
  const differing = [...new Set(expected).symmetricDifference(new Set(found))]
  if (differing.length > 0) throw new NotCopied(`A copy would differ from its table: ${differing.join(' ')}`)
}
