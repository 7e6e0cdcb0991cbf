// Which days are holidays, and what is usual on one. Holidays have a past of their own and are kept out of every other: a
// bank holiday must not lower what is expected of the Mondays after it.
//
// The band of a holiday comes from the holidays before it, of whatever name: they are few, and most are alike. The first one
// has none to compare with, and nobody says what kind it is: a day off, half a day off, or a day like any other in this
// town. So its band reaches over both, what is usual at this hour by the clock that is followed, and what is usual on the
// day of the week that is most unlike the others, which is what a day off looks like here: Sunday, mostly.
// docs/decisions/0017 has what else was tried.

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
 * Whether a local day, counted from 1970-01-01, is one of `entries`: `2026-12-25`, or `12-25` for every year. What a year
 * lacks, as most lack 02-29, is no holiday in it.
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

/** What is usual at one moment of a holiday, by each past there is. */
export interface HolidayViews {
  /** The same hour of the holidays before; null at the first. */
  readonly earlier: Usual | null
  /** The same hour of the day of the week that is most unlike the others; null while weeks are not known. */
  readonly dayOff: Usual | null
  /** What would be expected, were it no holiday. */
  readonly ordinary: Usual
}

/**
 * The earlier ones, no narrower than the kind of day they are nearest to: few of them can't say how much one differs from
 * the next. Without any, all that is usual at this hour on a day off or on a working day.
 *
 * @param k half the width of the band, in standard deviations
 */
export function holidayBand({ dayOff, earlier, ordinary }: HolidayViews, k: number): Band {
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

/** The same on both sides. */
export function bandOf(usual: Usual, k: number): Band {
  const half = halfWidth(usual, k)
  return { expected: usual.centre, below: half, above: half }
}

function halfWidth({ sigma }: Usual, k: number): number {
  return Math.min(k * sigma, 1e305)
}

/** What the holidays of a series were like, hour by hour. */
export class HolidayPast {
  readonly #past: SeasonalPast
  readonly #week: SeasonalPast
  #today = Number.NaN
  #dayOff: number | null = null

  /** `week`: the past of the days that are no holidays. `depth`: how many holidays are kept. */
  constructor(week: SeasonalPast, stepMinutes: number, depth: number) {
    this.#past = new SeasonalPast(minutesPerDay, stepMinutes, depth, 1)
    this.#week = week
  }

  views(local: { readonly day: number; readonly minuteOfDay: number }, ordinary: Usual): HolidayViews {
    if (local.day !== this.#today) {
      this.#today = local.day
      this.#dayOff = dayUnlikeOthers(this.#week)
    }
    const earlier = this.#past.usualAt(local.minuteOfDay)
    const dayOff =
      this.#dayOff === null ? null : this.#week.usualAt(this.#dayOff * minutesPerDay + local.minuteOfDay)
    return { dayOff, earlier, ordinary }
  }

  learn(minuteOfDay: number, value: number): void {
    this.#past.learn(minuteOfDay, value)
  }
}

/** From 0, Monday; null while fewer than three days of the week are known, which can't tell the odd one. */
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
