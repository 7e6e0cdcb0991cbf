// The bound on bodies in memory.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../core/app-error.ts'
import { BodyBudget } from './body-budget.ts'

function isRefused(work: () => void): boolean {
  try {
    work()
    return false
  } catch (error) {
    assert.ok(error instanceof AppError && error.code === 'overloaded' && error.retryAfterSeconds === 1)
    return true
  }
}

test('bodies fit up to the bound, and what is released makes room', () => {
  const budget = new BodyBudget(100)
  const [a, b] = [budget.open(), budget.open()]
  a.grow(60)
  assert.ok(isRefused(() => b.grow(41)))
  b.grow(40)
  assert.ok(isRefused(() => a.grow(1)))
  a.release()
  a.release()
  assert.equal(budget.heldBytes, 40)
  b.grow(60)
})

test('one that is alone is let in whatever its size, so that a small bound refuses nobody for ever', () => {
  const budget = new BodyBudget(100)
  const a = budget.open()
  a.grow(1000)
  a.grow(1000)
  assert.ok(isRefused(() => budget.open().grow(1)))
  a.release()
  assert.equal(budget.heldBytes, 0)
})

test('a body that was let go takes no more', () => {
  const budget = new BodyBudget(100)
  const a = budget.open()
  a.release()
  a.grow(50)
  assert.equal(budget.heldBytes, 0)
})

test('whatever comes and goes, no more is held than the bound or one body', () => {
  const step = fc.record({
    who: fc.nat(4),
    bytes: fc.integer({ min: 0, max: 150 }),
    isRelease: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const budget = new BodyBudget(100)
      const holds = Array.from({ length: 5 }, () => ({ hold: budget.open(), bytes: 0 }))
      for (const { who, bytes, isRelease } of steps) {
        const one = holds[who] ?? assert.fail()
        if (isRelease) {
          one.hold.release()
          holds[who] = { hold: budget.open(), bytes: 0 }
        } else if (!isRefused(() => one.hold.grow(bytes))) one.bytes += bytes
        const held = holds.map((each) => each.bytes)
        const total = held.reduce((sum, each) => sum + each, 0)
        assert.equal(budget.heldBytes, total)
        assert.ok(total <= 100 || held.filter((each) => each > 0).length === 1)
      }
    }),
  )
})
