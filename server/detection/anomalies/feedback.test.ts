// How verdicts move edges: within limits, on one side, and undone by the opposite verdict.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { union } from '../../core/time-range.ts'
import {
  confirmedOf,
  effectOf,
  type GivenVerdict,
  type Widening,
  wideningsOf,
  widestFactor,
} from './feedback.ts'

const checkout = '{"service":"checkout"}'

const given = (more: Partial<GivenVerdict> = {}): GivenVerdict => ({
  groupKey: checkout,
  startedNs: 5n,
  verdict: 'not_an_anomaly',
  givenAtMs: 1,
  value: 50,
  expected: 10,
  score: 2,
  edgeFactor: 1,
  read: [{ startNs: 0n, endNs: 10n }],
  ...more,
})

const of = (...verdicts: GivenVerdict[]): Widening | undefined => wideningsOf(verdicts).get(checkout)
const factors = (...verdicts: GivenVerdict[]) => {
  const { above, below } = of(...verdicts) ?? { above: 1, below: 1 }
  return [above, below].map((factor) => Math.round(factor * 1000) / 1000)
}

test('"not an anomaly" moves the edge beyond the peak, on its side and for its series only', () => {
  assert.deepEqual(factors(given()), [2.2, 1])
  assert.deepEqual(factors(given({ value: 1 })), [1, 2.2])
  assert.deepEqual(factors(given({ groupKey: '{"service":"search"}' })), [1, 1])
  assert.deepEqual(of(given())?.learntFrom, [{ startNs: 0n, endNs: 10n }])
})

test('a verdict on a larger peak moves the edge further, one on a smaller peak does not, and none beyond the limit', () => {
  assert.deepEqual(factors(given(), given({ score: 3, givenAtMs: 2 })), [3.3, 1])
  assert.deepEqual(factors(given({ score: 3 }), given({ givenAtMs: 2 })), [3.3, 1])
  assert.deepEqual(factors(given({ score: 1e8 })), [widestFactor, 1])
})

test('a score measured by a widened edge is converted to the edge without feedback', () => {
  assert.deepEqual(factors(given({ score: 1.5, edgeFactor: 2.2 })), [3.63, 1])
})

test('"real" undoes what is as large or larger, and the later verdict wins', () => {
  const real = given({ verdict: 'real', givenAtMs: 2, score: 1.8 })
  assert.deepEqual(factors(given(), real), [1.636, 1])
  assert(1.8 > 1.8 / 1.1, 'the real peak alarms again')
  assert.deepEqual(factors(given(), { ...real, score: 1.05 }), [1, 1])
  assert.deepEqual(factors(given({ givenAtMs: 3 }), real), [2.2, 1])
})

test('silence, configured limits and erased values move no edge', () => {
  assert.deepEqual(factors(given({ value: null })), [1, 1])
  assert.deepEqual(factors(given({ expected: null })), [1, 1])
  assert.deepEqual(factors(given({ score: 0 })), [1, 1])
})

test('the response to feedback says its effect and its limits', () => {
  assert.match(effectOf(given()), /above is 2.2 times .* does not alarm again/)
  assert.match(effectOf(given({ value: 1 })), /below/)
  assert.match(effectOf(given({ score: 40 })), /10 times .* the most .* 40 times, alarms again/)
  assert.match(effectOf(given({ value: null })), /mute/)
  assert.match(effectOf(given({ expected: null })), /Nothing is moved/)
  assert.match(effectOf(given({ verdict: 'real' })), /within the size of this peak/)
})

test('an edge without width cannot be widened, and the effect says so and what helps', () => {
  const stuck = given({ value: 53, expected: 50, score: 1e9 })
  assert.equal(of(stuck), undefined)
  assert.equal(of({ ...stuck, verdict: 'real' }), undefined)
  assert.match(
    effectOf(stuck),
    /^Nothing is moved: .* the same deviation alarms again\. A min_abs_dev of 3\.3 /,
  )
  assert.match(effectOf({ ...stuck, edgeFactor: 10 }), /^Nothing is moved/)
})

test('"real" confirms its anomaly, by series and in order of time, and nothing else does', () => {
  const read = [{ startNs: 0n, endNs: 10n }]
  const later = given({ verdict: 'real', startedNs: 9n, givenAtMs: 1 })
  const earlier = given({ verdict: 'real', startedNs: 2n, givenAtMs: 2 })
  const confirmed = confirmedOf([later, earlier, given()])
  const expected = [
    { startedNs: 2n, read },
    { startedNs: 9n, read },
  ]
  assert.deepEqual([...confirmed], [[checkout, expected]])
  assert.deepEqual([...confirmedOf([given()])], [])
})

const readOf = fc.array(
  fc
    .tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 1, max: 9 }))
    .map(([from, length]) => ({ startNs: BigInt(from), endNs: BigInt(from + length) })),
  { maxLength: 4 },
)

test('an edge is learnt from what all verdicts on its series that move edges have read', () => {
  const verdict = fc.record({
    ...{ read: readOf, verdict: fc.constantFrom('real', 'not_an_anomaly'), givenAtMs: fc.nat(9) },
    ...{ groupKey: fc.constantFrom(checkout, '{}'), expected: fc.constantFrom(10, null) },
  })
  fc.assert(
    fc.property(fc.array(verdict, { maxLength: 12 }), (some) => {
      const verdicts = some.map((more) => given(more as Partial<GivenVerdict>))
      for (const [key, { learntFrom }] of wideningsOf(verdicts)) {
        const moving = verdicts.filter((one) => one.groupKey === key && one.expected !== null)
        assert.deepEqual(learntFrom, union(moving.flatMap(({ read }) => read)))
      }
    }),
  )
})
