// A control plane of the version before tokens knew their roots: the migration walks each line to its root
// and computes the earliest expiry on the way; a line that it can't follow has no root.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { openEmptyControlPlane } from '../../tests/control-planes.ts'
import { migrate, migratorOf } from './migrate.ts'
import { foundation } from './migrations/0001-foundation.ts'
import { proof } from './migrations/0002-proof.ts'
import { quotas } from './migrations/0003-quotas.ts'
import { quiet } from './migrations/0004-quiet.ts'
import { order } from './migrations/0005-order.ts'
import { trafficByHour } from './migrations/0006-traffic-by-hour.ts'

const before = {
  '0001-foundation': foundation,
  '0002-proof': proof,
  '0003-quotas': quotas,
  '0004-quiet': quiet,
  '0005-order': order,
  '0006-traffic-by-hour': trafficByHour,
}

/** Tokens of an old control plane as `[id, created_by, expiry, tenant]`. Returns them after the migration. */
async function migrated(
  rows: readonly (readonly [id: string, createdBy: string, expiresAtMs?: number | null, tenantId?: string])[],
) {
  const { close, control } = await openEmptyControlPlane()
  try {
    const migrator = migratorOf(control, before)
    assert.equal((await migrator.migrateToLatest()).error, undefined)
    for (const tenantId of ['acme', 'globex']) {
      await sql`insert into organisations values (${tenantId}, ${tenantId}, 0, 0)`.execute(control)
    }
    for (const [id, createdBy, expiresAtMs = null, tenantId = 'acme'] of rows) {
      await sql`insert into access_tokens values
        (${id}, ${tenantId}, 'x', 'admin', '', ${id}, 0, ${createdBy}, ${expiresAtMs}, null)`.execute(control)
    }
    await migrate(control)
    const found = await control
      .selectFrom('access_tokens')
      .select(['id', 'made_with', 'root_id', 'expires_at_ms', 'line_expires_at_ms'])
      .execute()
    return new Map(found.map((row) => [row.id, row]))
  } finally {
    await close()
  }
}

const rootsOf = (found: Awaited<ReturnType<typeof migrated>>) =>
  Object.fromEntries([...found].map(([id, { root_id }]) => [id, root_id]))

test('each token has the root of its line, with any name and any order of rows', async () => {
  const found = await migrated([
    ['tok_c', 'token:x (tok_fake) (tok_b)'],
    ['tok_b', 'token:child (tok_a)'],
    ['tok_a', 'operator:command-line'],
    ['tok_d', 'operator:first-start'],
    ['tok_e', 'token:first owner (tok_d)'],
  ])
  assert.deepEqual(rootsOf(found), {
    tok_a: 'tok_a',
    tok_b: 'tok_a',
    tok_c: 'tok_a',
    tok_d: 'tok_d',
    tok_e: 'tok_d',
  })
  assert.deepEqual(
    ['tok_a', 'tok_c'].map((id) => found.get(id)?.made_with),
    [null, 'tok_b'],
  )
})

test('a line of 5,000 generations is followed to its root', async () => {
  const ids = Array.from({ length: 5_000 }, (_, at) => `tok_${at.toString(32)}`)
  const found = await migrated(
    ids.map((id, at) => [id, at === 0 ? 'operator' : `token:x (${ids[at - 1]})`] as const),
  )
  assert.deepEqual(new Set(Object.values(rootsOf(found))), new Set([ids[0]]))
})

test('a circle, a missing ancestor, another organisation’s and a name without an id leave no root', async () => {
  const found = await migrated([
    ['tok_a', 'token:x (tok_b)'],
    ['tok_b', 'token:x (tok_a)'],
    ['tok_c', 'token:x (tok_b)'],
    ['tok_d', 'token:x (tok_gone)'],
    ['tok_e', 'token:x (tok_d)'],
    ['tok_f', 'operator', null, 'globex'],
    ['tok_g', 'token:x (tok_f)'],
    ['tok_h', 'token:nameless'],
    ['tok_i', 'operator'],
  ])
  const { tok_f, tok_i, ...unknown } = rootsOf(found)
  assert.deepEqual([tok_f, tok_i], ['tok_f', 'tok_i'])
  assert.deepEqual(new Set(Object.values(unknown)), new Set([null]))
})

test('all tokens of a line have the earliest expiry above them, and no token loses its own', async () => {
  const found = await migrated([
    ['tok_a', 'operator', 300],
    ['tok_b', 'token:x (tok_a)', 200],
    ['tok_c', 'token:x (tok_b)', null],
    ['tok_d', 'token:x (tok_a)', 900],
    ['tok_e', 'operator', null],
  ])
  const expiries = [...found.values()].map((row) => [row.expires_at_ms, row.line_expires_at_ms])
  assert.deepEqual(expiries, [
    [300, 300],
    [200, 200],
    [null, 200],
    [900, 300],
    [null, null],
  ])
})
