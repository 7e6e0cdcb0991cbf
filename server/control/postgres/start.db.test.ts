// Programs that start at the same time on one database: one migrates, and the others wait for it, longer than
// they wait for any other lock.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import { openSharedPostgresPlane } from '../../../tests/postgres-plane.ts'
import type { Control } from '../database.ts'
import { migrate, migrationNames, migratorOf } from '../migrate.ts'
import { migrationsIn } from '../migration-history.ts'
import { foundation } from '../migrations/0001-foundation.ts'
import { defaultLimits, openPostgres } from './postgres.ts'
import { readAddress } from './url.ts'

async function waitersOn(control: Control): Promise<number> {
  const { rows } = await sql<{ waiters: number }>`
    select count(*) as waiters from pg_locks where locktype = 'advisory' and not granted
    and database = (select oid from pg_database where datname = current_database())`.execute(control)
  return rows[0]?.waiters ?? 0
}

test('of several programs that start at once on an empty database one migrates, and each finds the newest schema', async (t) => {
  const { close, control, url } = await openSharedPostgresPlane(false)
  t.after(close)
  const modules = ['./postgres.ts', './url.ts', '../migrate.ts'].map(
    (file) => new URL(file, import.meta.url).href,
  )
  const program = `
    const [{ openPostgres }, { readAddress }, { migrate }] =
      await Promise.all(${JSON.stringify(modules)}.map((url) => import(url)))
    const control = openPostgres(readAddress(${JSON.stringify(url)}))
    await migrate(control)
    await control.destroy()`
  const started = Array.from({ length: 3 }, () =>
    promisify(execFile)(process.execPath, [
      '--disable-warning=ExperimentalWarning',
      '--input-type=module',
      '-e',
      program,
    ]),
  )
  for (const { stderr } of await Promise.all(started)) assert.equal(stderr, '')
  assert.deepEqual(await migrationsIn(control), migrationNames)
})

test('a start waits for the migration of another, longer than for any other lock', async (t) => {
  const { close, control, url } = await openSharedPostgresPlane(false)
  const second = openPostgres(readAddress(url), { ...defaultLimits, lockMs: 1, statementMs: 1_000 })
  t.after(async () => {
    await second.destroy()
    await close()
  })
  const begun = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const slow = {
    async up(db: Parameters<typeof foundation.up>[0]) {
      begun.resolve()
      await goOn.promise
      await foundation.up(db)
    },
  }
  const first = migratorOf(control, { '0001-foundation': slow }).migrateToLatest()
  await begun.promise
  const starting = migrate(second)
  const lookAt = () =>
    Promise.race([waitersOn(control), starting.then(() => assert.fail('It did not wait.'))])
  while ((await lookAt()) === 0);
  // Each look takes a part of the limit of every other lock.
  for (let looks = 0; looks < 50; looks++) assert.equal(await lookAt(), 1)
  goOn.resolve()
  assert.equal((await first).error, undefined)
  await starting
  assert.deepEqual(await migrationsIn(control), migrationNames)
})
