// Databases of every older schema. Each has a row in every table of its schema; after the migrations the rows
// say what they said before, the columns that are new have their defaults, and the schema is that of a new
// database.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { isOnPostgres, openEmptyControlPlane } from '../../tests/control-planes.ts'
import { controlTables } from './copy.ts'
import type { Control } from './database.ts'
import { migrate, migrationNames } from './migrate.ts'

type Row = Readonly<Record<string, unknown>>

const actorOf = (role: string, kind: string, id: string, name: string): Row => ({
  [`${role}_kind`]: kind,
  [`${role}_id`]: id,
  [`${role}_name`]: name,
})
const byCommand = (role: string) => actorOf(role, 'operator', 'command-line', 'command-line')
const byToken = (role: string) => actorOf(role, 'token', 'tok_1', 'ci (x)')
const chained = { tenant_id: 'acme', seq: 1, entry: '{"seq":1}', hash: 'h' }
const held = { tenant_id: 'acme', signals: '["logs"]', range_start_ns: '1', range_end_ns: '9' }

/** A row of every table, as the newest schema has it. */
const newest = {
  organisations: { tenant_id: 'acme', name: 'Acme “Ltd”', placement: 3, created_at_ms: 1_763_700_000_000 },
  access_tokens: {
    ...{ id: 'tok_1', tenant_id: 'acme', name: 'ci', role: 'admin', prefix: 'lethe_', secret_hash: 's' },
    ...{ created_at_ms: 5, expires_at_ms: 90, revoked_at_ms: null, ...byCommand('created_by') },
    ...{ made_with: null, root_id: 'tok_1', line_expires_at_ms: 90, last_used_at_ms: 70 },
  },
  sessions: {
    ...{ id: 'ses_1', tenant_id: 'acme', token_id: 'tok_1', secret_hash: 'c' },
    ...{ created_at_ms: 1, seen_at_ms: 2, ends_at_ms: 3 },
  },
  sign_in_codes: { code_hash: 'k', tenant_id: 'acme', token_id: 'tok_1', ends_at_ms: 4 },
  deletion_requests: {
    ...{ request_id: 'del_1', tenant_id: 'acme', scope: 'range', signals: '["logs"]' },
    ...{ range_start_ns: null, range_end_ns: '1763700000000000001', reason: 'other', note: 'a\nb' },
    ...{ created_at_ms: 10, idempotency_key: 'once', selection_hash: 'sh', status: 'completed' },
    ...{ hidden_at_ms: 11, removed_at_ms: 12, verified_at_ms: 13, finished_at_ms: 14, attempts: 2 },
    ...{ crashes: 1, retry_at_ms: null, blocked_reason: null, progress: '{"rows":7}' },
    ...{ starts_at_ms: 10, approve_by_ms: 20, approved_at_ms: 15, refuse_late: 1, late_rows: 8 },
    ...{ attempts_forgiven: 1, has_mark: 1, came_back: 1, seq: 1 },
    ...byToken('requested_by'),
    ...byCommand('approved_by'),
  },
  deletion_steps: {
    ...{ request_id: 'del_1', ordinal: 0, store: 'otel_logs', action: 'drop', partition_id: 'p' },
    ...{ rows: 4_000_000_000, bytes: 2 ** 52, done_at_ms: 13, kept_holds: '["hld_1"]' },
  },
  deletion_previews: {
    ...{ preview_id: 'prv_1', tenant_id: 'acme', selection_hash: 'sh', row_counts: '{}' },
    ...{ created_at_ms: 1, expires_at_ms: 2 },
  },
  deletion_policies: {
    ...{ tenant_id: 'acme', approval: 'always', pending_approval: 'none', pending_from_ms: 6 },
  },
  legal_holds: {
    ...{ ...held, hold_id: 'hld_1', case_ref: 'case', review_at_ms: null, placed_at_ms: 1 },
    ...{ released_at_ms: 2, ...byCommand('placed_by'), ...byToken('released_by') },
  },
  retention_policies: { tenant_id: 'acme', signal: 'logs', days: 30 },
  retention_changes: {
    ...{ tenant_id: 'acme', signal: 'logs', change_id: 'rch_1', days: 7 },
    ...{ requested_at_ms: 1, approve_by_ms: 2, ...byToken('requested_by') },
  },
  signing_keys: { kid: 'k1', public_jwk: '{}', private_jwk: 'sealed', created_at_ms: 1, retired_at_ms: null },
  certificates: { request_id: 'del_1', tenant_id: 'acme', jws: 'a.b.c', issued_at_ms: 14 },
  backups: {
    ...{ backup_id: 'bak_1', folder: '/backups/bak_1', status: 'ready', requested_at_ms: 1 },
    ...{ taken_at_ms: 2, expires_at_ms: 3, bytes: 4, error: null, removed_at_ms: null, order_known: 1 },
    ...byCommand('requested_by'),
  },
  erasure_backups: { request_id: 'del_1', backup_id: 'bak_1' },
  ledger_entries: chained,
  audit_entries: chained,
  detectors: {
    ...{ id: 'det_1', tenant_id: 'acme', name: 'd', metric_key: 'm', method_key: 'threshold' },
    ...{ params: '{"k":3}', scope: '{}', window_minutes: 60, schedule_minutes: 5, enabled: 1 },
    ...{ is_system: 0, last_run_at_ms: 1, last_status: 'ok', last_note: null, next_run_at_ms: 2 },
    ...{ created_at_ms: 1, revision: 4, tuning_revision: 2 },
  },
  anomalies: {
    ...{ id: 'ano_1', tenant_id: 'acme', detector_id: 'det_1', group_key: '{"service":"é"}' },
    ...{ metric_key: 'm', signal: 'logs', started_at_ns: '10', ended_at_ns: null, seen_until_ns: '20' },
    ...{ peak_at_ns: '15', value: 0.1, expected: null, lower: -1.5, upper: 1e-7, score: 3, reason: 'r' },
    ...{ read_from_ns: '1', unread_ns: '[]', created_at_ms: 1, updated_at_ms: 2, muted: 1 },
    ...{ edge_factor: 1.25, verdict: 'real', verdict_note: 'n', verdict_at_ms: 3, judged_by: '4.2' },
    ...byToken('verdict_by'),
  },
  held_anomaly_versions: {
    ...{ anomaly_id: 'ano_1', version: 1, tenant_id: 'acme', detector_id: 'det_1', holds: '["hld_1"]' },
    record: JSON.stringify({ id: 'ano_1', ...actorOf('verdict_by', 'token', 'tok_1', 'ci (x)') }),
    ...{ replaced_at_ms: 2, ...actorOf('replaced_by', 'system', 'detection', 'detection') },
  },
  ingest_quotas: { tenant_id: 'acme', rows_per_second: 5, bytes_per_day: null },
  ingest_usage: {
    ...{ tenant_id: 'acme', day: '2026-11-21', bytes: 1, rows_accepted: 2, rows_rejected: 3 },
    requests_refused: 4,
  },
  detector_mutes: {
    ...{ id: 'mut_1', tenant_id: 'acme', detector_id: null, group_key: null, from_ns: '1' },
    ...{ until_ns: null, weekly: null, note: null, created_at_ms: 1, ...byToken('created_by') },
  },
  leases: { name: 'deletion', holder: 'folder:x', until_ms: 1 },
  instance: { key: 'data_folder', value: 'secret' },
} satisfies Readonly<Record<(typeof controlTables)[number], Row>>

