// The indexes of the chains' filters, created again: their expression finds entries with every character, and
// compares by bytes, in a database whose own texts have other rules.

import { type Kysely, sql } from 'kysely'
import { dialectOf } from '../dialect.ts'

const chainIndexes = {
  audit_entries: ['actor', 'action', 'target'],
  ledger_entries: ['actor', 'request_id', 'to_status'],
} as const

export const oddTexts = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const [table, fields] of Object.entries(chainIndexes)) {
      for (const field of fields) {
        await sql.raw(`drop index ${table}_by_${field}`).execute(db)
        await dialectOf(db).schema.indexJsonField(db, table, field)
      }
    }
  },
}
