// The control plane's file itself. Erased values are searched for in the bytes of every file in the folder,
// after the same flush that an erasure makes.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import { temporaryFolder } from '../../../tests/fixtures.ts'
import { operatorActor } from '../../core/actor.ts'
import { actorValues } from '../actor-columns.ts'
import type { Control } from '../database.ts'
import { dialectOf } from '../dialect.ts'
import { copyToFile } from '../file-copy.ts'
import { migrate, migrationNames } from '../migrate.ts'
import { migrationsIn } from '../migration-history.ts'
import { openSqlite } from './sqlite.ts'

const folder = temporaryFolder()
const control = openSqlite(join(folder, 'control.db'))
await migrate(control)
after(async () => {
  await control.destroy()
  rmSync(folder, { recursive: true, force: true })
})

/** Files of the folder that contain the text, by name. */
function filesWith(text: string): string[] {
  return readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(text))
}

async function setOf(control: Control, pragma: string): Promise<unknown> {
  const { rows } = await sql<Record<string, unknown>>`pragma ${sql.raw(pragma)}`.execute(control)
  return Object.values(rows[0] ?? {})[0]
}

const insertInstance = (key: string, value: string) =>
  control.insertInto('instance').values({ key, value }).execute()

test('the flush is needed: before it the deleted bytes wait in the write-ahead log', async () => {
  await insertInstance('waiting', 'still-in-the-log '.repeat(500))
  await control.deleteFrom('instance').where('key', '=', 'waiting').execute()
  assert.notDeepEqual(filesWith('still-in-the-log'), [])
  await dialectOf(control).flushErased(control, ['instance'])
  assert.deepEqual(filesWith('still-in-the-log'), [])
})

test('a copy has what is stored, nothing deleted, and at most the announced size', async () => {
  const copies = temporaryFolder()
  await insertInstance('copied', 'stays-in-a-copy')
  await insertInstance('deleted', 'never-in-a-copy '.repeat(2_000))
  await control.deleteFrom('instance').where('key', '=', 'deleted').execute()
  const path = join(copies, 'copy')
  const maxBytes = await dialectOf(control).sizeBytes(control)
  await copyToFile(control, path)
  const bytes = readFileSync(path)
  assert.ok(bytes.includes('stays-in-a-copy'))
  assert.ok(!bytes.includes('never-in-a-copy'))
  assert.ok(statSync(path).size <= maxBytes, `${statSync(path).size} of ${maxBytes}`)
  await assert.rejects(copyToFile(control, path), 'an existing file is not replaced')
  assert.ok(existsSync(path))
  rmSync(copies, { recursive: true, force: true })
})

test('a flush that another reader blocks is an error and not a silent success', async () => {
  const reader = new DatabaseSync(join(folder, 'control.db'))
  try {
    reader.exec('begin')
    reader.prepare('select count(*) from instance').get()
    await insertInstance('kept', 'kept-by-a-reader')
    await sql`pragma busy_timeout = 0`.execute(control)
    await assert.rejects(dialectOf(control).flushErased(control, ['instance']), /could not be emptied/)
    reader.exec('commit')
    await dialectOf(control).flushErased(control, ['instance'])
  } finally {
    reader.close()
    await sql`pragma busy_timeout = 5000`.execute(control)
  }
})

test('a commit is on disk before it is acknowledged, and references are kept', async () => {
  assert.equal(await setOf(control, 'journal_mode'), 'wal')
  assert.equal(await setOf(control, 'synchronous'), 2)
  const token = control
    .insertInto('access_tokens')
    .values({
      id: 'tok_1',
      tenant_id: 'nobody',
      name: 'x',
      role: 'owner',
      prefix: '',
      secret_hash: 'h',
      created_at_ms: 0,
      ...actorValues('created_by', operatorActor('test')),
      expires_at_ms: null,
      revoked_at_ms: null,
    })
    .execute()
  await assert.rejects(token, /FOREIGN KEY/)
})

test('a repeated query returns what another process has written meanwhile, and new columns', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'shared.db')
  const [ours, theirs] = [openSqlite(path), openSqlite(path)]
  await migrate(ours)
  const ask = async () => {
    const rows = await ours.selectFrom('instance').selectAll().where('key', '=', 'shared').execute()
    return rows.map((row) => ({ ...row }))
  }
  assert.deepEqual(await ask(), [])
  await theirs.insertInto('instance').values({ key: 'shared', value: 'one' }).execute()
  assert.deepEqual(await ask(), [{ key: 'shared', value: 'one' }])
  await theirs.updateTable('instance').set({ value: 'two' }).where('key', '=', 'shared').execute()
  await sql`alter table instance add column later text`.execute(theirs)
  assert.deepEqual(await ask(), [{ key: 'shared', value: 'two', later: null }])
  // A finished query blocks no flush.
  await dialectOf(theirs).flushErased(theirs, ['instance'])
  await ours.destroy()
  await theirs.destroy()
  rmSync(folder, { recursive: true, force: true })
})

