// The text of a response is that of JSON.stringify for the checked body, and a long list is written in
// slices.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { responseWriter } from './response-text.ts'

const Page = z.object({
  items: z.array(z.object({ at: z.string(), value: z.number().nullable(), note: z.string().optional() })),
  next_cursor: z.string().nullable(),
  total: z.int().optional(),
})

const never = () => Promise.reject(new Error('a small answer waited'))

test('any page has the same text as when written as a whole', async () => {
  const item = fc.record(
    {
      at: fc.string({ unit: 'binary' }),
      value: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constant(null)),
      note: fc.string(),
      hidden: fc.string(),
    },
    { requiredKeys: ['at', 'value'] },
  )
  const page = fc.record(
    {
      items: fc.array(item, { maxLength: 5 }),
      next_cursor: fc.oneof(fc.string(), fc.constant(null)),
      total: fc.integer(),
    },
    { requiredKeys: ['items', 'next_cursor'] },
  )
  const write = responseWriter(Page)
  const turn = async () => {}
  await fc.assert(
    fc.asyncProperty(page, async (body) => {
      assert.equal(`${await write(body, turn)}`, JSON.stringify(z.encode(Page, body)))
    }),
  )
})

test('a schema that is not an object is written as a whole', async () => {
  assert.equal(`${await responseWriter(z.array(z.int()))([1, 2], never)}`, '[1,2]')
})

test('a long list waits for turns between slices, and a short one for none', async () => {
  const items = Array.from({ length: 20_000 }, (_, at) => ({ at: `${at}`, value: at }))
  let turns = 0
  const text = await responseWriter(Page)({ items, next_cursor: null }, async () => {
    turns++
  })
  assert.deepEqual(JSON.parse(`${text}`), { items, next_cursor: null })
  assert.ok(turns >= 2, `${turns} turns`)
  await responseWriter(Page)({ items: items.slice(0, 1), next_cursor: null }, never)
})

test('a body that does not match the schema is not sent', async () => {
  const write = responseWriter(z.object({ items: z.array(z.object({ at: z.int() })) }))
  await assert.rejects(write({ items: [{ at: 'yesterday' }] }, never), z.ZodError)
  await assert.rejects(write({ items: 'none' }, never), z.ZodError)
})
