// Remembered look-ups: there are few statements, no result is stale after a write, and their number is
// bounded.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Remembered, rememberedMs } from './remembered.ts'

/** A store of values, whose look-ups are counted and may be delayed. */
function storeOf(values: Map<string, string>) {
  const scene = { nowMs: 0, outside: 0 as number | null, lookUps: 0, held: null as Promise<void> | null }
  const remembered = new Remembered<string>({
    async lookUp(keys) {
      scene.lookUps++
      const found = new Map([...values].filter(([key]) => keys.includes(key)))
      await scene.held
      return found
    },
    elapsedMs: () => scene.nowMs,
    outsideWrites: () => scene.outside,
  })
  return { scene, remembered, values }
}

test('a key is looked up once until it is old', async () => {
  const { scene, remembered } = storeOf(new Map([['a', 'one']]))
  for (let i = 0; i < 100; i++) assert.equal(await remembered.get('a'), 'one')
  scene.nowMs = rememberedMs - 1
  await remembered.get('a')
  assert.equal(scene.lookUps, 1)
  scene.nowMs = rememberedMs
  await remembered.get('a')
  assert.equal(scene.lookUps, 2)
})

test('a written value is returned by the next look-up, once the writer has reported it', async () => {
  const { scene, remembered, values } = storeOf(
    new Map([
      ['a', 'one'],
      ['b', 'one'],
    ]),
  )
  await Promise.all([remembered.get('a'), remembered.get('b')])
  values.set('a', 'two')
  values.set('b', 'two')
  remembered.forget('a')
  assert.equal(await remembered.get('a'), 'two')
  assert.equal(await remembered.get('b'), 'one', 'nobody said so')
  remembered.forgetWhere((value) => value === 'one')
  assert.equal(await remembered.get('b'), 'two')
  const before = scene.lookUps
  assert.equal(await remembered.get('a'), 'two')
  assert.equal(scene.lookUps, before, 'the other one is still remembered')
})

test('a look-up that began before a write is not remembered after it', async () => {
  const { scene, remembered, values } = storeOf(new Map([['a', 'one']]))
  const held = Promise.withResolvers<void>()
  scene.held = held.promise
  const asked = remembered.get('a')
  values.delete('a')
  remembered.forget('a')
  held.resolve()
  assert.equal(await asked, 'one', 'it was asked before')
  assert.equal(await remembered.get('a'), undefined)
})

test('a write of another process that can be noticed is seen by the next question', async () => {
  const { scene, remembered, values } = storeOf(new Map([['a', 'one']]))
  await remembered.get('a')
  values.delete('a')
  scene.outside = 1
  assert.equal(await remembered.get('a'), undefined)
})

test('one that can’t be noticed is seen when the result is old', async () => {
  const { scene, remembered, values } = storeOf(new Map([['a', 'one']]))
  scene.outside = null
  await remembered.get('a')
  values.delete('a')
  assert.equal(await remembered.get('a'), 'one')
  scene.nowMs = rememberedMs
  assert.equal(await remembered.get('a'), undefined)
  assert.equal(remembered.size, 0)
})

test('unknown keys are never remembered, and the number of known ones is limited', async () => {
  const { scene, remembered, values } = storeOf(new Map())
  for (let i = 0; i < 2_000; i++) await remembered.get(`invented-${i}`)
  assert.equal(remembered.size, 0)
  const keys = Array.from({ length: 10_001 }, (_, i) => `key-${i}`)
  for (const key of keys) {
    values.clear()
    values.set(key, key)
    await remembered.get(key)
  }
  assert.equal(remembered.size, 10_000)
  scene.lookUps = 0
  await remembered.get('key-1')
  assert.equal(scene.lookUps, 0)
  values.set('key-0', 'key-0')
  await remembered.get('key-0')
  assert.equal(scene.lookUps, 1, 'the first one made room')
})

test('a look-up that fails is not remembered', async () => {
  let fails = true
  const remembered = new Remembered<string>({
    async lookUp() {
      if (fails) throw new Error('the database went away')
      return new Map([['a', 'one']])
    },
    elapsedMs: () => 0,
    outsideWrites: () => null,
  })
  await assert.rejects(remembered.get('a'), /went away/)
  fails = false
  assert.equal(await remembered.get('a'), 'one')
})
