// A burst, then a rate, separately for each key; and the number of keys is limited.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../core/manual-clock.ts'
import { RateLimit } from './rate-limit.ts'

const make = () => {
  const clock = new ManualClock(1_763_717_400_000)
  return { clock, limit: new RateLimit({ clock, burst: 3, perSecond: 0.5, keysMax: 4 }) }
}
const takeAll = (limit: RateLimit, key: string, times: number) =>
  Array.from({ length: times }, () => limit.take(key))

test('a burst at once, then a rate, and the refusal says when the next one is allowed', async () => {
  const { clock, limit } = make()
  assert.deepEqual(takeAll(limit, 'a', 5), [null, null, null, 2, 2])
  await clock.advance(1_500)
  assert.equal(limit.take('a'), 1)
  await clock.advance(500)
  assert.deepEqual(takeAll(limit, 'a', 2), [null, 2])
  await clock.advance(60_000)
  assert.deepEqual(takeAll(limit, 'a', 4), [null, null, null, 2])
})

test('whether the next one is above the limit can be asked, which counts nothing', async () => {
  const { clock, limit } = make()
  assert.equal(limit.isOver('a'), false)
  takeAll(limit, 'a', 2)
  for (let i = 0; i < 10; i++) assert.equal(limit.isOver('a'), false)
  takeAll(limit, 'a', 1)
  assert.equal(limit.isOver('a'), true)
  await clock.advance(2_000)
  assert.equal(limit.isOver('a'), false)
})

test('one key does not affect another, and refusals don’t delay the next one', async () => {
  const { clock, limit } = make()
  takeAll(limit, 'a', 1_000)
  assert.deepEqual(takeAll(limit, 'b', 4), [null, null, null, 2])
  await clock.advance(2_000)
  assert.equal(limit.take('a'), null)
})

test('setting the wall clock changes nothing', () => {
  const { clock, limit } = make()
  takeAll(limit, 'a', 3)
  clock.set(3_600_000)
  assert.equal(limit.take('a'), 2)
  clock.set(-7_200_000)
  assert.equal(limit.take('a'), 2)
})

test('above the limit of keys the least recently used one is forgotten', () => {
  const { limit } = make()
  takeAll(limit, 'a', 4)
  for (const key of ['b', 'c', 'd']) limit.take(key)
  limit.take('a')
  limit.take('e')
  assert.equal(limit.size, 4)
  assert.equal(limit.take('a'), 2, 'still known')
  assert.deepEqual(takeAll(limit, 'b', 3), [null, null, null], 'forgotten')
  for (let i = 0; i < 1_000; i++) limit.take(`key ${i}`)
  assert.equal(limit.size, 4)
})
