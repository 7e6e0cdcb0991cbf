// Rewrites a table of SQLite while others use it, so that no page has bytes of removed rows. `secure_delete`
// is not enough: when SQLite balances the pages of a b-tree, it moves rows and leaves their old bytes in the
// unallocated space of the page, where removing the rows does not reach them. Only new pages are certain.
//
// 1. A copy of the table and its indexes is filled in short transactions. Triggers apply to it what others
//    change in the part that is copied.
// 2. A transaction copies the rest, removes the triggers and exchanges the root pages of table and copy in
//    the schema. Names, triggers and references of the table stay as they are.
// 3. The copy, which has the old pages, is emptied in short transactions and dropped. Freed pages are
//    overwritten.
//
// No row that was removed before step 1 is ever in the new pages. What is removed later may be; the flush of
// its erasure rewrites the table again. A copy that a crash left is removed by the next flush.

import { randomBytes } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import { AppError } from '../../core/app-error.ts'
import { systemClock } from '../../core/clock.ts'
import type { Pace } from '../../core/turns/pace.ts'
import type { Control, ControlTransaction } from '../database.ts'
import { copyNameOf } from '../derived-tables.ts'
import { ErasedBytesKept } from '../erased-flush.ts'
import { transactOnce } from '../transaction.ts'
import { type CopiedTable, copiedTableOf, triggersOf } from './copied-table.ts'

/** How long a statement waits for another process, such as the command line, to end its transaction. */
export const busyTimeoutMs = 5000

/**
 * Up to this number of rows an index is created, and dropped, as a whole, which takes some 150 ms at most.
 * With more rows each row is added to it and removed from it: six times the work, but in slices.
 */
export const usualBulkRows = 60_000

/** Rows of a statement, some milliseconds. A slice ends after it where its time is over. */
const rowsAtOnce = 200

/** How often a slice is tried while another process writes, and the pause, milliseconds. */
const [busyTries, busyPauseMs] = [200, 10]

export interface Slicing {
  /** When others are served. */
  readonly pace: Pace
  readonly bulkRows: number
}

/** What the rewriting needs of an open file. */
interface Rewriting extends Slicing {
  /** Runs `work` while this connection may write to the schema. */
  readonly writingSchema: <T>(work: () => Promise<T>) => Promise<T>
  /** Called in the transaction that begins the copy. */
  readonly onBegun: (table: string) => void
}

/** Steps of a rewriting. Between two of them the transaction may be another one, which is passed in. */
type Steps = AsyncGenerator<undefined, void, ControlTransaction>

/** Rewrites the table. Throws where another process changes the table's schema or rewrites it meanwhile. */
export function rewriteTable(control: Control, table: string, rewriting: Rewriting): Promise<void> {
  return inSlices(control, rewriting, stepsOfRewriting(table, rewriting))
}

/** Removes copies that a rewriting left which did not end. */
export async function removeCopies(control: Control, slicing: Slicing): Promise<void> {
  for (const name of await copiesIn(control)) await inSlices(control, slicing, stepsOfRemoving(name, slicing))
}

/** {@link removeCopies} at once, in the transaction of the caller. */
export async function dropCopies(trx: Pick<Control, 'getExecutor'>): Promise<void> {
  for (const name of await copiesIn(trx)) {
    await dropTriggers(trx, name)
    await sql`drop table ${sql.table(name)}`.execute(trx)
  }
}

async function copiesIn(db: Pick<Control, 'getExecutor'>): Promise<string[]> {
  const prefix = copyNameOf('')
  const { rows } = await sql<{ name: string }>`
    select name from sqlite_schema where type = 'table' and substr(name, 1, ${prefix.length}) = ${prefix}
    order by name`.execute(db)
  return rows.map(({ name }) => name)
}

