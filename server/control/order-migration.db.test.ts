// A control plane of the version before requests were numbered: its requests are numbered in the order in
// which they were written, whatever their dates are, and its backups count as having everything.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { openEmptyControlPlane } from '../../tests/control-planes.ts'
import { migrate, migratorOf } from './migrate.ts'
import { foundation } from './migrations/0001-foundation.ts'
import { proof } from './migrations/0002-proof.ts'
import { quotas } from './migrations/0003-quotas.ts'
import { quiet } from './migrations/0004-quiet.ts'

test('older requests are numbered in the order they were written, and older backups have no order', async (t) => {
  const { close, control } = await openEmptyControlPlane()
  t.after(close)
  const before = {
    '0001-foundation': foundation,
    '0002-proof': proof,
    '0003-quotas': quotas,
    '0004-quiet': quiet,
  }
  const migrator = migratorOf(control, before)
  assert.equal((await migrator.migrateToLatest()).error, undefined)
  for (const [id, createdAtMs] of [
    ['del_c', 300],
    ['del_a', 100],
    ['del_b', 200],
  ] as const) {
    await sql`insert into deletion_requests (request_id, tenant_id, scope, signals, requested_by, created_at_ms, selection_hash, status, attempts, crashes, progress)
      values (${id}, 'acme', 'all', '[]', 'owner', ${createdAtMs}, '', 'completed', 1, 0, '{}')`.execute(
      control,
    )
  }
  await sql`insert into backups (backup_id, folder, status, requested_by, requested_at_ms, expires_at_ms)
    values ('bak_1', '/backups/bak_1', 'ready', 'operator', 0, 1)`.execute(control)
  await migrate(control)
  const requests = await control.selectFrom('deletion_requests').select('request_id').orderBy('seq').execute()
  assert.deepEqual(
    requests.map(({ request_id }) => request_id),
    ['del_c', 'del_a', 'del_b'],
  )
  const backups = await control.selectFrom('backups').select('order_known').execute()
  assert.deepEqual(
    backups.map(({ order_known }) => order_known),
    [0],
  )
})
