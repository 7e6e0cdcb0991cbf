// Brings databases of early versions to the schema of all others. Those versions recorded a migration under
// the name that it has today, before it had all of its columns and indexes. Where nothing is missing, nothing
// changes but the indexes of the chains, which are created again.

import { type Kysely, sql } from 'kysely'
import { dialectOf } from '../dialect.ts'

const columns = [
  ['deletion_requests', 'crashes', 'integer not null default 0'],
  ['deletion_requests', 'has_mark', 'integer not null default 0'],
  ['deletion_requests', 'came_back', 'integer not null default 0'],
  ['anomalies', 'unread_ns', 'text'],
] as const

const chainIndexes = {
  audit_entries: ['actor', 'action', 'target'],
  ledger_entries: ['actor', 'request_id', 'to_status'],
} as const

export const sameSchema = {
  async up(db: Kysely<unknown>): Promise<void> {
    const run = (statement: string) => sql.raw(statement).execute(db)
    const tables = await db.introspection.getTables()
    const columnsOf = (table: string) => tables.find(({ name }) => name === table)?.columns ?? []
    for (const [table, column, type] of columns) {
      if (columnsOf(table).some(({ name }) => name === column)) continue
      await run(`alter table ${table} add column ${column} ${type}`)
    }
    const value = columnsOf('anomalies').find(({ name }) => name === 'value')
    if (value?.isNullable === false) await letValueBeNull(db)
    await run(
      'create index if not exists access_tokens_not_revoked on access_tokens (tenant_id) where revoked_at_ms is null',
    )
    // Of entries that are no JSON the first indexes had an error in place of no field.
    for (const [table, fields] of Object.entries(chainIndexes)) {
      for (const field of fields) {
        await run(`drop index ${table}_by_${field}`)
        await dialectOf(db).schema.indexJsonField(db, table, field)
      }
    }
  },
}

async function letValueBeNull(db: Kysely<unknown>): Promise<void> {
  const run = (statement: string) => sql.raw(statement).execute(db)
  await run('alter table anomalies add column value_or_null double precision')
  await run('update anomalies set value_or_null = value')
  await run('alter table anomalies drop column value')
  await run('alter table anomalies rename column value_or_null to value')
}
