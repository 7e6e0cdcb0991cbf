// Which days are holidays, and what is usual on one. Holidays have a history of their own and are left out of
// every other: a bank holiday must not lower what is expected of the Mondays after it.
//
// The band of a holiday comes from all earlier holidays, whatever their names: they are few, and most are
// alike. The first one has no earlier one to compare with, and its kind is unknown: a day off, half a day
// off, or an ordinary day at this site. So its band covers both the usual values of this weekday, and those
// of the day of the week that differs most from the others, mostly Sunday: it shows the values of a day off
// in this series. docs/decisions/0017 lists what else was tried.

import { SeasonalPast, type Usual } from './season.ts'

const minutesPerHour = 60
const minutesPerDay = 1440
const daysOfWeek = [0, 1, 2, 3, 4, 5, 6] as const
const msPerDay = minutesPerDay * 60_000

/** What is expected, and how far from it the edges are. */
export interface Band {
  readonly expected: number
  readonly below: number
  readonly above: number
}

/**
 * Returns a function that returns whether a local day, counted from 1970-01-01, is one of `entries`:
 * `2026-12-25`, or `12-25` for every year. An entry for a day that a year does not have (02-29) has no effect
 * in that year.
 */
export function holidayTest(entries: readonly string[]): (day: number) => boolean {
  if (entries.length === 0) return () => false
  const named = new Set(entries)
  let asked = Number.NaN
  let answer = false
  return (day) => {
    if (day === asked) return answer
    asked = day
    const date = new Date(day * msPerDay).toISOString().slice(0, 10)
    answer = named.has(date) || named.has(date.slice('yyyy-'.length))
    return answer
  }
}

/** What is usual at one moment of a holiday, according to each history. */
export interface HolidayEstimates {
  /** At the same time of earlier holidays; null for the first holiday. */
  readonly earlier: Usual | null
  /**
   * At the same time of the day of the week that differs most from the others; null while
   * too few weeks are known.
   */
  readonly dayOff: Usual | null
  /** What would be expected on an ordinary day. */
  readonly ordinary: Usual
}

/** `k`: half the width of a band, in standard deviations. */
type HolidayRule = (estimates: HolidayEstimates, k: number) => Band

/**
 * With earlier holidays: their band, at least as wide as that of the kind of day they are closest to,
 * because a few of them do not show how much holidays vary. Without: the band from a day off to a
 * working day at this time.
 */
export const holidayBand: HolidayRule = ({ dayOff, earlier, ordinary }, k) => {
  const other = dayOff ?? ordinary
  if (earlier !== null) {
    const isOff = Math.abs(earlier.centre - other.centre) < Math.abs(earlier.centre - ordinary.centre)
    const { sigma } = isOff ? other : ordinary
    return bandOf({ centre: earlier.centre, sigma: Math.max(earlier.sigma, sigma) }, k)
  }
  const apart = ordinary.centre - other.centre
  const [own, off] = [halfWidth(ordinary, k), halfWidth(other, k)]
  return { expected: other.centre, below: Math.max(off, own - apart), above: Math.max(off, own + apart) }
}

/** A band of equal width on both sides. */
export function bandOf(usual: Usual, k: number): Band {
  const half = halfWidth(usual, k)
  return { expected: usual.centre, below: half, above: half }
}

function halfWidth({ sigma }: Usual, k: number): number {
  return Math.min(k * sigma, 1e305)
}

/** What was usual on the holidays of a series, by time of day. */
export class HolidayPast {
  private readonly past: SeasonalPast
  private readonly week: SeasonalPast
  private today = Number.NaN
  private dayOff: number | null = null

  /** `week`: the history of ordinary days. `depth`: how many holidays are kept. */
  constructor(week: SeasonalPast, stepMinutes: number, depth: number) {
    this.past = new SeasonalPast(minutesPerDay, stepMinutes, depth, 1)
    this.week = week
  }

  estimatesAt(
    local: { readonly day: number; readonly minuteOfDay: number },
    ordinary: Usual,
  ): HolidayEstimates {
    if (local.day !== this.today) {
      this.today = local.day
      this.dayOff = dayUnlikeOthers(this.week)
    }
    const earlier = this.past.usualAt(local.minuteOfDay)
    const dayOff =
      this.dayOff === null ? null : this.week.usualAt(this.dayOff * minutesPerDay + local.minuteOfDay)
    return { dayOff, earlier, ordinary }
  }

  learn(minuteOfDay: number, value: number): void {
    this.past.learn(minuteOfDay, value)
  }
}

/**
 * The day of the week, from 0 for Monday. Null while fewer than three days of the week are known, which is
 * too few to find the one that differs.
 */
function dayUnlikeOthers(week: SeasonalPast): number | null {
  const distances = new Map<number, number>()
  for (let minute = 0; minute < minutesPerDay; minute += minutesPerHour) {
    const centres = daysOfWeek.flatMap((day) => {
      const usual = week.usualAt(day * minutesPerDay + minute)
      return usual === null ? [] : [{ day, centre: usual.centre }]
    })
    const middle = centres.map(({ centre }) => centre).sort((a, b) => a - b)[centres.length >> 1]
    if (centres.length < 3 || middle === undefined) continue
    for (const { centre, day } of centres) {
      distances.set(day, (distances.get(day) ?? 0) + Math.abs(centre - middle))
    }
  }
  const [farthest] = [...distances].sort(([, a], [, b]) => b - a)
  return farthest?.[0] ?? null
}
