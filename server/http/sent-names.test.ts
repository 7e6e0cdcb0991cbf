// Cases with several old names in one request, and what stays unchanged.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { ValidationProblem } from '../../contract/errors.ts'
import { oldRangeNames, withOldNames } from '../../contract/values/old-names.ts'
import { problem } from '../core/app-error.ts'
import { SentNames } from './sent-names.ts'

const schema = withOldNames(
  z.strictObject({ range_start: z.string(), range_end: z.string(), metric_key: z.string() }),
  { metric: 'metric_key', ...oldRangeNames },
)

function rename(input: unknown) {
  const names = new SentNames()
  const problems: ValidationProblem[] = []
  return { names, problems, renamed: names.rename('body', schema, input, problems) }
}

test('every old name becomes the current one, and nothing else changes', () => {
  const { renamed, problems } = rename({ end: 'b', metric: 'm', other: 1, range_start: 'a' })
  assert.deepEqual(renamed, { range_end: 'b', metric_key: 'm', other: 1, range_start: 'a' })
  assert.deepEqual(problems, [])
  for (const input of [undefined, null, 'start', ['start'], { range_end: 'b' }]) {
    assert.equal(rename(input).renamed, input)
  }
})

test('a field named __proto__ stays a field, and inherited names are not old ones', () => {
  const { renamed } = rename(JSON.parse('{"__proto__": {"start": 1}, "start": "a"}'))
  assert.deepEqual(Object.entries(renamed as object), [
    ['__proto__', { start: 1 }],
    ['range_start', 'a'],
  ])
})

test('of both names the current one counts, and a difference is a problem of the old one', () => {
  const { renamed, problems } = rename({
    start: { a: [1] },
    range_start: { a: [1] },
    end: 'x',
    range_end: 'y',
  })
  assert.deepEqual(renamed, { range_start: { a: [1] }, range_end: 'y' })
  assert.deepEqual(
    problems.map(({ loc, input }) => [...loc, input]),
    [['body', 'end', 'x']],
  )
})

test('problems have the names that were sent, at any depth, and what is missing is missing from what was sent', () => {
  const input = { start: 'a', range_end: 'b' }
  const { names } = rename(input)
  const missing = problem(['body', 'metric_key'], 'missing', 'Field required', { range_start: 'a' })
  const withLocations = [
    ['body'],
    ['body', 'range_start', '0', 'range_start'],
    ['body', 'range_end'],
    ['query', 'range_start'],
  ].map((loc) => problem(loc, 'value_error', 'x', 5))
  const [first, ...others] = names.withSentNames([missing, ...withLocations])
  assert.deepEqual([first?.loc, first?.input], [['body', 'metric_key'], input])
  assert.deepEqual(
    others.map(({ loc }) => loc.join('.')),
    ['body', 'body.start.0.range_start', 'body.range_end', 'query.range_start'],
  )
  assert.ok(others.every((found) => found.input === 5))
})

test('a shortened input keeps its position, and a large input in which something is missing is shortened', () => {
  const input = { start: 'a', note: 'n'.repeat(10_000) }
  const { names } = rename(input)
  const cut = problem(['body', 'range_start'], 'value_error', 'x', 'v'.repeat(1_000))
  const missing = problem(['body', 'metric_key'], 'missing', 'Field required', {})
  const [renamed, renamedMissing] = names.withSentNames([cut, missing])
  assert.deepEqual(renamed, { ...cut, loc: ['body', 'start'] })
  assert.ok(JSON.stringify(renamedMissing).length < 1_000)
})
