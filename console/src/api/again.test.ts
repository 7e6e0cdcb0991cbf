// How often a page reads again what it follows.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { every } from './again.ts'
import { Refusal, Unreachable } from './client.ts'

const refusalWith = (headers: Record<string, string>) =>
  new Refusal(new Response(null, { status: 503, headers }), { code: 'overloaded', detail: 'busy' })

test('what a page follows is read again when a refusal allows it, and not before a person has read that', () => {
  const next = (error: Error | null) => every(2_000)({ state: { error } })
  assert.equal(next(null), 2_000)
  assert.equal(next(refusalWith({ 'retry-after': '900' })), 900_000)
  assert.equal(next(refusalWith({})), 30_000)
  assert.equal(next(new Unreachable(null)), 2_000)
})
