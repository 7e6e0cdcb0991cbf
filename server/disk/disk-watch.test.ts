// The watch of the disk and the reserve, on folders of this machine: a reserve larger than any disk stands
// for a full disk, and a folder that can't be created for one that refuses writes.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { silent, temporaryFolders } from '../../tests/fixtures.ts'
import { openSmallDisk, whyNoSmallDisk } from '../../tests/small-disk.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { DiskCalls } from './disk-calls.ts'
import { DiskWatch } from './disk-watch.ts'
import { Reserve } from './reserve.ts'

const newFolder = temporaryFolders()

const mebibyte = 1024 * 1024
/** More than any disk has. */
const tooMuch = 2 ** 55

const reserveIn = (folder: string, bytes: number) => new Reserve(new DiskCalls(folder), bytes)
const full = () => Object.assign(new Error('no room'), { code: 'ENOSPC' })

function watchOf(reserve: Reserve, isNeeded = true) {
  const clock = new ManualClock(0)
  return { clock, watch: new DiskWatch({ disks: [{ reserve, isNeeded }], clock, logger: silent }) }
}

test('the reserve occupies its space, and is built again after it was released', async () => {
  const folder = join(newFolder(), 'made')
  const reserve = reserveIn(folder, mebibyte)
  assert.equal(await reserve.isWhole(), false)
  assert.equal(await reserve.build(), true)
  const { size, blocks } = statSync(join(folder, 'reserve'))
  assert.equal(size, mebibyte)
  assert.ok(blocks * 512 >= mebibyte, 'it has blocks of its own')
  assert.equal(await reserve.release(), true)
  assert.equal(await reserve.release(), false)
  assert.equal(await reserve.isWhole(), false)
  assert.equal(await reserve.build(), true)
})

test('where no reserve is configured, an existing one is released', async () => {
  const folder = newFolder()
  await reserveIn(folder, mebibyte).build()
  assert.equal(await reserveIn(folder, 0).build(), true)
  assert.equal(existsSync(join(folder, 'reserve')), false)
})

test('a reserve that does not fit counts as a full disk, and nothing is left of the attempt', async () => {
  const folder = newFolder()
  const { watch } = watchOf(reserveIn(folder, tooMuch))
  watch.requireRoom()
  await watch.look()
  assert.equal(watch.fault, 'full')
  assert.match(watch.sentence ?? '', /The disk is full/)
  assert.throws(() => watch.requireRoom(), {
    code: 'storage_unavailable',
    status: 503,
    retryAfterSeconds: 10,
    message: /The disk is full/,
  })
  assert.deepEqual(readdirSync(folder), [])
})

test('a disk with only backups affects nothing else', async () => {
  const { watch } = watchOf(reserveIn(newFolder(), tooMuch), false)
  await watch.look()
  assert.equal(watch.fault, null)
})

test('a disk that does not answer is one without a reserve, and with only backups it affects nothing else', async () => {
  const loop = join(newFolder(), 'loop')
  symlinkSync(loop, loop)
  const reserve = reserveIn(join(loop, 'backups'), mebibyte)
  assert.throws(() => statSync(reserve.calls.folder, { throwIfNoEntry: false }), { code: 'ELOOP' })
  assert.deepEqual([await reserve.keptBytes(), await reserve.release()], [0, false])
  const { watch } = watchOf(reserve, false)
  await watch.look()
  assert.equal(watch.fault, null)
  const needed = watchOf(reserve)
  await needed.watch.look()
  assert.equal(needed.watch.fault, 'failing')
})

test('a folder that refuses writes is a failing disk, until it accepts them', async () => {
  const folder = join(newFolder(), 'place')
  writeFileSync(folder, 'a file where the folder should be')
  const { watch } = watchOf(reserveIn(folder, 0))
  await watch.look()
  assert.equal(watch.fault, 'failing')
  rmSync(folder)
  await watch.look()
  assert.equal(watch.fault, null)
  assert.deepEqual(readdirSync(folder), [], 'the check leaves nothing')
})

test('work that finds no space is repeated once with the reserve, which is built again afterwards', {
  skip: whyNoSmallDisk() ?? false,
}, async () => {
  const disk = openSmallDisk(16 * mebibyte)
  after(() => disk.remove())
  // Less than the same amount again is free.
  const reserve = reserveIn(disk.folder, 9 * mebibyte)
  const { watch } = watchOf(reserve)
  await watch.look()
  const keptAt: number[] = []
  const answer = await watch.withReserve(async () => {
    keptAt.push(await reserve.keptBytes())
    if (await reserve.isWhole()) throw full()
    await watch.look()
    assert.equal(await reserve.keptBytes(), 0, 'nobody takes it back from who uses it')
    return 'done'
  })
  assert.deepEqual([answer, keptAt], ['done', [9 * mebibyte, 0]])
  assert.equal(watch.fault, 'full')
  await watch.look()
  assert.ok(await reserve.isWhole())
  assert.equal(watch.fault, null)
})

