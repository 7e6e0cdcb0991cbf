// The same rows in SQLite and in PostgreSQL: every text comes back as it was, in the same order, and so does
// every number.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { openPostgresPlane } from '../../../tests/postgres-plane.ts'
import type { Control } from '../database.ts'
import { migrate } from '../migrate.ts'
import { openControlAt } from '../place.ts'

const plane = await openPostgresPlane(true)
const sqlite = openControlAt({ kind: 'sqlite', path: ':memory:' })
await migrate(sqlite)
after(async () => {
  await sqlite.destroy()
  await plane.close()
})

/** Characters that collations, encodings and our own escapes treat differently. */
const unit = fc.oneof(
  fc.constantFrom(
    '\u0000',
    '\u0001',
    '0',
    '1',
    'a',
    'B',
    'b',
    '_',
    '-',
    ' ',
    '%',
    '\\',
    "'",
    'é',
    '中',
    '😀',
    '\ud800',
  ),
  fc.string({ minLength: 1, maxLength: 1, unit: 'binary' }),
)
const texts = fc.uniqueArray(fc.string({ unit, maxLength: 8 }), {
  maxLength: 12,
  // A lone surrogate is stored as the replacement character in both.
  selector: (text) => text.toWellFormed(),
})

/** Writes the texts as keys, and returns them in the order of the database, and what follows the first. */
async function ordered(control: Control, keys: readonly string[]) {
  await control.deleteFrom('instance').execute()
  for (const key of keys) await control.insertInto('instance').values({ key, value: key }).execute()
  const all = control.selectFrom('instance').select(['key', 'value']).orderBy('key')
  const first = keys[0] ?? ''
  const after = await all.where('key', '>', first).execute()
  const same = await all.where('key', '=', first).execute()
  return [await all.execute(), after, same].map((rows) => rows.map(({ key, value }) => [key, value]))
}

test('both databases give the same texts in the same order, with every character', async () => {
  await fc.assert(
    fc.asyncProperty(texts, async (keys) => {
      const [ours, theirs] = [await ordered(sqlite, keys), await ordered(plane.control, keys)]
      assert.deepEqual(theirs, ours)
      assert.deepEqual(
        new Set(theirs[0]?.map(([key]) => key)),
        new Set(keys.map((key) => key.toWellFormed())),
      )
    }),
    { numRuns: 60 },
  )
})

async function stored(control: Control, until: number) {
  await control.deleteFrom('leases').execute()
  await control.insertInto('leases').values({ name: 'x', holder: '', until_ms: until }).execute()
  const { until_ms } = await control.selectFrom('leases').select('until_ms').executeTakeFirstOrThrow()
  return until_ms
}

test('both databases give back every whole number that JavaScript has', async () => {
  await fc.assert(
    fc.asyncProperty(fc.maxSafeInteger(), async (until) => {
      assert.equal(await stored(sqlite, until), until + 0)
      assert.equal(await stored(plane.control, until), until + 0)
    }),
    { numRuns: 40, examples: [[Number.MAX_SAFE_INTEGER], [Number.MIN_SAFE_INTEGER]] },
  )
})

test('a statement with more values than the protocol counts is refused before it is sent', async () => {
  const keys = Array.from({ length: 65_536 }, (_, at) => String(at))
  const query = plane.control.selectFrom('instance').selectAll().where('key', 'in', keys)
  await assert.rejects(query.execute(), /65536 values/)
})
