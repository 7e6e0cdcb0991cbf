// The settings of a reading statement.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { usualLimits } from './engine.ts'
import { render } from './sql.ts'
import { bounds, ownTurn, underLock } from './statement-settings.ts'

test('only a read for which commits wait has the priority of the event loop', () => {
  assert.ok(render(bounds({ ...usualLimits, isUnderLock: true }, ownTurn)).includes(underLock))
  assert.ok(!render(bounds(usualLimits, ownTurn)).includes(underLock))
})
