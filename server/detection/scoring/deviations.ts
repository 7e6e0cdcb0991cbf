// Five simple looks at the newest value, each a deviation in robust standard deviations of its own past. They
// are computed value by value, with a bounded past.
// - `season`: from this time of the day, or of this weekday, whichever is nearer;
// - `day`: from this time of the day, at the level of the last hour;
// - `jump`: from the median of the last nine values;
// - `forecast`: from a linear prediction by all of these (least-squares.ts);
// - `gap`: the distance to the nearest values ever seen. The third nearest counts: a value seen once or twice
//   was an incident or chance.
// Values of an incident are not learnt as usual (`learn`), so that the next one is noticed as well.

import { type Comparison, leadingLook } from './comparison.ts'
import { type DailyExpectation, DailyPast } from './daily-past.ts'
import { LeastSquares } from './least-squares.ts'
import { Rarity } from './rarity.ts'
import { boundedDeviation, Residual } from './residual.ts'
import { at } from './series.ts'
import { SortedWindow } from './sorted-window.ts'

export const deviationNames = ['season', 'day', 'jump', 'forecast', 'gap'] as const
type ResidualName = Exclude<(typeof deviationNames)[number], 'gap'>

const lastValues = 9
/** More consecutive empty buckets than this, or a step back of local time, separate values. */
const longestBridge = 5
const stepHistory = 512
const fewestSteps = 10
const fewestForGap = 30
/** A value seen this often is known. */
const sightings = 3
const forecastInputs = 9
const forecastValues = 5
const fewestForForecast = 60
/** Inputs and errors beyond this are limited, in deviations: an outlier must not change the weights. */
const [mostInput, mostError] = [10, 3]
/** The unit of a deviation is at least this share of the usual step of the series. */
const leastScale = 0.1

export class Deviations {
  /** Digits of rarity by `deviationNames`; NaN where a look has not seen enough. */
  readonly digits = new Float64Array(deviationNames.length).fill(Number.NaN)
  /** The value expected by the forecast, or else by the last values; NaN for the first ones. */
  expected = Number.NaN
  /** Distance of the newest value from this time of the day, or of this weekday; NaN where unknown. */
  fromSeason = Number.NaN
  /** The smallest unit of a deviation. */
  floor = Number.NaN
  private readonly stepMinutes: number
  private readonly past: DailyPast
  private readonly residuals: Record<ResidualName, Residual>
  private readonly gapRarity = new Rarity()
  private readonly forecast = new LeastSquares(forecastInputs)
  private readonly inputs = new Float64Array(forecastInputs)
  private readonly steps = new SortedWindow(stepHistory)
  private readonly seen: SortedWindow
  /** The last nine values, newest first. */
  private readonly last: number[] = []
  private readonly sorted = new Float64Array(lastValues)
  private usual: DailyExpectation | null = null
  private centre = Number.NaN
  private predicted = Number.NaN
  private value = Number.NaN
  private minute = Number.NEGATIVE_INFINITY
  private nearest = Number.NaN
  private gap = Number.NaN
  private error = Number.NaN

  /** `seenPoints`: among how many values the nearest one is looked for. */
  constructor(stepMinutes: number, seenPoints: number) {
    const residual = () => new Residual(stepMinutes)
    this.stepMinutes = stepMinutes
    this.past = new DailyPast(stepMinutes)
    this.residuals = { season: residual(), day: residual(), jump: residual(), forecast: residual() }
    this.seen = new SortedWindow(seenPoints)
  }

  /** Compares a value (not NaN) at a local minute with the past. `learn` must follow. */
  compare(minute: number, value: number): void {
    this.value = value
    const isCut = minute <= this.minute || minute > this.minute + (longestBridge + 1) * this.stepMinutes
    if (isCut) this.last.length = 0
    this.minute = minute
    const usualStep = this.steps.size < fewestSteps ? 0 : this.steps.median()
    const floor = Math.max(leastScale * usualStep, 1e-9 * Math.abs(value), 1e-300)
    const usual = this.past.at(minute)
    const { day, forecast, jump, season } = this.residuals
    const centre = this.centreOfLast()
    this.usual = usual
    this.centre = centre
    this.floor = floor
    this.fromSeason = value - nearer(value, usual)
    this.digits[0] = season.digits(this.fromSeason, minute, floor)
    this.digits[1] = day.digits(value - usual.atThisLevel, minute, floor)
    this.digits[2] = jump.digits(value - centre, minute, floor)
    const predicted = this.predict(usual, Math.max(jump.scale.at(minute), floor))
    this.predicted = predicted
    this.digits[3] = forecast.digits(
      this.forecast.learnt < fewestForForecast ? Number.NaN : value - predicted,
      minute,
      floor,
    )
    this.nearest = this.thirdNearest(value)
    this.gap = Math.abs(value - this.nearest) / Math.max(usualStep, floor)
    this.digits[4] = Number.isNaN(this.gap) ? Number.NaN : this.gapRarity.digits(boundedDeviation(this.gap))
    this.expected = Number.isNaN(this.digits[3] ?? Number.NaN) ? centre : predicted
  }

