// Actors become data: a kind, an id and a name in three columns, instead of one display text. The texts of
// older rows are parsed here, once. Chains keep theirs, because they are hashed.
//
// A text in an unknown form becomes an operator without an id, whose name is the whole text: responses show
// it unchanged, and it never counts as a second person.

import { type Kysely, sql } from 'kysely'

interface ActorColumn {
  readonly table: string
  readonly column: string
}

/** Columns with the text of the actor that wrote the row. */
const written: readonly ActorColumn[] = [
  { table: 'access_tokens', column: 'created_by' },
  { table: 'deletion_requests', column: 'requested_by' },
  { table: 'legal_holds', column: 'placed_by' },
  { table: 'retention_changes', column: 'requested_by' },
  { table: 'backups', column: 'requested_by' },
  { table: 'held_anomaly_versions', column: 'replaced_by' },
  { table: 'detector_mutes', column: 'created_by' },
]

/** Columns with the text of an actor that acted later; null before that. */
const later: readonly ActorColumn[] = [
  { table: 'deletion_requests', column: 'approved_by' },
  { table: 'legal_holds', column: 'released_by' },
  { table: 'anomalies', column: 'verdict_by' },
]

const isKind = (column: string) => `check (${column}_kind in ('person', 'token', 'operator', 'system'))`

export const actors = {
  async up(db: Kysely<unknown>): Promise<void> {
    const run = (statement: string) => sql.raw(statement).execute(db)
    for (const { table, column } of written) {
      await run(
        `alter table ${table} add column ${column}_kind text not null default 'operator' ${isKind(column)}`,
      )
      await run(`alter table ${table} add column ${column}_id text not null default ''`)
      await run(`alter table ${table} add column ${column}_name text not null default ''`)
    }
    for (const { table, column } of later) {
      await run(`alter table ${table} add column ${column}_kind text ${isKind(column)}`)
      await run(`alter table ${table} add column ${column}_id text`)
      await run(`alter table ${table} add column ${column}_name text`)
    }
    await run('create table actor_texts (text text primary key, kind text, id text, name text)')
    for (const place of [...written, ...later]) await replaceText(db, place)
    await run('drop table actor_texts')
    await replaceInVersions(db)
  },
}

/**
 * Fills the three columns from the text and drops it. Parsed texts are in a table, because then one update by
 * its key takes time in proportion to the rows; an update per text would take rows times texts.
 */
async function replaceText(db: Kysely<unknown>, { table, column }: ActorColumn): Promise<void> {
  const { rows } = await sql
    .raw<{ text: string }>(
      `select distinct ${column} as text from ${table}
       where ${column} is not null and ${column} not in (select text from actor_texts)`,
    )
    .execute(db)
  for (const { text } of rows) {
    const { id, kind, name } = read(text)
    await sql`insert into actor_texts (text, kind, id, name) values (${text}, ${kind}, ${id}, ${name})`.execute(
      db,
    )
  }
  await sql
    .raw(
      `update ${table} set (${column}_kind, ${column}_id, ${column}_name) =
         (select kind, id, name from actor_texts where text = ${table}.${column})
       where ${column} is not null`,
    )
    .execute(db)
  await sql.raw(`alter table ${table} drop column ${column}`).execute(db)
}

/** An earlier version of an anomaly is its whole row as JSON, so its actors are replaced there too. */
async function replaceInVersions(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ anomaly_id: string; version: number; record: string }>`
    select anomaly_id, version, record from held_anomaly_versions`.execute(db)
  for (const { anomaly_id, record, version } of rows) {
    const { verdict_by: text, ...rest } = JSON.parse(record)
    const by = typeof text === 'string' ? read(text) : { kind: null, id: null, name: null }
    const replaced = { ...rest, verdict_by_kind: by.kind, verdict_by_id: by.id, verdict_by_name: by.name }
    await sql`
      update held_anomaly_versions set record = ${JSON.stringify(replaced)}
      where anomaly_id = ${anomaly_id} and version = ${version}`.execute(db)
  }
}

/**
 * Parses the texts that programs wrote when this migration was written: `token:<name> (<id>)`, where the name
 * is free text, `operator:<way>` and `system:<part>`. A migration must not change with the program.
 */
function read(text: string): { kind: string; id: string; name: string } {
  const [, tokenName, tokenId] = /^token:(.*) \((tok_[0-9a-z]+)\)$/s.exec(text) ?? []
  if (tokenName !== undefined && tokenId !== undefined) return { kind: 'token', id: tokenId, name: tokenName }
  const [, kind, id] = /^(operator|system):(\S+)$/.exec(text) ?? []
  if (kind !== undefined && id !== undefined) return { kind, id, name: id }
  return { kind: 'operator', id: '', name: text }
}
