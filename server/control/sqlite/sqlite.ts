// The control plane on SQLite, through Node's own driver. Durable by default (`synchronous = FULL`: a ledger
// entry that was acknowledged survives power loss). Freed pages are overwritten (`secure_delete`); pages in
// use have bytes of removed rows until their table is rewritten (table-rewrite.ts).

import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { Kysely } from 'kysely'
import { AppError, storageRefusal } from '../../core/app-error.ts'
import { storageFaultOf } from '../../core/storage-fault.ts'
import type { Control } from '../database.ts'
import { ControlFigures } from '../figures.ts'
import { SqliteTurns } from './connection-turns.ts'
import { beginSnapshot, SqliteControlDialect } from './dialect.ts'
import { LostRows, noteFunction } from './lost-rows.ts'
import { busyTimeoutMs } from './table-rewrite.ts'

/** Opens or creates the database at `path`; `:memory:` for a private one. */
export function openSqlite(path: string): Control {
  return open(path, ['journal_mode = WAL', 'synchronous = FULL'])
}

/**
 * Creates a file that counts only when it is complete, as in a backup: it is one file, nothing of it is
 * synced, and a crash leaves it broken.
 */
export function createUnsynced(path: string): Control {
  return open(path, ['journal_mode = MEMORY', 'synchronous = OFF'])
}

function open(path: string, durability: readonly string[]): Control {
  const database = new DatabaseSync(path)
  for (const pragma of [
    `busy_timeout = ${busyTimeoutMs}`,
    ...durability,
    'foreign_keys = ON',
    'secure_delete = ON',
    // Without this a row that "insert or replace" removes fires no delete trigger, and the ledger
    // would not be append-only.
    'recursive_triggers = ON',
    'trusted_schema = OFF',
  ]) {
    refusing(() => database.exec(`pragma ${pragma}`))
  }
  const turns = new SqliteTurns()
  const figures = new ControlFigures(() => ({ open: 1, waiting: turns.waiting }))
  const driver = driverOf(database, figures)
  const handle = { figures, turns, ...driver }
  return new Kysely({ dialect: new SqliteControlDialect({ database: driver }, handle) })
}

/** Files beside the database at `path` that belong to it: they would corrupt another in its place. */
export function logsOf(path: string): string[] {
  return ['-wal', '-shm', '-journal'].map((suffix) => `${path}${suffix}`)
}

/** Kysely's dialect expects the interface of better-sqlite3; this is that interface over node:sqlite. */
function driverOf(database: DatabaseSync, figures: ControlFigures) {
  const kept = new Map<string, Prepared>()
  const version = database.prepare('pragma data_version')
  let isSnapshot = false
  let unsure = 0
  // In a snapshot the version is that of its beginning, so that others may have written.
  const outsideWrites = () =>
    isSnapshot && database.isTransaction ? --unsure : refusing(() => Number(version.get()?.data_version))
  const lostRows = new LostRows(outsideWrites)
  database.function(noteFunction, (table, tenantId) => {
    lostRows.note(String(table), String(tenantId))
    return null
  })
  return {
    lostRows,
    outsideWrites,
    async writingSchema<T>(work: () => Promise<T>): Promise<T> {
      database.enableDefensive(false)
      try {
        database.exec('pragma writable_schema = on')
        return await work()
      } finally {
        // It also forgets the schema as it was.
        database.exec('pragma writable_schema = reset')
        database.enableDefensive(true)
      }
    },
    close: () => database.close(),
    prepare(text: string): Prepared {
      if (text.startsWith('begin')) isSnapshot = text === beginSnapshot
      const known = kept.get(text)
      if (known !== undefined) return known
      const prepared = prepare(database, text, figures)
      // What is written would stay in its statement, and so in memory, until the next of its kind.
      if (text.startsWith('select ') && kept.size < keptStatements) kept.set(text, prepared)
      return prepared
    },
  }
}

/** Texts of queries are few, apart from those that list their values. */
const keptStatements = 256

type Prepared = ReturnType<typeof prepare>

function prepare(database: DatabaseSync, text: string, figures: ControlFigures) {
  // A deferred transaction that reads before it writes fails outright when another process wrote in between.
  const statement = database.prepare(text === 'begin' ? 'begin immediate' : text)
  const values = (parameters: ReadonlyArray<unknown>) => parameters as SQLInputValue[]
  const counted = <T>(work: () => T): T => {
    figures.countStatement()
    try {
      return refusing(work)
    } catch (error) {
      figures.countFailure(error)
      throw error
    }
  }
  return {
    reader: statement.columns().length > 0,
    all: (parameters: ReadonlyArray<unknown>) => counted(() => statement.all(...values(parameters))),
    run: (parameters: ReadonlyArray<unknown>) => {
      // A full disk and an I/O error have rolled back already; that there is nothing to
      // roll back would hide them.
      if (text === 'rollback' && !database.isTransaction) return { changes: 0, lastInsertRowid: 0 }
      return counted(() => statement.run(...values(parameters)))
    },
    iterate: (parameters: ReadonlyArray<unknown>) => statement.iterate(...values(parameters)),
  }
}

/**
 * SQLITE_BUSY: the transaction of another process was open for longer than we waited. Nothing was written;
 * trying again is right.
 */
const busyCode = 5

/** Turns what the driver throws because of another process or of the disk into a refusal. */
function refusing<T>(work: () => T): T {
  try {
    return work()
  } catch (cause) {
    const fault = storageFaultOf(cause)
    if (fault !== null) throw storageRefusal(fault, cause)
    const isBusy = cause instanceof Error && 'errcode' in cause && cause.errcode === busyCode
    if (!isBusy) throw cause
    throw new AppError('overloaded', {
      sentence: 'Another process is writing to the control plane; repeat after Retry-After.',
      retryAfterSeconds: 1,
      cause,
    })
  }
}
