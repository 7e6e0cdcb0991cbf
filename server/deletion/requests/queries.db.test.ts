// What a request reports about backups: until when one may have a copy of what it erases. The control plane
// is real; the backups are a list, as the register of backups returns it.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { DeletionStatus } from '../../../contract/deletion/requests.ts'
import { openControlPlane } from '../../../tests/control-planes.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { instantText } from '../../core/clock.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { all, between, monday, requestStoreOn } from '../deletion-fixture.ts'
import { RequestQueries } from './queries.ts'
import type { KnownBackup, KnownBackups } from './request.ts'

const { control, close } = await openControlPlane()
after(close)

const nowMs = 1_763_717_400_000
const backup = (name: string, takenAtMs: number | null, expiresAtMs: number): KnownBackup => ({
  backup_id: name,
  taken_at_ms: takenAtMs,
  expires_at_ms: expiresAtMs,
})
let organisations = 0

/** All backups, and those from before a completion. */
const known = (all: readonly KnownBackup[], before: readonly KnownBackup[]): KnownBackups => ({
  all,
  fromBefore: () => before,
})

/** What a request in this state reports, read alone and in the list. */
async function clearBy(status: 'running' | 'verifying' | 'completed' | 'cancelled', backups: KnownBackups) {
  const tenantId = `organisation-${++organisations}`
  const requestStore = requestStoreOn(control, new ManualClock(nowMs))
  const asked: string[] = []
  const requests = new RequestQueries(control, async (ids) => {
    asked.push(...ids)
    return backups
  })
  const { row } = await requestStore.create(tenantId, all, {
    requester: tokenNamed('owner'),
    idempotencyKey: null,
  })
  await control
    .updateTable('deletion_requests')
    .set({ status, removed_at_ms: status === 'running' ? null : nowMs })
    .where('request_id', '=', row.request_id)
    .execute()
  const alone = await requests.get(tenantId, row.request_id)
  const [listed] = await requests.list(tenantId, { limit: 1, beforeId: null, status: null })
  assert.equal(listed?.backups_clear_by, alone.backups_clear_by)
  assert.deepEqual(asked, [row.request_id, row.request_id])
  return alone.backups_clear_by
}

test('without a backup no copy exists', async () => {
  for (const status of ['running', 'verifying', 'completed'] as const)
    assert.equal(await clearBy(status, known([], [])), null)
})

test('until the completion every backup may have a copy, also one that is still to be taken', async () => {
  const backups = known(
    [
      backup('old', nowMs - 1, nowMs + 10),
      backup('due', null, nowMs + 99),
      backup('new', nowMs + 5, nowMs + 50),
    ],
    [],
  )
  assert.equal(await clearBy('running', backups), instantText(nowMs + 99))
  assert.equal(await clearBy('verifying', backups), instantText(nowMs + 99))
})

test('after the completion only earlier backups may have a copy, whatever the clock, and the last of them to expire counts', async () => {
  const later = backup('dated after the completion', nowMs + 1, nowMs + 300)
  const earlier = backup('dated before it', nowMs - 100, nowMs + 9999)
  const before = [later, backup('another', nowMs, nowMs + 200)]
  assert.equal(await clearBy('completed', known([...before, earlier], before)), instantText(nowMs + 300))
  assert.equal(await clearBy('completed', known([...before, earlier], [])), null)
})

test('a cancelled request reports no copies', async () => {
  assert.equal(await clearBy('cancelled', known([backup('any', nowMs, nowMs + 1)], [])), null)
})

test('whether another request was attempted and is not completed is told by its status and organisation', async () => {
  const requestStore = requestStoreOn(control, new ManualClock(nowMs))
  const requests = new RequestQueries(control, async () => known([], []))
  const create = async (tenantId: string, draft = all) => {
    const made = { requester: tokenNamed('owner'), idempotencyKey: null }
    const { row } = await requestStore.create(tenantId, draft, made)
    return requests.stored(tenantId, row.request_id)
  }
  const [tenantId, elsewhere] = [`organisation-${++organisations}`, `organisation-${++organisations}`]
  const first = await create(tenantId, between(monday, monday + 1n))
  const second = await create(tenantId)
  const other = await create(elsewhere)
  const set = (status: DeletionStatus, attempts: number) =>
    control
      .updateTable('deletion_requests')
      .set({ status, attempts })
      .where('request_id', '=', first.requestId)
      .execute()
  const told = async () => [
    await requests.hasBegunAnother(first),
    await requests.hasBegunAnother(second),
    await requests.hasBegunAnother(other),
  ]
  await set('running', 0)
  assert.deepEqual(await told(), [false, false, false], 'it was not attempted')
  for (const status of ['held', 'running', 'verifying', 'incomplete', 'failed'] as const) {
    await set(status, 1)
    assert.deepEqual(await told(), [false, true, false], status)
  }
  await set('completed', 1)
  assert.deepEqual(await told(), [false, false, false], 'its parts were waited for')
})