async function* stepsOfRewriting(name: string, rewriting: Rewriting): Steps {
  const { bulkRows, onBegun, writingSchema } = rewriting
  let trx = yield
  // A name of its own, because another process may remove a copy and make one while this one goes on.
  const table = await copiedTableOf(trx, name, `${copyNameOf(name)}_${randomBytes(8).toString('hex')}`)
  for (const statement of [table.createCopy, ...table.createTriggers]) await sql.raw(statement).execute(trx)
  onBegun(name)
  const isLarge = await hasMoreThan(trx, name, bulkRows)
  const createIndexes = async function* (): Steps {
    for (const index of table.indexes) {
      trx = yield
      if (!(await isThere(trx, table.copyName))) throw interrupted(name)
      await sql.raw(index.createCopy).execute(trx)
    }
  }
  if (isLarge) yield* createIndexes()
  do trx = yield
  while ((await copyRows(trx, table)) === rowsAtOnce)
  if (!isLarge) yield* createIndexes()
  trx = yield
  await takePlace(trx, table, writingSchema)
  yield* stepsOfRemoving(table.copyName, rewriting)
}

/** Copies the next rows in their order, and so onto new pages at the end. Returns how many there were. */
async function copyRows(trx: ControlTransaction, { columns, copyName, name }: CopiedTable): Promise<number> {
  if (!(await isThere(trx, copyName))) throw interrupted(name)
  const { rows } = await sql<{ last: number | null }>`
    select max(rowid) as last from ${sql.table(copyName)}`.execute(trx)
  const last = rows[0]?.last ?? null
  const isNext = last === null ? sql`` : sql`where rowid > ${sql.lit(last)}`
  const copied = sql.join([sql`rowid`, ...columns.map((column) => sql.ref(column))])
  const { numAffectedRows } = await sql`
    insert into ${sql.table(copyName)} (${copied})
    select ${copied} from ${sql.table(name)} ${isNext} order by rowid limit ${sql.lit(rowsAtOnce)}`.execute(
    trx,
  )
  return Number(numAffectedRows ?? 0n)
}

async function takePlace(
  trx: ControlTransaction,
  table: CopiedTable,
  writingSchema: Rewriting['writingSchema'],
): Promise<void> {
  while ((await copyRows(trx, table)) === rowsAtOnce);
  await assertComplete(trx, table)
  await assertAllCopied(trx, table)
  await dropTriggers(trx, table.copyName)
  const exchanged = [table, ...table.indexes]
  const roots = await rootPages(trx)
  const rootOf = (name: string): number => {
    const root = roots.get(name)
    if (root === undefined) throw interrupted(table.name)
    return root
  }
  const { rows } = await sql<{ schema_version: number }>`pragma schema_version`.execute(trx)
  const [version] = rows
  if (version === undefined) throw new Error('The control plane has no version of its schema.')
  await writingSchema(async () => {
    for (const { copyName, name } of exchanged) {
      await setRootPage(trx, name, rootOf(copyName))
      await setRootPage(trx, copyName, rootOf(name))
    }
    // All connections, and this one, read the schema again.
    await sql`pragma schema_version = ${sql.raw(String(version.schema_version + 1))}`.execute(trx)
  })
}

/**
 * Another process that rewrites the table removes or exchanges this copy, and one that migrates changes the
 * table: then the copy must not take its place.
 */
async function assertComplete(trx: ControlTransaction, table: CopiedTable): Promise<void> {
  const present = await copiedTableOf(trx, table.name, table.copyName)
  const { rows } = await sql<{ name: string }>`
    select name from sqlite_schema where type = 'trigger' and tbl_name = ${table.name}`.execute(trx)
  const triggers = new Set(rows.map(({ name }) => name))
  const hasAll = triggersOf(table.copyName).every((name) => triggers.has(name))
  if (!hasAll || JSON.stringify(present) !== JSON.stringify(table)) throw interrupted(table.name)
}

/** Fails closed: the pages of a copy that lacks a row must not become those of the table. */
async function assertAllCopied(trx: ControlTransaction, { copyName, name }: CopiedTable): Promise<void> {
  const { rows } = await sql<{ rows: number; copied: number }>`
    select (select count(*) from ${sql.table(name)}) as rows,
      (select count(*) from ${sql.table(copyName)}) as copied`.execute(trx)
  const [count] = rows
  if (count === undefined || count.rows !== count.copied) {
    throw new Error(`The copy of ${name} has ${count?.copied} rows and not ${count?.rows}.`)
  }
}

async function rootPages(trx: ControlTransaction): Promise<Map<string, number>> {
  const { rows } = await sql<{ name: string; rootpage: number }>`
    select name, rootpage from sqlite_schema where type in ('table', 'index')`.execute(trx)
  return new Map(rows.map(({ name, rootpage }) => [name, rootpage]))
}

