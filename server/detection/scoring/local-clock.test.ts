// Local day and week, across a change to summer time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clockChanges, localClock } from './local-clock.ts'

const from = (instant: string) => ({ startNs: BigInt(Date.parse(instant)) * 1_000_000n, stepMinutes: 60 })

test('weeks begin on Monday', () => {
  assert.deepEqual(localClock(from('2026-03-30T01:00:00Z'), 'UTC')(0), {
    day: 20_542,
    minuteOfDay: 60,
    minuteOfWeek: 60,
  })
  assert.equal(localClock(from('2026-03-29T23:00:00Z'), 'UTC')(0).minuteOfWeek, 7 * 1440 - 60)
})

test('local time jumps where summer time begins, and bucket numbers do not', () => {
  const clock = localClock(from('2026-03-29T00:00:00Z'), 'Europe/Berlin')
  assert.deepEqual(
    [0, 1, 2].map((i) => clock(i).minuteOfDay / 60),
    [1, 3, 4],
  )
})

test('offsets of parts of an hour are right, and so are times before 1970', () => {
  assert.equal(localClock(from('2026-01-01T00:00:00Z'), 'Asia/Kathmandu')(0).minuteOfDay, 345)
  assert.equal(localClock(from('1969-12-31T23:00:00Z'), 'UTC')(0).minuteOfDay, 1380)
})

test('the buckets at which the offset to UTC changes are found, and there are none in UTC', () => {
  const year = { ...from('2026-01-01T00:30:00Z'), values: new Float64Array(365 * 24) }
  const instants = (timezone: string) =>
    clockChanges(year, timezone).map((i) =>
      new Date(Number(year.startNs / 1_000_000n) + i * 3_600_000).toISOString(),
    )
  assert.deepEqual(instants('Europe/Berlin'), ['2026-03-29T01:30:00.000Z', '2026-10-25T01:30:00.000Z'])
  assert.deepEqual(instants('UTC'), [])
  assert.deepEqual(clockChanges({ ...year, values: new Float64Array(0) }, 'Europe/Berlin'), [])
  const atChange = from('2026-03-29T01:00:00Z')
  for (const hours of [1, 5]) {
    assert.deepEqual(clockChanges({ ...atChange, values: new Float64Array(hours) }, 'Europe/Berlin'), [0])
  }
})