  /** Learns the value compared last; one of an incident is not learnt as usual. */
  learn(minute: number, part: 'usual' | 'start' | 'rest'): void {
    const { value } = this
    if (!Number.isNaN(this.error)) {
      this.forecast.learn(this.inputs, Math.max(-mostError, Math.min(mostError, this.error)))
    }
    if (part !== 'rest') {
      for (const residual of Object.values(this.residuals)) residual.learn(minute, part === 'usual')
      if (!Number.isNaN(this.gap)) this.gapRarity.learn(boundedDeviation(this.gap))
      this.seen.push(value)
    }
    const step = Math.abs(value - (this.last[0] ?? value))
    if (step > 0) this.steps.push(step)
    this.past.learn(minute, value)
    this.last.unshift(value)
    if (this.last.length > lastValues) this.last.pop()
  }

  /** How many earlier days are known at the time of the value compared last. */
  get days(): number {
    return this.usual?.days ?? 0
  }

  /**
   * The comparison of the look, of some or of all, with the rarest result for the last value; null where all
   * are NaN.
   */
  comparison(among?: readonly number[]): Comparison | null {
    const { centre, nearest, predicted, residuals, seen, usual, value } = this
    const look = leadingLook(this.digits, among)
    if (look === null || usual === null) return null
    const { days, weeks } = usual
    const name = deviationNames[look]
    if (name === undefined || name === 'gap') {
      return { with: 'nearest', count: seen.size, measured: value, low: nearest, high: nearest }
    }
    const around = (expected: number) => ({
      measured: value,
      expected,
      ...residuals[name].usualAround(expected),
    })
    if (name === 'jump') return { with: 'lastValues', count: lastValues, ...around(centre) }
    if (name === 'forecast') return { with: 'forecast', count: forecastValues, ...around(predicted) }
    if (name === 'day') return { with: 'daysAtThisLevel', count: days, ...around(usual.atThisLevel) }
    const middle = nearer(value, usual)
    return middle === usual.atThisTime
      ? { with: 'days', count: days, ...around(middle) }
      : { with: 'weeks', count: weeks, ...around(middle) }
  }

  private centreOfLast(): number {
    if (this.last.length < lastValues) return Number.NaN
    this.sorted.set(this.last)
    return at(this.sorted.sort(), lastValues >> 1)
  }

  /** Predicts the value, in deviations from the level of the last hour; NaN without one. */
  private predict(
    { atThisLevel, atThisTime, lastHour, onThisWeekday }: DailyExpectation,
    scale: number,
  ): number {
    const [one = 0, two = 0, three = 0, four = 0, five] = this.last
    this.error = Number.NaN
    if (Number.isNaN(lastHour) || Number.isNaN(scale) || five === undefined) return Number.NaN
    const input = (level: number) =>
      Number.isNaN(level) ? 0 : Math.max(-mostInput, Math.min(mostInput, (level - lastHour) / scale))
    const mean = one / 5 + two / 5 + three / 5 + four / 5 + five / 5
    this.inputs.set([1, ...[one, two, three, four, mean, atThisLevel, atThisTime, onThisWeekday].map(input)])
    const predicted = this.forecast.predict(this.inputs)
    this.error = (this.value - lastHour) / scale - predicted
    return lastHour + predicted * scale
  }

  /** The third nearest of the values seen; NaN until there are thirty. */
  private thirdNearest(value: number): number {
    const { seen } = this
    if (seen.size < fewestForGap) return Number.NaN
    let upper = seen.countBelow(value)
    let lower = upper - 1
    let nearest = Number.NaN
    for (let i = 0; i < sightings; i++) {
      const below = lower < 0 ? Number.POSITIVE_INFINITY : value - seen.rank(lower)
      const above = upper < seen.size ? seen.rank(upper) - value : Number.POSITIVE_INFINITY
      nearest = seen.rank(below <= above ? lower-- : upper++)
    }
    return nearest
  }
}

/** The nearer of this time of the day and of the week; NaN without either. */
function nearer(value: number, { atThisTime, onThisWeekday }: DailyExpectation): number {
  if (Number.isNaN(onThisWeekday)) return atThisTime
  if (Number.isNaN(atThisTime)) return onThisWeekday
  return Math.abs(value - onThisWeekday) < Math.abs(value - atThisTime) ? onThisWeekday : atThisTime
}