async function setRootPage(trx: ControlTransaction, name: string, page: number): Promise<void> {
  const { numAffectedRows } = await sql`
    update sqlite_schema set rootpage = ${page} where name = ${name} and type in ('table', 'index')`.execute(
    trx,
  )
  if (numAffectedRows !== 1n) throw new Error(`The schema of the control plane has not one ${name}.`)
}

function interrupted(table: string): ErasedBytesKept {
  return new ErasedBytesKept(`Another process changed or rewrote the table ${table} of the control plane`)
}

async function* stepsOfRemoving(name: string, { bulkRows }: Slicing): Steps {
  let trx = yield
  if (!(await isThere(trx, name))) return
  await dropTriggers(trx, name)
  const isLarge = await hasMoreThan(trx, name, bulkRows)
  if (!isLarge) {
    const { rows } = await sql<{ name: string }>`
      select name from sqlite_schema where type = 'index' and tbl_name = ${name}`.execute(trx)
    for (const index of rows) {
      trx = yield
      await sql`drop index if exists ${sql.table(index.name)}`.execute(trx)
    }
  }
  const table = sql.table(name)
  for (let removed = 1n; removed > 0n; ) {
    trx = yield
    if (!(await isThere(trx, name))) return
    const { numAffectedRows } = await sql`
      delete from ${table} where rowid <= (
        select max(rowid) from (select rowid from ${table} order by rowid limit ${sql.lit(rowsAtOnce)}))`.execute(
      trx,
    )
    removed = numAffectedRows ?? 0n
  }
  await sql`drop table ${table}`.execute(trx)
}

/** Another process that rewrites a table removes the copies of others first. */
async function isThere(trx: ControlTransaction, copyName: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from sqlite_schema where type = 'table' and name = ${copyName}`.execute(trx)
  return rows.length > 0
}

async function dropTriggers(db: Pick<Control, 'getExecutor'>, copyName: string): Promise<void> {
  for (const trigger of triggersOf(copyName)) {
    await sql`drop trigger if exists ${sql.table(trigger)}`.execute(db)
  }
}

async function hasMoreThan(trx: ControlTransaction, name: string, count: number): Promise<boolean> {
  const more: RawBuilder<unknown> = sql`select 1 from ${sql.table(name)} limit 1 offset ${sql.lit(count)}`
  return (await more.execute(trx)).rows.length > 0
}

/** Runs the steps, as many in a transaction as its time allows. Others are served between transactions. */
async function inSlices(control: Control, { pace }: Slicing, steps: Steps): Promise<void> {
  await steps.next()
  for (let isDone: boolean | undefined = false; !isDone; ) {
    await pace.turn()
    isDone = await sliceWhenFree(control, async (trx) => {
      for (;;) {
        const { done } = await steps.next(trx)
        if (done || pace.isOver()) return done
      }
    })
  }
}

/**
 * Runs a transaction. Another process that writes is waited for in pauses, and not in SQLite, which would
 * stop the whole process.
 */
async function sliceWhenFree<T>(control: Control, work: (trx: ControlTransaction) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    let hasBegun = false
    try {
      return await slice(control, (trx) => {
        hasBegun = true
        return work(trx)
      })
    } catch (error) {
      if (hasBegun || !(error instanceof AppError && error.code === 'overloaded')) throw error
      if (tries === busyTries) {
        throw new ErasedBytesKept('Another process writes to the control plane all the time', {
          cause: error,
        })
      }
    }
    await systemClock.sleep(busyPauseMs)
  }
}

/**
 * The transaction is not synced, because only the end of the flush is a promise; a later commit that is
 * synced syncs the log as a whole. It does not wait for another process.
 */
function slice<T>(control: Control, work: (trx: ControlTransaction) => Promise<T>): Promise<T> {
  return control.connection().execute(async (connection) => {
    const set = (pragma: string) => sql.raw(`pragma ${pragma}`).execute(connection)
    await set('busy_timeout = 0')
    await set('synchronous = normal')
    try {
      return await transactOnce(connection, work)
    } finally {
      await set('synchronous = full')
      await set(`busy_timeout = ${busyTimeoutMs}`)
    }
  })
}
