// Removes erased bytes of the control plane from the disk for many callers. Callers that come while a flush
// is running share the next one, because the running one may have passed their rows. Tables of a flush that
// failed stay due, so that the next one includes them.

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

type Flush = (tables: readonly string[]) => Promise<void>

export class ErasedFlush {
  readonly #flushNow: Flush
  readonly #due = new Set<string>()
  #running: Promise<void> = Promise.resolve()
  #next: Promise<void> | null = null

  constructor(flushNow: Flush) {
    this.#flushNow = flushNow
  }

  /**
   * Resolves once no file of the database contains what was deleted from these tables before the call. Throws
   * {@link ErasedBytesKept} where another use of the database prevents that.
   */
  flush(tables: readonly string[]): Promise<void> {
    for (const table of tables) this.#due.add(table)
    this.#next ??= workForAll(() => this.#after(this.#running))
    return this.#next
  }

  async #after(running: Promise<void>): Promise<void> {
    await running.catch(() => {})
    this.#next = null
    this.#running = this.#flushDue()
    await this.#running
  }

  async #flushDue(): Promise<void> {
    const tables = [...this.#due]
    this.#due.clear()
    try {
      await this.#flushNow(tables)
    } catch (error) {
      for (const table of tables) this.#due.add(table)
      throw error
    }
  }
}

const flushes = new WeakMap<Control, ErasedFlush>()

/** Returns the flush that all users of a handle share. */
export function erasedFlushOf(control: Control): ErasedFlush {
  const flush =
    flushes.get(control) ?? new ErasedFlush((tables) => dialectOf(control).flushErased(control, tables))
  flushes.set(control, flush)
  return flush
}
