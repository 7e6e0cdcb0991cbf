// Calls that really hang: opening a pipe waits in one of the runtime's threads until somebody opens its other
// end. Time is a manual clock's.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolders } from '../../tests/fixtures.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { DiskCalls, DiskNotAnswering } from './disk-calls.ts'

const newFolder = temporaryFolders()

/** A folder with a pipe, whose opening hangs until {@link release}. */
function scene() {
  const [clock, folder] = [new ManualClock(0), newFolder()]
  const path = join(folder, 'pipe')
  execFileSync('mkfifo', [path])
  const calls = new DiskCalls(folder, clock)
  return {
    clock,
    calls,
    hang: () => open(path, 'r').then((file) => file.close()),
    release: () => open(path, 'r+').then((file) => file.close()),
    look: () => calls.run(() => stat(folder)).then(({ isDirectory }) => isDirectory !== undefined),
  }
}

test('a call that hangs fails in time, and until it returns all others fail at once', async () => {
  const { calls, clock, hang, look, release } = scene()
  assert.ok(await look())
  const hanging = calls.run(hang)
  const [first, waiting] = [
    assert.rejects(hanging, DiskNotAnswering),
    assert.rejects(look(), DiskNotAnswering),
  ]
  while (clock.waiting === 0) await new Promise(setImmediate)
  await clock.advance(29_999)
  await clock.advance(1)
  await Promise.all([first, waiting])
  let began = false
  const beginning = calls.run(async () => {
    began = true
  })
  await assert.rejects(beginning, { name: 'DiskNotAnswering', path: calls.folder })
  await assert.rejects(calls.check(), DiskNotAnswering)
  assert.deepEqual([began, clock.waiting], [false, 0])
  await release()
  while (!(await look().catch(() => false))) await new Promise(setImmediate)
  await calls.check()
})

test('one call runs at a time, in order, also after one that failed', async () => {
  const { calls } = scene()
  const order: string[] = []
  const call = (name: string) => async () => {
    order.push(`${name} begins`)
    await new Promise(setImmediate)
    order.push(`${name} ends`)
    if (name === 'b') throw new Error('no such file')
  }
  const [a, b, c] = ['a', 'b', 'c'].map((name) => calls.run(call(name)))
  await assert.rejects(b ?? assert.fail(), /no such file/)
  await Promise.all([a, c])
  assert.deepEqual(order, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
})

test('long work may take as long as the disk answers, and no other is begun beside work that was given up', async () => {
  const { calls, clock, hang, look, release } = scene()
  const ending = Promise.withResolvers<string>()
  const working = calls.during(() => ending.promise)
  for (let minute = 0; minute < 10; minute++) {
    await clock.advance(60_000)
    assert.ok(await look())
    while (clock.waiting !== 1) await new Promise(setImmediate)
  }
  const givenUp = assert.rejects(working, DiskNotAnswering)
  const hanging = assert.rejects(calls.run(hang), DiskNotAnswering)
  while (clock.waiting !== 2) await new Promise(setImmediate)
  await clock.advance(30_000)
  await Promise.all([hanging, givenUp])
  await release()
  while (!(await look().catch(() => false))) await new Promise(setImmediate)
  await assert.rejects(calls.check(), DiskNotAnswering)
  ending.resolve('late')
  await ending.promise
  await calls.check()
  assert.equal(await calls.during(async () => 'done'), 'done')
  assert.equal(clock.waiting, 0)
})
