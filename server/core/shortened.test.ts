// What is quoted is as it was where it is short, and bounded and marked where it is long.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { shortText, shortValue } from './shortened.ts'

test('what is short is copied as it is', () => {
  for (const value of ['', 'x', 0, null, true, [], {}, { a: [1, { b: 'c' }], toString: 1 }]) {
    assert.deepEqual(shortValue(value, 500, 300), value)
  }
})

test('what was cut says how much is missing', () => {
  assert.equal(shortText('abcdef', 4), 'abcd… (2 more characters)')
  assert.deepEqual(shortValue(['abcdef', 'g'], 100, 4), ['abcd… (2 more characters)', 'g'])
  assert.deepEqual(shortValue([1, 2, 3, 4, 5, 6], 16, 10), [1, 2, 3, '… (3 more)'])
  assert.deepEqual(shortValue({ a: 1, b: 2, c: 3, d: 4 }, 16, 10), { a: 1, b: 2, c: 3, '…': '(1 more)' })
})

test('a character is never cut in two, and what inherits nothing is own', () => {
  assert.ok(shortText('😀😀😀', 3).isWellFormed())
  const parsed: unknown = JSON.parse('{"__proto__":{"isAdmin":true}}')
  assert.equal(JSON.stringify(shortValue(parsed, 100, 100)), '{"__proto__":{"isAdmin":true}}')
})

test('any JSON value gets a bounded copy that JSON can say, and a short one gets itself', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 12 }), fc.integer({ min: 0, max: 300 }), (value, limit) => {
      const text = JSON.stringify(shortValue(value, limit, 100))
      // At worst each place costs its ellipsis, and one text more than is left is marked.
      assert.ok(text.length <= 40 * (limit + 10), `${text.length} characters`)
      const whole = JSON.stringify(value)
      if (4 * whole.length < limit) assert.equal(text, whole)
    }),
  )
})

test('what nests without end has an end in its copy', () => {
  let deep: unknown = 1
  for (let i = 0; i < 100_000; i++) deep = [deep]
  assert.ok(JSON.stringify(shortValue(deep, 500, 300)).length < 600)
})

test('what JSON cannot say becomes text', () => {
  assert.deepEqual(shortValue([5n, Symbol('x')], 100, 100), ['5', 'Symbol(x)'])
})
