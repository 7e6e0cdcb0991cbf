// Which days are holidays, and how the band of a holiday is made.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type HolidayEstimates, HolidayPast, holidayBand, holidayTest } from './holidays.ts'
import { SeasonalPast } from './season.ts'

const dayOf = (date: string) => Date.parse(date) / 86_400_000
const usual = (centre: number, sigma: number) => ({ centre, sigma })
const edges = (estimates: HolidayEstimates, k = 4) => {
  const { above, below, expected } = holidayBand(estimates, k)
  return [expected - below, expected, expected + above]
}

test('a date is one day, and a date without a year is that day of every year', () => {
  const isHoliday = holidayTest(['2026-04-03', '12-25'])
  const days = [
    '2026-04-03',
    '2027-04-03',
    '2026-12-24',
    '2026-12-25',
    '2026-12-26',
    '1969-12-25',
    '2031-12-25',
  ]
  assert.deepEqual(
    days.filter((date) => isHoliday(dayOf(date))),
    ['2026-04-03', '2026-12-25', '1969-12-25', '2031-12-25'],
  )
  assert.equal(holidayTest([])(dayOf('2026-12-25')), false)
})

test('the last and the first day of a year are holidays only where they are listed', () => {
  const isHoliday = holidayTest(['12-31', '2027-01-01'])
  const days = Array.from({ length: 4 }, (_, i) => isHoliday(dayOf('2026-12-30') + i))
  assert.deepEqual(days, [false, true, true, false])
})

test('the 29th of February is a holiday of the years that have one', () => {
  const isHoliday = holidayTest(['02-29'])
  const days = ['2027-02-28', '2027-03-01', '2028-02-28', '2028-02-29', '2028-03-01']
  assert.deepEqual(
    days.filter((date) => isHoliday(dayOf(date))),
    ['2028-02-29'],
  )
})

test('the band of the first holiday covers a day off and a working day, and values outside it alarm', () => {
  const estimates = { earlier: null, dayOff: usual(20, 2), ordinary: usual(400, 10) }
  assert.deepEqual(edges(estimates), [12, 20, 440])
  assert.deepEqual(edges({ ...estimates, dayOff: usual(400, 2), ordinary: usual(20, 10) }), [-20, 400, 408])
  assert.deepEqual(edges({ ...estimates, dayOff: null }), [360, 400, 440], 'no week is known yet')
})

test('a later holiday is compared with earlier ones, with the width of the kind of day that they resemble', () => {
  const estimates = { earlier: usual(50, 0), dayOff: usual(20, 2), ordinary: usual(400, 10) }
  assert.deepEqual(edges(estimates), [42, 50, 58])
  assert.deepEqual(edges({ ...estimates, earlier: usual(50, 3) }), [38, 50, 62])
  assert.deepEqual(edges({ ...estimates, earlier: usual(390, 0) }), [350, 390, 430])
  assert.deepEqual(edges({ ...estimates, dayOff: null }), [10, 50, 90])
})

test('the day off is the day of the week that differs most from the others, whichever it is', () => {
  for (const off of [4, 6]) {
    const week = new SeasonalPast(10_080, 60, 14)
    for (let hour = 0; hour < 4 * 168; hour++) {
      const weekday = Math.floor(hour / 24) % 7
      week.learn((hour % 168) * 60, (weekday === off ? 20 : weekday === off - 1 ? 60 : 400) + (hour % 3))
    }
    const ordinary = usual(400, 1)
    const at = { day: 20_000, minuteOfDay: 14 * 60 }
    // At least five values are needed, and four weeks of hours have four of each.
    assert.equal(new HolidayPast(week, 60, 14).estimatesAt(at, ordinary).dayOff, null)
    for (let hour = 0; hour < 168; hour++) {
      const weekday = Math.floor(hour / 24)
      week.learn(hour * 60, (weekday === off ? 20 : weekday === off - 1 ? 60 : 400) + (hour % 3))
    }
    const { centre } =
      new HolidayPast(week, 60, 14).estimatesAt(at, ordinary).dayOff ?? assert.fail('known by now')
    assert.ok(centre >= 20 && centre <= 22, `${centre}`)
  }
})

test('while less than two weeks are known there is no day off to compare with', () => {
  const holidays = new HolidayPast(new SeasonalPast(10_080, 60, 14), 60, 14)
  const at = { day: 20_000, minuteOfDay: 600 }
  assert.deepEqual(holidays.estimatesAt(at, usual(1, 1)), {
    earlier: null,
    dayOff: null,
    ordinary: usual(1, 1),
  })
  holidays.learn(600, 7)
  assert.deepEqual(holidays.estimatesAt(at, usual(1, 1)).earlier, usual(7, 0))
})
