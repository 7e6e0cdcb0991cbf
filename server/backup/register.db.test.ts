// The register on a real control plane: what counts as holding erased telemetry, and that a folder found whole is
// known again whatever the register said.

import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import type { Control } from '../control/database.ts'
import { migrate } from '../control/migrate.ts'
import { openSqlite } from '../control/sqlite.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { BackupRegister } from './register.ts'

const startMs = 1_767_571_200_000
const dayMs = 86_400_000

let control: Control | undefined
let clock = new ManualClock(startMs)
let register: BackupRegister

beforeEach(async () => {
  await control?.destroy()
  control = openSqlite(':memory:')
  await migrate(control)
  clock = new ManualClock(startMs)
  register = new BackupRegister(control, clock)
})
after(() => control?.destroy())

const held = async (untilMs: number) => (await register.holding(untilMs)).map(({ backup_id }) => backup_id)

/** A backup taken now. */
async function taken(): Promise<string> {
  const id = await register.request('backups', 30, 'operator')
  await register.begin(id)
  await register.succeed(id, { takenAtMs: clock.nowMs(), bytes: 5 })
  await clock.advance(1000)
  return id
}

test('a backup holds what was there before it was taken, and nothing that was erased by then', async () => {
  const first = await taken()
  const erasedAtMs = clock.nowMs()
  await clock.advance(1000)
  const second = await taken()
  assert.deepEqual(await held(startMs - 1), [])
  assert.deepEqual(await held(erasedAtMs), [first])
  assert.deepEqual(await held(clock.nowMs()), [second, first])
})

test('one that is asked for or under way counts, because its moment isn’t settled', async () => {
  const id = await register.request('backups', 30, 'operator')
  assert.deepEqual(await held(startMs - dayMs), [id])
  await register.begin(id)
  assert.deepEqual(await register.holding(startMs - dayMs), [
    { backup_id: id, taken_at_ms: null, expires_at_ms: startMs + 30 * dayMs },
  ])
  await register.fail(id, 'The disk is full.')
  assert.deepEqual(await held(startMs + dayMs), [])
})

test('one that is past its time holds until it is removed', async () => {
  const id = await taken()
  await clock.advance(40 * dayMs)
  assert.deepEqual(await held(clock.nowMs()), [id])
  await register.remove(id)
  assert.deepEqual(await held(clock.nowMs()), [])
  const row = await register.find(id)
  assert.equal(row?.status, 'removed')
  assert.equal(row?.removed_at_ms, clock.nowMs())
})

test('a folder found whole is held again, whether it is unknown, half taken, failed or removed', async () => {
  const running = await register.request('backups', 30, 'operator')
  await register.begin(running)
  const failed = await register.request('backups', 30, 'operator')
  await register.fail(failed, 'The process ended.')
  const removed = await taken()
  await register.remove(removed)
  for (const backupId of [running, failed, removed, 'bak_of_a_later_day']) {
    const expiresAtMs = startMs + dayMs
    const found = { backupId, folder: 'backups/x', expiresAtMs, taken: { takenAtMs: startMs, bytes: 7 } }
    await register.adopt(found)
    await register.adopt(found)
    const row = await register.find(backupId)
    assert.deepEqual(
      [row?.status, row?.taken_at_ms, row?.bytes, row?.error, row?.removed_at_ms],
      ['ready', startMs, 7, null, null],
    )
  }
  assert.equal((await held(startMs)).length, 4)
  assert.equal((await register.find('bak_of_a_later_day'))?.expires_at_ms, startMs + dayMs)
})

test('what is known and ready is left as it is', async () => {
  const id = await taken()
  const before = await register.find(id)
  await register.adopt({
    backupId: id,
    folder: 'elsewhere',
    expiresAtMs: 0,
    taken: { takenAtMs: 0, bytes: 0 },
  })
  assert.deepEqual(await register.find(id), before)
})
