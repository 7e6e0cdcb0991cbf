// Knows the tables that have lost nothing since they were rewritten: their pages have no bytes of rows that
// were removed or overwritten, so an erasure need not rewrite them again. What it does not know is not clean:
// every table at the start, and all of them after a statement that it can't read or a write of another
// process.

/**
 * Statements that remove and overwrite no row. What `drop` frees is overwritten at once (`secure_delete`).
 */
const harmless =
  /^\s*(?:select|begin|commit|rollback|savepoint|release|pragma|create|drop|explain|analyze|vacuum)\b/i

const inserting = /^\s*insert\s+into\s/i
const replacing = /\bon\s+conflict\b/i

/** A statement that changes one table, and its name. */
const changing = /^\s*(?:update|delete\s+from|insert\s+into)\s+"?(\w+)"?(?![\w."])/i

export class CleanTables {
  readonly #clean = new Set<string>()
  #outsideWrites: number | null = null

  /**
   * Notes a statement that was carried out.
   *
   * @param changes rows that it has changed; null where that is not known
   */
  note(text: string, changes: number | bigint | null): void {
    if (harmless.test(text) || (inserting.test(text) && !replacing.test(text))) return
    const table = changing.exec(text)?.[1]
    if (table === undefined) this.#clean.clear()
    else if (changes === null || changes > 0) this.#clean.delete(table)
  }

  /** Forgets all where other processes have written since the last call, of which this is the number. */
  noteOutside(writes: number): void {
    if (writes !== this.#outsideWrites) this.#clean.clear()
    this.#outsideWrites = writes
  }

  has(table: string): boolean {
    return this.#clean.has(table)
  }

  /** Call it in the transaction that begins to rewrite the table: what changes later is in the old pages. */
  add(table: string): void {
    this.#clean.add(table)
  }

  /** Undoes {@link add} where the rewriting failed. */
  remove(table: string): void {
    this.#clean.delete(table)
  }
}