test('the reserve of a disk with space again is built also while work runs that may use it', async () => {
  const reserve = reserveIn(newFolder(), mebibyte)
  const { watch } = watchOf(reserve)
  await watch.look()
  const goOn = Promise.withResolvers<void>()
  const working = watch.withReserveReady(
    async () => true,
    () => goOn.promise,
  )
  await watch.faultBehind(full())
  await reserve.release()
  assert.equal(watch.fault, 'full')
  await watch.look()
  assert.deepEqual([watch.fault, await reserve.isWhole()], [null, true])
  goOn.resolve()
  await working
})

test('work that finds no space without a reserve fails with that error, and other failures are not repeated', async () => {
  const { watch } = watchOf(reserveIn(newFolder(), 0))
  let tries = 0
  const failing = (error: Error) => async () => {
    tries++
    throw error
  }
  await assert.rejects(watch.withReserve(failing(full())), /no room/)
  await assert.rejects(watch.withReserve(failing(new Error('another'))), /another/)
  assert.equal(tries, 2)
})

test('the reserve is released for work that handles its own errors only where little is free and work is due', async () => {
  const roomy = reserveIn(newFolder(), mebibyte)
  const { watch } = watchOf(roomy)
  await watch.look()
  let isAsked = false
  const isDue = async () => {
    isAsked = true
    return true
  }
  await watch.withReserveReady(isDue, async () => assert.ok(await roomy.isWhole()))
  assert.equal(isAsked, false)

  const folder = newFolder()
  writeFileSync(join(folder, 'reserve'), 'what could be kept')
  const scarce = reserveIn(folder, tooMuch)
  const { watch: poor } = watchOf(scarce)
  await poor.withReserveReady(
    async () => false,
    async () => assert.ok((await scarce.keptBytes()) > 0),
  )
  await poor.withReserveReady(isDue, async () => assert.equal(await scarce.keptBytes(), 0))
})

test('a fault that failed work reports is known at once, and the watch notices its end', async () => {
  const { clock, watch } = watchOf(reserveIn(newFolder(), 0))
  assert.equal(await watch.faultBehind(new Error('the engine refused it')), null, 'the disk was asked')
  assert.equal(await watch.faultBehind(full()), 'full')
  assert.equal(watch.fault, 'full')
  watch.start()
  while (watch.fault !== null) {
    if (clock.waiting > 0) await clock.advance(1000)
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  await watch.stop()
  assert.equal(clock.waiting, 0)
})

/** A disk whose checks hang until `release`, because a pipe has the name of their file. */
function hangingDisk() {
  const [clock, folder] = [new ManualClock(0), newFolder()]
  const path = join(folder, 'write-probe')
  execFileSync('mkfifo', [path])
  const reserve = new Reserve(new DiskCalls(folder, clock), 0)
  /** Opens the other end; the bytes of a check fit into the pipe. */
  const release = () => open(path, 'r+')
  return { clock, reserve, release }
}

test('a disk that hangs is a failing one, and everything but its calls goes on, until it answers again', async () => {
  const { clock, release, reserve } = hangingDisk()
  const { watch } = watchOf(reserve)
  const looking = watch.look()
  while (clock.waiting === 0) await new Promise(setImmediate)
  assert.equal(watch.fault, null)
  const working = watch.withReserveReady(
    async () => true,
    async () => 'worked',
  )
  await clock.advance(30_000)
  assert.equal(await working, 'worked')
  await looking
  assert.equal(watch.fault, 'failing')
  assert.match(watch.sentence ?? '', /does not answer/)
  await watch.look()
  assert.equal(watch.fault, 'failing', 'known at once')
  const pipe = await release()
  while (watch.fault !== null) {
    await new Promise(setImmediate)
    await watch.look()
  }
  await pipe.close()
  assert.ok(watch.freeBytes > 0)
})

test('a disk with only backups that hangs affects nothing else and delays nothing twice', async () => {
  const clock = new ManualClock(0)
  const calls = new DiskCalls(newFolder(), clock)
  const disks = [
    { reserve: reserveIn(newFolder(), 0), isNeeded: true },
    { reserve: new Reserve(calls, mebibyte), isNeeded: false },
  ]
  const watch = new DiskWatch({ disks, clock, logger: silent })
  const stuck = Promise.withResolvers<void>()
  const late = calls.run(() => stuck.promise).catch((error: unknown) => error)
  const looking = watch.look()
  while (clock.waiting === 0) await new Promise(setImmediate)
  await clock.advance(30_000)
  await looking
  assert.equal(watch.fault, null)
  assert.equal(await watch.faultBehind(await late), 'failing', 'what needs it waits')
  assert.equal(watch.fault, null)
  await watch.look()
  assert.equal(
    await watch.withReserveReady(
      async () => true,
      async () => 'worked',
    ),
    'worked',
  )
  assert.deepEqual([watch.fault, clock.waiting], [null, 0])
  stuck.resolve()
})
