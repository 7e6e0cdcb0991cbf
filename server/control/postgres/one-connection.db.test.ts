// A handle with one connection: what asks the database beside its own transaction or connection waits for
// itself, and fails. The handle of SQLite has one connection always, so the suites of all stores show the
// same of the stores; this is about what only PostgreSQL does.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { openSharedPostgresPlane } from '../../../tests/postgres-plane.ts'
import { verifyJws } from '../../audit/jws.ts'
import { KeySeal } from '../../audit/key-seal.ts'
import { listSigningKeys, SigningKeys } from '../../audit/signing.ts'
import { operatorActor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { dialectOf, lock } from '../dialect.ts'
import { migrate } from '../migrate.ts'
import { transact } from '../transaction.ts'

const plane = await openSharedPostgresPlane(false)
const control = plane.withOneConnection()
after(() => plane.close())

const put = (on: typeof control, key: string) =>
  on.insertInto('instance').values({ key, value: '' }).execute()
const keys = async (on: typeof control) =>
  (await on.selectFrom('instance').select('key').orderBy('key').execute()).map(({ key }) => key)

test('one connection is enough to migrate, and to migrate again', async () => {
  await migrate(control)
  await migrate(control)
})

test('one connection is enough for transactions that wait for each other, and for locks of every kind', async () => {
  await Promise.all(
    ['a', 'b', 'c'].map((key) =>
      transact(control, async (trx) => {
        await lock(trx, 'organisations')
        await lock(trx, { tenantId: key })
        await lock(trx, 'backups')
        await put(trx, key)
      }),
    ),
  )
  await transact(control, async (trx) => {
    await dialectOf(trx).lockAll(trx)
    await put(trx, 'd')
  })
  assert.deepEqual(await dialectOf(control).snapshot(control, keys), ['a', 'b', 'c', 'd'])
})

test('one connection is enough to make the first key, to sign, and to rotate keys, all at once', async () => {
  const seal = new KeySeal('a sealing key that only this test has')
  const keys = new SigningKeys(control, new ManualClock(1_763_717_400_000), seal)
  const sign = () => keys.sign({ erased: 3 }, 'test+jws')
  const [before, , after] = await Promise.all([sign(), keys.rotate(operatorActor('test')), sign()])
  const trusted = await keys.jwks()
  for (const signed of [before, after, await sign()]) {
    assert.deepEqual((await verifyJws(signed, trusted, 'test+jws')).payload, { erased: 3 })
  }
  const current = (await listSigningKeys(control)).filter(({ retiredAtMs }) => retiredAtMs === null)
  assert.equal(current.length, 1)
})

test('one connection is enough to rewrite every table, and to say how large the database is', async () => {
  await control.deleteFrom('instance').where('key', '=', 'd').execute()
  await dialectOf(control).rewrite(control)
  assert.deepEqual(await keys(control), ['a', 'b', 'c'])
  assert.ok((await dialectOf(control).sizeBytes(control)) > 0)
})

test('a connection to a server that became read-only is not used again, so that what follows a failover is written', async () => {
  for (const write of [() => put(control, 'e'), () => transact(control, (trx) => put(trx, 'f'))]) {
    await sql`set default_transaction_read_only = on`.execute(control)
    await assert.rejects(write(), (error) => {
      assert.ok(error instanceof AppError && error.code === 'storage_unavailable')
      assert.match(error.message, /read-only: it is a standby/)
      return true
    })
    await put(control, `after ${(await keys(control)).length}`)
  }
  assert.deepEqual(await keys(control), ['a', 'after 3', 'after 4', 'b', 'c'])
})
