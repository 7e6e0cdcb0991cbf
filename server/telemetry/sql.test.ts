// Statements as values: a bound value never becomes syntax, however fragments nest.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { allOf, Bound, bytes, instant, join, raw, render, sql, strings, uint } from './sql.ts'

test('a hole becomes a literal of its type, and a plain string binds as String', () => {
  const statement = sql`select ${uint(5)} where name = ${"x' or 1"}`
  assert.equal(render(statement), String.raw`select 5 where name = 'x\x27 or 1'`)
})

test('fragments nest, in the order of the text', () => {
  const inner = sql`b = ${'b'}`
  const statement = sql`a = ${'a'} and (${inner}) and c in ${strings(['c', 'd'])}`
  assert.equal(render(statement), `a = 'a' and (b = 'b') and c in CAST(['c', 'd'], 'Array(String)')`)
})

test('a fragment may be used twice', () => {
  const fragment = sql`x = ${'v'}`
  assert.equal(render(sql`${fragment} or ${fragment}`), `x = 'v' or x = 'v'`)
})

test('a statement without holes is its text', () => {
  assert.equal(render(raw('select 1')), 'select 1')
  assert.equal(render(sql`select 1`), 'select 1')
})

test('joining puts separators between fragments, and returns the empty fragment for none', () => {
  const parts = [sql`a`, sql`b = ${'1'}`, sql`c`]
  assert.equal(render(join(parts, ', ')), "a, b = '1', c")
  assert.equal(render(join([sql`a`], ', ')), 'a')
  assert.equal(render(join([], ', ')), '')
  assert.equal(render(join([], ', ', raw('nothing'))), 'nothing')
})

test('each condition is in parentheses, so that an OR in one does not change the next', () => {
  assert.equal(render(allOf([sql`a or b`, sql`c`])), '(a or b) AND (c)')
  assert.equal(render(allOf([])), '1')
})

test('an instant is exact, although it is larger than a JavaScript number can be', () => {
  assert.equal(
    render(instant(1_763_717_400_123_456_789n)),
    `fromUnixTimestamp64Nano(toInt64('1763717400123456789'), 'UTC')`,
  )
})

test('a value bound as an integer has digits only, and an unknown type is refused', () => {
  for (const [type, value] of [
    ['UInt64', '1 or 1'],
    ['UInt64', -1],
    ['Int64', '5); drop'],
    ['Array(Int64)', ['1', "'"]],
    ['String', 5],
    ['Map(String, String)', {}],
  ] as const) {
    assert.throws(() => render(sql`select ${new Bound(type, value)}`), assert.AssertionError, type)
  }
})

test('no bound value ends the literal that it is in', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.array(fc.string({ unit: 'binary' })), (text, list) => {
      const rendered = render(sql`select ${text}, ${strings(list)}, ${new Bound('Nullable(String)', null)}`)
      const emptied = rendered.replace(/'(?:[\w .,:/()-]|\\x[0-9a-f]{2})*'/g, '?')
      const listed = list.map(() => '?').join(', ')
      assert.equal(emptied, `select ?, CAST([${listed}], ?), CAST(NULL, ?)`)
    }),
  )
})

test('bytes are a literal in the same alphabet, with all given pieces in their order', () => {
  assert.equal(
    render(sql`select ${bytes(0xfe, "k'", 0xff, 'ä', 0xfe)}`),
    String.raw`select '\xfek\x27\xff\xc3\xa4\xfe'`,
  )
  assert.equal(render(sql`select ${bytes()}`), "select ''")
  for (let byte = 0; byte < 256; byte++)
    assert.match(render(sql`${bytes(byte)}`), /^'(?:[\w .,:/-]|\\x[0-9a-f]{2})'$/)
  assert.throws(() => render(sql`select ${new Bound('Bytes', 'text')}`), assert.AssertionError)
})

test('a literal of bytes has each byte that was bound', () => {
  const all = Array.from({ length: 256 }, (_, byte) => byte)
  const inside = render(sql`${bytes(...all)}`).slice(1, -1)
  const read = inside.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number(`0x${hex}`)),
  )
  assert.deepEqual([...Buffer.from(read, 'latin1')], all)
})
