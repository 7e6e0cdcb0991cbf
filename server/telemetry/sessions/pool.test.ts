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

test('a group never has all members, and of those that wait the one with the fewest is next', async () => {
  const { begun, ends, work } = byHand()
  const pool = new Pool(['a', 'b', 'c'])
  const [flood, calm] = [{}, {}]
  const lend = (name: string, group: object) => pool.lend(work(name), group)
  const answers = ['f1', 'f2', 'f3', 'f4'].map((name) => lend(name, flood))
  await turn()
  assert.deepEqual(begun, ['f1 by c', 'f2 by b'])
  answers.push(lend('c1', calm), lend('c2', calm))
  await turn()
  assert.deepEqual(begun.slice(2), ['c1 by a'])
  ends[0]?.resolve('f1')
  await turn()
  // Each group has one; the flood's next came first.
  assert.deepEqual(begun.slice(3), ['f3 by c'])
  ends[1]?.resolve('f2')
  await turn()
  assert.deepEqual(begun.slice(4), ['f4 by b'])
  ends[2]?.resolve('c1')
  await turn()
  assert.deepEqual(begun.slice(5), ['c2 by a'])
  for (const end of ends) end.resolve('')
  await Promise.all(answers)
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
