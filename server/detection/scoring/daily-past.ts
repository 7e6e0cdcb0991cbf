// What the values of earlier days and weeks say about a bucket: at this time of the day, at this time of the
// week, and at this time of the day if today is as much higher or lower as it was in the last hour. Each is a
// median, so an outage on one of the days does not change what is expected today.
//
// Memory is bounded: eight days of values, and twenty-nine days of means over five minutes.

import { BucketRing } from './bucket-ring.ts'
import { at } from './series.ts'

const days = 7
const weeks = 4
const fewestDays = 2
/** Rhythms are not exact to the minute: this many minutes on either side count as the same time. */
const neighbourMinutes = 1
/** Means over this many minutes are enough for earlier weeks and for the level of an hour. */
const coarseMinutes = 5

/** Numbers are NaN where too little is known. */
export interface DailyExpectation {
  /** Mean of the hour before the bucket. */
  readonly lastHour: number
  /** Median at this time on the last seven days. */
  readonly atThisTime: number
  /** The same, moved by how much the last hour differs from that hour of those days. */
  readonly atThisLevel: number
  /** Median at this time on this weekday of the last four weeks. */
  readonly onThisWeekday: number
  /** How many days and weeks that is. */
  readonly days: number
  readonly weeks: number
}

export class DailyPast {
  private readonly stepMinutes: number
  private readonly coarseStep: number
  private readonly perDay: number
  private readonly perHour: number
  private readonly values: BucketRing
  /** Mean of the hour that ends with the bucket, by coarse bucket. */
  private readonly hours: BucketRing
  /** Mean of a coarse bucket. */
  private readonly means: BucketRing
  private coarse = Number.NEGATIVE_INFINITY
  private coarseMean = 0
  private coarseCount = 0
  private readonly pool = new Float64Array(days)
  private readonly levels = new Float64Array(days)
  private weeksKnown = 0

  constructor(stepMinutes: number) {
    this.stepMinutes = stepMinutes
    this.coarseStep = Math.max(coarseMinutes, stepMinutes)
    this.perDay = Math.max(1, Math.round(1440 / stepMinutes))
    this.perHour = Math.max(1, Math.round(60 / stepMinutes))
    this.values = new BucketRing((days + 1) * this.perDay + this.perHour)
    const coarsePerDay = Math.ceil(1440 / this.coarseStep)
    this.hours = new BucketRing((days + 1) * coarsePerDay)
    this.means = new BucketRing((7 * weeks + 1) * coarsePerDay)
  }

  /** What is expected at a local minute, from the values before it. */
  at(minute: number): DailyExpectation {
    const bucket = Math.floor(minute / this.stepMinutes)
    const lastHour = this.meanBefore(bucket)
    let known = 0
    let levelled = 0
    for (let day = 1; day <= days; day++) {
      const then = this.around(bucket - day * this.perDay)
      if (Number.isNaN(then)) continue
      this.pool[known++] = then
      const hour = this.hours.get(this.coarseOf((bucket - day * this.perDay - 1) * this.stepMinutes))
      if (!Number.isNaN(hour) && !Number.isNaN(lastHour)) this.levels[levelled++] = then + (lastHour - hour)
    }
    const atThisTime = known < fewestDays ? Number.NaN : medianOfFirst(this.pool, known)
    const atThisLevel = levelled < fewestDays ? Number.NaN : medianOfFirst(this.levels, levelled)
    const onThisWeekday = this.onThisWeekday(minute)
    return { lastHour, atThisTime, atThisLevel, onThisWeekday, days: known, weeks: this.weeksKnown }
  }

  learn(minute: number, value: number): void {
    const bucket = Math.floor(minute / this.stepMinutes)
    this.values.set(bucket, value)
    const coarse = this.coarseOf(minute)
    if (coarse !== this.coarse) this.coarseCount = 0
    this.coarse = coarse
    this.coarseCount++
    this.coarseMean =
      this.coarseCount === 1
        ? value
        : this.coarseMean + (value / this.coarseCount - this.coarseMean / this.coarseCount)
    this.means.set(coarse, this.coarseMean)
    this.hours.set(coarse, this.meanBefore(bucket + 1))
  }

  private onThisWeekday(minute: number): number {
    let known = 0
    for (let week = 1; week <= weeks; week++) {
      const then = this.means.get(this.coarseOf(minute - week * 7 * 1440))
      if (!Number.isNaN(then)) this.pool[known++] = then
    }
    this.weeksKnown = known
    return known === 0 ? Number.NaN : medianOfFirst(this.pool, known)
  }

  private coarseOf(minute: number): number {
    return Math.floor(minute / this.coarseStep)
  }

  /** Mean of a bucket and its neighbours. */
  private around(bucket: number): number {
    const reach = this.stepMinutes <= neighbourMinutes ? 1 : 0
    let sum = 0
    let count = 0
    for (let i = bucket - reach; i <= bucket + reach; i++) {
      const value = this.values.get(i)
      if (Number.isNaN(value)) continue
      sum += value
      count++
    }
    return sum / count
  }

  /** Mean of the hour of buckets before one; NaN without any. */
  private meanBefore(bucket: number): number {
    let sum = 0
    let count = 0
    for (let i = bucket - this.perHour; i < bucket; i++) {
      const value = this.values.get(i)
      if (Number.isNaN(value)) continue
      sum += value
      count++
    }
    return sum / count
  }
}

/** Median of the first numbers of an array, which are sorted by this. */
function medianOfFirst(numbers: Float64Array, count: number): number {
  const sorted = numbers.subarray(0, count).sort()
  return at(sorted, (count - 1) >> 1) / 2 + at(sorted, count >> 1) / 2
}
