// Bodies are decoded in the order they came, no more of them in one turn of the event loop than its share.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Turns } from './turns.ts'

const kibibyte = 1024

/** Sizes of bodies in the order they were let through. */
function letThrough(turns: Turns, sizes: readonly number[]): number[] {
  const order: number[] = []
  for (const size of sizes) void turns.take(size).then(() => order.push(size))
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
