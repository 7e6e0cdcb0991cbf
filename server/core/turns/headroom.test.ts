// Who is held while cores are short, and for how long.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CoreUse } from './core-use.ts'
import { Headroom } from './headroom.ts'

/** A process with two cores whose clock the test moves; `busy` is the share of them that it uses. */
function scene() {
  let ms = 0
  let cpuMs = 0
  const slept: number[] = []
  const headroom = new Headroom({
    nowMs: () => ms,
    cores: new CoreUse({ nowMs: () => ms, cpuMs: () => cpuMs, cores: 2 }),
    sleep: async (forMs) => {
      slept.push(forMs)
    },
  })
  const pass = (forMs: number, busy: number) => {
    ms += forMs
    cpuMs += forMs * 2 * busy
  }
  return { headroom, pass, slept }
}

/** Milliseconds of a second that fill the loop. */
const much = 200

/** One that fills the loop beside one that uses little of it. */
function flood({ headroom, pass }: ReturnType<typeof scene>, busy: number): void {
  headroom.used('calm', 1)
  headroom.used('flood', much)
  pass(200, busy)
  headroom.used('flood', 10)
}

test('an owner with most of the loop is held three times as long as its work while cores are short', () => {
  const world = scene()
  flood(world, 0.9)
  assert.deepEqual([world.headroom.holds('flood'), world.headroom.holds('calm')], [true, false])
  world.pass(29, 0.9)
  assert.ok(world.headroom.holds('flood'))
  world.pass(1, 0.9)
  assert.ok(!world.headroom.holds('flood'))
})

test('nobody is held where cores are free, and an owner only until they are', () => {
  const world = scene()
  flood(world, 0.6)
  assert.ok(!world.headroom.holds('flood'))
  world.pass(200, 0.9)
  world.headroom.used('flood', 10)
  assert.ok(world.headroom.holds('flood'))
  world.pass(200, 0.3)
  world.headroom.used('flood', 10)
  assert.ok(!world.headroom.holds('flood'))
})

test('an owner that is alone is not held, and a client without a token does not count as another', () => {
  const world = scene()
  world.headroom.used('address 192.0.2.1', 1)
  world.headroom.used('flood', much)
  world.pass(200, 1)
  world.headroom.used('flood', 10)
  assert.ok(!world.headroom.holds('flood'))
})

test('a client without a token that fills the loop is held beside an organisation', () => {
  const world = scene()
  world.headroom.used('acme', 1)
  world.pass(200, 1)
  world.headroom.used('address 192.0.2.1', much)
  assert.ok(world.headroom.holds('address 192.0.2.1'))
})

test('an owner with most of little work is not held, because it is not what fills the cores', () => {
  const world = scene()
  world.pass(2000, 1)
  world.headroom.used('statements', 1)
  for (let second = 0; second < 10; second++) {
    world.headroom.used('sender', 120)
    assert.ok(!world.headroom.holds('sender'))
    world.pass(1000, 1)
  }
  world.headroom.used('statements', 1)
  world.headroom.used('sender', 600)
  assert.ok(world.headroom.holds('sender'), 'more than a fifth of the time')
})

test('of two owners with equal work none is held', () => {
  const world = scene()
  for (const owner of ['one', 'other']) world.headroom.used(owner, much)
  world.pass(200, 1)
  for (const owner of ['one', 'other']) world.headroom.used(owner, 2)
  assert.deepEqual([world.headroom.holds('one'), world.headroom.holds('other')], [false, false])
})

test('one long piece of work holds its owner for at most half a second', () => {
  const world = scene()
  world.headroom.used('calm', 1)
  world.pass(200, 1)
  world.headroom.used('flood', 5_000)
  world.pass(499, 1)
  assert.ok(world.headroom.holds('flood'))
  world.pass(1, 1)
  assert.ok(!world.headroom.holds('flood'))
})

test('waiting ends with the next pause, and at once where all have ended', async () => {
  const world = scene()
  flood(world, 0.9)
  world.pass(10, 0.9)
  await world.headroom.untilNext()
  assert.deepEqual(world.slept, [20])
  world.pass(20, 0.9)
  await world.headroom.untilNext()
  assert.deepEqual(world.slept, [20])
})
