// What migrations need in the SQL of PostgreSQL. Triggers and functions are in databases in use: a change
// here only reaches new ones.

import assert from 'node:assert/strict'
import { sql } from 'kysely'
import type { SchemaDialect } from '../dialect.ts'
import { keepNoStatistics } from './erased-rows.ts'

export const postgresSchema: SchemaDialect = {
  async makeAppendOnly(db, table) {
    const run = (statement: string) => sql.raw(statement).execute(db)
    await run(`create or replace function ${table}_refuse() returns trigger language plpgsql as
      $$ begin raise exception '${table} is append-only'; end $$`)
    await run(`create trigger ${table}_no_change before update or delete on ${table}
      for each row execute function ${table}_refuse()`)
    await run(`create trigger ${table}_no_truncate before truncate on ${table}
      for each statement execute function ${table}_refuse()`)
    // Triggers can be switched off for a session; a right that nobody has can't.
    await run(`revoke truncate on ${table} from public, current_user`)
  },

  async keepHeldAnomalies(db) {
    await sql.raw(heldAnomaliesStay).execute(db)
    await sql
      .raw(
        `create trigger held_anomalies_stay before delete on anomalies
           for each row execute function keep_held_anomaly()`,
      )
      .execute(db)
  },

  // A table that was never updated has its rows in the order in which they were inserted.
  async numberAsInserted(db, table, column) {
    await sql`update ${sql.table(table)} set ${sql.ref(column)} = numbered.place
      from (select ctid as row, row_number() over (order by ctid) as place from ${sql.table(table)}) numbered
      where ${sql.table(table)}.ctid = numbered.row`.execute(db)
  },

  async indexJsonField(db, table, field) {
    await sql.raw(entryField).execute(db)
    await sql
      .raw(`create index ${table}_by_${field} on ${table} (tenant_id, ${jsonTextOf('entry', field)}, seq)`)
      .execute(db)
  },

  // A copy refers to nothing of its table.
  async beforeMigrations() {},

  async afterMigration(db) {
    const { rows } = await sql<ForeignColumn>`
      select cls.relname as table_name, att.attname as column_name, typ.typname as type_name
      from pg_catalog.pg_attribute att
        join pg_catalog.pg_class cls on cls.oid = att.attrelid
        join pg_catalog.pg_type typ on typ.oid = att.atttypid
        join pg_catalog.pg_collation bytes on bytes.collname = 'C'
      where cls.relkind = 'r' and cls.relnamespace = current_schema()::regnamespace
        and cls.relname not like 'kysely\\_%' and att.attnum > 0 and not att.attisdropped
        and (typ.typname = 'int4' or (typ.typname = 'text' and att.attcollation <> bytes.oid))
      order by cls.relname, att.attnum`.execute(db)
    for (const [table, columns] of Map.groupBy(rows, ({ table_name }) => table_name)) {
      const changes = columns.map(
        ({ column_name, type_name }) =>
          sql`alter column ${sql.ref(column_name)} type ${sql.raw(columnTypes[type_name])}`,
      )
      await sql`alter table ${sql.table(table)} ${sql.join(changes)}`.execute(db)
    }
    await keepNoStatistics(db)
  },
}

interface ForeignColumn {
  readonly table_name: string
  readonly column_name: string
  readonly type_name: keyof typeof columnTypes
}

/**
 * The types that columns have here; migrations write those of SQLite, where a text is compared by its bytes.
 */
const columnTypes = { int4: 'bigint', text: 'text collate "C"' } as const

/** Indexes and conditions share it, because only equal expressions match. */
export function jsonTextOf(column: string, field: string): string {
  assert(/^[a-z_]+$/.test(`${column}${field}`), 'Names in a statement are our own')
  return `(entry_field(${column}, '${field}') collate "C")`
}

/**
 * Text that is no JSON has no fields: a damaged entry is found by the check of its chain, and stops neither
 * reading nor writing. PostgreSQL reads no field of an object in which any text has NUL, so NUL and U+0001
 * become what values.ts makes of them; equal texts are then found.
 */
const entryField = String.raw`create or replace function entry_field(entry text, field text) returns text
  language plpgsql immutable parallel safe as $$
  begin
    if position('\u' in entry) > 0 then
      entry := regexp_replace(entry, '(?<!\\)((?:\\\\)*)\\u0001', '\1\\u00011', 'g');
      entry := regexp_replace(entry, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\u00010', 'g');
    end if;
    return entry::json ->> field;
  exception when others then return null;
  end $$`

const heldAnomaliesStay = `create or replace function keep_held_anomaly() returns trigger language plpgsql as $$
  begin
    if exists (
      select 1 from legal_holds hold
      where hold.tenant_id = old.tenant_id and hold.released_at_ms is null
        and (hold.range_start_ns is null or old.seen_until_ns::numeric > hold.range_start_ns::numeric)
        and (hold.range_end_ns is null or old.started_at_ns::numeric < hold.range_end_ns::numeric)
        and exists (
          select 1 from json_array_elements_text(hold.signals::json) held
          where position(',' || held || ',' in ',' || old.signal || ',') > 0)
    ) then raise exception 'a legal hold keeps this anomaly'; end if;
    return old;
  end $$`
