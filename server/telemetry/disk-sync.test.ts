// Runs the real `sync -f` on the file system of the test's folder. A test can't see that bytes have reached a
// disk; tests/power-cut cuts the power for that. It sees when a sync began, by the time that the sync keeps.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { waitFor } from '../../tests/wait-for.ts'
import { DiskSync, forgetSyncs, syncedUntilNs } from './disk-sync.ts'

let folder = ''
let disk: DiskSync
beforeEach(() => {
  folder = temporaryFolder()
  disk = new DiskSync(join(folder, 'syncs'))
})
afterEach(async () => {
  await disk.close()
  rmSync(folder, { recursive: true, force: true })
})

const timeOf = (path: string) => statSync(path, { bigint: true }).mtimeNs
const syncedUntil = async () => (await syncedUntilNs(join(folder, 'syncs'))) ?? assert.fail('nobody knows')

function write(name: string): bigint {
  const path = join(folder, name)
  writeFileSync(path, 'x')
  return timeOf(path)
}

test('what was written before a sync is older than the time that the sync keeps', async () => {
  assert.equal(await syncedUntilNs(join(folder, 'syncs')), null)
  const before = write('before')
  await disk.sync()
  await disk.close()
  assert.ok((await syncedUntil()) >= before)
})

test('callers during a sync wait for the next one, which begins afterwards, and share it', async () => {
  await disk.sync()
  // The shell blocks where it writes the start of the next sync, until the test reads.
  const begun = join(folder, 'syncs', 'sync-begun-1')
  assert.equal(spawnSync('mkfifo', [begun]).status, 0)
  const first = disk.sync()
  let written = write('meanwhile')
  while (written <= timeOf(begun)) written = write('meanwhile')
  const second = disk.sync()
  assert.equal(disk.sync(), second)
  const reader = openSync(begun, constants.O_RDONLY | constants.O_NONBLOCK)
  await first
  await second
  closeSync(reader)
  await disk.close()
  assert.ok((await syncedUntil()) >= written)
})

test('many calls, one after another and at once, all resolve, and the time advances', async () => {
  let last = 0n
  for (let round = 0; round < 5; round++) {
    const written = write(`round-${round}`)
    await Promise.all(Array.from({ length: 20 }, () => disk.sync()))
    assert.ok(written >= last)
    last = written
  }
  await disk.close()
  assert.ok((await syncedUntil()) >= last)
})

/** Removes the folder of the syncs after one, so that the next one fails. Returns the folder. */
async function syncAndRemoveFolder(): Promise<string> {
  await disk.sync()
  const syncs = join(folder, 'syncs')
  // The time is renamed into place after the sync; while that goes on, the folder might not be removed.
  await waitFor(
    () => syncedUntilNs(syncs),
    (time) => time !== null,
  )
  rmSync(syncs, { recursive: true })
  return syncs
}

test('a sync that fails rejects and leaves the time unchanged, and the next call syncs again', async () => {
  const syncs = await syncAndRemoveFolder()
  assert.ok(!existsSync(syncs))
  await assert.rejects(disk.sync(), /could not be synced/)
  assert.equal(await syncedUntilNs(syncs), null)
  mkdirSync(syncs)
  await disk.sync()
  await disk.close()
  assert.notEqual(await syncedUntilNs(syncs), null)
})

test('a caller that waits while a sync fails is not told that its data is on the disk', async () => {
  const syncs = await syncAndRemoveFolder()
  // The next sync works again.
  const failing = disk.sync().catch(() => mkdirSync(syncs))
  await assert.rejects(disk.sync(), /could not be synced/)
  await failing
  await disk.sync()
  await disk.close()
  assert.notEqual(await syncedUntilNs(syncs), null)
})

test('after forgetting the time it is unknown until when everything is on the disk', async () => {
  await disk.sync()
  await disk.close()
  await syncedUntil()
  await forgetSyncs(join(folder, 'syncs'))
  assert.equal(await syncedUntilNs(join(folder, 'syncs')), null)
})
