// A control plane of the version that stored actors as text: the migration parses every such text once.
// Responses show the same texts afterwards, chains keep every byte, and no malformed text makes two persons
// out of one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import type { TestControl } from '../../tests/control-plane.ts'
import { openControlPlane, openEmptyControlPlane } from '../../tests/control-planes.ts'
import { findBreak } from '../audit/chain.ts'
import { appendAudit, appendLedger, chainTables, readChain } from '../audit/log.ts'
import { readActorText, tokenActor } from '../core/actor.ts'
import { findRelated } from '../tenancy/lineage.ts'
import { actorTextIn, laterActorTextIn, readActor } from './actor-columns.ts'
import type { Control } from './database.ts'
import { migrate, migratorOf } from './migrate.ts'
import { foundation } from './migrations/0001-foundation.ts'
import { proof } from './migrations/0002-proof.ts'
import { quotas } from './migrations/0003-quotas.ts'
import { quiet } from './migrations/0004-quiet.ts'
import { order } from './migrations/0005-order.ts'
import { trafficByHour } from './migrations/0006-traffic-by-hour.ts'
import { twoPersons } from './migrations/0007-two-persons.ts'
import { heldRecords } from './migrations/0008-held-records.ts'

const before = {
  '0001-foundation': foundation,
  '0002-proof': proof,
  '0003-quotas': quotas,
  '0004-quiet': quiet,
  '0005-order': order,
  '0006-traffic-by-hour': trafficByHour,
  '0007-two-persons': twoPersons,
  '0008-held-records': heldRecords,
}

/** Texts that older versions wrote, and how they are parsed. */
const known = [
  ['operator:command-line', 'operator', 'command-line', 'command-line'],
  ['system:retention', 'system', 'retention', 'retention'],
  ['token:ci (tok_1a)', 'token', 'tok_1a', 'ci'],
  ['token:x (tok_fake) (tok_b)', 'token', 'tok_b', 'x (tok_fake)'],
  ['token:system:retention (tok_b)', 'token', 'tok_b', 'system:retention'],
  ['token:two\nlines (tok_b)', 'token', 'tok_b', 'two\nlines'],
] as const
/** Texts that only a person with a database shell can have written. */
const odd = [
  '',
  'owner',
  'operator',
  'token:nameless',
  'token:x (tok_A)',
  'x (tok_1a)',
  'person:x',
  'system: x',
]

async function oldControl(): Promise<TestControl> {
  const plane = await openEmptyControlPlane()
  const { control } = plane
  const migrator = migratorOf(control, before)
  assert.equal((await migrator.migrateToLatest()).error, undefined)
  await sql`insert into organisations values ('acme', 'Acme', 0, 0)`.execute(control)
  return plane
}

async function insertRequest(control: Control, id: string, by: string, approvedBy: string | null = null) {
  await sql`insert into deletion_requests (request_id, tenant_id, scope, signals, requested_by, created_at_ms, selection_hash, status, attempts, crashes, progress, approved_by)
    values (${id}, 'acme', 'all', '[]', ${by}, 0, '', 'completed', 1, 0, '{}', ${approvedBy})`.execute(
    control,
  )
}

test('every known text becomes its kind, id and name, and is shown unchanged', async (t) => {
  const { close, control } = await oldControl()
  t.after(close)
  for (const [at, [text]] of known.entries()) await insertRequest(control, `del_${at}`, text, text)
  await insertRequest(control, 'del_alone', 'operator:demo')
  await migrate(control)
  const rows = await control.selectFrom('deletion_requests').selectAll().orderBy('request_id').execute()
  const alone = rows.pop()
  assert.ok(alone)
  assert.deepEqual(
    rows.map((row) => [
      actorTextIn('requested_by', row),
      row.requested_by_kind,
      row.requested_by_id,
      row.requested_by_name,
    ]),
    known,
  )
  assert.deepEqual(
    rows.map((row) => [laterActorTextIn('approved_by', row), row.approved_by_kind, row.approved_by_id]),
    known.map(([text, kind, id]) => [text, kind, id]),
  )
  assert.equal(laterActorTextIn('approved_by', alone), null)
  assert.deepEqual([alone.approved_by_kind, alone.approved_by_id, alone.approved_by_name], [null, null, null])
})

