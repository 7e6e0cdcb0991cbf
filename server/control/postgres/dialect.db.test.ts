// What the dialect of PostgreSQL says in its own words. What every dialect must keep is in
// control/dialect.db.test.ts.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { openSharedPostgresPlane } from '../../../tests/postgres-plane.ts'
import { dialectOf, lock } from '../dialect.ts'
import { transact } from '../transaction.ts'

const plane = await openSharedPostgresPlane()
const { control } = plane
after(() => plane.close())

const locksNow = async () => {
  const { rows } = await sql<{ locks: number }>`
    select count(*) as locks from pg_locks where locktype = 'advisory'
    and database = (select oid from pg_database where datname = current_database())`.execute(control)
  return rows[0]?.locks
}

test('a transaction takes each lock once, and no lock of an organisation beside the lock of all', async () => {
  const held: unknown[] = []
  await transact(control, async (trx) => {
    for (let i = 0; i < 3; i++) await lock(trx, { tenantId: 'acme' })
    held.push(await locksNow())
  })
  await transact(control, async (trx) => {
    await lock(trx, 'organisations')
    for (let i = 0; i < 100; i++) await lock(trx, { tenantId: `organisation-${i}` })
    held.push(await locksNow())
  })
  assert.deepEqual([...held, await locksNow()], [2, 1, 0])
})

test('a flush fails while a snapshot that never read the table keeps its deleted rows, and succeeds after it', async () => {
  const { flushErased, snapshot } = dialectOf(control)
  // Random, because PostgreSQL compresses long texts and a search of its files would miss them.
  const canary = randomBytes(24).toString('hex')
  const insert = (key: string) => control.insertInto('instance').values({ key, value: canary }).execute()
  await snapshot(plane.another(), async (older) => {
    await sql`select 1`.execute(older)
    await insert('erased')
    assert.notDeepEqual(plane.filesWith(canary), [])
    await control.deleteFrom('instance').where('key', '=', 'erased').execute()
    await assert.rejects(flushErased(control), /may still contain erased rows: a transaction or snapshot/)
    assert.notDeepEqual(plane.filesWith(canary), [])
  })
  await flushErased(control)
  assert.deepEqual(plane.filesWith(canary), [])
})
