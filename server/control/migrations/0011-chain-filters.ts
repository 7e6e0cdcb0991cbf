// Indexes for the filters of ledger and audit log. They are on expressions over the entry and add no column:
// entries stay as they were hashed, and the tables stay append-only. A field by which only pages are narrowed
// has none, because each index is written with every entry.

import type { Kysely } from 'kysely'
import { dialectOf } from '../dialect.ts'

const indexed = {
  audit_entries: ['actor', 'action', 'target'],
  ledger_entries: ['actor', 'request_id', 'to_status'],
} as const

export const chainFilters = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const [table, fields] of Object.entries(indexed)) {
      for (const field of fields) await dialectOf(db).schema.indexJsonField(db, table, field)
    }
  },
}
