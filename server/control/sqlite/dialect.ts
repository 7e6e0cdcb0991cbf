// Implements control/dialect.ts for SQLite. There is one writer at a time: a transaction begins by taking the
// write lock of the whole file, and waits where another process has it.

import { setImmediate as nextRound } from 'node:timers/promises'
import {
  type DatabaseConnection,
  SqliteAdapter,
  SqliteDialect,
  type SqliteDialectConfig,
  SqliteDriver,
  sql,
} from 'kysely'
import { elapsedMs } from '../../core/clock.ts'
import { Pace } from '../../core/turns/pace.ts'
import type { Control } from '../database.ts'
import type { ControlAdapter, ControlDialect } from '../dialect.ts'
import { ErasedBytesKept } from '../erased-flush.ts'
import { Failover } from '../failover.ts'
import type { ControlFigures } from '../figures.ts'
import type { SqliteTurns } from './connection-turns.ts'
import { copyInThread } from './copy-in-thread.ts'
import type { LostRows } from './lost-rows.ts'
import { jsonFieldText, sqliteSchema } from './schema.ts'
import { busyTimeoutMs, removeCopies, rewriteTable, type Slicing, usualBulkRows } from './table-rewrite.ts'

/** Begins a transaction that only reads. */
export const beginSnapshot = 'begin deferred'

const dialect: ControlDialect = {
  // Nothing is left to lock: a transaction has the whole file from its beginning
  // (`begin immediate`, see sqlite.ts).
  async lock() {},
  async lockAll() {},

  // A transaction never blocks another one that has begun.
  isPreempted: () => false,

  snapshot(control, read) {
    return control.connection().execute(async (connection) => {
      await sql`${sql.raw(beginSnapshot)}`.execute(connection)
      try {
        return await read(connection)
      } finally {
        await sql`commit`.execute(connection)
      }
    })
  },

  isClean: (control, tables, tenantId) => handleOf(control).lostRows.isClean(tables, tenantId),

  flushErased: (control, tables, tenantIds = null) => flushInSlices(control, tables, tenantIds),

  notReached: [],

  async rewrite(control) {
    await sql`vacuum`.execute(control)
    await flushInSlices(control, [])
  },

  async copyTo(control, path) {
    const { rows } = await sql<{ file: string }>`
      select file from pragma_database_list() where name = 'main'`.execute(control)
    const [main] = rows
    if (main === undefined || main.file === '')
      throw new Error('A control plane in memory can not be copied.')
    await copyInThread({ from: main.file, to: path, busyTimeoutMs })
  },

  async sizeBytes(control) {
    const { rows } = await sql<{ bytes: number }>`
      select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()`.execute(control)
    const [row] = rows
    if (row === undefined) throw new Error('The control plane does not say how large it is.')
    return row.bytes
  },

  // The plus makes an expression of the column, and an index is of columns.
  unindexed: (column) => sql`+${sql.ref(column)}`,

  // As text and not as a parameter: the engine compares it with the expression of the index.
  jsonField: (column, field) => sql<string | null>`${sql.raw(jsonFieldText(column, field))}`,

  schema: sqliteSchema,
}

/**
 * A small table is rewritten within a few slices. With those of a millisecond it takes ten rounds of the
 * loop, and each is long while others have much to do.
 */
const sliceMs = 8

/**
 * Rewrites those of the tables of which one of the organisations has lost something since they were
 * rewritten. What that frees is overwritten (`secure_delete`), so erased bytes wait in the write-ahead log
 * alone, which is emptied then. Another flush of the handle must not run meanwhile.
 */
export async function flushInSlices(
  control: Control,
  tables: readonly string[],
  tenantIds: ReadonlySet<string> | null = null,
  slicing: Slicing = { pace: new Pace(nextRound, elapsedMs, sliceMs), bulkRows: usualBulkRows },
): Promise<void> {
  const { lostRows, writingSchema } = handleOf(control)
  await removeCopies(control, slicing)
  await lostRows.watch(control, tables)
  for (const table of tables) {
    if (!lostRows.hasLost(table, tenantIds)) continue
    try {
      const onBegun = () => lostRows.begin(table)
      await rewriteTable(control, table, { ...slicing, writingSchema, onBegun })
    } catch (error) {
      lostRows.failed(table)
      throw error
    }
  }
  await emptyLog(control)
  lostRows.ended()
}

/** Waiting for another reader would stop the whole process, so nobody waits. */
async function emptyLog(control: Control): Promise<void> {
  const busy = await control.connection().execute(async (connection) => {
    await sql`pragma busy_timeout = 0`.execute(connection)
    try {
      const { rows } = await sql<{ busy: number }>`pragma wal_checkpoint(truncate)`.execute(connection)
      return rows[0]?.busy
    } finally {
      await sql`pragma busy_timeout = ${sql.raw(String(busyTimeoutMs))}`.execute(connection)
    }
  })
  if (busy !== 0) {
    throw new ErasedBytesKept(
      'The write-ahead log of the control plane could not be emptied: another program reads it',
    )
  }
}

function handleOf(control: Control): SqliteHandle {
  const { adapter } = control.getExecutor()
  if (!(adapter instanceof SqliteControlAdapter)) throw new Error('This is no control plane on SQLite.')
  return adapter.handle
}

class SqliteControlAdapter extends SqliteAdapter implements ControlAdapter {
  readonly controlDialect = dialect
  readonly figures: ControlFigures
  readonly failover = new Failover()
  readonly outsideWrites: () => number
  readonly handle: SqliteHandle

  constructor(handle: SqliteHandle) {
    super()
    this.figures = handle.figures
    this.outsideWrites = handle.outsideWrites
    this.handle = handle
  }

  /** SQLite can; Kysely runs migrations without a transaction where this is not said. */
  override get supportsTransactionalDdl(): boolean {
    return true
  }

  /** Kysely's own queue for a single connection is in order of arrival; {@link FairDriver} has another. */
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

/** Lends the only connection to one user at a time. */
class FairDriver extends SqliteDriver {
  readonly #turns: SqliteTurns

  constructor(config: SqliteDialectConfig, turns: SqliteTurns) {
    super(config)
    this.#turns = turns
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    await this.#turns.begin()
    return super.acquireConnection()
  }

  override async releaseConnection(): Promise<void> {
    this.#turns.end()
  }
}

/** What belongs to an open file and not to SQLite in general. */
interface SqliteHandle {
  readonly figures: ControlFigures
  readonly outsideWrites: () => number
  readonly lostRows: LostRows
  readonly turns: SqliteTurns
  /** Runs `work`, a part of a transaction, while statements may write to `sqlite_schema`. */
  readonly writingSchema: <T>(work: () => Promise<T>) => Promise<T>
}

/** Kysely's dialect of SQLite, with ours in its adapter. */
export class SqliteControlDialect extends SqliteDialect {
  readonly #config: SqliteDialectConfig
  readonly #handle: SqliteHandle

  constructor(config: SqliteDialectConfig, handle: SqliteHandle) {
    super(config)
    this.#config = config
    this.#handle = handle
  }

  override createDriver(): FairDriver {
    return new FairDriver(this.#config, this.#handle.turns)
  }

  override createAdapter(): SqliteControlAdapter {
    return new SqliteControlAdapter(this.#handle)
  }
}
