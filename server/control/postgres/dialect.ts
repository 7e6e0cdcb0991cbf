// What the control plane asks of its database (control/dialect.ts), in PostgreSQL. Transactions are READ
// COMMITTED: a statement sees what others have committed before it began. A transaction that decides by what
// it reads takes a lock first.

import { createHash } from 'node:crypto'
import {
  CompiledQuery,
  type Kysely,
  PostgresAdapter,
  PostgresDialect,
  type PostgresDialectConfig,
  sql,
} from 'kysely'
import type { Control, ControlTransaction } from '../database.ts'
import type { ControlAdapter, ControlDialect } from '../dialect.ts'
import type { ControlFigures } from '../figures.ts'
import { beginUpkeep, endUpkeep } from './pool.ts'
import { isConflict } from './refusals.ts'
import { jsonTextOf, postgresSchema } from './schema.ts'

const dialect: ControlDialect = {
  // A lock on a number and not on a row: an organisation need not exist, and locking a row would write it.
  // It ends with the transaction, after what that wrote can be seen, and is found in pg_locks. Memory for
  // locks is limited, so a transaction about all organisations has one lock, which excludes that of each.
  async lock(trx, what) {
    const held = locksHeld.get(trx) ?? new Set<string>()
    const isOfOne = typeof what !== 'string'
    const name = isOfOne ? `organisation ${what.tenantId}` : what
    if (held.has(name) || (isOfOne && held.has('organisations'))) return
    const own = sql`pg_advisory_xact_lock(${lockNumber(name)}::bigint)`
    const each = sql`pg_advisory_xact_lock_shared(${lockNumber('organisations')}::bigint)`
    await sql`select ${isOfOne ? sql`${each}, ${own}` : own}`.execute(trx)
    locksHeld.set(trx, held.add(name))
  },

  async lockAll(trx) {
    await sql`set local statement_timeout = 0`.execute(trx)
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(trx)
    const tables = (await trx.introspection.getTables()).map(({ name }) => sql.table(name))
    await sql`lock table ${sql.join(tables)} in exclusive mode`.execute(trx)
  },

  isPreempted: isConflict,

  snapshot(control, read) {
    return control.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(read)
  },

  flushErased,

  rewrite: flushErased,

  // Its files belong to the server, which may be on another machine.
  copyTo: null,

  async sizeBytes(control) {
    const { rows } = await sql<{ bytes: number }>`
      select pg_database_size(current_database()) as bytes`.execute(control)
    const [row] = rows
    if (row === undefined) throw new Error('The control plane does not say how large it is.')
    return row.bytes
  },

  // An index is of columns, and this is an expression. The planner simplifies others, such as coalesce.
  unindexed: (column) => sql`(${sql.ref(column)} || '')`,

  // As text and not as a parameter: the planner compares it with the expression of the index.
  jsonField: (column, field) => sql<string | null>`${sql.raw(jsonTextOf(column, field))}`,

  schema: postgresSchema,
}

/** Locks that a transaction has, so that none is asked for twice. */
const locksHeld = new WeakMap<ControlTransaction, Set<string>>()

/** 64 bits of a hash: the same number in every process, and two names have two numbers. */
function lockNumber(name: string): string {
  return createHash('sha256').update(`lethe ${name}`).digest().readBigInt64BE().toString()
}

/** How long rewriting a table waits for its readers, and then they for it, milliseconds. */
const rewriteLockMs = 1_000

/**
 * Deleted and overwritten rows stay in the files of their table and its indexes until it is written anew,
 * which needs the table alone for that time. Rewriting keeps rows that an older transaction or snapshot may
 * still read, and reports no error, so each table is checked after it.
 */
async function flushErased(control: Control): Promise<void> {
  await withUpkeep(control, async (connection) => {
    await run(connection, `set lock_timeout = ${rewriteLockMs}`)
    try {
      const xid = await newTransactionId(connection)
      for (const { name } of await control.introspection.getTables()) {
        await sql`vacuum (full, analyze) ${sql.table(name)}`.execute(connection)
        await assertRewritten(connection, name, xid)
      }
      // What the planner knew of values that were there.
      await run(connection, 'vacuum full pg_catalog.pg_statistic')
    } finally {
      await run(connection, 'reset lock_timeout')
    }
  })
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
  for (let tries = 0; tries < endedTries; tries++) {
    const oldest = await sql<{ is_later: number }>`
      select pg_snapshot_xmin(pg_current_snapshot()) > ${begun.xid}::text::xid8 as is_later`.execute(
      connection,
    )
    if (oldest.rows[0]?.is_later === 1) break
    await sql`select pg_sleep(${endedPause})`.execute(connection)
  }
  return begun.xid
}

/**
 * Throws unless the table was written anew without any row that was deleted before the transaction `xid`. The
 * oldest transaction that the rewriting respected is in `relfrozenxid` of the table and of its TOAST table.
 * It is older where another transaction, snapshot or prepared transaction kept rows, and where the role may
 * not rewrite the table, which is only a warning.
 */
async function assertRewritten(connection: Control, table: string, xid: string): Promise<void> {
  const { rows } = await sql<{ is_clean: number | null }>`
    select bool_and(age(file.relfrozenxid) <= age(${xid}::text::xid8::xid)) as is_clean
    from pg_class as owner join pg_class as file on file.oid in (owner.oid, owner.reltoastrelid)
    where owner.oid = ${table}::text::regclass`.execute(connection)
  if (rows[0]?.is_clean !== 1) {
    throw new Error(
      `The table ${table} may still contain erased rows: a transaction or snapshot in PostgreSQL that is older than the erasure keeps them.`,
    )
  }
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

class PostgresControlAdapter extends PostgresAdapter implements ControlAdapter {
  readonly controlDialect = dialect
  readonly figures: ControlFigures
  /** A server is asked, and nothing else tells. */
  readonly outsideWrites = () => null

  constructor(figures: ControlFigures) {
    super()
    this.figures = figures
  }

  /** A start waits for the migration of another process, however long that takes. */
  override async acquireMigrationLock(
    ...[db, options]: Parameters<PostgresAdapter['acquireMigrationLock']>
  ): Promise<void> {
    await run(db, beginUpkeep)
    await super.acquireMigrationLock(db, options)
  }

  override async releaseMigrationLock(
    ...[db, options]: Parameters<PostgresAdapter['releaseMigrationLock']>
  ): Promise<void> {
    await super.releaseMigrationLock(db, options)
    await run(db, endUpkeep)
  }
}

/** Kysely's dialect of PostgreSQL, which brings ours along. */
export class PostgresControlDialect extends PostgresDialect {
  readonly #figures: ControlFigures

  constructor(config: PostgresDialectConfig, figures: ControlFigures) {
    super(config)
    this.#figures = figures
  }

  override createAdapter(): PostgresControlAdapter {
    return new PostgresControlAdapter(this.#figures)
  }
}
