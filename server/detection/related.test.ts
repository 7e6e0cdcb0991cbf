// Which anomalies are related: only the rule, without a store.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Anomaly } from '../../contract/detection/detectors.ts'
import type { TimedAnomaly } from './incidents/timed-anomalies.ts'
import { relatedTo, relationsOf } from './related.ts'

const minuteNs = 60_000_000_000n

function timed(id: string, fromMinute: number, untilMinute: number, service: string | null): TimedAnomaly {
  return {
    // The rule reads only the id of the anomaly.
    anomaly: { id } as Anomaly,
    startedNs: BigInt(fromMinute) * minuteNs,
    seenUntilNs: BigInt(untilMinute) * minuteNs,
    service,
  }
}

const payments = timed('a', 1000, 1040, 'payments')

test('anomalies that overlap and began within an hour are related, whatever their services', () => {
  assert.deepEqual(relationsOf(payments, timed('b', 1020, 1030, 'gateway')), ['began_together'])
  assert.deepEqual(relationsOf(payments, timed('b', 940, 1001, null)), ['began_together'])
})

test('anomalies of one service that overlap are related, however long ago one began', () => {
  assert.deepEqual(relationsOf(payments, timed('b', 100, 1001, 'payments')), ['same_service'])
  assert.deepEqual(relationsOf(payments, timed('b', 1010, 1100, 'payments')), [
    'same_service',
    'began_together',
  ])
})

test('a leak that lasts for hours is not related to anomalies of other services during it', () => {
  assert.deepEqual(relationsOf(payments, timed('b', 700, 1100, 'inventory')), [])
})

test('two anomalies without a known service are not of the same service', () => {
  assert.deepEqual(relationsOf(timed('a', 0, 500, null), timed('b', 400, 600, null)), [])
})

test('anomalies up to 15 minutes apart count as overlapping', () => {
  assert.deepEqual(relationsOf(payments, timed('b', 1055, 1070, 'payments')), [
    'same_service',
    'began_together',
  ])
  assert.deepEqual(relationsOf(payments, timed('b', 1056, 1070, 'payments')), [])
  assert.deepEqual(relationsOf(payments, timed('b', 980, 984, 'payments')), [])
})

test('the relation is symmetric, and no anomaly is related to itself', () => {
  const any = fc
    .tuple(fc.integer({ min: 0, max: 300 }), fc.nat(200), fc.constantFrom('a', 'b', null))
    .map(([from, minutes, service]) => ({ from, until: from + minutes, service }))
  fc.assert(
    fc.property(any, any, (one, other) => {
      const [x, y] = [
        timed('x', one.from, one.until, one.service),
        timed('y', other.from, other.until, other.service),
      ]
      assert.deepEqual(relationsOf(x, y), relationsOf(y, x))
      assert.deepEqual(relationsOf(x, x), [])
    }),
  )
})

test('the nearest are the first twenty of all related ones in order, and all are counted', () => {
  const any = fc.record({
    from: fc.integer({ min: 0, max: 120 }),
    lasts: fc.nat(60),
    service: fc.constantFrom('a', 'b', null),
  })
  const property = fc.property(
    fc.array(any, { minLength: 1, maxLength: 70, size: 'max' }),
    fc.nat(69),
    (given, pick) => {
      const around = given.map(({ from, lasts, service }, i) =>
        timed(`${(i * 37) % 101}`, from, from + lasts, service),
      )
      const own = around[pick % around.length]
      assert(own !== undefined)
      const distance = ({ startedNs }: TimedAnomaly) => Math.abs(Number(startedNs - own.startedNs))
      const all = around
        .filter((other) => relationsOf(own, other).length > 0)
        .sort((a, b) => distance(a) - distance(b) || (a.anomaly.id < b.anomaly.id ? -1 : 1))
      const ids = (list: readonly TimedAnomaly[]) => list.map(({ anomaly }) => anomaly.id)
      const { count, nearest } = relatedTo(own, around)
      assert.deepEqual([count, ids(nearest)], [all.length, ids(all.slice(0, 20))])
    },
  )
  fc.assert(property, { numRuns: 300 })
})
