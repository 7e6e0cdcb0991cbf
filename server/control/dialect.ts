// What the control plane asks of its database beyond statements that every database takes as Kysely writes
// them: to lock what two transactions may not decide at once, to read one moment, to make erased bytes
// leave the disk, to copy itself. Each database answers in a folder of its own; stores speak Kysely and
// this port, and no SQL of one database. Upserts need no word here: Kysely's `onConflict` is the same
// statement in SQLite and PostgreSQL.

import type { DialectAdapter, Kysely, RawBuilder } from 'kysely'
import type { Control, ControlTransaction } from './database.ts'

/**
 * What a transaction locks before it reads what it decides by. Who needs several locks takes them in the
 * order in which they stand here, and those of organisations in the order of tenant_id.
 */
type ControlLock =
  /** Which key signs. */
  | 'signing_keys'
  /**
   * Everything of one organisation: the heads of its chains, and every count of its rows that has a limit.
   */
  | { readonly tenantId: string }
  /** The placement of the next organisation. */
  | 'placements'
  /** The next number of a deletion request, of all organisations. */
  | 'deletion_order'

export interface ControlDialect {
  /**
   * Waits until no other transaction has the lock, and has it until this one ends: what is read after
   * it is not changed by anyone else who takes it. An organisation need not exist. To be awaited before
   * the reads that it protects.
   */
  lock(trx: ControlTransaction, what: ControlLock): Promise<void>
  /** Runs `read` on one moment of the database, without waiting for writers and without holding them up. */
  snapshot<T>(control: Control, read: (snapshot: Control) => Promise<T>): Promise<T>
  /**
   * Makes what was deleted or overwritten leave the disk. Resolved means that no file of the database holds
   * it; throws where another reader holds that up, and doesn't wait for it.
   */
  flushErased(control: Control): Promise<void>
  /**
   * Writes the whole database anew, so that nothing is left of what an older version
   * deleted without erasing it.
   */
  rewrite(control: Control): Promise<void>
  /** Writes a copy of one moment to the file `path`, which may not exist. What was deleted is not in it. */
  copyTo(control: Control, path: string): Promise<void>
  /** What a copy takes at most, bytes. */
  sizeBytes(control: Control): Promise<number>
  /** The column, in a condition that is to use no index on it. */
  unindexed(column: string): RawBuilder<unknown>
  readonly schema: SchemaDialect
}

/** What migrations need that each database says in its own way. */
export interface SchemaDialect {
  /** From now on the database itself refuses to change or remove a row of the table. */
  makeAppendOnly(db: Kysely<unknown>, table: string): Promise<void>
  /** From now on the database itself refuses to remove an anomaly about time that a legal hold keeps. */
  keepHeldAnomalies(db: Kysely<unknown>): Promise<void>
  /**
   * Fills an integer column of a table with a number by row, in the order in which the rows were inserted.
   */
  numberAsInserted(db: Kysely<unknown>, table: string, column: string): Promise<void>
}

/**
 * Kysely's adapter of a control plane, which brings the dialect along to wherever a
 * handle or a transaction goes.
 */
export interface ControlAdapter extends DialectAdapter {
  readonly controlDialect: ControlDialect
}

/** {@link ControlDialect.lock} in the transaction's own database. */
export function lock(trx: ControlTransaction, what: ControlLock): Promise<void> {
  return dialectOf(trx).lock(trx, what)
}

/** The dialect of the database that a handle or a transaction is of. */
export function dialectOf(db: Pick<Control, 'getExecutor'>): ControlDialect {
  const { adapter } = db.getExecutor()
  if (!isControlAdapter(adapter)) throw new Error('This database was not opened as a control plane.')
  return adapter.controlDialect
}

function isControlAdapter(adapter: DialectAdapter): adapter is ControlAdapter {
  return 'controlDialect' in adapter
}
