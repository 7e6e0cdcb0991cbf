// What PostgreSQL knows of a table besides its rows, as text: for a copy that takes the place of the table
// and must be equal in everything. Objects that a copy could not have are a reason not to copy.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Control } from '../database.ts'

type Connection = Pick<Kysely<unknown>, 'getExecutor'>

/** Where the table is in `pg_class`. */
const named = (table: string) =>
  sql`cls.relnamespace = current_schema()::regnamespace and cls.relkind = 'r' and cls.relname = ${table}`

/**
 * Whether a copy can take the place of the table: the role owns it and may create tables, and it has only
 * columns, checks, indexes, triggers and grants. Nothing else depends on it, as views, foreign keys and
 * publications do.
 */
export async function canBeReplaced(connection: Control, table: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from pg_class cls where ${named(table)}
      and cls.relowner = (select oid from pg_roles where rolname = current_user)
      and has_schema_privilege(current_schema(), 'create')
      and cls.relpersistence = 'p' and cls.relreplident = 'd' and cls.reltablespace = 0
      and cls.reloftype = 0 and not cls.relispartition and not cls.relrowsecurity and cls.reloptions is null
      and obj_description(cls.oid, 'pg_class') is null
      and not exists (select from pg_inherits where inhrelid = cls.oid)
      and not exists (
        select from pg_class toast where toast.oid = cls.reltoastrelid and toast.reloptions is not null)
      and not exists (
        select from pg_attribute att where att.attrelid = cls.oid and att.attnum > 0 and not att.attisdropped
          and (att.attidentity <> '' or att.attgenerated <> '' or att.attacl is not null))
      and not exists (
        select from pg_depend dep
        where (dep.refclassid = 'pg_class'::regclass and dep.refobjid = cls.oid and ${isForeign})
          or (dep.refclassid = 'pg_type'::regclass and dep.classid <> 'pg_type'::regclass and dep.refobjid in (
            select oid from pg_type where typrelid = cls.oid
            union all select typarray from pg_type where typrelid = cls.oid)))`.execute(connection)
  return rows.length > 0
}

/** Whether an object that depends on a table is not one that a copy of the table has too. */
const isForeign = sql`case dep.classid
  when 'pg_class'::regclass then
    not exists (select from pg_class own where own.oid = dep.objid and own.relkind in ('i', 't'))
  when 'pg_constraint'::regclass then
    not exists (select from pg_constraint own where own.oid = dep.objid and own.conrelid = cls.oid and own.contype <> 'f')
  when 'pg_trigger'::regclass then
    not exists (select from pg_trigger own where own.oid = dep.objid and own.tgrelid = cls.oid and not own.tgisinternal)
  else dep.classid not in ('pg_type'::regclass, 'pg_attrdef'::regclass) end`

/** Describes what a table has before its indexes and triggers: columns, checks, grants. */
export function describeColumns(connection: Connection, table: string): Promise<string[]> {
  return describe(
    connection,
    sql`
    select row(cls.relowner::regrole, cls.relpersistence, cls.relreplident, cls.reltablespace,
      cls.relrowsecurity, (select array_agg(acl::text order by acl::text) from unnest(cls.relacl) acl),
      obj_description(cls.oid, 'pg_class'))::text as line
    from pg_class cls where ${named(table)}
    union all
    select row('column', row_number() over (order by att.attnum), att.attname,
      format_type(att.atttypid, att.atttypmod), att.attcollation, att.attnotnull, att.attstorage,
      att.attcompression, coalesce(att.attstattarget, -1), att.attoptions, att.attacl,
      pg_get_expr(def.adbin, def.adrelid), col_description(cls.oid, att.attnum))::text
    from pg_class cls join pg_attribute att on att.attrelid = cls.oid and att.attnum > 0 and not att.attisdropped
      left join pg_attrdef def on def.adrelid = cls.oid and def.adnum = att.attnum
    where ${named(table)}
    union all
    ${constraints(table, sql`con.contype in ('c', 'n')`)}`,
  )
}

/** Describes everything that a table has: also its indexes, triggers and storage options, by their names. */
export async function describeTable(connection: Connection, table: string): Promise<string[]> {
  const rest = await describe(
    connection,
    sql`
    select row('options', cls.reloptions, toast.reloptions)::text as line
    from pg_class cls left join pg_class toast on toast.oid = cls.reltoastrelid where ${named(table)}
    union all
    select row('index', pg_get_indexdef(own.indexrelid), own.indisprimary, own.indisclustered, own.indisvalid,
      file.reltablespace, obj_description(own.indexrelid, 'pg_class'))::text
    from pg_class cls join pg_index own on own.indrelid = cls.oid join pg_class file on file.oid = own.indexrelid
    where ${named(table)}
    union all
    select row('trigger', pg_get_triggerdef(own.oid), own.tgenabled, obj_description(own.oid, 'pg_trigger'))::text
    from pg_class cls join pg_trigger own on own.tgrelid = cls.oid where ${named(table)}
    union all
    ${constraints(table, sql`con.contype not in ('c', 'n')`)}`,
  )
  return [...(await describeColumns(connection, table)), ...rest]
}

const constraints = (table: string, isWanted: RawBuilder<unknown>) => sql`
  select row('constraint', con.conname, pg_get_constraintdef(con.oid), con.convalidated,
    obj_description(con.oid, 'pg_constraint'))::text
  from pg_class cls join pg_constraint con on con.conrelid = cls.oid where ${named(table)} and ${isWanted}`

async function describe(connection: Connection, lines: RawBuilder<unknown>): Promise<string[]> {
  const { rows } = await sql<{
    line: string
  }>`select line from (${lines}) described order by line collate "C"`.execute(connection)
  return rows.map(({ line }) => line)
}
