// The valid fields of a part of a request that its schema refuses, each as its own schema parses it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { InstantInput } from '../../../contract/values/instant.ts'
import { oldRangeNames, withOldNames } from '../../../contract/values/old-names.ts'
import { readPart } from './parsed.ts'

const Body = withOldNames(
  z.strictObject({
    range_start: InstantInput.optional(),
    range_end: InstantInput,
    scope: z.enum(['range', 'all']).default('range'),
  }),
  oldRangeNames,
)

const end = { text: '2026-11-21T00:00:00Z', ns: BigInt(Date.UTC(2026, 10, 21)) * 1_000_000n }

test('an accepted part has all its fields, with defaults, and no problem', () => {
  const value = { range_end: end.ns, scope: 'range' }
  assert.deepEqual(readPart('body', Body, { range_end: end.text }), { value, fields: value, problems: [] })
})

test('a refused part still has its valid fields, parsed', () => {
  const { fields, problems, value } = readPart('body', Body, {
    range_start: 'yesterday',
    range_end: end.text,
    more: 1,
  })
  assert.equal(value, undefined)
  assert.deepEqual(fields, { range_end: end.ns, scope: 'range' })
  assert.deepEqual(
    problems.map(({ loc, type }) => [...loc, type]),
    [
      ['body', 'range_start', 'datetime_parsing'],
      ['body', 'more', 'extra_forbidden'],
    ],
  )
})

test('a property that every object inherits was not sent', () => {
  const Odd = z.strictObject({ toString: z.unknown(), a: z.string() })
  assert.deepEqual(readPart('body', Odd, { a: 1 }).fields, {})
})

test('what is not an object has no fields', () => {
  for (const input of [undefined, null, 'x', [end.text], 5]) {
    const { fields, problems } = readPart('body', Body, input)
    assert.deepEqual(fields, {})
    assert.equal(problems.length, 1)
  }
})
