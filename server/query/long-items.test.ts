// The bytes of an item are those of its JSON, also where they are counted value by value.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { paceOfSteps } from '../../tests/with-turns.ts'
import { jsonBytes } from '../core/input/cursor.ts'
import { Pace } from '../core/turns/pace.ts'
import { jsonBytesInTurns } from './long-items.ts'

test('an item has as many bytes when its values are counted one after another', async () => {
  const pace = new Pace(async () => {})
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ stringUnit: 'binary' }), async (value) => {
      const lists = { '"\u0000': [value], list: [undefined, value, value], empty: [] }
      for (const item of [{ value, none: undefined, ...lists }, { only: [value] }, { none: undefined }, {}])
        assert.equal(await jsonBytesInTurns(item, pace), jsonBytes(item))
    }),
  )
})

test('a long list and a long object wait for turns, and no more is counted than was asked', async () => {
  const texts = Array.from({ length: 1_000 }, (_, i) => `\u0001${i}`)
  for (const long of [texts, Object.fromEntries(texts.entries())]) {
    const { pace, turns } = paceOfSteps()
    assert.equal(await jsonBytesInTurns({ long }, pace), jsonBytes({ long }))
    assert.ok(turns() >= 90, `${turns()} turns`)
    const early = paceOfSteps()
    const bytes = await jsonBytesInTurns({ long }, early.pace, 1_000)
    assert.ok(bytes > 1_000 && bytes < 1_050 && early.turns() < 30, `${bytes} bytes, ${early.turns()} turns`)
  }
})
