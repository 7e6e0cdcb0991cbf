// The rules for every control plane, tested on the one that LETHE_TEST_CONTROL_PLANE names: its dialect, and
// what stores expect of the database. Erased values are searched for in the bytes of its files, after the
// flush of an erasure.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { dialectOf } from './dialect.ts'
import { migrate } from './migrate.ts'

const plane = await openSharedControlPlane()
const { control, filesWith } = plane
const another = plane.another()
after(() => plane.close())

const insertInstance = (key: string, value: string) =>
  control.insertInto('instance').values({ key, value }).execute()

const put = (on: typeof control, key: string) =>
  on.insertInto('instance').values({ key, value: '' }).execute()
const keysIn = async (on: typeof control) =>
  (await on.selectFrom('instance').select('key').orderBy('key').execute()).map(({ key }) => key)

test('a snapshot is consistent while another process writes, and blocks no writer', async () => {
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

test('what was deleted is in no file of the database once it is flushed', async () => {
  const canary = 'canary-in-the-coal-mine'
  // Long values overflow onto pages of their own, short ones share a page: both must be overwritten.
  await insertInstance('short', `${canary}-short`)
  await insertInstance('long', `${canary}-long `.repeat(2_000))
  await dialectOf(control).flushErased(control, ['instance'])
  assert.ok(filesWith(canary).length > 0, 'it was there')

  await control.deleteFrom('instance').where('key', 'in', ['short', 'long']).execute()
  await dialectOf(control).flushErased(control, ['instance'])
  assert.deepEqual(filesWith(canary), [])
})

test('overwritten bytes are removed too', async () => {
  await insertInstance('changed', 'written-first '.repeat(500))
  await dialectOf(control).flushErased(control, ['instance'])
  await control.updateTable('instance').set({ value: 'then' }).where('key', '=', 'changed').execute()
  await dialectOf(control).flushErased(control, ['instance'])
  assert.deepEqual(filesWith('written-first'), [])
})

test('a flush that another reader blocks is an error and not a success', async () => {
  await dialectOf(another).snapshot(another, async (snapshot) => {
    await keysIn(snapshot)
    await insertInstance('read', 'kept-by-a-reader')
    await assert.rejects(dialectOf(control).flushErased(control, ['instance']))
  })
  await dialectOf(control).flushErased(control, ['instance'])
})

test('a database that is rewritten has its rows and nothing else', async () => {
  await insertInstance('rewritten', 'stays-through-a-rewrite')
  await insertInstance('removed', 'goes-before-a-rewrite')
  await control.deleteFrom('instance').where('key', '=', 'removed').execute()
  await dialectOf(control).rewrite(control)
  assert.deepEqual(filesWith('goes-before-a-rewrite'), [])
  assert.notDeepEqual(filesWith('stays-through-a-rewrite'), [])
})

test('migrating again changes nothing', async () => {
  await insertInstance('kept', 'value')
  await migrate(control)
  const row = await control.selectFrom('instance').selectAll().where('key', '=', 'kept').executeTakeFirst()
  assert.equal(row?.value, 'value')
})

test('instants and counts up to 2^53 come back as the numbers they were', async () => {
  await control
    .insertInto('leases')
    .values({ name: 'big', holder: 'x', until_ms: Number.MAX_SAFE_INTEGER })
    .execute()
  const row = await control.selectFrom('leases').selectAll().where('name', '=', 'big').executeTakeFirst()
  assert.equal(row?.until_ms, Number.MAX_SAFE_INTEGER)
})

test('text that looks like SQL is only text', async () => {
  const hostile = `'); drop table instance; --\0\u2028"\\`
  await insertInstance('hostile', hostile)
  const row = await control.selectFrom('instance').selectAll().where('key', '=', 'hostile').executeTakeFirst()
  assert.equal(row?.value, hostile)
})
