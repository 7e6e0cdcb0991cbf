// The outermost ranges of a list, compared with their definition: whatever is added or taken, in any order,
// each item that was left out is covered by one that is there, and no item that is there covers another.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { OutermostRanges } from './outermost-ranges.ts'
import { allTime, covers, overlaps, type TimeRange } from './time-range.ts'

interface Item {
  readonly id: number
  readonly range: TimeRange
}

const bound = fc.option(fc.bigInt({ min: 0n, max: 9n }), { nil: null })
const range = fc
  .record({ startNs: bound, endNs: bound })
  .filter(({ startNs, endNs }) => startNs === null || endNs === null || startNs < endNs)

test('an item is left out exactly where another one covers it, and of equal ranges the last one stays', () => {
  fc.assert(
    fc.property(fc.array(range, { maxLength: 12 }), range, (ranges, asked) => {
      const outermost = new OutermostRanges<Item>()
      const left = new Set<Item>()
      for (const [id, one] of ranges.entries()) {
        const item = { id, range: one }
        const covering = [...left].some((other) => covers(other.range, one) && !covers(one, other.range))
        assert.equal(
          outermost.hasCovering(one),
          [...left].some((other) => covers(other.range, one)),
        )
        const dropped = outermost.add(item)
        const due = covering ? [item] : [...left].filter((other) => covers(one, other.range))
        assert.deepEqual(new Set(dropped), new Set(due))
        left.add(item)
        for (const other of dropped) left.delete(other)
        assert.deepEqual(new Set(outermost.overlapping(allTime)), left)
      }
      const found = outermost.overlapping(asked)
      assert.deepEqual(new Set(found), new Set([...left].filter((item) => overlaps(item.range, asked))))
      assert.equal(outermost.hasOverlapping(asked), found.length > 0)
      const covered = [...left].filter((item) => covers(asked, item.range))
      assert.deepEqual(new Set(outermost.takeCovered(asked)), new Set(covered))
      assert.equal(outermost.overlapping(allTime).length, left.size - covered.length)
    }),
  )
})

test('items are returned in order of time, in whichever order they were added', () => {
  const outermost = new OutermostRanges<Item>()
  for (const id of [3, 1, 2, 0]) outermost.add({ id, range: { startNs: BigInt(id), endNs: BigInt(id + 2) } })
  assert.deepEqual(
    outermost.overlapping(allTime).map(({ id }) => id),
    [0, 1, 2, 3],
  )
  assert.deepEqual(
    outermost.overlapping({ startNs: 2n, endNs: 3n }).map(({ id }) => id),
    [1, 2],
  )
})
