// What is specific to the dialect of PostgreSQL. The rules for every dialect are in
// control/dialect.db.test.ts.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { openSharedPostgresPlane } from '../../../tests/postgres-plane.ts'
import { lock } from '../dialect.ts'
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
  const lockCounts: unknown[] = []
  await transact(control, async (trx) => {
    for (let i = 0; i < 3; i++) await lock(trx, { tenantId: 'acme' })
    lockCounts.push(await locksNow())
  })
  await transact(control, async (trx) => {
    await lock(trx, 'organisations')
    for (let i = 0; i < 100; i++) await lock(trx, { tenantId: `organisation-${i}` })
    lockCounts.push(await locksNow())
  })
  assert.deepEqual([...lockCounts, await locksNow()], [2, 1, 0])
})
