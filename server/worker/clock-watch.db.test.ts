// When the clock is trusted: the result of each kind of jump, within a run, over starts of the service and of
// the machine, and the effect of a confirmation. On a real control plane with a manual clock.

import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import type { TestControl } from '../../tests/control-plane.ts'
import { openControlPlane } from '../../tests/control-planes.ts'
import type { Control } from '../control/database.ts'
import type { Clock } from '../core/clock.ts'
import { ClockWatch, confirmClock, isClockInDoubt, readingOf } from './clock-watch.ts'

const startMs = Date.UTC(2026, 0, 14, 12)
const hourMs = 3_600_000
const dayMs = 24 * hourMs

let plane: TestControl | undefined
let wallMs = startMs
let steadyMs = 0
let boot = 'first'
const logged: string[] = []
let watch: ClockWatch

const clock: Clock = {
  nowMs: () => wallMs,
  nowNs: () => BigInt(wallMs) * 1_000_000n,
  steady: () => ({ boot, ms: steadyMs }),
  elapsedMs: () => steadyMs,
  sleep: async () => {},
}
const logger = { error: (_: unknown, text: string) => logged.push(text), info: () => {} }

function open(): Control {
  return plane?.control ?? assert.fail()
}

function started(): ClockWatch {
  return new ClockWatch({ control: open(), clock, logger: logger as never })
}

beforeEach(async () => {
  await plane?.close()
  plane = await openControlPlane()
  wallMs = startMs
  steadyMs = 0
  boot = 'first'
  logged.length = 0
  watch = started()
  assert.equal(await watch.now(), startMs)
})
after(() => plane?.close())

function pass(ms: number): void {
  wallMs += ms
  steadyMs += ms
}

test('elapsed time is trusted, also without checks and over a start of the service', async () => {
  pass(400 * dayMs)
  assert.equal(await watch.now(), wallMs)
  pass(400 * dayMs)
  assert.equal(await started().now(), wallMs, 'the machine was on, so it knows')
  assert.equal(await isClockInDoubt(open(), readingOf(clock)), false)
})

test('a jump of more than a day in either direction is a doubt that no later check removes', async () => {
  for (const byMs of [25 * hourMs, -25 * hourMs, 365 * dayMs]) {
    watch = started()
    wallMs += byMs
    assert.equal(await watch.now(), null, `${byMs}`)
    assert.deepEqual(watch.doubt, { expected_ms: wallMs - byMs, found_ms: wallMs })
    wallMs -= byMs
    assert.equal(await watch.now(), null)
    assert.equal(await started().now(), null, 'over a start')
    assert.equal(await isClockInDoubt(open(), readingOf(clock)), true)
    await confirmClock(open(), wallMs)
    assert.equal(await watch.now(), wallMs)
  }
})

test('a jump is a doubt at once for whoever decides by the clock, and for the watch at its next check', async () => {
  const isDoubted = () => isClockInDoubt(open(), readingOf(clock))
  pass(400 * dayMs)
  assert.equal(await isDoubted(), false, 'time that passed is no jump')
  for (const byMs of [25 * hourMs, -25 * hourMs]) {
    wallMs += byMs
    assert.equal(await isDoubted(), true, `${byMs}`)
    wallMs -= byMs
    assert.equal(await isDoubted(), false, 'nobody has checked it meanwhile')
  }
  wallMs += 25 * hourMs
  assert.equal(await watch.now(), null)
  wallMs -= 25 * hourMs
  assert.equal(await isDoubted(), true, 'the check has noticed it')
})

test('a jump of less than a day is trusted, but such jumps add up', async () => {
  wallMs += 20 * hourMs
  assert.equal(await watch.now(), wallMs)
  wallMs += 20 * hourMs
  assert.equal(await watch.now(), null)
})

test('over a start of the machine the last recorded time counts, to the minute', async () => {
  for (const [awayMs, isRight] of [
    [23 * hourMs, true],
    [25 * hourMs, false],
    [-25 * hourMs, false],
  ] as const) {
    await open().deleteFrom('instance').execute()
    watch = started()
    await watch.now()
    pass(30 * dayMs)
    await watch.now()
    boot = `after ${awayMs}`
    steadyMs = 5000
    wallMs += awayMs
    assert.equal((await started().now()) !== null, isRight, `${awayMs}`)
  }
})

test('a container whose uptime begins again counts as a restarted machine', async () => {
  pass(30 * dayMs)
  await watch.now()
  steadyMs = 5000
  wallMs += hourMs
  assert.equal(await started().now(), wallMs)
})

test('a confirmation counts once, and only for the day it names', async () => {
  await confirmClock(open(), wallMs)
  pass(2 * 60_000)
  await watch.now()
  wallMs += 2 * dayMs
  assert.equal(await watch.now(), null, 'it was used up while nothing was in doubt')
  await confirmClock(open(), wallMs - 30 * hourMs)
  assert.equal(await watch.now(), null)
  await confirmClock(open(), wallMs)
  assert.equal(await watch.now(), wallMs)
  assert.equal(watch.doubt, null)
  wallMs += 2 * dayMs
  assert.equal(await watch.now(), null)
})

test('a doubt is logged once, and again at each start', async () => {
  wallMs += 2 * dayMs
  await watch.now()
  await watch.now()
  assert.equal(logged.length, 1)
  assert.match(logged[0] ?? '', /lethe clock confirm/)
  await started().now()
  assert.equal(logged.length, 2)
})

test('a clock that can’t be recorded is checked all the same', async () => {
  await open().schema.dropTable('instance').execute()
  pass(2 * 60_000)
  assert.equal(await watch.now(), wallMs)
  wallMs += 2 * dayMs
  await assert.rejects(watch.now(), /instance/, 'nobody can confirm it, and nothing acts by it')
})
