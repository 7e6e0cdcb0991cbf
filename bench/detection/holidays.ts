// What a holiday should be compared with: traffic of thirteen weeks with five holidays in them, seeded,
// of the kinds that offices and shops have, and of each rule how often a holiday alarms although
// nothing is wrong, the first one and those after it, how often the same weekday a week later does, and
// which share of incidents of three hours on a holiday is found (traffic down to 30 %, up to 250 %),
// all at the default parameters.
//
//   node bench/detection/holidays.ts [seeds, 6] [minutes per bucket, 60] [only these rules, by comma]
//
// Prints a table by kind of traffic, a summary by rule and one JSON object.

import { execFileSync } from 'node:child_process'
import { methodParams } from '../../contract/detection-methods.ts'
import { raiseAlarms } from '../../server/detection/alarms/alarm.ts'
import { evidenceOf } from '../../server/detection/alarms/evidence.ts'
import { scoreWithHolidayRule } from '../../server/detection/methods/seasonal-band.ts'
import { alarmPolicy } from '../../server/detection/runs/evaluate.ts'
import { bandOf, type HolidayRule, holidayBand } from '../../server/detection/scoring/holidays.ts'
import { seededNormal } from '../../server/detection/scoring/seeded-noise.ts'

const [, , seedsText = '6', stepText = '60', rulesText] = process.argv
const seeds = Array.from({ length: Number(seedsText) }, (_, i) => i)
const stepMinutes = Number(stepText)
const perDay = 1440 / stepMinutes
const days = 91
const perHour = 60 / stepMinutes
/** A Monday, so that day 6 is a Sunday. */
const firstDayMs = Date.UTC(2026, 8, 7)
/** Weekdays, and a Sunday in the last; sets are taken in turn. */
const holidaySets = [
  [31, 46, 49, 66, 73],
  [36, 37, 57, 71, 85],
  [29, 44, 60, 61, 83],
]
const incidentHours = [10, 14, 11, 16, 13]

const bump = (hour: number, centre: number, width: number) =>
  Math.exp(-((hour - centre) ** 2) / (2 * width * width))
const office = (hour: number) => 0.12 + bump(hour, 10.5, 2.2) + 0.9 * bump(hour, 15, 2.2)
const shop = (hour: number) => 0.25 + 0.5 * bump(hour, 12, 3) + bump(hour, 20, 2.5)
const lateShop = (hour: number) => 0.25 + 0.9 * bump(hour, 14, 3) + 0.7 * bump(hour, 21, 2.5)
const officeWeek = [1, 1, 1, 1, 1, 0.3, 0.15]
const shopWeek = [1, 1, 1, 1, 1, 1.2, 1.2]
const eachAnother = [0.6, 1.5, 0.9, 1.3, 0.7]

interface Moment {
  readonly weekday: number
  readonly hour: number
  /** Which of the holidays it is; -1 on other days. */
  readonly holiday: number
}

const officeOn = ({ hour, weekday }: Moment) => office(hour) * (officeWeek[weekday] ?? 1)
const shopOn = ({ hour, weekday }: Moment) => shop(hour) * (shopWeek[weekday] ?? 1)

const kinds: Readonly<Record<string, (moment: Moment) => number>> = {
  'office, holidays like Sundays': (at) => (at.holiday < 0 ? officeOn(at) : office(at.hour) * 0.15),
  'office, holidays half a Sunday': (at) => (at.holiday < 0 ? officeOn(at) : office(at.hour) * 0.07),
  'office, off from 13:00 on': (at) =>
    at.holiday < 0 || at.hour < 13 ? officeOn(at) : office(at.hour) * 0.15,
  'office, no holiday here': officeOn,
  'shop, holidays unlike any day': (at) => (at.holiday < 0 ? shopOn(at) : 1.5 * lateShop(at.hour)),
  'shop, holidays at half': (at) => (at.holiday < 0 ? shopOn(at) : 0.55 * shop(at.hour)),
  'shop, each holiday another': (at) => shopOn(at) * (eachAnother[at.holiday] ?? 1),
  'no week, holidays at 140 %': (at) => shop(at.hour) * (at.holiday < 0 ? 1 : 1.4),
}

/** 500 an hour, Poisson, with moods of a day and of hours. */
function trafficOf(rate: (moment: Moment) => number, holidays: readonly number[], seed: number) {
  const normal = seededNormal(1000 + 17 * seed)
  const moods = Array.from({ length: days }, () => 0.05 * normal())
  let mood = 0
  return Float64Array.from({ length: days * perDay }, (_, i) => {
    const day = Math.floor(i / perDay)
    const hour = (i % perDay) / perHour
    mood = 0.9 * mood + Math.sqrt(1 - 0.81) * normal()
    const usual = rate({ weekday: day % 7, hour, holiday: holidays.indexOf(day) })
    const expected = ((500 * stepMinutes) / 60) * usual * Math.exp(0.05 * mood + (moods[day] ?? 0))
    return Math.max(0, Math.round(expected + Math.sqrt(expected) * normal()))
  })
}

