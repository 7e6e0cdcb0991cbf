// What is specific to the dialect of SQLite. The rules for every dialect are in control/dialect.db.test.ts.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Kysely, SqliteDialect, sql } from 'kysely'
import type { Database } from '../database.ts'
import { dialectOf } from '../dialect.ts'
import { migrate } from '../migrate.ts'
import { openSqlite } from './sqlite.ts'

const control = openSqlite(':memory:')
await migrate(control)
after(() => control.destroy())

test('a row of a chain cannot be replaced: `insert or replace` would remove it without a delete', async () => {
  for (const table of ['audit_entries', 'ledger_entries'] as const) {
    await control.insertInto(table).values({ tenant_id: 'acme', seq: 1, entry: '{}', hash: 'h' }).execute()
    const replaced = sql`insert or replace into ${sql.table(table)} values ('acme', 1, '{}', 'x')`
    await assert.rejects(replaced.execute(control), /append-only/)
  }
})

test('a condition on a column that is marked as unindexed uses no index', async () => {
  const { unindexed } = dialectOf(control)
  const planOf = async (condition: ReturnType<typeof sql>) => {
    const plan = await sql<{ detail: string }>`
      explain query plan select id from anomalies where ${condition} = 'acme'`.execute(control)
    return plan.rows.map(({ detail }) => detail).join()
  }
  assert.match(await planOf(sql.ref('tenant_id')), /SEARCH .*INDEX anomalies_by_tenant/)
  assert.doesNotMatch(await planOf(unindexed('tenant_id')), /SEARCH/)
})

test('a database that was not opened as a control plane has no dialect', async () => {
  const foreign = new Kysely<Database>({
    dialect: new SqliteDialect({ database: async () => assert.fail('nobody connects') }),
  })
  assert.throws(() => dialectOf(foreign), /not opened as a control plane/)
})
