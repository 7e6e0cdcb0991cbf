// Filling an empty database with the control plane of a backup: everything arrives in one transaction, the
// same backup can come again, and what a database already contains is never changed.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { sql } from 'kysely'
import type { SharedTestControl } from '../../tests/control-plane.ts'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { controlTables, digestTable } from '../control/copy.ts'
import type { Control } from '../control/database.ts'
import { migrate } from '../control/migrate.ts'
import { setMark } from '../control/move-mark.ts'
import { assertEmpty, fillDatabase, isEmptyDatabase } from './fill-database.ts'

const put = (on: Control, key: string, value: string) =>
  on.insertInto('instance').values({ key, value }).execute()

/** A source with rows of more than a page, and an empty target. */
async function openPair(
  t: TestContext,
  isMigrated = true,
): Promise<{ source: SharedTestControl; target: SharedTestControl }> {
  const [source, target] = [await openSharedControlPlane(), await openSharedControlPlane(isMigrated)]
  t.after(() => Promise.all([source.close(), target.close()]))
  await put(source.control, 'data_folder', 'the secret')
  for (let at = 0; at < 700; at++) await put(source.control, `nul \0 ${at}`, 'é')
  return { source, target }
}

async function digests(of: Control): Promise<unknown> {
  const found: unknown[] = []
  for (const table of controlTables) found.push([table, await digestTable(of, table)])
  return found
}

test('an empty database gets every row, also where a command has made its tables before', async (t) => {
  for (const isMigrated of [false, true]) {
    const { source, target } = await openPair(t, isMigrated)
    assert.equal(await isEmptyDatabase(target.control), true)
    await assertEmpty(target.control, 'new')
    await fillDatabase(source.control, target.control, 'new')
    assert.equal(await isEmptyDatabase(target.control), false)
    assert.deepEqual(await digests(target.control), await digests(source.control))
  }
})

test('the same backup may come again, as after a crash, and another one is refused', async (t) => {
  const { source, target } = await openPair(t)
  await fillDatabase(source.control, target.control, 'new')
  const before = await digests(target.control)
  await fillDatabase(source.control, target.control, 'new')
  assert.deepEqual(await digests(target.control), before)
  await put(source.control, 'later', '')
  await assert.rejects(fillDatabase(source.control, target.control, 'new'), {
    name: 'BackupError',
    message: /^new contains a control plane; .* an empty database only\. Create one/,
  })
  assert.deepEqual(await digests(target.control), before)
})

test('a backup that can’t arrive completely leaves the database empty', async (t) => {
  const { source, target } = await openPair(t)
  await source.control.insertInto('leases').values({ name: 'first', holder: '', until_ms: 0 }).execute()
  await sql`create unique index values_differ on instance (value)`.execute(target.control)
  await assert.rejects(fillDatabase(source.control, target.control, 'new'))
  await sql`drop index values_differ`.execute(target.control)
  assert.equal(await isEmptyDatabase(target.control), true)
  await fillDatabase(source.control, target.control, 'new')
  assert.deepEqual(await digests(target.control), await digests(source.control))
})

test('a database that contains anything is refused and not changed', async (t) => {
  const { source, target } = await openPair(t, false)
  await migrate(target.control, '0012-sessions')
  await put(target.control, 'data_folder', 'of another installation')
  const refused = async (message: RegExp) => {
    for (const attempt of [
      () => assertEmpty(target.control, 'new'),
      () => fillDatabase(source.control, target.control, 'new'),
    ])
      await assert.rejects(attempt, { name: 'BackupError', message })
    assert.equal(await isEmptyDatabase(target.control), false)
  }
  await refused(/^new contains a control plane;/)
  const tables = (await target.control.introspection.getTables()).map(({ name }) => name)
  assert.ok(!tables.includes('control_moves'), 'another installation is not brought to a newer schema')

  await target.control.deleteFrom('instance').execute()
  await migrate(target.control)
  await setMark(target.control, { state: 'arriving', other: 'old', installation: 'ours' })
  await refused(/^new contains the part of a move;/)
})

test('tables of another program are refused', async (t) => {
  const { source, target } = await openPair(t, false)
  await sql`create table sessions (id text)`.execute(target.control)
  await assert.rejects(fillDatabase(source.control, target.control, 'new'), {
    name: 'BackupError',
    message: /^new contains a table sessions that is not Lethe’s;/,
  })
})
