// Bodies of an organisation are decoded in the order they came, organisations take turns, and no more is decoded in one
// turn of the event loop than its share.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Turns } from './turns.ts'

const kibibyte = 1024

/** Sizes of bodies in the order they were let through. */
function letThrough(turns: Turns, sizes: readonly number[]): number[] {
  const order: number[] = []
  for (const size of sizes) void turns.take('acme', size).then(() => order.push(size))
  return order
}

test('small bodies go in the turn in which they come', async () => {
  const order = letThrough(new Turns(), [1, 2, 3])
  await Promise.resolve()
  await Promise.resolve()
  assert.deepEqual(order, [1, 2, 3])
})

test('what is more than a turn takes waits for the next ones, in the order it came', async () => {
  const sizes = [200, 100, 256, 10, 250, 1].map((size) => size * kibibyte)
  const order = letThrough(new Turns(), sizes)
  const seen: number[] = []
  while (order.length < sizes.length) {
    await Promise.resolve()
    await Promise.resolve()
    seen.push(order.length)
    await nextTurn()
  }
  assert.deepEqual(order, sizes)
  // 200 and 100 take the first turn, 256 one of its own, 10 and 250 the next.
  assert.deepEqual(
    seen.filter((count, at) => count !== seen[at - 1]),
    [2, 3, 5],
  )
})

test('a body larger than a turn is let through, and the turn is over', async () => {
  const order = letThrough(new Turns(), [16 * kibibyte * kibibyte, 1])
  await Promise.resolve()
  await Promise.resolve()
  assert.deepEqual(order, [16 * kibibyte * kibibyte])
  await nextTurn()
  await nextTurn()
  assert.equal(order.length, 2)
})

test('after a quiet time a turn is whole again', async () => {
  const turns = new Turns()
  for (let round = 0; round < 5; round++) {
    const order = letThrough(turns, [200 * kibibyte, 100 * kibibyte])
    await Promise.resolve()
    await Promise.resolve()
    assert.equal(order.length, 2)
    await nextTurn()
    await nextTurn()
  }
})

/** Whose bodies were let through, in their order, when all of them wait. */
async function inTurn(sent: readonly (readonly [tenantId: string, kibibytes: number])[]): Promise<string[]> {
  const turns = new Turns()
  const order: string[] = []
  await turns.take('others', 1024 * kibibyte)
  const all = sent.map(([tenantId, size]) =>
    turns.take(tenantId, size * kibibyte).then(() => order.push(tenantId)),
  )
  await Promise.all(all)
  return order
}

test('a thousand bodies of one organisation delay another one by one body', async () => {
  const flood = Array.from({ length: 1000 }, () => ['flood', 100] as const)
  const order = await inTurn([...flood, ['calm', 1], ['late', 1]])
  assert.ok(order.indexOf('calm') <= 2, `calm was number ${order.indexOf('calm')}`)
  assert.ok(order.indexOf('late') <= 3, `late was number ${order.indexOf('late')}`)
})

test('organisations that always wait are given as many bytes, not as many bodies', async () => {
  const large = Array.from({ length: 20 }, () => ['large', 1000] as const)
  const small = Array.from({ length: 100 }, () => ['small', 100] as const)
  const order = await inTurn([...large, ...small])
  const head = order.slice(0, 55)
  assert.equal(head.filter((name) => name === 'large').length, 5)
})

test('who was idle has no turns left over from then', async () => {
  const turns = new Turns()
  const order: string[] = []
  const send = (tenantId: string, size: number) =>
    turns.take(tenantId, size * kibibyte).then(() => order.push(tenantId))
  await turns.take('others', 1024 * kibibyte)
  const busy = Array.from({ length: 20 }, () => send('busy', 300))
  await busy[9]
  const idle = Array.from({ length: 10 }, () => send('idle', 300))
  await Promise.all([...busy, ...idle])
  const after = order.slice(10, 20).filter((name) => name === 'idle').length
  assert.ok(after >= 4 && after <= 6, `${after} of ten turns went to who had been idle`)
})
