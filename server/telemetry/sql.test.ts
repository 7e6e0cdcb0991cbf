// Statements as values: what is bound never becomes text, however fragments nest.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { allOf, Bound, instant, join, raw, render, sql, strings, uint } from './sql.ts'

test('a hole becomes a named parameter with its type, and a plain string binds as String', () => {
  const statement = sql`select ${uint(5)} where name = ${"x' or 1"}`
  assert.deepEqual(render(statement), {
    text: 'select {p0:UInt64} where name = {p1:String}',
    params: { p0: '5', p1: "x' or 1" },
  })
})

test('fragments nest, and parameters are numbered across all of them in the order of the text', () => {
  const inner = sql`b = ${'b'}`
  const statement = sql`a = ${'a'} and (${inner}) and c in ${strings(['c', 'd'])}`
  assert.deepEqual(render(statement), {
    text: 'a = {p0:String} and (b = {p1:String}) and c in {p2:Array(String)}',
    params: { p0: 'a', p1: 'b', p2: ['c', 'd'] },
  })
})

test('a fragment that is used twice is bound twice', () => {
  const fragment = sql`x = ${'v'}`
  assert.deepEqual(render(sql`${fragment} or ${fragment}`), {
    text: 'x = {p0:String} or x = {p1:String}',
    params: { p0: 'v', p1: 'v' },
  })
})

test('a statement without holes has no parameters', () => {
  assert.deepEqual(render(raw('select 1')), { text: 'select 1', params: {} })
  assert.deepEqual(render(sql`select 1`), { text: 'select 1', params: {} })
})

test('joining puts separators between, and none of nothing', () => {
  const parts = [sql`a`, sql`b = ${'1'}`, sql`c`]
  assert.equal(render(join(parts, ', ')).text, 'a, b = {p0:String}, c')
  assert.equal(render(join([sql`a`], ', ')).text, 'a')
  assert.equal(render(join([], ', ')).text, '')
  assert.equal(render(join([], ', ', raw('nothing'))).text, 'nothing')
})

test('conditions are each in parentheses, so that an OR in one can’t swallow the next', () => {
  assert.equal(render(allOf([sql`a or b`, sql`c`])).text, '(a or b) AND (c)')
  assert.equal(render(allOf([])).text, '1')
})

test('an instant is bound as text, since it is larger than a JavaScript number is exact', () => {
  assert.deepEqual(render(instant(1_763_717_400_123_456_789n)), {
    text: "fromUnixTimestamp64Nano({p0:Int64}, 'UTC')",
    params: { p0: '1763717400123456789' },
  })
})

test('whatever is bound, the text is the same', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.array(fc.string()), (text, list) => {
      const statement = sql`select ${text}, ${strings(list)}, ${new Bound('Map(String, String)', { [text]: text })}`
      assert.equal(render(statement).text, 'select {p0:String}, {p1:Array(String)}, {p2:Map(String, String)}')
    }),
  )
})