const rules: Readonly<Record<string, HolidayRule | null>> = {
  'no holidays': null,
  'as the day off': ({ dayOff, ordinary }, k) => bandOf(dayOff ?? ordinary, k),
  'as earlier ones, else as the day off': (estimates, k) =>
    holidayBand(
      {
        ...estimates,
        ordinary: estimates.earlier === null ? (estimates.dayOff ?? estimates.ordinary) : estimates.ordinary,
      },
      k,
    ),
  'as earlier ones, else between (shipped)': holidayBand,
  'between all': (estimates, k) => {
    const expected = (estimates.earlier ?? estimates.dayOff ?? estimates.ordinary).centre
    const bands = [holidayBand(estimates, k), holidayBand({ ...estimates, earlier: null }, k)]
    return {
      expected,
      below: Math.max(...bands.map((band) => expected - band.expected + band.below)),
      above: Math.max(...bands.map((band) => band.expected + band.above - expected)),
    }
  },
}

const dateOf = (day: number) => new Date(firstDayMs + day * 86_400_000).toISOString().slice(0, 10)

function incidentsIn(values: Float64Array, holidays: readonly number[], rule: HolidayRule | null) {
  const params = methodParams.seasonal_band.parse({ holidays: rule === null ? [] : holidays.map(dateOf) })
  const unknown = new Uint8Array(values.length)
  const series = { startNs: BigInt(firstDayMs) * 1_000_000n, stepMinutes, values, unknown, volumes: null }
  const evidence = evidenceOf(series, params)
  const scores = scoreWithHolidayRule(evidence.series, params, rule ?? holidayBand)
  return raiseAlarms(evidence, scores, alarmPolicy(params, stepMinutes)).incidents
}

/** Of how many, how many: a share that sums up. */
class Share {
  of = 0
  count = 0

  add(is: boolean): void {
    this.of++
    if (is) this.count++
  }
}

function measure(kind: string, rate: (moment: Moment) => number, name: string, rule: HolidayRule | null) {
  const shares = {
    first: new Share(),
    later: new Share(),
    weekAfter: new Share(),
    drops: new Share(),
    rises: new Share(),
  }
  for (const seed of seeds) {
    const holidays = holidaySets[seed % holidaySets.length] ?? []
    const values = trafficOf(rate, holidays, seed)
    const opened = incidentsIn(values, holidays, rule).map(({ openedIndex }) => openedIndex)
    const alarmsOn = (day: number) => opened.some((i) => i >= day * perDay && i < (day + 1) * perDay)
    for (const [nth, day] of holidays.entries()) {
      shares[nth === 0 ? 'first' : 'later'].add(alarmsOn(day))
      if (day + 7 < days && !holidays.includes(day + 7)) shares.weekAfter.add(alarmsOn(day + 7))
      const from = day * perDay + (incidentHours[nth] ?? 12) * perHour
      const to = from + 3 * perHour
      for (const [factor, side] of [
        [0.3, 'low'],
        [2.5, 'high'],
      ] as const) {
        const planted = values.map((value, i) => (i >= from && i < to ? Math.round(value * factor) : value))
        const found = incidentsIn(planted, holidays, rule).some(
          (each) => each.kind === side && each.openedIndex >= from && each.startIndex < to,
        )
        shares[side === 'low' ? 'drops' : 'rises'].add(found)
      }
    }
  }
  return { kind, rule: name, shares }
}

const wanted = rulesText?.split(',')
const results = Object.entries(rules)
  .filter(([name]) => wanted?.includes(name) ?? true)
  .flatMap(([name, rule]) => Object.entries(kinds).map(([kind, rate]) => measure(kind, rate, name, rule)))

const columns = ['first', 'later', 'weekAfter', 'drops', 'rises'] as const
function rowOf(of: readonly (typeof results)[number][]) {
  return Object.fromEntries(
    columns.map((column) => {
      const [count, all] = ['count' as const, 'of' as const].map((part) =>
        of.reduce((sum, { shares }) => sum + shares[column][part], 0),
      )
      return [column, Number(((count ?? 0) / (all ?? 1)).toFixed(2))]
    }),
  )
}

console.table(results.map((each) => ({ kind: each.kind, rule: each.rule, ...rowOf([each]) })))
const summary = [...new Set(results.map(({ rule }) => rule))].map((rule) => ({
  rule,
  ...rowOf(results.filter((each) => each.rule === rule)),
}))
console.table(summary)
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
console.log(
  JSON.stringify({ bench: 'detection/holidays', commit, stepMinutes, seeds: seeds.length, summary }),
)
