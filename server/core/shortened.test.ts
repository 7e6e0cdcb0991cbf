// Short input is quoted unchanged; long input is limited and marked.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { shortText, shortValue } from './shortened.ts'

test('a short value is copied unchanged', () => {
  for (const value of ['', 'x', 0, null, true, [], {}, { a: [1, { b: 'c' }], toString: 1 }]) {
    assert.deepEqual(shortValue(value, 500, 300), value)
  }
})

test('a shortened value says how much is missing', () => {
  assert.equal(shortText('abcdef', 4), 'abcd… (2 more characters)')
  assert.deepEqual(shortValue(['abcdef', 'g'], 100, 4), ['abcd… (2 more characters)', 'g'])
  assert.deepEqual(shortValue([1, 2, 3, 4, 5, 6], 16, 10), [1, 2, 3, '… (3 more)'])
  assert.deepEqual(shortValue({ a: 1, b: 2, c: 3, d: 4 }, 16, 10), { a: 1, b: 2, c: 3, '…': '(1 more)' })
})

test('a character is never split, and inherited names are own properties', () => {
  assert.ok(shortText('😀😀😀', 3).isWellFormed())
  const parsed: unknown = JSON.parse('{"__proto__":{"isAdmin":true}}')
  assert.equal(JSON.stringify(shortValue(parsed, 100, 100)), '{"__proto__":{"isAdmin":true}}')
})

test('any JSON value has a limited copy that JSON can represent, and a short one an equal copy', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 12 }), fc.integer({ min: 0, max: 300 }), (value, limit) => {
      const text = JSON.stringify(shortValue(value, limit, 100))
      // At worst each value costs its ellipsis, and one text beyond the limit is marked.
      assert.ok(text.length <= 40 * (limit + 10), `${text.length} characters`)
      const whole = JSON.stringify(value)
      if (4 * whole.length < limit) assert.equal(text, whole)
    }),
  )
})

test('endless nesting is cut in the copy', () => {
  let deep: unknown = 1
  for (let i = 0; i < 100_000; i++) deep = [deep]
  assert.ok(JSON.stringify(shortValue(deep, 500, 300)).length < 600)
})

test('what JSON cannot represent becomes text', () => {
  assert.deepEqual(shortValue([5n, Symbol('x')], 100, 100), ['5', 'Symbol(x)'])
})
