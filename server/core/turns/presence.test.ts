// Who counts as present beside whom.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Presence } from './presence.ts'

test('an owner is alone until another asks, and again ten seconds after the last one of the others', () => {
  let ms = 0
  const presence = new Presence(() => ms)
  presence.note('acme')
  assert.ok(presence.isAlone('acme'))
  presence.note('globex')
  assert.ok(!presence.isAlone('acme') && !presence.isAlone('globex'))
  for (ms = 0; ms < 10_000; ms += 100) presence.note('acme')
  ms = 9_999
  assert.ok(!presence.isAlone('acme'))
  ms = 10_000
  assert.ok(presence.isAlone('acme'))
  assert.ok(!presence.isAlone('globex'), 'acme has just asked')
})
