// A band around what was usual at this hour of the day or of the week, in the organisation's time zone: the seasonal
// median with a robust width, which is the residual of a robust seasonal decomposition (Twitter's S-H-ESD, Vallis et
// al. 2014, stands on the same residual) taken online and without a trend.
//
// Which season a series has is not asked but measured: each clock predicts the next value from its own past, and the
// one with the smaller faded absolute error is followed. A day is known after two days, a week after two weeks; until
// then nothing is judged. A value far from usual enters its moment's past all the same, where the median outvotes it;
// a new level therefore is usual after half of the kept seasons. About a microsecond per value at one per minute.
//
// Holidays, where they are named, have a past of their own (holidays.ts): no clock learns of them, nor is judged by them.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import { type Band, bandOf, HolidayPast, holidayBand, holidayTest } from '../scoring/holidays.ts'
import { localClock } from '../scoring/local-clock.ts'
import { SeasonalPast } from '../scoring/season.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import type { Method, Scores } from './method.ts'
import { blankScores, scoreOf } from './method.ts'

const minutesPerDay = 1440
/** Errors fade over about this many values, enough for a trend in them and few enough to change one's mind. */
const errorMemory = 500

export const seasonalBand: Method<'seasonal_band'> = {
  key: 'seasonal_band',
  score: scoreByClock,
}

function scoreByClock(series: Series, params: MethodParams<'seasonal_band'>): Scores {
  const { history_seasons: depth, k, season } = params
  const scores = blankScores(series.values.length)
  const clockOf = localClock(series, params.timezone)
  const isHoliday = holidayTest(params.holidays)
  const day = new Clock(minutesPerDay, series.stepMinutes, depth)
  const week = new Clock(7 * minutesPerDay, series.stepMinutes, depth)
  const holidays = new HolidayPast(week.past, series.stepMinutes, depth)
  let seen = 0
  for (let i = 0; i < series.values.length; i++) {
    const value = at(series.values, i)
    const local = clockOf(i)
    const isOff = isHoliday(local.day)
    const byDay = season === 'hour_of_week' ? null : day.past.usualAt(local.minuteOfDay)
    const byWeek = season === 'hour_of_day' ? null : week.past.usualAt(local.minuteOfWeek)
    const isWeek = byWeek !== null && (byDay === null || week.error < day.error)
    const usual = isWeek ? byWeek : byDay
    if (usual !== null && seen >= params.warmup_points) {
      draw(scores, i, value, isOff ? holidayBand(holidays.views(local, usual), k) : bandOf(usual, k))
    }
    if (Number.isNaN(value)) continue
    seen++
    if (isOff) {
      holidays.learn(local.minuteOfDay, value)
      continue
    }
    // Errors are comparable only where both clocks had an opinion.
    if (byDay && byWeek) {
      day.judge(Math.abs(value - byDay.centre))
      week.judge(Math.abs(value - byWeek.centre))
    }
    day.past.learn(local.minuteOfDay, value)
    week.past.learn(local.minuteOfWeek, value)
  }
  return scores
}

function draw(scores: Scores, i: number, value: number, { above, below, expected }: Band): void {
  scores.expected[i] = expected
  scores.lower[i] = expected - below
  scores.upper[i] = expected + above
  scores.score[i] = scoreOf(Math.abs(value - expected), value > expected ? above : below)
}

/** One season, and how well it has predicted. */
class Clock {
  error = 0
  readonly past: SeasonalPast

  constructor(seasonMinutes: number, stepMinutes: number, depth: number) {
    this.past = new SeasonalPast(seasonMinutes, stepMinutes, depth)
  }

  judge(error: number): void {
    this.error += (error - this.error) / errorMemory
  }
}
