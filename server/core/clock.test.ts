// The real clock, as far as it can be tested without waiting: the end of a sleep, and the text of an instant.

import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { instantText, systemClock } from './clock.ts'

test('a sleep ends when it is aborted, and leaves no listener', async () => {
  const stop = new AbortController()
  const sleeping = systemClock.sleep(2 ** 30, stop.signal)
  stop.abort()
  await sleeping
  assert.equal(getEventListeners(stop.signal, 'abort').length, 0)
  await systemClock.sleep(2 ** 30, stop.signal)
})

test('a sleep that was not interrupted leaves no listener', async () => {
  const stop = new AbortController()
  await systemClock.sleep(0, stop.signal)
  assert.equal(getEventListeners(stop.signal, 'abort').length, 0)
})

test('milliseconds and nanoseconds are the same instant', () => {
  const before = systemClock.nowMs()
  const ns = systemClock.nowNs()
  const after = systemClock.nowMs()
  assert.ok(ns % 1_000_000n === 0n)
  assert.ok(Number(ns / 1_000_000n) >= before && Number(ns / 1_000_000n) <= after)
})

test('instants of the control plane are UTC with milliseconds, also where they are zero', () => {
  assert.equal(instantText(0), '1970-01-01T00:00:00.000Z')
  assert.equal(instantText(1_763_717_400_120), '2025-11-21T09:30:00.120Z')
})
