// Cursors are opaque to clients; a cursor from a client is checked, because clients do write their own.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { InvalidInput } from '../app-error.ts'
import { decodeCursor, encodeCursor, jsonBytes, pageOfRows } from './cursor.ts'

const forged = (text: string, parts = 1) => {
  assert.throws(
    () => decodeCursor(text, parts),
    (error) => {
      assert.ok(error instanceof InvalidInput, text)
      assert.deepEqual(error.problems, [
        {
          loc: ['query', 'cursor'],
          type: 'value_error',
          msg: 'Pass next_cursor of the page before, unchanged',
          input: text,
          ctx: {},
        },
      ])
      return true
    },
  )
}
const base64url = (text: string) => Buffer.from(text).toString('base64url')

test('a position of any texts is returned unchanged, in characters that a query string accepts', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1, maxLength: 4 }), (position) => {
      const cursor = encodeCursor(position)
      assert.match(cursor, /^[A-Za-z0-9_-]+$/)
      assert.deepEqual(decodeCursor(cursor, position.length), position)
    }),
  )
})

test('a cursor with nesting, or with more than a cursor has, is refused before it is parsed', () => {
  forged(base64url(`${'['.repeat(100)}${']'.repeat(100)}`))
  forged(base64url(`[${'"",'.repeat(60)}""]`), 61)
  forged(base64url('[{}]'))
})

test('no cursor is the first page', () => {
  assert.equal(decodeCursor(undefined, 2), null)
})

test('forged cursors are refused like any wrong input', () => {
  forged('')
  forged('x')
  forged('%%%')
  forged(base64url('"text"'))
  forged(base64url('{"0":"a","length":1}'))
  forged(base64url('[5]'))
  forged(base64url('[null]'))
  forged(base64url('[["a"]]'))
  forged(base64url('["a","b"]'))
  forged(encodeCursor(['a']), 2)
})

test('no text makes the reader fail in another way', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        decodeCursor(text, 1)
      } catch (error) {
        assert.ok(error instanceof InvalidInput)
      }
    }),
  )
})

test('pages from one row more than the limit have each row once, and the last page has no cursor', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 1, max: 8 }), (count, limit) => {
      const all = Array.from({ length: count }, (_, i) => i)
      const shown: number[] = []
      for (let cursor: string | undefined; ; ) {
        const from = Number(decodeCursor(cursor, 1)?.[0] ?? -1) + 1
        const page = pageOfRows(
          all.slice(from, from + limit + 1),
          limit,
          (row) => [String(row)],
          (row) => row,
        )
        assert.ok(page.items.length <= limit)
        assert.ok(page.items.length > 0 || count === 0, 'no page is empty but the only one')
        shown.push(...page.items)
        if (page.next_cursor === null) break
        cursor = page.next_cursor
      }
      assert.deepEqual(shown, all)
    }),
  )
})

test('pages of items of any size end at their limit of bytes, never without an item, and are the whole list', () => {
  const lists = fc.array(fc.string({ maxLength: 60 }), { maxLength: 40 })
  fc.assert(
    fc.property(
      lists,
      fc.integer({ min: 1, max: 200 }),
      fc.integer({ min: 1, max: 12 }),
      (all, bytes, limit) => {
        const shown: string[] = []
        for (let from = 0; ; ) {
          const page = pageOfRows(
            all.slice(from, from + limit + 1).map((text, i) => ({ text, at: from + i })),
            limit,
            ({ at }, index) => [String(at), String(index)],
            ({ text }) => text,
            bytes,
          )
          const size = page.items.reduce((sum, item) => sum + jsonBytes(item), 0)
          assert.ok(size <= bytes || page.items.length === 1)
          shown.push(...page.items)
          if (page.next_cursor === null) break
          const [at, index] = decodeCursor(page.next_cursor, 2) ?? []
          assert.equal(Number(index), page.items.length - 1)
          from = Number(at) + 1
        }
        assert.deepEqual(shown, all)
      },
    ),
  )
})

test('the bytes of any item are those of its JSON and a separator', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      const item = { value, none: undefined, '"\u0000': [value], list: [undefined], at: new Date(0) }
      for (const one of [item, value])
        assert.equal(jsonBytes(one), Buffer.byteLength(JSON.stringify(one)) + 1)
    }),
  )
})
