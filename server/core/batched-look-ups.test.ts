// Batched look-ups: there are few, and none began before its question.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BatchedLookUps } from './batched-look-ups.ts'
import { workFor, workOwner } from './work-owner.ts'

/** Look-ups that wait until they are ended, in the order in which they began. */
function delayedLookUps() {
  const begun: { keys: readonly string[]; end: (value: string) => void; fail: () => void }[] = []
  const batched = new BatchedLookUps<string>((keys) => {
    const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, string>>()
    begun.push({
      keys,
      end: (value) => resolve(new Map(keys.filter((key) => key !== 'unknown').map((key) => [key, value]))),
      fail: () => reject(new Error('the database went away')),
    })
    return promise
  })
  return { begun, batched }
}

test('a question is looked up at once, and those that come meanwhile together after it', async () => {
  const { begun, batched } = delayedLookUps()
  const first = batched.get('a')
  const later = ['a', 'b', 'b', 'unknown'].map((key) => batched.get(key))
  assert.deepEqual(
    begun.map(({ keys }) => keys),
    [['a']],
  )
  begun[0]?.end('old')
  assert.equal(await first, 'old')
  assert.deepEqual(
    begun.map(({ keys }) => keys),
    [['a'], ['a', 'b', 'unknown']],
  )
  begun[1]?.end('new')
  assert.deepEqual(
    await Promise.all(later),
    ['new', 'new', 'new', undefined],
    'none is older than its question',
  )
})

test('a key that is requested while a look-up fails is in the next look-up', async () => {
  const { begun, batched } = delayedLookUps()
  const [first, second] = [batched.get('a'), batched.get('b')]
  begun[0]?.fail()
  await assert.rejects(first, /went away/)
  begun[1]?.end('value')
  assert.equal(await second, 'value')
  const third = batched.get('c')
  begun[2]?.end('again')
  assert.equal(await third, 'again')
})

test('many keys are looked up in several turns', async () => {
  const { begun, batched } = delayedLookUps()
  const all = Array.from({ length: 1_002 }, (_, at) => batched.get(`key ${at}`))
  for (let at = 0; at < 4; at++) {
    begun[at]?.end('value')
    await all[Math.min(at * 500, 1_001)]
  }
  assert.deepEqual(
    begun.map(({ keys }) => keys.length),
    [1, 500, 500, 1],
  )
  assert.deepEqual(new Set(await Promise.all(all)), new Set(['value']))
})

test('a look-up is work of nobody, so that the keys of others do not wait behind what the first one asks for', async () => {
  const owners: (string | null)[] = []
  const batched = new BatchedLookUps<string>(async () => {
    owners.push(workOwner())
    return new Map()
  })
  await workFor('acme', () => Promise.all([batched.get('a'), batched.get('b')]))
  assert.deepEqual(owners, [null, null])
})
