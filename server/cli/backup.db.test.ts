// `lethe backup remove` on a real register: what is recorded as removed where nothing of a backup is seen,
// because it is gone or because its disk is not mounted.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { BackupRegister, type BackupRow } from '../backup/register.ts'
import { ConfigError, readConfig } from '../config.ts'
import type { Control } from '../control/database.ts'
import { openUsable } from '../control/open.ts'
import { operatorActor } from '../core/actor.ts'
import { systemClock } from '../core/clock.ts'
import { removeBackupById } from './backup.ts'

const folder = temporaryFolder()
const config = readConfig({ LETHE_DATA_DIR: folder })
let control: Control
let register: BackupRegister

before(async () => {
  control = await openUsable(config.control)
  register = new BackupRegister(control, systemClock)
})

after(async () => {
  await control.destroy()
  rmSync(folder, { recursive: true, force: true })
})

/** Registers a backup of which nothing is in its folder. */
async function registered(status: 'ready' | 'running', note: string | null = null): Promise<BackupRow> {
  const backupId = await register.request(config.backupDir, 30, operatorActor('command-line'))
  await register.begin(backupId)
  if (status === 'ready') await register.succeed(backupId, { takenAtMs: 0, bytes: 1, erased: [] })
  else if (note !== null) await register.note(backupId, note)
  return rowOf(backupId)
}

async function rowOf(backupId: string): Promise<BackupRow> {
  return (await register.find(backupId)) ?? assert.fail('It is not registered.')
}

const remove = (backupId: string, gone?: true) =>
  removeBackupById(config, backupId, { json: true, ...(gone && { gone }) })

async function assertRefused(backupId: string, reason: RegExp, gone?: true): Promise<void> {
  const { status } = await rowOf(backupId)
  await assert.rejects(
    remove(backupId, gone),
    (error) => error instanceof ConfigError && reason.test(error.message),
  )
  assert.equal((await rowOf(backupId)).status, status)
}

test('a backup that is not in its folder is recorded as removed only where the operator says that it is gone', async () => {
  for (const { backup_id: id } of [await registered('ready'), await registered('running', 'Not there.')]) {
    await assertRefused(id, /^Nothing of the backup .* Mount its disk and repeat; .* add --gone\.$/)
    await remove(id, true)
    assert.equal((await rowOf(id)).status, 'removed')
  }
})

test('a backup that is in its folder is not gone', async () => {
  const row = await registered('ready')
  mkdirSync(row.folder, { recursive: true })
  await assertRefused(row.backup_id, /remove it without --gone\.$/, true)
  await remove(row.backup_id)
  assert.equal((await rowOf(row.backup_id)).status, 'removed')
})

test('a backup that is being taken is not removed, nor one that the service is about to end', async () => {
  const taken = await registered('running')
  for (const gone of [undefined, true] as const) {
    await assertRefused(taken.backup_id, /is being taken; remove it when it is ready\.$/, gone)
  }
  const back = await registered('running', 'Not there.')
  mkdirSync(join(`${back.folder}.taking`), { recursive: true })
  await assertRefused(back.backup_id, /a running service ends it within two minutes/, true)
})
