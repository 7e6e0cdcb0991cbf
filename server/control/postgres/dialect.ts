// Implements control/dialect.ts for PostgreSQL. Transactions are READ COMMITTED: a statement sees what others
// have committed before it began. A transaction that decides by what it reads takes a lock first.

import {
  CompiledQuery,
  type Kysely,
  PostgresAdapter,
  PostgresDialect,
  type PostgresDialectConfig,
  sql,
} from 'kysely'
import type { ControlTransaction } from '../database.ts'
import { derivedCopies } from '../derived-tables.ts'
import type { ControlAdapter, ControlDialect } from '../dialect.ts'
import type { Failover } from '../failover.ts'
import type { ControlFigures } from '../figures.ts'
import { flushErased, notReached, rewriteAll } from './erased-rows.ts'
import { lockNumber } from './lock-number.ts'
import { beginUpkeep, endUpkeep } from './pool.ts'
import { isConflict } from './refusals.ts'
import { jsonTextOf, postgresSchema } from './schema.ts'

const dialect: ControlDialect = {
  // A lock on a number and not on a row: an organisation need not exist, and locking a row would write it.
  // It ends with the transaction, after what that wrote can be seen, and is found in pg_locks. Memory for
  // locks is limited, so a transaction about all organisations has one lock, which excludes that of each.
  async lock(trx, what) {
    const taken = locksTaken.get(trx) ?? new Set<string>()
    const isOfOne = typeof what !== 'string'
    const name = isOfOne ? `organisation ${what.tenantId}` : what
    if (taken.has(name) || (isOfOne && taken.has('organisations'))) return
    const own = sql`pg_advisory_xact_lock(${lockNumber(name)}::bigint)`
    const each = sql`pg_advisory_xact_lock_shared(${lockNumber('organisations')}::bigint)`
    await sql`select ${isOfOne ? sql`${each}, ${own}` : own}`.execute(trx)
    locksTaken.set(trx, taken.add(name))
  },

  async lockAll(trx) {
    await sql`set local statement_timeout = 0`.execute(trx)
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(trx)
    // A copy of a table would be gone once the locks are granted; its table is locked.
    const tables = (await trx.introspection.getTables())
      .filter(({ name }) => !derivedCopies.includes(name))
      .map(({ name }) => sql.table(name))
    await sql`lock table ${sql.join(tables)} in exclusive mode`.execute(trx)
  },

  isPreempted: isConflict,

  snapshot(control, read) {
    return control.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(read)
  },

  // A table has pages of all organisations, and other processes change it.
  isClean: () => false,

  flushErased: (control, tables) => flushErased(control, tables),

  notReached,

  rewrite: rewriteAll,

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
const locksTaken = new WeakMap<ControlTransaction, Set<string>>()

const run = (connection: Pick<Kysely<unknown>, 'executeQuery'>, text: string) =>
  connection.executeQuery(CompiledQuery.raw(text))

class PostgresControlAdapter extends PostgresAdapter implements ControlAdapter {
  readonly controlDialect = dialect
  readonly figures: ControlFigures
  readonly failover: Failover
  /** Only the server knows whether another process has written. */
  readonly outsideWrites = () => null

  constructor({ failover, figures }: PostgresHandle) {
    super()
    this.figures = figures
    this.failover = failover
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

/** Properties of a pool of connections, and not of PostgreSQL in general. */
interface PostgresHandle {
  readonly figures: ControlFigures
  readonly failover: Failover
}

/** Kysely's dialect of PostgreSQL, with ours in its adapter. */
export class PostgresControlDialect extends PostgresDialect {
  readonly #handle: PostgresHandle

  constructor(config: PostgresDialectConfig, handle: PostgresHandle) {
    super(config)
    this.#handle = handle
  }

  override createAdapter(): PostgresControlAdapter {
    return new PostgresControlAdapter(this.#handle)
  }
}
