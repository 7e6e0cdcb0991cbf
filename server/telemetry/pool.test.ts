// Lending members, with work that ends when the test says so.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pool } from './pool.ts'

/** Work that records its member, and ends when the test says so. */
function byHand() {
  const begun: string[] = []
  const ends: PromiseWithResolvers<string>[] = []
  const work = (name: string) => (member: string) => {
    begun.push(`${name} by ${member}`)
    const end = Promise.withResolvers<string>()
    ends.push(end)
    return end.promise
  }
  return { begun, ends, work }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('as much work runs at once as there are members, and the rest in the order in which it came', async () => {
  const { begun, ends, work } = byHand()
  const pool = new Pool(['a', 'b'])
  const answers = ['1', '2', '3', '4'].map((name) => pool.lend(work(name)))
  await turn()
  assert.deepEqual(begun, ['1 by b', '2 by a'])
  ends[1]?.resolve('second')
  await turn()
  assert.deepEqual(begun.slice(2), ['3 by a'])
  ends[0]?.resolve('first')
  await turn()
  assert.deepEqual(begun.slice(3), ['4 by b'])
  ends[2]?.resolve('third')
  ends[3]?.resolve('fourth')
  assert.deepEqual(await Promise.all(answers), ['first', 'second', 'third', 'fourth'])
})

test('a member whose work failed or never began is lent again', async () => {
  const pool = new Pool(['a'])
  const failing = pool.lend(async () => Promise.reject(new Error('failed')))
  const throwing = pool.lend(() => {
    throw new Error('thrown')
  })
  const next = pool.lend(async (member) => member)
  await assert.rejects(failing, /failed/)
  await assert.rejects(throwing, /thrown/)
  assert.equal(await next, 'a')
})
