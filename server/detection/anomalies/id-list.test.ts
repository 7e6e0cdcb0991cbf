// All lists of ids have the same length, so that a statement has one text.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idList, idsMax } from './id-list.ts'

test('a list has all ids that were given, no others, and always the same length', () => {
  for (const count of [1, 2, idsMax]) {
    const ids = Array.from({ length: count }, (_, i) => `det_${i}`)
    assert.equal(idList(ids).length, idsMax)
    assert.deepEqual(new Set(idList(ids)), new Set(ids))
  }
  assert.throws(() => idList([]), RangeError)
  assert.throws(() => idList(Array(idsMax + 1).fill('det_1')), RangeError)
})
