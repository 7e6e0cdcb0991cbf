// Requests of many holders share the rounds of the event loop by what they use of it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { LoopTurns } from './loop-turns.ts'

/** Turns by a clock that only the work moves, and who had them in which order. */
function world(turnMs = 2) {
  let ms = 0
  const order: string[] = []
  const turns = new LoopTurns({ nowMs: () => ms, turnMs })
  const ask = (holder: string, costMs: number) =>
    turns.take(holder, () => {
      order.push(holder)
      ms += costMs
    })
  const done = async () => {
    while (turns.waiting > 0) await nextRound()
  }
  return { turns, order, ask, done, work: (costMs: number) => (ms += costMs) }
}

test('a request never begins before the call that asked for its turn has returned', async () => {
  const { ask, order, done } = world()
  ask('acme', 1)
  assert.deepEqual(order, [])
  await done()
  assert.deepEqual(order, ['acme'])
})

test('whoever has used little is next, however many requests another one has waiting', async () => {
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

test('holders that always wait are given as much time, not as many requests', async () => {
  const { ask, order, done } = world()
  for (let i = 0; i < 100; i++) ask('dear', 10)
  for (let i = 0; i < 100; i++) ask('cheap', 1)
  await done()
  const beforeLastCheap = order.slice(0, order.lastIndexOf('cheap'))
  const dear = beforeLastCheap.filter((holder) => holder === 'dear').length
  assert.ok(dear >= 8 && dear <= 12, `${dear} dear ones`)
})

test('a round of the loop begins no more than its share, and others come round between', async () => {
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

test('what a request goes on to do without waiting counts as its cost', async () => {
  const { turns, order, work, done } = world(100)
  const ask = (holder: string, costMs: number) =>
    void turns.turnOf(holder).then(async () => {
      order.push(holder)
      await null
      work(costMs)
    })
  for (let i = 0; i < 20; i++) ask('dear', 10)
  for (let i = 0; i < 20; i++) ask('cheap', 1)
  await done()
  await nextRound()
  const dear = order.slice(0, order.lastIndexOf('cheap')).filter((holder) => holder === 'dear').length
  assert.ok(dear <= 4, `${dear} dear ones before the last cheap one: ${order}`)
})
