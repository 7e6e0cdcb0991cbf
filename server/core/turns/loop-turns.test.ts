// Requests of many owners share the rounds of the event loop by the time that they use.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { CoreUse } from './core-use.ts'
import { Headroom } from './headroom.ts'
import { LoopTurns } from './loop-turns.ts'

/** Turns with a clock that only the work advances, and the order in which they were given. */
function world(turnMs = 2) {
  let ms = 0
  const order: string[] = []
  const turns = new LoopTurns({ nowMs: () => ms, turnMs })
  const ask = (owner: string, costMs: number) =>
    turns.take(owner, () => {
      order.push(owner)
      ms += costMs
    })
  const done = async () => {
    while (turns.waiting > 0) await nextRound()
  }
  return { turns, order, ask, done, work: (costMs: number) => (ms += costMs) }
}

test('a request never begins before the call that requests its turn has returned', async () => {
  const { ask, order, done } = world()
  ask('acme', 1)
  assert.deepEqual(order, [])
  await done()
  assert.deepEqual(order, ['acme'])
})

test('an owner that has used little is next, however many requests another one has waiting', async () => {
  const { ask, order, done } = world()
  for (let i = 0; i < 300; i++) ask('flood', 1)
  ask('calm', 1)
  await nextRound()
  ask('late', 1)
  await done()
  assert.ok(order.indexOf('calm') <= 2, `calm was number ${order.indexOf('calm')}`)
  assert.ok(order.indexOf('late') <= 6, `late was number ${order.indexOf('late')}`)
  assert.equal(order.length, 302)
})

test('requests that end before their turn cost their owner something, and do not count for a round', async () => {
  const { turns, ask, order, done } = world()
  let gone = 0
  for (let i = 0; i < 1000; i++)
    turns.take('flood', () => {
      gone++
      return false
    })
  for (let i = 0; i < 4; i++) ask('calm', 1)
  let goneBeforeLast = 0
  turns.take('calm', () => {
    goneBeforeLast = gone
  })
  await nextRound()
  await nextRound()
  assert.ok(order.length >= 2, `${order.length} of the neighbour in two rounds`)
  await done()
  assert.equal(gone, 1000)
  assert.ok(goneBeforeLast < 100, `${goneBeforeLast} before the neighbour's last`)
})

test('owners that always wait get equal time, not equal numbers of requests', async () => {
  const { ask, order, done } = world()
  for (let i = 0; i < 100; i++) ask('dear', 10)
  for (let i = 0; i < 100; i++) ask('cheap', 1)
  await done()
  const beforeLastCheap = order.slice(0, order.lastIndexOf('cheap'))
  const dear = beforeLastCheap.filter((owner) => owner === 'dear').length
  assert.ok(dear >= 8 && dear <= 12, `${dear} dear ones`)
})

test('a round of the loop begins no more than its share, and other work runs between rounds', async () => {
  const { ask, order } = world(2)
  for (let i = 0; i < 9; i++) ask('flood', 1)
  const seen: number[] = []
  while (order.length < 9) {
    await nextRound()
    seen.push(order.length)
  }
  const begun = seen.map((count, at) => count - (seen[at - 1] ?? 0))
  assert.ok(
    begun.every((count) => count <= 2),
    `${begun}`,
  )
})

test('what a request does after its beginning without waiting counts as its cost', async () => {
  const { turns, order, work, done } = world(100)
  const ask = (owner: string, costMs: number) =>
    void turns.turnOf(owner).then(async () => {
      order.push(owner)
      await null
      work(costMs)
    })
  for (let i = 0; i < 20; i++) ask('dear', 10)
  for (let i = 0; i < 20; i++) ask('cheap', 1)
  await done()
  await nextRound()
  const dear = order.slice(0, order.lastIndexOf('cheap')).filter((owner) => owner === 'dear').length
  assert.ok(dear <= 4, `${dear} dear ones before the last cheap one: ${order}`)
})

test('an owner that is held waits while the others go on, and goes on when its pause ends', async () => {
  let ms = 0
  let ended = Promise.withResolvers<void>()
  const headroom = new Headroom({
    nowMs: () => ms,
    cores: new CoreUse({ nowMs: () => ms, cpuMs: () => ms * 2, cores: 2 }),
    sleep: () => ended.promise,
  })
  const turns = new LoopTurns({ nowMs: () => ms, headroom })
  const order: string[] = []
  const ask = (owner: string, costMs: number) =>
    turns.take(owner, () => {
      order.push(owner)
      ms += costMs
    })
  headroom.used('calm', 1)
  ms = 1000
  headroom.used('flood', 300)
  for (let i = 0; i < 3; i++) ask('flood', 1)
  ask('calm', 1)
  for (let round = 0; round < 20; round++) await nextRound()
  assert.deepEqual(order, ['calm'])
  ask('calm', 1)
  ask('flood', 1)
  for (let round = 0; round < 20; round++) await nextRound()
  assert.deepEqual([order, turns.waiting], [['calm', 'calm'], 4])
  // The pauses of the requests that begin now end at once.
  const first = ended
  ended = { ...first, promise: Promise.resolve() }
  ms += 5_000
  first.resolve()
  for (let round = 0; turns.waiting > 0; round++) {
    assert.ok(round < 100)
    await nextRound()
    ms += 5_000
  }
  assert.deepEqual(order.slice(2), ['flood', 'flood', 'flood', 'flood'])
})