/** What rows have in columns that their schema did not have. */
const defaults: Row = {
  ...{ refuse_late: 0, late_rows: 0, attempts_forgiven: 0, has_mark: 0, came_back: 0, order_known: 0 },
  ...{ muted: 0, tuning_revision: 0, seq: 1, kept_holds: '[]' },
}

/** What a migration computes for older rows in place of a default. */
const computed: Readonly<Record<string, Row>> = {
  access_tokens: { root_id: 'tok_1', line_expires_at_ms: 90 },
}

const actorText = (row: Row, role: string): unknown => {
  const [kind, id, name] = ['kind', 'id', 'name'].map((part) => row[`${role}_${part}`])
  return kind === 'token' ? `token:${name} (${id})` : `${kind}:${id}`
}

/** The row as an older schema has it, in that schema's columns. */
function rowIn(columns: readonly string[], row: Row): Row {
  return Object.fromEntries(
    columns.map((column) => {
      if (column === 'record' && columns.includes('replaced_by')) {
        return [column, JSON.stringify({ id: 'ano_1', verdict_by: 'token:ci (x) (tok_1)' })]
      }
      return [column, `${column}_kind` in row ? actorText(row, column) : row[column]]
    }),
  )
}

/** The row after all migrations, where its schema had these columns. */
function rowAfter(table: string, columns: readonly string[], row: Row): Row {
  const [had, made] = [new Set(columns), computed[table] ?? {}]
  const hadActor = (column: string) => had.has(column.replace(/_(?:kind|id|name)$/, ''))
  const after = Object.entries(row).map(([column, value]) =>
    had.has(column) || hadActor(column)
      ? [column, value]
      : [column, made[column] ?? defaults[column] ?? null],
  )
  return Object.fromEntries(after)
}

