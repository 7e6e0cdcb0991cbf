// The interval of queries that a page reads repeatedly.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Refusal, Unreachable } from './client.ts'
import { readEvery } from './read-interval.ts'

const refusalWith = (headers: Record<string, string>) =>
  new Refusal(new Response(null, { status: 503, headers }), { code: 'overloaded', detail: 'busy' })

test('a refused query is read again when the refusal allows it, and not before a person has read the refusal', () => {
  const next = (error: Error | null) => readEvery(2_000)({ state: { error } })
  assert.equal(next(null), 2_000)
  assert.equal(next(refusalWith({ 'retry-after': '900' })), 900_000)
  assert.equal(next(refusalWith({})), 30_000)
  assert.equal(next(new Unreachable(null)), 2_000)
})
