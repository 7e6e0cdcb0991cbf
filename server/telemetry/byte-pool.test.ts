// Reused memory: never lent to two callers at once, and never with the bytes of its last user.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BytePool } from './byte-pool.ts'

const kibibyte = 1024

test('memory that was given back is lent again, filled with zeros', () => {
  const pool = new BytePool(1024 * kibibyte)
  const first = pool.lend(100 * kibibyte)
  first.fill('secret')
  const memory = first.buffer
  pool.giveBack(first)
  const second = pool.lend(99 * kibibyte)
  assert.equal(second.buffer, memory)
  assert.ok(second.equals(Buffer.alloc(99 * kibibyte)))
})

test('memory that is given back twice is lent once', () => {
  const pool = new BytePool(1024 * kibibyte)
  const first = pool.lend(20 * kibibyte)
  pool.giveBack(first)
  pool.giveBack(first)
  const [second, third] = [pool.lend(20 * kibibyte), pool.lend(20 * kibibyte)]
  assert.notEqual(second.buffer, third.buffer)
})

test('giving memory back again does not take it from its next user', () => {
  const pool = new BytePool(1024 * kibibyte)
  const first = pool.lend(20 * kibibyte)
  const memory = first.buffer
  pool.giveBack(first)
  const second = pool.lend(20 * kibibyte)
  assert.equal(second.buffer, memory)
  second.fill('mine')
  pool.giveBack(first)
  assert.ok(second.equals(Buffer.alloc(20 * kibibyte, 'mine')))
  assert.notEqual(pool.lend(20 * kibibyte).buffer, memory)
})

test('bytes that were not lent are left unchanged and never lent', () => {
  const pool = new BytePool(1024 * kibibyte)
  const foreign = Buffer.alloc(32 * kibibyte, 'x')
  pool.giveBack(foreign)
  assert.ok(foreign.equals(Buffer.alloc(32 * kibibyte, 'x')))
  assert.notEqual(pool.lend(32 * kibibyte).buffer, foreign.buffer)
})

test('no more memory is kept than the limit', () => {
  const pool = new BytePool(100 * kibibyte)
  const lent = Array.from({ length: 8 }, () => pool.lend(30 * kibibyte))
  for (const bytes of lent) pool.giveBack(bytes)
  assert.ok(pool.idleBytes > 0 && pool.idleBytes <= 100 * kibibyte, `${pool.idleBytes}`)
})

test('lent bytes do not change, whatever other callers do', () => {
  const seed = fc.sample(fc.integer(), 1)[0] ?? 0
  const step = fc.record({ size: fc.nat(5 * 1024 * kibibyte), release: fc.boolean(), at: fc.nat() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const pool = new BytePool(8 * 1024 * kibibyte)
      const taken: [bytes: Buffer, mark: number][] = []
      for (const [mark, { size, release, at }] of steps.entries()) {
        const bytes = pool.lend(size)
        assert.equal(bytes.length, size)
        bytes.fill(mark + 1)
        taken.push([bytes, mark + 1])
        if (release) for (const [given] of taken.splice(at % taken.length, 1)) pool.giveBack(given)
        for (const [own, expected] of taken) {
          assert.ok(own.length === 0 || (own[0] === expected && own.at(-1) === expected))
        }
      }
    }),
    { seed, numRuns: 50 },
  )
})
