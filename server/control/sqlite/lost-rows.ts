// Knows which organisations have lost rows of a table, or values in it, since the table was rewritten: pages
// may have their bytes, so an erasure of one of them rewrites the table. What it does not know counts as
// lost by all: every table at the start, after a write of another process and after a failed rewriting.
//
// Temporary triggers note what is lost. They belong to this connection and are not in the file.

import { sql } from 'kysely'
import type { Control } from '../database.ts'

/** The function of the connection that the triggers call, with the table and the organisation. */
export const noteFunction = 'note_lost_row'

/** In place of the organisation where a table has no column for it. */
const ofAny = ''

/** Organisations; null for all of them. */
type Organisations = ReadonlySet<string> | null

export class LostRows {
  /** What was lost since the rewriting of the table began. A table that is not here has lost rows of all. */
  readonly #lost = new Map<string, Set<string>>()
  /** Whose bytes are in pages and in the log until the flush ends that has rewritten the table. */
  readonly #underWay = new Map<string, Organisations>()
  readonly #outsideWrites: () => number
  #outside: number | null = null

  /** @param outsideWrites returns another number after a write of another process */
  constructor(outsideWrites: () => number) {
    this.#outsideWrites = outsideWrites
  }

  /** Notes a row that was removed or overwritten. */
  note(table: string, tenantId: string): void {
    this.#lost.get(table)?.add(tenantId)
  }

  /**
   * Returns whether no page and no log has a byte of a row of these tables that the organisation has lost.
   */
  isClean(tables: readonly string[], tenantId: string): boolean {
    if (this.#outsideWrites() !== this.#outside) return false
    const own = new Set([tenantId])
    return tables.every((table) => {
      const underWay = this.#underWay.get(table)
      return !this.hasLost(table, own) && (underWay === undefined || !isOneOf(underWay, own))
    })
  }

  /** Returns whether one of the organisations has lost rows of the table since it was last rewritten. */
  hasLost(table: string, tenantIds: Organisations): boolean {
    return isOneOf(this.#lost.get(table) ?? null, tenantIds)
  }

  /** Call it before a flush: makes sure that what these tables lose is noted from now on. */
  async watch(control: Control, tables: readonly string[]): Promise<void> {
    const writes = this.#outsideWrites()
    if (writes !== this.#outside) this.#lost.clear()
    this.#outside = writes
    for (const table of tables) {
      if (await createTriggers(control, table)) this.#lost.delete(table)
    }
  }

  /** Call it in the transaction that begins to rewrite the table: what is lost later is in the old pages. */
  begin(table: string): void {
    const lost = this.#lost.get(table) ?? null
    // Of a flush that has failed.
    const earlier = this.#underWay.get(table)
    this.#underWay.set(table, earlier === undefined ? lost : earlier && lost && earlier.union(lost))
    this.#lost.set(table, new Set())
  }

  /** Call it where the rewriting of the table failed. */
  failed(table: string): void {
    this.#lost.delete(table)
  }

  /** Call it when no page of a table that was rewritten, and no log, has the bytes of before. */
  ended(): void {
    this.#underWay.clear()
  }
}

/** Whether one of the organisations has lost something. */
function isOneOf(lost: Organisations, tenantIds: Organisations): boolean {
  if (lost === null) return true
  if (tenantIds === null) return lost.size > 0
  return lost.has(ofAny) || !lost.isDisjointFrom(tenantIds)
}

/** Returns whether triggers were missing, so that rows may have been lost that nobody has noted. */
async function createTriggers(control: Control, table: string): Promise<boolean> {
  const triggers = ['update', 'delete'].map((verb) => ({ name: `lost_${table}_${verb}`, verb }))
  const names = triggers.map(({ name }) => name)
  const { rows: present } = await sql`
    select 1 from sqlite_temp_schema where type = 'trigger' and name in (${sql.join(names)})`.execute(control)
  if (present.length === triggers.length) return false
  const { rows: columns } = await sql`
    select 1 from pragma_table_info(${table}) where name = 'tenant_id'`.execute(control)
  const tenantId = columns.length > 0 ? sql`old.tenant_id` : sql.lit(ofAny)
  for (const { name, verb } of triggers) {
    await sql`
      create temp trigger if not exists ${sql.table(name)} after ${sql.raw(verb)} on main.${sql.table(table)}
        begin select ${sql.raw(noteFunction)}(${sql.lit(table)}, ${tenantId}); end`.execute(control)
  }
  return true
}