test('a malformed text is shown unchanged, names no token and counts as related to everybody', async (t) => {
  const { close, control } = await oldControl()
  t.after(close)
  for (const id of ['tok_1a', 'tok_b']) {
    await sql`insert into access_tokens (id, tenant_id, name, role, prefix, secret_hash, created_at_ms, created_by, root_id)
      values (${id}, 'acme', 'x', 'admin', '', ${id}, 0, 'operator:command-line', ${id})`.execute(control)
  }
  for (const [at, text] of [...odd, 'token:ci (tok_1a)'].entries())
    await insertRequest(control, `del_${at}`, text)
  await migrate(control)
  const rows = await control.selectFrom('deletion_requests').selectAll().orderBy('request_id').execute()
  const requesters = rows.map((row) => readActor('requested_by', row))
  assert.deepEqual(
    requesters.slice(0, -1),
    odd.map((name) => ({ kind: 'operator', id: '', name })),
  )
  assert.deepEqual(rows.map((row) => actorTextIn('requested_by', row)).slice(0, -1), odd)
  const isRelated = await findRelated(control, 'acme', tokenActor('tok_b', 'x'), requesters)
  assert.deepEqual(requesters.map(isRelated), [...odd.map(() => true), false])
})

test('tokens, holds, changes, backups, mutes and anomalies keep their actors', async (t) => {
  const { close, control } = await oldControl()
  t.after(close)
  const [ada, ben] = ['token:ada (tok_a)', 'token:ben (tok_b)']
  await sql`insert into access_tokens (id, tenant_id, name, role, prefix, secret_hash, created_at_ms, created_by, made_with, root_id)
    values ('tok_b', 'acme', 'ben', 'admin', '', 'x', 0, ${ada}, 'tok_a', 'tok_a')`.execute(control)
  await sql`insert into legal_holds (hold_id, tenant_id, signals, case_ref, placed_by, placed_at_ms, released_by, released_at_ms)
    values ('hld_1', 'acme', '["logs"]', 'x', 'operator:command-line', 0, ${ada}, 1), ('hld_2', 'acme', '["logs"]', 'x', ${ben}, 0, null, null)`.execute(
    control,
  )
  await sql`insert into retention_changes values ('acme', 'logs', 'rch_1', 7, ${ada}, 0, 1)`.execute(control)
  await sql`insert into backups (backup_id, folder, status, requested_by, requested_at_ms, expires_at_ms)
    values ('bak_1', '/backups/bak_1', 'ready', 'system:found', 0, 1)`.execute(control)
  await sql`insert into detector_mutes (id, tenant_id, created_by, created_at_ms) values ('mut_1', 'acme', ${ben}, 0)`.execute(
    control,
  )
  const anomaly = sql`insert into anomalies (id, tenant_id, detector_id, group_key, metric_key, signal, started_at_ns, seen_until_ns, peak_at_ns, value, score, reason, created_at_ms, updated_at_ms, verdict, verdict_by)`
  await sql`${anomaly} values ('ano_1', 'acme', 'det_1', '{}', 'm', 'logs', '1', '2', '1', 0.1, 3, 'r', 0, 0, 'real', ${ada}),
    ('ano_2', 'acme', 'det_1', '{}', 'm', 'logs', '1', '2', '1', 1e-7, 3, 'r', 0, 0, null, null)`.execute(
    control,
  )
  const { rows: records } = await sql<{ id: string }>`select * from anomalies order by id`.execute(control)
  for (const record of records) {
    await sql`insert into held_anomaly_versions values
      (${record.id}, 1, 'acme', 'det_1', '["hld_2"]', ${JSON.stringify(record)}, 0, 'system:detection')`.execute(
      control,
    )
  }
  await migrate(control)

  const token = await control.selectFrom('access_tokens').selectAll().executeTakeFirstOrThrow()
  const holds = await control.selectFrom('legal_holds').selectAll().orderBy('hold_id').execute()
  const change = await control.selectFrom('retention_changes').selectAll().executeTakeFirstOrThrow()
  const backup = await control.selectFrom('backups').selectAll().executeTakeFirstOrThrow()
  const mute = await control.selectFrom('detector_mutes').selectAll().executeTakeFirstOrThrow()
  const anomalies = await control.selectFrom('anomalies').selectAll().orderBy('id').execute()
  const versions = await control
    .selectFrom('held_anomaly_versions')
    .selectAll()
    .orderBy('anomaly_id')
    .execute()
  assert.deepEqual(
    {
      token: actorTextIn('created_by', token),
      holds: holds.map((row) => [actorTextIn('placed_by', row), laterActorTextIn('released_by', row)]),
      change: actorTextIn('requested_by', change),
      backup: actorTextIn('requested_by', backup),
      mute: actorTextIn('created_by', mute),
      anomalies: anomalies.map((row) => laterActorTextIn('verdict_by', row)),
      versions: versions.map((row) => actorTextIn('replaced_by', row)),
    },
    {
      token: ada,
      holds: [
        ['operator:command-line', ada],
        [ben, null],
      ],
      change: ada,
      backup: 'system:found',
      mute: ben,
      anomalies: [ada, null],
      versions: ['system:detection', 'system:detection'],
    },
  )
  assert.deepEqual(
    versions.map(({ record }) => JSON.parse(record)),
    anomalies.map((row) => ({ ...row })),
    'a kept version is the whole row, in the current form of rows',
  )
})

