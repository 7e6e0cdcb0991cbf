// A band around what was usual at this time of the day or of the week, in the organisation's time zone: the
// seasonal median with a robust width. The distance from it is the residual of a robust seasonal
// decomposition (used by Twitter's S-H-ESD, Vallis et al. 2014), computed online and without a trend.
//
// The season of a series is measured, not configured: each season (day and week) predicts the next value from
// its own past, and the one with the smaller faded absolute error is used. The daily season is known after
// two days, the weekly one after two weeks; until then nothing is judged. While only one week is known, its
// value at this time is expected as well: otherwise an office that closes at weekends alarms at its second
// weekend, and such an alarm moves the edge out for weeks. A value far from usual still enters the history of
// its moment, where the median outvotes it. So a new level is usual after half of the kept seasons. About a
// microsecond per value at one value per minute.
//
// Holidays, where they are listed, have a history of their own (holidays.ts): no season learns from
// them, and none judges them.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import { type Band, bandOf, HolidayPast, holidayBand, holidayTest } from '../scoring/holidays.ts'
import { localClock } from '../scoring/local-clock.ts'
import { SeasonalPast } from '../scoring/season.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { blankScores, methodOf, type Scorer, type Scores, scoreOf } from './method.ts'

const minutesPerDay = 1440
/**
 * Errors fade over about this many values: enough to show a trend, and few enough to change
 * the season when it should.
 */
const errorMemory = 500

export const seasonalBand = methodOf('seasonal_band', (params, step) => new SeasonalScorer(params, step))

class SeasonalScorer implements Scorer {
  private readonly params: MethodParams<'seasonal_band'>
  private readonly stepMinutes: number
  private readonly day: Season
  private readonly week: Season
  private readonly holidays: HolidayPast
  private seen = 0

  constructor(params: MethodParams<'seasonal_band'>, stepMinutes: number) {
    this.params = params
    this.stepMinutes = stepMinutes
    const depth = params.history_seasons
    this.day = new Season(minutesPerDay, stepMinutes, depth)
    this.week = new Season(7 * minutesPerDay, stepMinutes, depth)
    this.holidays = new HolidayPast(this.week.past, stepMinutes, depth)
  }

  /** Two days where the season may be a day, else two weeks; those without gaps. */
  pointsNeeded(): number {
    const { season, warmup_points } = this.params
    const seasonMinutes = season === 'hour_of_week' ? 7 * minutesPerDay : minutesPerDay
    return Math.max(0, Math.max(warmup_points, 2 * Math.ceil(seasonMinutes / this.stepMinutes)) - this.seen)
  }

  score(piece: Series): Scores {
    const { day, holidays, week } = this
    const { k, season, warmup_points } = this.params
    const scores = blankScores(piece.values.length)
    const localTimeAt = localClock(piece, this.params.timezone)
    const isHoliday = holidayTest(this.params.holidays)
    for (let i = 0; i < piece.values.length; i++) {
      const value = at(piece.values, i)
      const local = localTimeAt(i)
      const isOff = isHoliday(local.day)
      const byDay = season === 'hour_of_week' ? null : day.past.usualAt(local.minuteOfDay)
      const byWeek = season === 'hour_of_day' ? null : week.past.usualAt(local.minuteOfWeek)
      const isWeek = byWeek !== null && (byDay === null || week.error < day.error)
      const usual = isWeek ? byWeek : byDay
      if (usual !== null && this.seen >= warmup_points) {
        const band = isOff ? holidayBand(holidays.estimatesAt(local, usual), k) : bandOf(usual, k)
        const isFirstWeek = season === 'auto' && byWeek === null
        draw(scores, i, value, isFirstWeek ? reaching(band, week.past.centreAt(local.minuteOfWeek)) : band)
      }
      if (Number.isNaN(value)) continue
      this.seen++
      if (isOff) {
        holidays.learn(local.minuteOfDay, value)
        continue
      }
      // Errors are comparable only where both seasons predict a value.
      if (byDay && byWeek) {
        day.judge(Math.abs(value - byDay.centre))
        week.judge(Math.abs(value - byWeek.centre))
      }
      day.past.learn(local.minuteOfDay, value)
      week.past.learn(local.minuteOfWeek, value)
    }
    return scores
  }
}

/** The band, as far around another value as around the expected one; as it is where that value is NaN. */
function reaching(band: Band, other: number): Band {
  const { above, below, expected } = band
  if (other > expected) return { ...band, above: above + (other - expected) }
  return other < expected ? { ...band, below: below + (expected - other) } : band
}

function draw(scores: Scores, i: number, value: number, { above, below, expected }: Band): void {
  scores.expected[i] = expected
  scores.lower[i] = expected - below
  scores.upper[i] = expected + above
  scores.score[i] = scoreOf(Math.abs(value - expected), value > expected ? above : below)
}

/** One season, and its prediction error so far. */
class Season {
  error = 0
  readonly past: SeasonalPast

  constructor(seasonMinutes: number, stepMinutes: number, depth: number) {
    this.past = new SeasonalPast(seasonMinutes, stepMinutes, depth)
  }

  judge(error: number): void {
    this.error += (error - this.error) / errorMemory
  }
}
