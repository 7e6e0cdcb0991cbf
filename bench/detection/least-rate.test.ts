// The interval against published tables of Poisson limits.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leastMean } from './least-rate.ts'

test('the least mean is that of the tables, and 0 without events', () => {
  assert.equal(leastMean(0), 0)
  for (const [events, limit] of [
    [1, 0.0513],
    [3, 0.8177],
    [10, 5.4254],
    [50, 38.965],
  ] as const) {
    assert.ok(Math.abs(leastMean(events) - limit) < 0.001, `${leastMean(events)} for ${events} events`)
  }
})
