// The seasonal band while one week is known, and on holidays: which buckets are on a holiday, what they are
// compared with, and that they do not change what is expected of other days.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { methodParams } from '../../../contract/detection/methods.ts'
import { evaluateSeries } from '../runs/evaluate.ts'
import { localClock } from '../scoring/local-clock.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { seasonalBand } from './seasonal-band.ts'

const hourNs = 3_600_000_000_000n
const paramsWith = (more: object) => methodParams.seasonal_band.parse(more)

function seriesFrom(start: string, values: ArrayLike<number>): Series {
  const startNs = BigInt(Date.parse(start)) * 1_000_000n
  return {
    startNs,
    stepMinutes: 60,
    values: Float64Array.from(values),
    unknown: new Uint8Array(values.length),
    volumes: null,
  }
}

/**
 * Hourly values of an office that is closed on weekends and on the days `off`, in local
 * time, beginning on a Monday.
 */
function office(
  days: number,
  off: readonly string[],
  { start = '2026-09-07T00:00:00Z', timezone = 'UTC' } = {},
) {
  const normal = seededNormal(4)
  const blank = seriesFrom(start, new Float64Array(days * 24))
  const clock = localClock(blank, timezone)
  const values = blank.values.map((_, i) => {
    const { day, minuteOfDay, minuteOfWeek } = clock(i)
    const isOff = minuteOfWeek >= 5 * 1440 || off.includes(dateOf(day))
    const isOpen = minuteOfDay >= 8 * 60 && minuteOfDay < 18 * 60
    return 100 + (isOpen && !isOff ? 400 : 0) + 8 * normal()
  })
  return { ...blank, values }
}

const dateOf = (day: number) => new Date(day * 86_400_000).toISOString().slice(0, 10)
const timeOf = (series: Series, i: number) =>
  new Date(Number((series.startNs + BigInt(i) * hourNs) / 1_000_000n)).toISOString().slice(0, 16)

const hourOf = (series: Series, time: string) =>
  Number((BigInt(Date.parse(`${time}Z`)) * 1_000_000n - series.startNs) / hourNs)

/**
 * The buckets that are compared with the holiday two weeks before. On that day, the day before and the day
 * after, all values are far higher.
 */
function bucketsOn(series: Series, timezone: string, date: string): string[] {
  const clock = localClock(series, timezone)
  const before = Date.parse(date) / 86_400_000 - 14
  const values = series.values.map((value, i) => value + (Math.abs(clock(i).day - before) <= 1 ? 1e5 : 0))
  const params = paramsWith({ timezone, holidays: [dateOf(before), date] })
  const { expected } = seasonalBand.score({ ...series, values }, params)
  return [...values.keys()].filter((i) => at(expected, i) > 5e4).map((i) => timeOf(series, i))
}

function alarmsIn(series: Series, holidays: readonly string[]) {
  const params = paramsWith({ holidays, alarm_budget_per_week: 100, min_abs_dev: 60 })
  const { episodes } = evaluateSeries(series, { method_key: 'seasonal_band', params })
  return episodes
    .filter(({ startIndex }) => startIndex >= 35 * 24)
    .map(({ kind, startIndex }) => ({ kind, at: timeOf(series, startIndex) }))
}

test('an office that closes at weekends does not alarm at its second weekend, and alarms for a Thursday without traffic', () => {
  const series = office(28, [])
  const from = hourOf(series, '2026-10-01T10:00')
  series.values.fill(130, from, from + 5)
  const params = paramsWith({ ...{ warmup_points: 168, k: 3 }, alarm_budget_per_week: 0.25 })
  const { episodes } = evaluateSeries(series, { method_key: 'seasonal_band', params })
  const found = episodes.map(({ kind, startIndex }) => ({ kind, at: timeOf(series, startIndex) }))
  assert.deepEqual(found, [{ kind: 'low', at: '2026-10-01T10:00' }])
})

/** A Wednesday and a Thursday, in the seventh and the eighth week. */
const [first, second] = ['2026-10-21', '2026-10-29']

test('a working day without traffic alarms, and does not if it is a holiday', () => {
  const series = office(63, [first, second])
  assert.ok(alarmsIn(series, []).some((alarm) => alarm.at.startsWith(first) && alarm.kind === 'low'))
  assert.deepEqual(alarmsIn(series, [first, '10-29']), [])
})

test('a holiday on which everybody works as usual does not alarm either', () => {
  assert.deepEqual(alarmsIn(office(63, []), [first]), [])
})

test('missing values on a holiday alarm, on the first holiday and on the next', () => {
  for (const date of [first, second]) {
    const series = office(63, [first, second])
    const from = hourOf(series, `${date}T11:00`)
    series.values.fill(0, from, from + 4)
    const [alarm] = alarmsIn(series, [first, second])
    assert.deepEqual(alarm, { kind: 'low', at: `${date}T11:00` })
  }
})

