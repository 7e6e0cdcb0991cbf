// The register on a real control plane: which backups may contain erased telemetry, and that a complete
// folder is recorded again whatever the register says.

import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { sql } from 'kysely'
import type { TestControl } from '../../tests/control-plane.ts'
import { openControlPlane } from '../../tests/control-planes.ts'
import type { Control } from '../control/database.ts'
import { operatorActor } from '../core/actor.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { BackupRegister } from './register.ts'

const startMs = 1_767_571_200_000
const dayMs = 86_400_000

let plane: TestControl | undefined
let clock = new ManualClock(startMs)
let register: BackupRegister

beforeEach(async () => {
  await plane?.close()
  plane = await openControlPlane()
  clock = new ManualClock(startMs)
  register = new BackupRegister(plane.control, clock)
})
after(() => plane?.close())

const idsOf = (backups: readonly { backup_id: string }[]) => backups.map(({ backup_id }) => backup_id)
const all = async () => idsOf((await register.containing()).all)
const containing = async (erasure: string) =>
  idsOf((await register.containing([erasure])).fromBefore(erasure))

/** Takes a backup now. */
async function taken(): Promise<string> {
  const id = await register.request('backups', 30, operatorActor('command-line'))
  await take(id)
  return id
}

async function take(id: string): Promise<void> {
  await register.begin(id)
  const erased = await register.completedErasures()
  await register.succeed(id, { takenAtMs: clock.nowMs(), bytes: 5, erased })
  await clock.advance(1000)
}

/** Completes an erasure now, as the ledger records it. */
async function complete(id: string): Promise<void> {
  await sql`insert into deletion_requests (request_id, tenant_id, scope, signals, created_at_ms, selection_hash, status, attempts, crashes, progress)
    values (${id}, 'acme', 'all', '[]', 0, '', 'completed', 1, 0, '{}')`.execute(openControl())
  await sql`insert into erasure_backups select ${id}, backup_id from backups
    where status in ('requested', 'running', 'ready')`.execute(openControl())
}

function openControl(): Control {
  return plane?.control ?? assert.fail()
}

test('a backup contains what existed before it was taken, and nothing that was erased by then, whatever the clock said', async () => {
  const first = await taken()
  // Each step has an earlier date than the one before it.
  await clock.advance(-400 * dayMs)
  await complete('del_1')
  await clock.advance(-400 * dayMs)
  const second = await taken()
  await clock.advance(-400 * dayMs)
  await complete('del_2')
  assert.deepEqual(await containing('del_1'), [first])
  assert.deepEqual(await containing('del_2'), [first, second].sort().reverse())
  assert.deepEqual((await all()).sort(), [first, second].sort())
})

test('a backup that is requested or running when an erasure completes counts until it is taken', async () => {
  const asked = await register.request('backups', 30, operatorActor('command-line'))
  const underWay = await register.request('backups', 30, operatorActor('command-line'))
  await register.begin(underWay)
  const erased = await register.completedErasures()
  await complete('del_1')
  assert.deepEqual(await containing('del_1'), [asked, underWay].sort().reverse())
  const [unsettled] = (await register.containing()).all
  assert.deepEqual([unsettled?.taken_at_ms, unsettled?.expires_at_ms], [null, startMs + 30 * dayMs])
  await register.succeed(underWay, { takenAtMs: clock.nowMs(), bytes: 5, erased })
  await take(asked)
  assert.deepEqual(await containing('del_1'), [underWay], 'the other one was begun afterwards')
  const failed = await register.request('backups', 30, operatorActor('command-line'))
  await complete('del_2')
  await register.fail(failed, 'The disk is full.')
  assert.deepEqual(await containing('del_2'), [asked, underWay].sort().reverse())
})

test('a backup without a list of earlier erasures counts as containing everything', async () => {
  await complete('del_1')
  const taken = { takenAtMs: startMs + dayMs, bytes: 7, erased: null }
  await register.adopt({ backupId: 'bak_old', folder: 'backups/x', expiresAtMs: startMs, taken })
  await complete('del_2')
  assert.deepEqual([await containing('del_1'), await containing('del_2')], [['bak_old'], ['bak_old']])
  await register.remove('bak_old')
  assert.deepEqual(await containing('del_1'), [])
})

test('a backup from another history of the control plane contains what it doesn’t name', async () => {
  for (const id of ['del_1', 'del_2']) await complete(id)
  const taken = { takenAtMs: startMs, bytes: 7, erased: ['del_1', 'del_that_nobody_knows'] }
  await register.adopt({ backupId: 'bak_of_then', folder: 'backups/x', expiresAtMs: startMs, taken })
  assert.deepEqual([await containing('del_1'), await containing('del_2')], [[], ['bak_of_then']])
})

test('the backups of more erasures than a statement has values are found', async () => {
  const first = await taken()
  const ids = Array.from({ length: 66_000 }, (_, number) => `del_${number}`)
  const [oldest, newest] = [ids.at(0) ?? '', ids.at(-1) ?? '']
  for (const id of [oldest, newest]) await complete(id)
  const second = await taken()
  const { all, fromBefore } = await register.containing(ids)
  assert.deepEqual(idsOf(all), [second, first])
  for (const id of [oldest, newest]) assert.deepEqual(idsOf(fromBefore(id)), [first])
  assert.deepEqual(fromBefore('del_1'), [])
})

test('an expired backup counts until it is removed', async () => {
  const id = await taken()
  await clock.advance(40 * dayMs)
  assert.deepEqual(await all(), [id])
  await register.remove(id)
  assert.deepEqual(await all(), [])
  const row = await register.find(id)
  assert.equal(row?.status, 'removed')
  assert.equal(row?.removed_at_ms, clock.nowMs())
})

test('a complete folder counts again, whether it is unknown, incomplete, failed or removed', async () => {
  const running = await register.request('backups', 30, operatorActor('command-line'))
  await register.begin(running)
  const failed = await register.request('backups', 30, operatorActor('command-line'))
  await register.fail(failed, 'The process ended.')
  const removed = await taken()
  await register.remove(removed)
  for (const backupId of [running, failed, removed, 'bak_of_a_later_day']) {
    const expiresAtMs = startMs + dayMs
    const found = {
      backupId,
      folder: 'backups/x',
      expiresAtMs,
      taken: { takenAtMs: startMs, bytes: 7, erased: [] },
    }
    await register.adopt(found)
    await register.adopt(found)
    const row = await register.find(backupId)
    assert.deepEqual(
      [row?.status, row?.taken_at_ms, row?.bytes, row?.error, row?.removed_at_ms],
      ['ready', startMs, 7, null, null],
    )
  }
  assert.equal((await all()).length, 4)
  assert.equal((await register.find('bak_of_a_later_day'))?.expires_at_ms, startMs + dayMs)
})

test('a backup that is known and ready stays unchanged', async () => {
  const id = await taken()
  const before = await register.find(id)
  await register.adopt({
    backupId: id,
    folder: 'elsewhere',
    expiresAtMs: 0,
    taken: { takenAtMs: 0, bytes: 0, erased: null },
  })
  assert.deepEqual(await register.find(id), before)
})
