// Which two anomalies belong together: the rule alone, without a store.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Anomaly } from '../../contract/detection.ts'
import { type PlacedAnomaly, relationsOf } from './related.ts'

const minuteNs = 60_000_000_000n

function placed(id: string, fromMinute: number, untilMinute: number, service: string | null): PlacedAnomaly {
  return {
    // The rule reads the id of it and nothing else.
    anomaly: { id } as Anomaly,
    startedNs: BigInt(fromMinute) * minuteNs,
    seenUntilNs: BigInt(untilMinute) * minuteNs,
    service,
  }
}

const payments = placed('a', 1000, 1040, 'payments')

test('what overlaps and began within an hour belongs together, whatever its service', () => {
  assert.deepEqual(relationsOf(payments, placed('b', 1020, 1030, 'gateway')), ['began_together'])
  assert.deepEqual(relationsOf(payments, placed('b', 940, 1001, null)), ['began_together'])
})

test('what overlaps and is of the same service belongs together, however long ago it began', () => {
  assert.deepEqual(relationsOf(payments, placed('b', 100, 1001, 'payments')), ['same_service'])
  assert.deepEqual(relationsOf(payments, placed('b', 1010, 1100, 'payments')), [
    'same_service',
    'began_together',
  ])
})

test('a leak that lasts for hours is not related to what else happens meanwhile', () => {
  assert.deepEqual(relationsOf(payments, placed('b', 700, 1100, 'inventory')), [])
})

test('two anomalies that no service is known of are not of the same one', () => {
  assert.deepEqual(relationsOf(placed('a', 0, 500, null), placed('b', 400, 600, null)), [])
})

test('a gap of up to a quarter of an hour is none, a longer one is', () => {
  assert.deepEqual(relationsOf(payments, placed('b', 1055, 1070, 'payments')), [
    'same_service',
    'began_together',
  ])
  assert.deepEqual(relationsOf(payments, placed('b', 1056, 1070, 'payments')), [])
  assert.deepEqual(relationsOf(payments, placed('b', 980, 984, 'payments')), [])
})

test('the relation holds both ways, and of nothing with itself', () => {
  const any = fc
    .tuple(fc.integer({ min: 0, max: 300 }), fc.nat(200), fc.constantFrom('a', 'b', null))
    .map(([from, minutes, service]) => ({ from, until: from + minutes, service }))
  fc.assert(
    fc.property(any, any, (one, other) => {
      const [x, y] = [
        placed('x', one.from, one.until, one.service),
        placed('y', other.from, other.until, other.service),
      ]
      assert.deepEqual(relationsOf(x, y), relationsOf(y, x))
      assert.deepEqual(relationsOf(x, x), [])
    }),
  )
})