test('a second holiday is compared with the first, whatever its values were', () => {
  const series = office(63, [])
  const holidays = [first, second]
  const busy = series.values.map(
    (value, i) => value + (holidays.includes(timeOf(series, i).slice(0, 10)) ? 1000 : 0),
  )
  const { expected, lower, upper } = seasonalBand.score({ ...series, values: busy }, paramsWith({ holidays }))
  const noon = hourOf(series, `${second}T12:00`)
  const before = noon - 8 * 24
  assert.equal(expected[noon], busy[before])
  assert.ok(
    at(lower, noon) > 1300 && at(upper, noon) < 1700,
    'working hours have 500, and a holiday 1000 more',
  )
  assert.ok(at(upper, before) < 700, 'the first one had nothing to compare with')
})

test('holidays do not change other days: whatever their values, the bands of all other days are the same', () => {
  const series = office(35, [])
  const params = paramsWith({ holidays: ['2026-09-21', '2026-09-28', '10-05'], timezone: 'America/New_York' })
  const clock = localClock(series, params.timezone)
  const isHoliday = [...series.values.keys()].map((i) =>
    ['2026-09-21', '2026-09-28', '2026-10-05'].includes(dateOf(clock(i).day)),
  )
  const plain = seasonalBand.score(series, params)
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 72 }),
      (odd) => {
        const values = series.values.map((value, i) => (isHoliday[i] ? (odd[i % odd.length] ?? 0) : value))
        const other = seasonalBand.score({ ...series, values }, params)
        for (const i of values.keys()) {
          if (isHoliday[i]) continue
          const rows = [plain, other].map(({ expected, lower, upper }) => [expected[i], lower[i], upper[i]])
          assert.deepEqual(rows[0], rows[1])
        }
      },
    ),
  )
  const unlisted = seasonalBand.score(series, paramsWith({ timezone: 'America/New_York' }))
  assert.notDeepEqual(unlisted.lower, plain.lower, 'without the list they change the bands of Mondays')
})

test('the band of a holiday comes from earlier values: later values change no earlier row', () => {
  const series = office(50, [first])
  const params = paramsWith({ holidays: [first, '10-08', '10-23'] })
  const before = seasonalBand.score(series, params)
  fc.assert(
    fc.property(
      fc.integer({ min: 600, max: 50 * 24 - 1 }),
      fc.double({ noNaN: true, min: -1e300, max: 1e300 }),
      (from, odd) => {
        const after = seasonalBand.score(
          { ...series, values: series.values.map((value, i) => (i < from ? value : odd)) },
          params,
        )
        for (const column of ['score', 'expected', 'lower', 'upper'] as const) {
          assert.deepEqual(after[column].slice(0, from), before[column].slice(0, from))
          if (column !== 'score') assert.deepEqual(after[column][from], before[column][from])
          assert.ok(after[column].every((each) => Number.isNaN(each) || Number.isFinite(each)))
        }
      },
    ),
  )
})

test('holidays outside the series, and an empty list, change nothing', () => {
  const series = office(35, [])
  const plain = seasonalBand.score(series, paramsWith({}))
  for (const holidays of [[], ['2025-12-25', '12-25', '02-29']]) {
    assert.deepEqual(seasonalBand.score(series, paramsWith({ holidays })), plain)
  }
})

test('a holiday begins and ends in local time', () => {
  for (const [timezone, from, to] of [
    ['Pacific/Auckland', '2026-10-20T11:00', '2026-10-21T10:00'],
    ['America/New_York', '2026-10-21T04:00', '2026-10-22T03:00'],
    ['Asia/Tokyo', '2026-10-20T15:00', '2026-10-21T14:00'],
  ] as const) {
    const on = bucketsOn(office(48, [], { timezone }), timezone, first)
    assert.deepEqual([on.length, on[0], on.at(-1)], [24, from, to], timezone)
  }
})

test('a holiday on which summer time begins has 23 hours, and one on which it ends 25', () => {
  const timezone = 'Europe/Berlin'
  const spring = office(60, [], { start: '2027-02-01T00:00:00Z', timezone })
  const inSpring = bucketsOn(spring, timezone, '2027-03-28')
  assert.deepEqual(
    [inSpring.length, inSpring[0], inSpring.at(-1)],
    [23, '2027-03-27T23:00', '2027-03-28T21:00'],
  )
  const inAutumn = bucketsOn(office(60, [], { timezone }), timezone, '2026-10-25')
  assert.deepEqual(
    [inAutumn.length, inAutumn[0], inAutumn.at(-1)],
    [25, '2026-10-24T22:00', '2026-10-25T22:00'],
  )
})

test('Christmas and New Year are holidays in one list, across the end of the year', () => {
  const off = ['2026-12-25', '2027-01-01']
  const series = office(63, off, { start: '2026-11-02T00:00:00Z' })
  assert.ok(alarmsIn(series, []).length > 0)
  assert.deepEqual(alarmsIn(series, ['12-25', '01-01']), [])
})

test('gaps on holidays are neither judged nor learnt', () => {
  const series = office(63, [first, second])
  const values = series.values.map((value, i) => (timeOf(series, i).startsWith(first) ? Number.NaN : value))
  const gone = { ...series, values }
  const params = paramsWith({ holidays: [first, second] })
  const { score, upper } = seasonalBand.score(gone, params)
  const noon = hourOf(series, `${first}T12:00`)
  assert.ok(Number.isNaN(score[noon]) && !Number.isNaN(at(upper, noon)))
  assert.ok(at(upper, noon + 8 * 24) > 480, 'the second is the first with values, so it may be a working day')
})