async function columnsIn(control: Control): Promise<Map<string, string[]>> {
  const tables = await control.introspection.getTables()
  return new Map(tables.map(({ name, columns }) => [name, columns.map((column) => column.name)]))
}

async function insertEverywhere(control: Control): Promise<Map<string, string[]>> {
  const columns = await columnsIn(control)
  for (const table of controlTables) {
    const known = columns.get(table)
    if (known === undefined) continue
    const row = rowIn(known, newest[table])
    const names = sql.join(Object.keys(row).map((column) => sql.ref(column)))
    await sql`insert into ${sql.table(table)} (${names}) values (${sql.join(Object.values(row))})`.execute(
      control,
    )
  }
  return columns
}

async function rowsOf(control: Control, table: string): Promise<Row[]> {
  const { rows } = await sql<Row>`select * from ${sql.table(table)}`.execute(control)
  return rows.map((row) => ({ ...row }))
}

/** Columns of every table with their type and whether they may be null, in the order of their names. */
async function schemaOf(control: Control): Promise<unknown> {
  const tables = await control.introspection.getTables()
  return Object.fromEntries(
    tables.map(({ name, columns }) => [
      name,
      columns.map((column) => `${column.name} ${column.dataType} ${column.isNullable}`).sort(),
    ]),
  )
}

/** The first schema that a control plane on PostgreSQL has had; earlier ones are files of SQLite. */
const firstOnPostgres = '0014-same-schema'
const olderSchemas = isOnPostgres ? migrationNames.filter((name) => name >= firstOnPostgres) : migrationNames

for (const schema of olderSchemas) {
  test(`a database of the schema ${schema} keeps every row`, async (t) => {
    const { close, control } = await openEmptyControlPlane()
    t.after(close)
    await migrate(control, schema)
    const columns = await insertEverywhere(control)
    await migrate(control)
    for (const table of controlTables) {
      const had = columns.get(table)
      const expected = had === undefined ? [] : [rowAfter(table, had, newest[table])]
      assert.deepEqual(await rowsOf(control, table), expected, table)
    }
  })
}

test('every table of the newest schema is known to those who copy it', async (t) => {
  const { close, control } = await openEmptyControlPlane()
  t.after(close)
  await migrate(control)
  assert.deepEqual([...(await columnsIn(control)).keys()].sort(), [...controlTables, 'control_moves'].sort())
})

/** What early versions had recorded, and what their schema lacked beside the one of today. All are SQLite. */
const earlyVersions: readonly (readonly [what: string, until: string, changes: readonly string[]])[] = [
  [
    'the first commits',
    '0001-foundation',
    [
      'alter table anomalies drop column value',
      'alter table anomalies add column value double precision not null default 0',
      'alter table deletion_requests drop column crashes',
    ],
  ],
  [
    'proof without marks',
    '0002-proof',
    [
      'alter table deletion_requests drop column has_mark',
      'alter table deletion_requests drop column came_back',
      'alter table anomalies drop column unread_ns',
    ],
  ],
  ['two persons without its last index', '0007-two-persons', ['drop index access_tokens_not_revoked']],
  [
    'traffic under its first name',
    '0004-quiet',
    [`insert into kysely_migration values ('0009-traffic-by-hour', '2026-11-22T22:40:00.000Z')`],
  ],
]

for (const [what, until, changes] of isOnPostgres ? [] : earlyVersions) {
  test(`a database of an early version is brought to the same schema: ${what}`, async (t) => {
    const [early, fresh] = [await openEmptyControlPlane(), await openEmptyControlPlane()]
    t.after(() => Promise.all([early.close(), fresh.close()]))
    await migrate(early.control, until)
    for (const change of changes) await sql.raw(change).execute(early.control)
    await migrate(early.control)
    await migrate(fresh.control)
    assert.deepEqual(await schemaOf(early.control), await schemaOf(fresh.control))
  })
}

test('a database that a newer version has migrated is refused, and not changed', async (t) => {
  const { close, control } = await openEmptyControlPlane()
  t.after(close)
  await migrate(control, '0012-sessions')
  await sql`insert into kysely_migration values ('9999-of-tomorrow', '2026-11-22T22:40:00.000Z')`.execute(
    control,
  )
  const before = await schemaOf(control)
  await assert.rejects(migrate(control), {
    name: 'ControlPlaneError',
    message: /9999-of-tomorrow of a newer Lethe; this one knows schemas up to 0022/,
  })
  assert.deepEqual(await schemaOf(control), before)
})
