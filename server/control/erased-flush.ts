// Removes erased bytes of the control plane from the disk for many callers. Callers that come while a flush
// is running share the next one, because the running one may have passed their rows. An organisation of which
// the disk has nothing waits for none. What was due of a flush that failed stays due: the next one includes
// it, and the next caller begins it.

import { workForAll } from '../core/work-owner.ts'
import type { Control } from './database.ts'
import { dialectOf } from './dialect.ts'

/**
 * Erased bytes are still on the disk, because somebody else's use of the database, or a right that its role
 * lacks, keeps them there. Nothing has failed; the same flush succeeds once that has ended. The message is a
 * sentence for the detail of a request.
 */
export class ErasedBytesKept extends Error {
  override readonly name = 'ErasedBytesKept'
}

/** A file of a control plane that is not used any more is there. Only an operator can end this. */
export class LeftControlPlane extends ErasedBytesKept {}

/** The organisation of which rows were erased; null for all. */
type Owner = string | null

interface FlushedDatabase {
  flush(tables: readonly string[], tenantIds: ReadonlySet<string> | null): Promise<void>
  isClean(tables: readonly string[], tenantId: string): boolean
}

export class ErasedFlush {
  readonly #database: FlushedDatabase
  readonly #dueTables = new Set<string>()
  readonly #dueOwners = new Set<Owner>()
  #running: Promise<void> = Promise.resolve()
  #next: Promise<void> | null = null
  #hasFailed = false

  constructor(database: FlushedDatabase) {
    this.#database = database
  }

  /**
   * Resolves once no file of the database contains what was deleted of the organisation from these tables
   * before the call. Throws {@link ErasedBytesKept} where another use of the database prevents that.
   */
  async flush(tables: readonly string[], owner: Owner): Promise<void> {
    if (owner !== null && this.#database.isClean(tables, owner)) {
      // What is due since a failure may have nobody else who repeats it.
      if (this.#hasFailed) void this.#begin().catch(() => {})
      return
    }
    this.#addDue(tables, [owner])
    return this.#begin()
  }

  /** Returns the flush that begins after the running one. */
  #begin(): Promise<void> {
    this.#next ??= workForAll(() => this.#after(this.#running))
    return this.#next
  }

  #addDue(tables: readonly string[], owners: readonly Owner[]): void {
    for (const table of tables) this.#dueTables.add(table)
    for (const owner of owners) this.#dueOwners.add(owner)
  }

  async #after(running: Promise<void>): Promise<void> {
    await running.catch(() => {})
    this.#next = null
    this.#running = this.#flushDue()
    await this.#running
  }

  async #flushDue(): Promise<void> {
    const [tables, owners] = [[...this.#dueTables], [...this.#dueOwners]]
    this.#dueTables.clear()
    this.#dueOwners.clear()
    const tenantIds = new Set(owners.filter((owner) => owner !== null))
    try {
      await this.#database.flush(tables, tenantIds.size < owners.length ? null : tenantIds)
      this.#hasFailed = false
    } catch (error) {
      this.#hasFailed = true
      this.#addDue(tables, owners)
      throw error
    }
  }
}

const flushes = new WeakMap<Control, ErasedFlush>()

/** Returns the flush that all users of a handle share. */
export function erasedFlushOf(control: Control): ErasedFlush {
  const flush = flushes.get(control) ?? new ErasedFlush(databaseOf(control))
  flushes.set(control, flush)
  return flush
}

function databaseOf(control: Control): FlushedDatabase {
  const dialect = dialectOf(control)
  return {
    flush: (tables, tenantIds) => dialect.flushErased(control, tables, tenantIds),
    isClean: (tables, tenantId) => dialect.isClean(control, tables, tenantId),
  }
}
