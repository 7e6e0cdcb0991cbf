// The same rows in SQLite and in PostgreSQL: every text comes back as it was, in the same order, and so does
// every number; chains have the same hashes, and their filters find the same entries. A run that fails prints
// its seed.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { openPostgresPlane } from '../../../tests/postgres-plane.ts'
import { findBreak } from '../../audit/chain.ts'
import { readChainPage } from '../../audit/chain-page.ts'
import { appendAudit, readChain } from '../../audit/log.ts'
import { actorText, operatorActor, tokenActor } from '../../core/actor.ts'
import { openControlAt } from '../control-address.ts'
import type { Control } from '../database.ts'
import { migrate } from '../migrate.ts'
import { transact } from '../transaction.ts'

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

/** The rows of one driver have no prototype. */
const plain = <T extends object>(rows: readonly T[]) => rows.map((row) => ({ ...row }))

/** SQLite has no minus zero: what is stored as -0 is 0 there, as it is in JSON. */
const doubles = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)

async function scoresIn(control: Control, values: readonly number[], edge: number) {
  await control.deleteFrom('anomalies').execute()
  const row = { tenant_id: 'acme', detector_id: 'd', group_key: '{}', metric_key: 'm', signal: 'logs' }
  const times = {
    started_at_ns: '1',
    seen_until_ns: '1',
    peak_at_ns: '1',
    created_at_ms: 0,
    updated_at_ms: 0,
  }
  for (const [at, score] of values.entries()) {
    const id = String(at).padStart(2, '0')
    await control
      .insertInto('anomalies')
      .values({ ...row, ...times, id, reason: 'r', score, value: score, expected: null, upper: -score + 0 })
      .execute()
  }
  const all = control.selectFrom('anomalies').select(['id', 'score', 'value', 'expected', 'upper'])
  const { count, peak } = await control
    .selectFrom('anomalies')
    .select(({ fn }) => [fn.count<number>('id').as('count'), fn.max('score').as('peak')])
    .executeTakeFirstOrThrow()
  return {
    rows: plain(await all.orderBy('score', 'desc').orderBy('id').execute()),
    above: plain(await all.where('score', '>', edge).orderBy('id').execute()),
    count,
    peak,
  }
}

test('both databases give back every double to its last bit, and compare and order them in one way', async () => {
  const given = fc.uniqueArray(doubles, { minLength: 1, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(given, doubles, async (values, edge) => {
      const [ours, theirs] = [
        await scoresIn(sqlite, values, edge),
        await scoresIn(plane.control, values, edge),
      ]
      assert.deepEqual(theirs, ours)
      assert.deepEqual(
        theirs.rows.map(({ score }) => score),
        values.toSorted((a, b) => b - a),
      )
      for (const { score, upper, value } of theirs.rows) assert.deepEqual([value, upper], [score, -score + 0])
    }),
    { numRuns: 25, examples: [[[5e-324, Number.MAX_VALUE, 0.1 + 0.2, 2 ** 53 + 2], 0.3]] },
  )
})

/** A chain takes no half of a pair of surrogates. */
const wellFormed = fc.string({ unit, maxLength: 6 }).map((text) => text.toWellFormed())

const entries = fc.array(
  fc.record({
    actor: fc.oneof(
      wellFormed.map((name) => tokenActor('tok_1', name)),
      fc.constant(operatorActor('command-line')),
    ),
    action: fc.constantFrom(
      'token.created',
      'token.revoked',
      'tokens.listed',
      'token_x.created',
      'quota.changed',
    ),
    target: fc.option(wellFormed),
    outcome: fc.constantFrom('accepted', 'refused'),
    facts: fc.dictionary(wellFormed, fc.oneof(wellFormed, fc.maxSafeInteger(), doubles)),
  }),
  { minLength: 1, maxLength: 6 },
)
let chains = 0

test('both databases keep the same chain with the same hashes, and filter it in one way', async () => {
  await fc.assert(
    fc.asyncProperty(entries, async (events) => {
      const tenantId = `chain-${++chains}`
      const answers = []
      for (const control of [sqlite, plane.control]) {
        for (const [at, event] of events.entries()) {
          await transact(control, (trx) => appendAudit(trx, tenantId, at * 1_000, event))
        }
        const chain = await readChain(control, 'audit_entries', tenantId)
        assert.equal(findBreak(chain), null)
        const { actor, target } = events[0] ?? assert.fail()
        const found = []
        for (const fields of [{ action: 'token' }, { actor: actorText(actor) }, { target: target ?? '' }]) {
          const filter = { range: { startNs: 0n, endNs: 3_500_000_000n }, fields }
          const page = { limit: 10, before: null, filter, turn: async () => {} }
          const part = await readChainPage(control, 'audit_entries', tenantId, page)
          found.push(part.entries.map(({ seq }) => seq))
        }
        answers.push({ chain: plain(chain), found })
      }
      const [ours, theirs] = answers
      assert.deepEqual(theirs, ours)
    }),
    { numRuns: 40 },
  )
})

test('a statement with more values than the protocol counts is refused before it is sent', async () => {
  const keys = Array.from({ length: 65_536 }, (_, at) => String(at))
  const query = plane.control.selectFrom('instance').selectAll().where('key', 'in', keys)
  await assert.rejects(query.execute(), /65536 values/)
})
