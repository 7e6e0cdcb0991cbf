// What the control plane asks of its database, in SQLite files of its own: snapshots beside writers in
// another process, locks, and rows that the database itself keeps.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { temporaryFolder } from '../../../tests/fixtures.ts'
import type { Database } from '../database.ts'
import { dialectOf } from '../dialect.ts'
import { migrate } from '../migrate.ts'
import { openSqlite } from './sqlite.ts'

const folder = temporaryFolder()
const path = join(folder, 'control.db')
const [control, another] = [openSqlite(path), openSqlite(path)]
await migrate(control)
after(async () => {
  await control.destroy()
  await another.destroy()
  rmSync(folder, { recursive: true, force: true })
})

const put = (on: typeof control, key: string) =>
  on.insertInto('instance').values({ key, value: '' }).execute()
const keysIn = async (on: typeof control) =>
  (await on.selectFrom('instance').select('key').orderBy('key').execute()).map(({ key }) => key)

test('a snapshot is of one moment while another process writes, and holds nobody up', async () => {
  await put(control, 'before')
  const seen = await dialectOf(control).snapshot(control, async (snapshot) => {
    const first = await keysIn(snapshot)
    await put(another, 'meanwhile')
    return [first, await keysIn(snapshot)]
  })
  assert.deepEqual(seen, [['before'], ['before']])
  assert.deepEqual(await keysIn(control), ['before', 'meanwhile'])
})

test('a snapshot whose reader fails ends all the same', async () => {
  const { snapshot } = dialectOf(control)
  await assert.rejects(
    snapshot(control, async () => assert.fail('the reader gave up')),
    /the reader gave up/,
  )
  await put(control, 'after')
  assert.ok((await keysIn(another)).includes('after'))
})

test('of two transactions that lock at once the second reads what the first has written', async () => {
  const countAndPut = (key: string) =>
    control.transaction().execute(async (trx) => {
      await dialectOf(trx).lock(trx, 'deletion_order')
      const before = (await keysIn(trx)).length
      await put(trx, key)
      return before
    })
  const [first, second] = await Promise.all([countAndPut('x'), countAndPut('y')])
  assert.equal(second, first + 1)
})

test('a row of a chain can be neither changed nor removed', async () => {
  const entry = { tenant_id: 'acme', seq: 1, entry: '{}', hash: 'h' }
  for (const table of ['audit_entries', 'ledger_entries'] as const) {
    await control.insertInto(table).values(entry).execute()
    await assert.rejects(sql`update ${sql.table(table)} set hash = 'x'`.execute(control), /append-only/)
    await assert.rejects(control.deleteFrom(table).execute(), /append-only/)
    assert.equal((await control.selectFrom(table).selectAll().execute()).length, 1)
  }
})

test('a condition on an unindexed column is not looked up in an index', async () => {
  const { unindexed } = dialectOf(control)
  const planOf = async (condition: ReturnType<typeof sql>) => {
    const plan = await sql<{ detail: string }>`
      explain query plan select id from anomalies where ${condition} = 'acme'`.execute(control)
    return plan.rows.map(({ detail }) => detail).join()
  }
  assert.match(await planOf(sql.ref('tenant_id')), /SEARCH .*INDEX anomalies_by_tenant/)
  assert.doesNotMatch(await planOf(unindexed('tenant_id')), /SEARCH/)
})

test('a database that was opened in another way has no dialect', async () => {
  const foreign = new Kysely<Database>({
    dialect: new SqliteDialect({ database: async () => assert.fail('nobody connects') }),
  })
  assert.throws(() => dialectOf(foreign), /not opened as a control plane/)
})
