// The copy of a control plane in a file, as a backup has it: everything as of one moment, in the same schema,
// whatever database it comes from.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { sql } from 'kysely'
import { openSecondHandle, openSharedControlPlane } from '../../tests/control-planes.ts'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { withTurns } from '../../tests/with-turns.ts'
import { controlTables, digestTable } from './copy.ts'
import type { Control } from './database.ts'
import { dialectOf } from './dialect.ts'
import { copyThrough, copyToFile } from './file-copy.ts'
import { migrationNames } from './migrate.ts'
import { migrationsIn } from './migration-history.ts'

const plane = await openSharedControlPlane()
const { control } = plane
const another = plane.another()
const folder = temporaryFolder()
after(async () => {
  await plane.close()
  rmSync(folder, { recursive: true, force: true })
})

const put = (on: Control, key: string, value: string) =>
  on.insertInto('instance').values({ key, value }).execute()

/** Telemetry and names can have any character, and numbers every value. */
const hostile = ['nul \0 inside', '\u0001 and \u00010', 'é ü 中 😀', `quote ' " \\`, '']

async function fill(): Promise<void> {
  for (const [at, text] of hostile.entries()) await put(control, `hostile ${at} ${text}`, text)
  // More than a page.
  for (let at = 0; at < 1_203; at++) await put(control, `row ${at}`, `value ${at}`)
  const entry = { tenant_id: 'acme', seq: 1, entry: '{"z":1,"a":2}', hash: 'h' }
  await control.insertInto('ledger_entries').values(entry).execute()
  await control
    .insertInto('leases')
    .values({ name: 'big', holder: '', until_ms: Number.MAX_SAFE_INTEGER })
    .execute()
}

async function digests(of: Control): Promise<unknown> {
  const found: unknown[] = []
  for (const table of controlTables) found.push([table, await digestTable(of, table)])
  return found
}

async function withCopy<T>(name: string, work: (copy: Control) => Promise<T>): Promise<T> {
  const copy = openSecondHandle(join(folder, name))
  try {
    return await work(copy)
  } finally {
    await copy.destroy()
  }
}

test('a copy is one file with every row as it is, and nothing that was deleted', async () => {
  await fill()
  await put(control, 'deleted', 'never-in-a-copy '.repeat(2_000))
  await control.deleteFrom('instance').where('key', '=', 'deleted').execute()
  await copyToFile(control, join(folder, 'whole'))
  assert.deepEqual(readdirSync(folder), ['whole'])
  assert.ok(!readFileSync(join(folder, 'whole')).includes('never-in-a-copy'))
  const expected = await digests(control)
  await withCopy('whole', async (copy) => {
    assert.deepEqual(await digests(copy), expected)
    assert.deepEqual(await migrationsIn(copy), migrationNames)
    await assert.rejects(sql`update ledger_entries set hash = 'x'`.execute(copy), /append-only/)
  })
})

test('a copy is as of one moment, also of what others write meanwhile', async () => {
  let isCopying = true
  let written = 0
  // A row of the table that is copied first and one of the last, in one transaction: a copy has both or none.
  const writing = (async () => {
    for (; isCopying; written++) {
      const name = `pair ${written}`
      await another.transaction().execute(async (trx) => {
        await trx
          .insertInto('organisations')
          .values({ tenant_id: name, name, placement: 0, created_at_ms: 0 })
          .execute()
        await put(trx, name, '')
      })
      // On SQLite no statement waits, and the loop would keep the end of the copy from the test.
      await nextRound()
    }
  })()
  await copyToFile(control, join(folder, 'meanwhile'))
  isCopying = false
  await writing
  assert.ok(written > 0)
  await withCopy('meanwhile', async (copy) => {
    const first = await copy.selectFrom('organisations').select('name').orderBy('name').execute()
    const last = await copy
      .selectFrom('instance')
      .select('key as name')
      .where('key', 'like', 'pair %')
      .orderBy('key')
      .execute()
    assert.deepEqual(first, last)
  })
})

test('other work of the event loop goes on while a copy is made', async () => {
  const { turns } = await withTurns(() => copyToFile(control, join(folder, 'beside')))
  assert.ok(turns > 0)
})

test('an existing file is not replaced, and a copy that fails has no row', async () => {
  await copyToFile(control, join(folder, 'once'))
  const before = readFileSync(join(folder, 'once'))
  await assert.rejects(copyToFile(control, join(folder, 'once')))
  assert.deepEqual(readFileSync(join(folder, 'once')), before)
  await assert.rejects(copyToFile(control, join(folder, 'no such folder', 'copy')))
  assert.ok(!existsSync(join(folder, 'no such folder')))
})

test('the size that is asked for before a copy has room for it', async () => {
  const bytes = await dialectOf(control).sizeBytes(control)
  await copyToFile(control, join(folder, 'sized'))
  const taken = readFileSync(join(folder, 'sized')).length
  assert.ok(taken <= bytes, `${taken} of ${bytes}`)
})

test('a copy that is written elsewhere first is the same, and nothing stays there, whatever happens', async () => {
  const scratch = join(folder, 'scratch.db')
  writeFileSync(scratch, 'left by a crash')
  await copyThrough(scratch, control, join(folder, 'through.db'))
  assert.equal(existsSync(scratch), false)
  await withCopy('through.db', async (copy) => assert.deepEqual(await digests(copy), await digests(control)))
  await assert.rejects(copyThrough(scratch, control, join(folder, 'no', 'through.db')), { code: 'ENOENT' })
  await assert.rejects(copyThrough(scratch, control, join(folder, 'through.db')), { code: 'EEXIST' })
  assert.equal(existsSync(scratch), false)
})