test('chains keep every byte, and continue in the same form', async (t) => {
  const { close, control } = await oldControl()
  t.after(close)
  const append = (text: string) =>
    control.transaction().execute(async (trx) => {
      const actor = readActorText(text)
      const what = { actor, action: 'thing.done', target: null, outcome: 'accepted', facts: {} } as const
      await appendAudit(trx, 'acme', 0, what)
      const move = { request_id: 'del_1', actor, from_status: null, to_status: 'running', facts: {} }
      await appendLedger(trx, 'acme', 0, move)
    })
  const chains = () => Promise.all(Object.values(chainTables).map((name) => readChain(control, name, 'acme')))
  for (const text of [...known.map(([first]) => first), ...odd]) await append(text)
  const old = await chains()
  await migrate(control)
  assert.deepEqual(await chains(), old)
  await append('token:ci (tok_1a)')
  for (const chain of await chains()) {
    assert.equal(findBreak(chain), null)
    const [like, last] = [chain[2], chain.at(-1)].map((entry) => JSON.parse(entry?.text ?? '{}'))
    const { seq, prev_hash, ...rest } = last
    assert.deepEqual({ ...like, seq, prev_hash }, { ...rest, seq, prev_hash })
  }
})

test('the database refuses an unknown kind of actor, and a row without a kind', async (t) => {
  const { close, control } = await openControlPlane()
  t.after(close)
  const insert = (kind: string | null) =>
    sql`insert into retention_changes (tenant_id, signal, change_id, days, requested_at_ms, approve_by_ms, requested_by_kind)
      values ('acme', 'logs', 'x', 1, 0, 0, ${kind})`.execute(control)
  await assert.rejects(insert('robot'), /check/i)
  await assert.rejects(insert(null), /not.null/i)
  await assert.rejects(
    sql`update legal_holds set released_by_kind = 'robot'`.execute(control).then(async () => {
      await sql`insert into legal_holds (hold_id, tenant_id, signals, case_ref, placed_at_ms, released_by_kind)
        values ('hld_1', 'acme', '[]', 'x', 0, 'robot')`.execute(control)
    }),
    /check/i,
  )
})
