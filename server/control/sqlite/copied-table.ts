// What a copy of a table in SQLite consists of. Its b-trees take the place of those of the table, so they
// have the same format: the same columns, and an index for each index with the same keys. Constraints belong
// to the definition of the table, which stays; a copy has none, so that it never refuses what the table has.

import { sql } from 'kysely'
import type { Control } from '../database.ts'

export interface CopiedTable {
  readonly name: string
  readonly copyName: string
  readonly columns: readonly string[]
  readonly createCopy: string
  readonly createTriggers: readonly string[]
  readonly indexes: readonly CopiedIndex[]
}

interface CopiedIndex {
  readonly name: string
  readonly copyName: string
  readonly createCopy: string
}

type Readable = Pick<Control, 'getExecutor'>

/** Throws where there is no such table, or its rows have another format than those of a copy. */
export async function copiedTableOf(db: Readable, name: string, copyName: string): Promise<CopiedTable> {
  const { rows: kinds } = await sql<{ type: string; wr: number }>`
    select type, wr from pragma_table_list(${name}) where schema = 'main'`.execute(db)
  const { rows: columns } = await sql<{ name: string; type: string; hidden: number }>`
    select name, type, hidden from pragma_table_xinfo(${name}) order by cid`.execute(db)
  if (kinds[0]?.type !== 'table' || kinds[0].wr !== 0 || columns.some(({ hidden }) => hidden !== 0)) {
    throw new Error(`The control plane can’t rewrite ${name}: it is no ordinary table.`)
  }
  const names = columns.map((column) => column.name)
  const definitions = columns.map((column) => `${quoted(column.name)} ${column.type}`)
  return {
    name,
    copyName,
    columns: names,
    createCopy: `create table ${quoted(copyName)} (${definitions.join(', ')})`,
    createTriggers: createTriggers(name, copyName, names),
    indexes: await describeIndexes(db, name, copyName),
  }
}

/** Names of the triggers that apply changes to a copy, in the order of {@link createTriggers}. */
export function triggersOf(copyName: string): string[] {
  return ['insert', 'update', 'delete'].map((verb) => `${copyName}_${verb}`)
}

/** A row that comes after the last one of the copy is copied later, as it is then. */
function createTriggers(name: string, copyName: string, columns: readonly string[]): string[] {
  const [inserted, updated, deleted] = triggersOf(copyName).map(quoted)
  const [table, copy] = [quoted(name), quoted(copyName)]
  const all = columns.map(quoted)
  return [
    `create trigger ${inserted} after insert on ${table}
      when new.rowid <= (select max(rowid) from ${copy})
      begin
        insert into ${copy} (rowid, ${all.join(', ')})
          values (new.rowid, ${all.map((column) => `new.${column}`).join(', ')});
      end`,
    `create trigger ${updated} after update on ${table}
      begin
        update ${copy} set ${all.map((column) => `${column} = new.${column}`).join(', ')}
          where rowid = old.rowid;
      end`,
    `create trigger ${deleted} after delete on ${table}
      begin
        delete from ${copy} where rowid = old.rowid;
      end`,
  ]
}

async function describeIndexes(db: Readable, name: string, copyName: string): Promise<CopiedIndex[]> {
  const { rows } = await sql<{ name: string; sql: string | null }>`
    select name, sql from sqlite_schema where type = 'index' and tbl_name = ${name} order by name`.execute(db)
  const indexes: CopiedIndex[] = []
  for (const index of rows) {
    const keys = index.sql === null ? await keysOf(db, index.name) : definitionOf(index.name, index.sql)
    const indexName = `${copyName}_${index.name}`
    const createCopy = `create index ${quoted(indexName)} on ${quoted(copyName)} ${keys}`
    indexes.push({ name: index.name, copyName: indexName, createCopy })
  }
  return indexes
}

const indexHeader = /^create\s+(?:unique\s+)?index\s+"?\w+"?\s+on\s+"?\w+"?\s*(?=\()/i

/** What follows the name of the table: keys, which may be expressions, and the condition. */
function definitionOf(name: string, text: string): string {
  const header = indexHeader.exec(text)?.[0]
  if (header === undefined)
    throw new Error(`The control plane can’t read the definition of the index ${name}.`)
  return text.slice(header.length)
}

/** The keys of an index that SQLite has made for a constraint. */
async function keysOf(db: Readable, index: string): Promise<string> {
  const { rows } = await sql<{ name: string; coll: string; desc: number }>`
    select name, coll, "desc" from pragma_index_xinfo(${index}) where key = 1 order by seqno`.execute(db)
  const keys = rows.map(
    (key) => `${quoted(key.name)} collate ${quoted(key.coll)} ${key.desc === 1 ? 'desc' : 'asc'}`,
  )
  return `(${keys.join(', ')})`
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
