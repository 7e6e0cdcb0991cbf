// The clock of the tests.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from './manual-clock.ts'

test('time stops until it is advanced, in both units', async () => {
  const clock = new ManualClock(1_000)
  assert.deepEqual([clock.nowMs(), clock.nowNs()], [1_000, 1_000_000_000n])
  await clock.advance(5)
  assert.deepEqual([clock.nowMs(), clock.nowNs()], [1_005, 1_005_000_000n])
  await clock.advance(-10)
  assert.equal(clock.nowMs(), 995)
})

test('sleepers wake in the order of their deadlines, and only when those have passed', async () => {
  const clock = new ManualClock(0)
  const woken: number[] = []
  for (const ms of [30, 10, 20]) void clock.sleep(ms).then(() => woken.push(ms))
  assert.equal(clock.waiting, 3)
  await clock.advance(9)
  assert.deepEqual(woken, [])
  await clock.advance(11)
  assert.deepEqual(woken, [10, 20])
  await clock.advance(10)
  assert.deepEqual([woken, clock.waiting], [[10, 20, 30], 0])
})

test('a sleeper that sleeps again within the advanced time wakes again', async () => {
  const clock = new ManualClock(0)
  const woken: string[] = []
  const sleepTwice = async () => {
    await clock.sleep(10)
    woken.push('first')
    await clock.sleep(0)
    woken.push('second')
  }
  const done = sleepTwice()
  await clock.advance(10)
  await done
  assert.deepEqual(woken, ['first', 'second'])
})

test('an aborted sleep ends at once and no longer waits, and an aborted signal never sleeps', async () => {
  const clock = new ManualClock(0)
  const stop = new AbortController()
  const sleeping = clock.sleep(1_000, stop.signal)
  stop.abort()
  await sleeping
  assert.equal(clock.waiting, 0)
  await clock.sleep(1_000, stop.signal)
  assert.equal(clock.waiting, 0)
})
