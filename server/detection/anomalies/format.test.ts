// Quantities in sentences about anomalies.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatQuantity } from './format.ts'

test('a quantity has its unit without annotations', () => {
  assert.equal(formatQuantity(1240, 'ms'), '1,240 ms')
  assert.equal(formatQuantity(4.2, '%'), '4.20 %')
  assert.equal(formatQuantity(3, '{request}'), '3.00')
  assert.equal(formatQuantity(3, '{request}/s'), '3.00')
  assert.equal(formatQuantity(3, 'kBy{compressed}/s{wall}'), '3.00 kBy/s')
  assert.equal(formatQuantity(1.5 * 1024 ** 3, 'By'), '1.50 GiB')
})

test('a text that is too long for a unit is not shown, because a sender chooses it', () => {
  assert.equal(formatQuantity(3, 'u'.repeat(64)), `3.00 ${'u'.repeat(64)}`)
  assert.equal(formatQuantity(3, 'u'.repeat(65)), '3.00')
  assert.equal(formatQuantity(3, '{'.repeat(32_768)), '3.00')
})
