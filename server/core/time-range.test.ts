// Half-open ranges and their definition: an instant is in `[start, end)` or it isn't. The properties compare
// with a walk over small instants, so that every combination of adjacent bounds occurs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { latestNs } from '../../contract/values/instant.ts'
import {
  allTime,
  coveredNs,
  covers,
  engineInstant,
  overlaps,
  stepsTouched,
  type TimeRange,
  touches,
  without,
} from './time-range.ts'

const small = fc.bigInt({ min: 0n, max: 9n })
const bound = fc.option(small, { nil: null })
const ranges = fc
  .record({ startNs: bound, endNs: bound })
  .filter(({ startNs, endNs }) => startNs === null || endNs === null || startNs < endNs)

/** One instant on either side of the bounds represents everything beyond them. */
const instants = Array.from({ length: 12 }, (_, i) => BigInt(i - 1))

const contains = ({ startNs, endNs }: TimeRange, ns: bigint) =>
  (startNs === null || ns >= startNs) && (endNs === null || ns < endNs)

test('the steps that a range touches are those with an instant of both, from the first to the last', () => {
  const rows = fc.record({ originNs: small, before: fc.bigInt(0n, 5n), length: fc.bigInt(1n, 9n) })
  fc.assert(
    fc.property(ranges, rows, fc.bigInt(1n, 4n), (range, { originNs, before, length }, stepNs) => {
      const startNs = originNs + before
      const endNs = startNs + length
      const touched = Array.from({ length: 15 }, (_, step) => step).filter((step) => {
        const own = Array.from(
          { length: Number(stepNs) },
          (_, at) => originNs + BigInt(step) * stepNs + BigInt(at),
        )
        return own.some((ns) => ns >= startNs && ns < endNs && contains(range, ns))
      })
      const found = stepsTouched(range, { originNs, startNs, endNs, stepNs })
      assert.deepEqual(
        found === null ? [] : [found.first, found.last],
        touched.length === 0 ? [] : [touched[0], touched.at(-1)],
      )
      assert.equal(touched.length, found === null ? 0 : found.last - found.first + 1)
    }),
  )
})

test('a range touches rows from a first to a last instant when it contains one between them', () => {
  fc.assert(
    fc.property(ranges, small, small, (range, a, b) => {
      const [minNs, maxNs] = a < b ? [a, b] : [b, a]
      const isCovered = instants.some((ns) => ns >= minNs && ns <= maxNs && contains(range, ns))
      assert.equal(touches(range, minNs, maxNs), isCovered)
    }),
  )
})

test('a range covers another when it contains every instant of it', () => {
  fc.assert(
    fc.property(ranges, small, small, (range, a, b) => {
      fc.pre(a !== b)
      const [startNs, endNs] = a < b ? [a, b] : [b, a]
      const isCovered = instants
        .filter((ns) => ns >= startNs && ns < endNs)
        .every((ns) => contains(range, ns))
      assert.equal(covers(range, { startNs, endNs }), isCovered)
    }),
  )
})

test('ranges overlap when they share an instant, in either order', () => {
  fc.assert(
    fc.property(ranges, ranges, (a, b) => {
      const isShared = instants.some((ns) => contains(a, ns) && contains(b, ns))
      assert.equal(overlaps(a, b), isShared)
      assert.equal(overlaps(b, a), isShared)
    }),
  )
})

test('ranges together cover what at least one of them contains, each instant once', () => {
  const bounded = fc
    .record({ startNs: small, endNs: small })
    .map(({ startNs, endNs }) => (startNs < endNs ? { startNs, endNs } : { startNs: endNs, endNs: startNs }))
  fc.assert(
    fc.property(fc.array(bounded, { maxLength: 6 }), (list) => {
      const covered = instants.filter((ns) => list.some((range) => contains(range, ns)))
      assert.equal(coveredNs(list), BigInt(covered.length))
    }),
  )
})

test('the start is inside, the end is not, and adjacent ranges share nothing', () => {
  const range = { startNs: 10n, endNs: 20n }
  assert.ok(touches(range, 10n, 10n))
  assert.ok(touches(range, 19n, 19n))
  assert.ok(!touches(range, 20n, 20n))
  assert.ok(!touches(range, 9n, 9n))
  assert.ok(touches(range, 0n, 99n))
  assert.ok(covers(range, { startNs: 10n, endNs: 20n }))
  assert.ok(!covers(range, { startNs: 10n, endNs: 21n }))
  assert.ok(!covers(range, { startNs: 9n, endNs: 20n }))
  assert.ok(!overlaps(range, { startNs: 20n, endNs: 30n }))
})

test('all of time touches, covers and overlaps everything', () => {
  assert.ok(touches(allTime, 0n, 0n))
  assert.ok(covers(allTime, { startNs: 0n, endNs: latestNs }))
  assert.ok(overlaps(allTime, { startNs: latestNs, endNs: null }))
})

test('an instant for the engine has ten digits of seconds and nine of fraction, whatever its size', () => {
  assert.equal(engineInstant(0n), '0000000000.000000000')
  assert.equal(engineInstant(1n), '0000000000.000000001')
  assert.equal(engineInstant(1_763_717_400_123_456_789n), '1763717400.123456789')
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: latestNs }), (ns) => {
      const text = engineInstant(ns)
      assert.match(text, /^\d{10}\.\d{9}$/)
      assert.equal(BigInt(text.replace('.', '')), ns)
    }),
  )
})

test('what remains without the holes is in none of them, in order and without overlaps', () => {
  fc.assert(
    fc.property(ranges, fc.array(ranges, { maxLength: 4 }), (range, holes) => {
      const left = without(range, holes)
      for (const ns of instants) {
        const isLeft = contains(range, ns) && !holes.some((hole) => contains(hole, ns))
        assert.equal(left.filter((part) => contains(part, ns)).length, isLeft ? 1 : 0)
      }
      for (const [i, part] of left.entries()) {
        const next = left[i + 1]
        assert.ok(part.startNs === null || part.endNs === null || part.startNs < part.endNs)
        if (next !== undefined) assert.ok(Number(part.endNs) <= Number(next.startNs))
      }
    }),
  )
})
