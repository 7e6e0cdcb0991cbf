// What a request says of backups: until when one may hold a copy of what it erases. The control plane is real, the
// backups are a list, as the register of backups gives it.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { migrate } from '../control/migrate.ts'
import { openSqlite } from '../control/sqlite.ts'
import { instantText } from '../core/clock.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { all } from './deletion-fixture.ts'
import type { HoldingBackup } from './deletion-record.ts'
import { DeletionLedger } from './ledger.ts'
import { DeletionRequests } from './requests.ts'

const control = openSqlite(':memory:')
await migrate(control)
after(() => control.destroy())

const nowMs = 1_763_717_400_000
const backup = (name: string, takenAtMs: number | null, expiresAtMs: number): HoldingBackup => ({
  backup_id: name,
  taken_at_ms: takenAtMs,
  expires_at_ms: expiresAtMs,
})
let organisations = 0

/** A request that was removed at `removedAtMs`, or not yet, as it is read alone and in its list. */
async function clearBy(removedAtMs: number | null, backups: readonly HoldingBackup[]) {
  const tenantId = `organisation-${++organisations}`
  const ledger = new DeletionLedger(control, new ManualClock(nowMs))
  const requests = new DeletionRequests(control, async () => backups)
  const { row } = await ledger.create(tenantId, all, { requester: 'owner', idempotencyKey: null }, () => {})
  const stored = await requests.stored(tenantId, row.request_id)
  await ledger.saveProgress(stored, { removedAtMs })
  const alone = await requests.get(tenantId, row.request_id)
  const [listed] = await requests.list(tenantId, { limit: 1, beforeId: null, status: null })
  assert.equal(listed?.backups_clear_by, alone.backups_clear_by)
  return alone.backups_clear_by
}

test('without a backup there is nothing to wait for', async () => {
  assert.equal(await clearBy(null, []), null)
  assert.equal(await clearBy(nowMs, []), null)
})

test('until it is removed every backup may hold it, also one that is still to be taken', async () => {
  const backups = [
    backup('old', nowMs - 1, nowMs + 10),
    backup('due', null, nowMs + 99),
    backup('new', nowMs + 5, nowMs + 50),
  ]
  assert.equal(await clearBy(null, backups), instantText(nowMs + 99))
})

test('once it is removed only backups from before may hold it, and the last of them to expire counts', async () => {
  const backups = [
    backup('before', nowMs - 100, nowMs + 300),
    backup('same moment', nowMs, nowMs + 200),
    backup('after', nowMs + 1, nowMs + 9999),
  ]
  assert.equal(await clearBy(nowMs, backups), instantText(nowMs + 300))
  assert.equal(await clearBy(nowMs, backups.slice(1)), instantText(nowMs + 200), 'in doubt it may hold it')
  assert.equal(await clearBy(nowMs, backups.slice(2)), null)
})

test('a backup that is under way may have read before the removal, so it counts', async () => {
  assert.equal(await clearBy(nowMs, [backup('under way', null, nowMs + 400)]), instantText(nowMs + 400))
})
