// The bytes of an item are those of its JSON, also where they are counted list by list.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { jsonBytes } from '../core/input/cursor.ts'
import { Pace } from '../core/turns/pace.ts'
import { jsonBytesInTurns } from './long-items.ts'

test('an item has as many bytes when its lists are counted one element after another', async () => {
  const pace = new Pace(async () => {})
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ stringUnit: 'binary' }), async (value) => {
      const lists = { '"\u0000': [value], list: [undefined, value, value], empty: [] }
      for (const item of [{ value, none: undefined, ...lists }, { only: [value] }, { none: undefined }, {}])
        assert.equal(await jsonBytesInTurns(item, pace), jsonBytes(item))
    }),
  )
})
