// What migrations need in the SQL of SQLite. Databases in use have these triggers: a change here reaches only
// new ones.

import assert from 'node:assert/strict'
import { sql } from 'kysely'
import type { SchemaDialect } from '../dialect.ts'
import { dropCopies } from './table-rewrite.ts'

export const sqliteSchema: SchemaDialect = {
  async makeAppendOnly(db, table) {
    for (const verb of ['update', 'delete']) {
      await sql
        .raw(
          `create trigger ${table}_no_${verb} before ${verb} on ${table}
             begin select raise(abort, '${table} is append-only'); end`,
        )
        .execute(db)
    }
  },

  async keepHeldAnomalies(db) {
    await sql.raw(heldAnomaliesStay).execute(db)
  },

  async numberAsInserted(db, table, column) {
    await sql`update ${sql.table(table)} set ${sql.ref(column)} = rowid`.execute(db)
  },

  async indexJsonField(db, table, field) {
    await sql
      .raw(`create index ${table}_by_${field} on ${table} (tenant_id, ${jsonFieldText('entry', field)}, seq)`)
      .execute(db)
  },

  // Triggers of a copy name columns of its table.
  beforeMigrations: dropCopies,

  // Migrations are written in its types.
  async afterMigration() {},
}

/**
 * Indexes and conditions share it, because only equal expressions match. Text that is no JSON has no fields:
 * a damaged entry is found by the check of its chain, and stops neither reading nor writing.
 */
export function jsonFieldText(column: string, field: string): string {
  assert(/^[a-z_]+$/.test(`${column}${field}`), 'Names in a statement are our own')
  return `iif(json_valid(${column}), ${column} ->> '${field}', null)`
}

const heldAnomaliesStay = `create trigger held_anomalies_stay before delete on anomalies
   when exists (
     select 1 from legal_holds as hold
     where hold.tenant_id = old.tenant_id and hold.released_at_ms is null
       and (hold.range_start_ns is null
         or cast(old.seen_until_ns as integer) > cast(hold.range_start_ns as integer))
       and (hold.range_end_ns is null
         or cast(old.started_at_ns as integer) < cast(hold.range_end_ns as integer))
       and exists (
         select 1 from json_each(hold.signals) as held
         where ',' || old.signal || ',' like '%,' || held.value || ',%')
   )
   begin select raise(abort, 'a legal hold keeps this anomaly'); end`
