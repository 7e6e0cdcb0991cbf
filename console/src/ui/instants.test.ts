// What a person types as a bound of an erasure, and what is shown: one text, one instant.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { agoText, dayAfter, daysApart, daysBetween, instantText, offsetText, parseTyped } from './instants.ts'

describe('a typed bound', () => {
  test('is a day, a time, a second or a fraction, with an offset or in the zone of the reader', () => {
    for (const [text, instant] of [
      ['2026-11-03', '2026-11-03T00:00:00Z'],
      [' 2026-11-03 14:05 ', '2026-11-03T14:05:00Z'],
      ['2026-11-03T14:05:06', '2026-11-03T14:05:06Z'],
      ['2026-11-03 14:05:06.123456789', '2026-11-03T14:05:06.123456789Z'],
      ['2026-11-03 14:05:06.000', '2026-11-03T14:05:06Z'],
      ['2026-11-03 01:00:00 +01:00', '2026-11-03T00:00:00Z'],
      ['2026-11-03 00:30 -05:30', '2026-11-03T06:00:00Z'],
      ['2026-11-03T14:05:06z', '2026-11-03T14:05:06Z'],
    ] as const) {
      assert.equal(parseTyped(text, 'utc'), instant, text)
    }
  })

  test('is refused where it has no such day or time, or more than one meaning', () => {
    for (const text of ['', 'now-7d', '3.11.2026', '11/03/2026', '2026-02-30', '2026-11-03 25:00', '14:00']) {
      assert.equal(parseTyped(text, 'utc'), null, text)
    }
  })

  test('that is shown is parsed to the same instant, in both zones', () => {
    for (const instant of ['2026-11-03T00:00:00Z', '2026-07-03T12:34:56.789Z', '1970-01-01T00:00:00Z']) {
      for (const zone of ['utc', 'local'] as const) {
        const shown = `${instantText(instant, zone, { fraction: true })} ${offsetText(Date.parse(instant), zone)}`
        assert.equal(parseTyped(shown, zone), instant, shown)
      }
    }
  })
})

test('UTC days follow each other over the ends of months and years', () => {
  assert.deepEqual(daysBetween('2026-12-30', '2027-01-02'), [
    '2026-12-30',
    '2026-12-31',
    '2027-01-01',
    '2027-01-02',
  ])
  assert.equal(dayAfter('2028-02-28'), '2028-02-29')
  assert.equal(dayAfter('2026-03-01', -1), '2026-02-28')
  assert.deepEqual(daysBetween('2026-01-02', '2026-01-01'), [])
  assert.deepEqual([daysApart('2026-12-30', '2027-01-02'), daysApart('2026-03-01', '2026-02-28')], [3, -1])
})

test('times near now are words', () => {
  const nowMs = Date.parse('2026-11-03T12:00:00Z')
  assert.equal(agoText('2026-11-03T11:59:59.500Z', nowMs), 'now')
  assert.equal(agoText('2026-11-03T11:58:59Z', nowMs), '1 minute ago')
  assert.equal(agoText('2026-11-01T12:00:00Z', nowMs), '2 days ago')
  assert.equal(agoText('2026-11-03T14:00:00Z', nowMs), 'in 2 hours')
})