test('a database that another process locks for too long is a refusal that can be retried, and nothing is written', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'busy.db')
  const [ours, theirs] = [openSqlite(path), openSqlite(path)]
  await migrate(ours)
  await sql`pragma busy_timeout = 1`.execute(ours)
  const lease = { name: 'busy', holder: 'ours', until_ms: 1 }
  await theirs.transaction().execute(async () => {
    await assert.rejects(ours.insertInto('leases').values(lease).execute(), {
      code: 'overloaded',
      status: 503,
      retryAfterSeconds: 1,
    })
  })
  await ours.insertInto('leases').values(lease).execute()
  assert.equal((await ours.selectFrom('leases').selectAll().execute()).length, 1)
  await ours.destroy()
  await theirs.destroy()
  rmSync(folder, { recursive: true, force: true })
})

/** Opens a database of its own that may grow no further than a few pages. */
async function withSmallDatabase(work: (small: Control) => Promise<void>): Promise<void> {
  const folder = temporaryFolder()
  const small = openSqlite(join(folder, 'small.db'))
  try {
    await migrate(small)
    const pages = await setOf(small, 'page_count')
    await sql`pragma max_page_count = ${sql.raw(String(pages))}`.execute(small)
    await work(small)
  } finally {
    await small.destroy()
    rmSync(folder, { recursive: true, force: true })
  }
}

const large = 'x'.repeat(100_000)

test('a full disk is refused as `storage_full`, also in a transaction, and nothing is written in part', async () => {
  await withSmallDatabase(async (small) => {
    const insert = (on: Control, key: string, value: string) =>
      on.insertInto('instance').values({ key, value }).execute()
    await assert.rejects(insert(small, 'alone', large), { code: 'storage_full', status: 507 })
    const inTransaction = small.transaction().execute(async (trx) => {
      await insert(trx, 'first', 'small')
      await insert(trx, 'second', large)
    })
    await assert.rejects(inTransaction, { code: 'storage_full', status: 507 })
    assert.deepEqual(await small.selectFrom('instance').selectAll().execute(), [])
    await small.transaction().execute((trx) => insert(trx, 'after', 'small'))
    assert.equal((await small.selectFrom('instance').selectAll().execute()).length, 1)
  })
})

test('a migration on a full disk fails with that error and not with a later one', async () => {
  const folder = temporaryFolder()
  const empty = openSqlite(join(folder, 'empty.db'))
  await sql`pragma max_page_count = 4`.execute(empty)
  await assert.rejects(migrate(empty), { code: 'storage_full' })
  await empty.destroy()
  rmSync(folder, { recursive: true, force: true })
})

test('a failed migration leaves the database unchanged, also undoing its first statements', async () => {
  const folder = temporaryFolder()
  const half = openSqlite(join(folder, 'half.db'))
  const failing = {
    async up(db: Control) {
      await sql`create table half_done (id text)`.execute(db)
      throw new Error('the power failed')
    },
  }
  const migrator = new Migrator({ db: half, provider: { getMigrations: async () => ({ failing }) } })
  assert.match(String((await migrator.migrateToLatest()).error), /the power failed/)
  const tables = (await half.introspection.getTables()).map(({ name }) => name)
  assert.ok(!tables.includes('half_done'), tables.join())
  await migrate(half)
  await half.destroy()
  rmSync(folder, { recursive: true, force: true })
})

test('of several services that start at once one migrates, and each finds the newest schema', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'started.db')
  const modules = ['./sqlite.ts', '../migrate.ts'].map((file) => new URL(file, import.meta.url).href)
  const program = `
    const [{ openSqlite }, { migrate }] = await Promise.all(${JSON.stringify(modules)}.map((url) => import(url)))
    await migrate(openSqlite(${JSON.stringify(path)}))`
  const started = Array.from({ length: 3 }, () =>
    promisify(execFile)(process.execPath, [
      '--disable-warning=ExperimentalWarning',
      '--input-type=module',
      '-e',
      program,
    ]),
  )
  for (const { stderr } of await Promise.all(started)) assert.equal(stderr, '')
  const control = openSqlite(path)
  assert.deepEqual(await migrationsIn(control), migrationNames)
  await control.destroy()
  rmSync(folder, { recursive: true, force: true })
})

test('a control plane that cannot be written is a refusal that can be retried later', async () => {
  await withSmallDatabase(async (small) => {
    await sql`pragma query_only = on`.execute(small)
    const insert = small.insertInto('instance').values({ key: 'k', value: 'v' }).execute()
    await assert.rejects(insert, { code: 'storage_unavailable', status: 503, retryAfterSeconds: 10 })
  })
})
