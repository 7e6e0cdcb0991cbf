// The watch over the disk and the reserve, on folders of this machine: a reserve that no disk has the room
// for stands for a full one, and a folder that can't be made for one that takes no writes.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { silent, temporaryFolders } from '../../tests/fixtures.ts'
import { openSmallDisk, whyNoSmallDisk } from '../../tests/small-disk.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { DiskWatch } from './disk-watch.ts'
import { Reserve } from './reserve.ts'

const newFolder = temporaryFolders()

const mebibyte = 1024 * 1024
/** More than any disk has. */
const tooMuch = 2 ** 55

const full = () => Object.assign(new Error('no room'), { code: 'ENOSPC' })

function watchOf(reserve: Reserve, isNeeded = true) {
  const clock = new ManualClock(0)
  return { clock, watch: new DiskWatch({ disks: [{ reserve, isNeeded }], clock, logger: silent }) }
}

test('the reserve takes up the room it is said to, and is built anew where it was let go', async () => {
  const folder = join(newFolder(), 'made')
  const reserve = new Reserve(folder, mebibyte)
  assert.equal(reserve.isWhole, false)
  assert.equal(await reserve.build(), true)
  const { size, blocks } = statSync(join(folder, 'reserve'))
  assert.equal(size, mebibyte)
  assert.ok(blocks * 512 >= mebibyte, 'it has blocks of its own')
  assert.equal(reserve.release(), true)
  assert.equal(reserve.release(), false)
  assert.equal(reserve.isWhole, false)
  assert.equal(await reserve.build(), true)
})

test('where no reserve is kept, one that was there is let go', async () => {
  const folder = newFolder()
  await new Reserve(folder, mebibyte).build()
  assert.equal(await new Reserve(folder, 0).build(), true)
  assert.equal(existsSync(join(folder, 'reserve')), false)
})

test('a reserve that there is no room for counts as a full disk, and nothing is left of the try', async () => {
  const folder = newFolder()
  const { watch } = watchOf(new Reserve(folder, tooMuch))
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

test('a disk that has only backups on it holds up nobody', async () => {
  const { watch } = watchOf(new Reserve(newFolder(), tooMuch), false)
  await watch.look()
  assert.equal(watch.fault, null)
})

test('a folder that takes no writes is a failing disk, until it takes them', async () => {
  const folder = join(newFolder(), 'place')
  writeFileSync(folder, 'a file where the folder should be')
  const { watch } = watchOf(new Reserve(folder, 0))
  await watch.look()
  assert.equal(watch.fault, 'failing')
  rmSync(folder)
  await watch.look()
  assert.equal(watch.fault, null)
  assert.deepEqual(readdirSync(folder), [], 'the look leaves nothing')
})

test('work that finds no room is done once more with the reserve, which is kept again afterwards', {
  skip: whyNoSmallDisk() ?? false,
}, async () => {
  const disk = openSmallDisk(16 * mebibyte)
  after(() => disk.remove())
  // Less than once more as much is free.
  const reserve = new Reserve(disk.folder, 9 * mebibyte)
  const { watch } = watchOf(reserve)
  await watch.look()
  const keptAt: number[] = []
  const answer = await watch.withReserve(async () => {
    keptAt.push(reserve.keptBytes)
    if (reserve.isWhole) throw full()
    await watch.look()
    assert.equal(reserve.keptBytes, 0, 'nobody takes it back from who uses it')
    return 'done'
  })
  assert.deepEqual([answer, keptAt], ['done', [9 * mebibyte, 0]])
  assert.equal(watch.fault, 'full')
  await watch.look()
  assert.ok(reserve.isWhole)
  assert.equal(watch.fault, null)
})

test('a disk that has room again is left also while work goes on that may use the reserve', async () => {
  const reserve = new Reserve(newFolder(), mebibyte)
  const { watch } = watchOf(reserve)
  await watch.look()
  const goOn = Promise.withResolvers<void>()
  const working = watch.withReserveReady(
    async () => true,
    () => goOn.promise,
  )
  await watch.faultBehind(full())
  reserve.release()
  assert.equal(watch.fault, 'full')
  await watch.look()
  assert.deepEqual([watch.fault, reserve.isWhole], [null, true])
  goOn.resolve()
  await working
})

test('work that finds no room without a reserve fails with that, and other failures are not repeated', async () => {
  const { watch } = watchOf(new Reserve(newFolder(), 0))
  let tries = 0
  const failing = (error: Error) => async () => {
    tries++
    throw error
  }
  await assert.rejects(watch.withReserve(failing(full())), /no room/)
  await assert.rejects(watch.withReserve(failing(new Error('another'))), /another/)
  assert.equal(tries, 2)
})

test('the reserve is let go for work that deals with its own errors only where there is little room and much to do', async () => {
  const roomy = new Reserve(newFolder(), mebibyte)
  const { watch } = watchOf(roomy)
  await watch.look()
  let isAsked = false
  const isDue = async () => {
    isAsked = true
    return true
  }
  await watch.withReserveReady(isDue, async () => assert.ok(roomy.isWhole))
  assert.equal(isAsked, false)

  const folder = newFolder()
  writeFileSync(join(folder, 'reserve'), 'what could be kept')
  const scarce = new Reserve(folder, tooMuch)
  const { watch: poor } = watchOf(scarce)
  await poor.withReserveReady(
    async () => false,
    async () => assert.ok(scarce.keptBytes > 0),
  )
  await poor.withReserveReady(isDue, async () => assert.equal(scarce.keptBytes, 0))
})

test('what failed work says is known at once, and the watch finds out by itself that it is over', async () => {
  const { clock, watch } = watchOf(new Reserve(newFolder(), 0))
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
