// What the control plane needs of its database beyond statements that Kysely writes for every database: locks
// between transactions, a consistent snapshot, removing erased bytes from the disk, copying the database.
// Each database implements this in its own folder; stores use Kysely and this port, and no SQL of one
// database. Upserts are not part of it: Kysely's `onConflict` is the same statement in SQLite and PostgreSQL.

import type { DialectAdapter, Kysely, RawBuilder } from 'kysely'
import type { Control, ControlTransaction } from './database.ts'
import type { Failover } from './failover.ts'
import type { ControlFigures } from './figures.ts'

/**
 * What a transaction locks before it reads what its decision depends on. A transaction with several locks
 * takes them in the order of this list, and those of organisations in the order of tenant_id.
 */
type ControlLock =
  /** Which key signs. */
  | 'signing_keys'
  /** Everything of every organisation, for a transaction that writes to each of them. */
  | 'organisations'
  /**
   * Everything of one organisation: the heads of its chains, and every count of its rows that has a limit.
   */
  | { readonly tenantId: string }
  /** The placement of the next organisation. */
  | 'placements'
  /** The next number of a deletion request, of all organisations. */
  | 'deletion_order'
  /** Which backups exist, and which erasures are completed: each is recorded beside the other. */
  | 'backups'

export interface ControlDialect {
  /**
   * Waits until no other transaction has the lock, and keeps it until this one ends: no other transaction
   * with the lock changes what is read after it. An organisation need not exist. Await it before the reads
   * that it protects.
   */
  lock(trx: ControlTransaction, what: ControlLock): Promise<void>
  /**
   * Keeps every other transaction from writing until this one ends, which may then take as long as it needs.
   * Waits for those that write. Others read meanwhile.
   */
  lockAll(trx: ControlTransaction): Promise<void>
  /**
   * Whether an error says that the database has ended a transaction in favour of another one: nothing of it
   * is stored, and running it again is right.
   */
  isPreempted(error: unknown): boolean
  /**
   * Runs `read` on a consistent snapshot of the database, without waiting for writers and without blocking
   * them.
   */
  snapshot<T>(control: Control, read: (snapshot: Control) => Promise<T>): Promise<T>
  /**
   * Returns whether no file of the database has what was deleted from these tables, or overwritten in them,
   * of this organisation. False where the database does not know it.
   */
  isClean(control: Control, tables: readonly string[], tenantId: string): boolean
  /**
   * Removes from the disk what was deleted from these tables or overwritten in them. After it resolves, no
   * file of the database has it, except for {@link notReached}. Throws ErasedBytesKept where another use
   * of the database prevents that, or a right that its role lacks; waits for others for seconds at most.
   *
   * @param tenantIds of whom; null, or nothing, for all. More than that may be removed.
   */
  flushErased(
    control: Control,
    tables: readonly string[],
    tenantIds?: ReadonlySet<string> | null,
  ): Promise<void>
  /** Where the database may still have erased bytes after a flush: sentences of a certificate. */
  readonly notReached: readonly string[]
  /**
   * Rewrites the whole database, so that nothing is left of rows that an older version deleted without
   * erasing their bytes.
   */
  rewrite(control: Control): Promise<void>
  /**
   * Writes a consistent copy to the file `path`, which must not exist. Deleted rows are not in it. Null where
   * the database is not a file; file-copy.ts then copies its rows.
   */
  readonly copyTo: ((control: Control, path: string) => Promise<void>) | null
  /**
   * What a copy in a file takes, bytes: at most, or an estimate where the database compresses what the file
   * does not.
   */
  sizeBytes(control: Control): Promise<number>
  /** The column, written so that a condition on it uses no index. */
  unindexed(column: string): RawBuilder<unknown>
  /**
   * A text of the JSON object in a column; null where the object does not have it. A condition on it uses the
   * index of {@link SchemaDialect.indexJsonField}. The field is a name of our own.
   */
  jsonField(column: string, field: string): RawBuilder<string | null>
  readonly schema: SchemaDialect
}

/** What migrations need in the SQL of each database. */
export interface SchemaDialect {
  /** Makes the database refuse to change or remove a row of the table. */
  makeAppendOnly(db: Kysely<unknown>, table: string): Promise<void>
  /** Makes the database refuse to remove an anomaly about time that a legal hold covers. */
  keepHeldAnomalies(db: Kysely<unknown>): Promise<void>
  /** Fills an integer column with a number per row, in the order in which the rows were inserted. */
  numberAsInserted(db: Kysely<unknown>, table: string, column: string): Promise<void>
  /**
   * Creates an index of a chain by organisation, one field of its entries, and their order. It is computed
   * from the entry itself, so it cannot disagree with what is hashed.
   */
  indexJsonField(db: Kysely<unknown>, table: string, field: string): Promise<void>
  /** Runs before migrations, and removes what rewriting left that would be in their way. */
  beforeMigrations(trx: ControlTransaction): Promise<void>
  /**
   * Runs after each migration, in its transaction: gives new columns the types that this database needs, so
   * that migrations are written once.
   */
  afterMigration(db: Kysely<unknown>): Promise<void>
}

/**
 * Kysely's adapter of a control plane, which makes what belongs to its handle available to every transaction.
 */
export interface ControlAdapter extends DialectAdapter {
  readonly controlDialect: ControlDialect
  readonly figures: ControlFigures
  readonly failover: Failover
  /** See {@link outsideWritesOf}. */
  readonly outsideWrites: () => number | null
}

/** {@link ControlDialect.lock} in the transaction's own database. */
export function lock(trx: ControlTransaction, what: ControlLock): Promise<void> {
  return dialectOf(trx).lock(trx, what)
}

/** Returns the dialect of the database of a handle or a transaction. */
export function dialectOf(db: Pick<Control, 'getExecutor'>): ControlDialect {
  return adapterOf(db).controlDialect
}

/** Returns what a handle has counted since it was opened. */
export function figuresOf(db: Pick<Control, 'getExecutor'>): ControlFigures {
  return adapterOf(db).figures
}

/** Resolves when another server has taken over the database of a handle; see Failover. */
export function failoverOf(db: Pick<Control, 'getExecutor'>): Promise<void> {
  return adapterOf(db).failover.happened
}

/**
 * Returns a number that is another one once another process may have written to the database of a handle
 * since the last call; null where only reading shows it. Writes of the handle itself don't change it. Sends
 * no statement.
 */
export function outsideWritesOf(db: Pick<Control, 'getExecutor'>): number | null {
  return adapterOf(db).outsideWrites()
}

function adapterOf(db: Pick<Control, 'getExecutor'>): ControlAdapter {
  const { adapter } = db.getExecutor()
  if (!isControlAdapter(adapter)) throw new Error('This database was not opened as a control plane.')
  return adapter
}

function isControlAdapter(adapter: DialectAdapter): adapter is ControlAdapter {
  return 'controlDialect' in adapter
}
