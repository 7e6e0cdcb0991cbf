// The text of a response is that of JSON.stringify for the checked body, and a long list is written in
// slices.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { labelMap } from '../../contract/values/label-map.ts'
import { paceOfSteps } from '../../tests/with-turns.ts'
import { Pace } from '../core/turns/pace.ts'
import { responseWriter } from './response-text.ts'

const Page = z.object({
  items: z.array(z.object({ at: z.string(), value: z.number().nullable(), note: z.string().optional() })),
  next_cursor: z.string().nullable(),
  total: z.int().optional(),
})

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
  await fc.assert(
    fc.asyncProperty(page, async (body) => {
      assert.equal(`${await write(body, new Pace())}`, JSON.stringify(z.encode(Page, body)))
    }),
  )
})

const Nested = z.object({
  spans: z.array(
    z.object({
      id: z.string().optional(),
      events: z.array(z.object({ name: z.string(), tags: z.array(z.string()) })),
      links: z.array(z.int()).optional(),
    }),
  ),
})

test('lists inside of elements, short and long, have the same text as when written as a whole', async () => {
  const event = fc.record({ name: fc.string(), tags: fc.array(fc.string(), { maxLength: 40 }) })
  const span = fc.record(
    { id: fc.string(), events: fc.array(event, { maxLength: 40 }), links: fc.array(fc.integer()) },
    { requiredKeys: ['events'] },
  )
  const write = responseWriter(Nested)
  await fc.assert(
    fc.asyncProperty(fc.array(span, { maxLength: 3 }), async (spans) => {
      const text = `${await write({ spans }, new Pace())}`
      assert.equal(text, JSON.stringify(z.encode(Nested, { spans })))
    }),
    { numRuns: 50 },
  )
})

test('a schema that is not an object is written as a whole', async () => {
  assert.equal(`${await responseWriter(z.array(z.int()))([1, 2], new Pace())}`, '[1,2]')
})

test('a long list waits for turns between slices, and a short one for none', async () => {
  const items = Array.from({ length: 1_000 }, (_, at) => ({ at: `${at}`, value: at }))
  const [long, short] = [paceOfSteps(), paceOfSteps()]
  const text = await responseWriter(Page)({ items, next_cursor: null }, long.pace)
  assert.deepEqual(JSON.parse(`${text}`), { items, next_cursor: null })
  assert.ok(long.turns() >= 90, `${long.turns()} turns`)
  await responseWriter(Page)({ items: items.slice(0, 5), next_cursor: null }, short.pace)
  assert.equal(short.turns(), 0)
})

test('one element waits for turns inside its long lists', async () => {
  const tags = ['one', 'two', 'three']
  const events = Array.from({ length: 1_000 }, (_, at) => ({ name: `${at}`, tags }))
  const { pace, turns } = paceOfSteps()
  const text = await responseWriter(Nested)({ spans: [{ events }] }, pace)
  assert.deepEqual(JSON.parse(`${text}`), { spans: [{ events }] })
  assert.ok(turns() >= 90, `${turns()} turns`)
})

const Labelled = z.object({
  items: z.array(z.object({ labels: labelMap(), events: z.array(z.object({ labels: labelMap() })) })),
})

test('maps of labels, short and long, have the same text as when written as a whole', async () => {
  const labels = fc.dictionary(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), { maxKeys: 300 })
  const item = fc.record({ labels, events: fc.array(fc.record({ labels }), { maxLength: 2 }) })
  const write = responseWriter(Labelled)
  await fc.assert(
    fc.asyncProperty(fc.array(item, { maxLength: 2, size: 'max' }), async (items) => {
      const named = items.map((one) => ({ ...one, labels: { ...one.labels, ['__proto__']: 'own' } }))
      assert.equal(`${await write({ items: named }, new Pace())}`, JSON.stringify({ items: named }))
    }),
    { numRuns: 20 },
  )
})

test('one element waits for turns inside its long maps of labels, by entries or by length', async () => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`${at}`, 'label']))
  const long = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`${at}`, 'x'.repeat(1_000)]))
  for (const [labels, least] of [
    [many, 90],
    [long, 9],
  ] as const) {
    for (const item of [
      { labels, events: [] },
      { labels: {}, events: [{ labels }] },
    ]) {
      const { pace, turns } = paceOfSteps()
      const text = await responseWriter(Labelled)({ items: [item] }, pace)
      assert.equal(`${text}`, JSON.stringify({ items: [item] }))
      assert.ok(turns() >= least, `${turns()} turns`)
    }
  }
})

test('a body that does not match the schema is not sent', async () => {
  const write = responseWriter(z.object({ items: z.array(z.object({ at: z.int() })) }))
  await assert.rejects(write({ items: [{ at: 'yesterday' }] }, new Pace()), z.ZodError)
  await assert.rejects(write({ items: 'none' }, new Pace()), z.ZodError)
  const events = [...Array.from({ length: 40 }, () => ({ name: 'a', tags: [] })), { name: 'b', tags: [1] }]
  const labels = { ...Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`${at}`, ''])), last: 1 }
  const labelled = responseWriter(Labelled)({ items: [{ labels, events: [] }] }, new Pace())
  await assert.rejects(labelled, z.ZodError)
  await assert.rejects(responseWriter(Nested)({ spans: [{ events }] }, new Pace()), z.ZodError)
})
