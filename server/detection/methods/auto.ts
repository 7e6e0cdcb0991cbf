// The default method: simple measurements (looks) of the newest values, each calibrated by its own past
// (scoring/rarity.ts), in six views. No method or parameter has to be chosen, and no single look has to be
// right.
// - One value (scoring/deviations.ts): its distance from this time of the day, from the last minutes, from
//   the forecast of both, and from all values seen. The score is their mean.
// - Four values: the mean of the last four scores of one value. One value alone is often noise, so its edge
//   is higher than that of four in a row. Not used for buckets wider than a quarter of an hour.
// - New extremes (scoring/novelties.ts): of value, level, step and spread. Here the score is the quadratic
//   mean, because most looks are zero most of the time.
// - The last hours (scoring/recent-course.ts): far from this time of the day for hours, or varying more or
//   less than usual. Also the quadratic mean.
// - The slope (same file): it changes more or less than usual. Also the quadratic mean.
// - All of these: the quadratic mean of their scores in units of their edges, because an incident that moves
//   several views a little is as rare as one that moves one view much.
// Each view has an edge of its own, learnt from its own past for the alarm budget (scoring/learnt-edge.ts).
// Confirmed anomalies do not use the budget.
//
// `score` is the largest of the views in units of their edges: 1 is the edge of alarm. `unreported` is the
// part of it that was not reported before (scoring/alert-once.ts): an unreported score opens an episode,
// and the score keeps it open. What is usual for this time and was outside the edge at the same time of
// the week before does not open an episode again, unless a person confirmed that one. Values of an episode
// are not learnt as usual, so a past outage does not hide the next one; where a tenth of all values is
// outside the edge, such values are usual for the series and are learnt. Nothing here depends on a
// particular series, label or unit. A score above the edge has a comparison: what the view with the
// largest score compared the value with.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import { Reported, ReportedWeekly } from '../scoring/alert-once.ts'
import type { Comparison } from '../scoring/comparison.ts'
import { Deviations, deviationNames } from '../scoring/deviations.ts'
import { LearntEdge } from '../scoring/learnt-edge.ts'
import { localClock } from '../scoring/local-clock.ts'
import { Novelties } from '../scoring/novelties.ts'
import { RecentCourse } from '../scoring/recent-course.ts'
import type { Series } from '../scoring/series.ts'
import { at, minuteOf } from '../scoring/series.ts'
import { type ConfirmedStarts, isConfirmed } from './confirmed.ts'
import { blankScores, methodOf, type Scored, type Scorer } from './method.ts'

/**
 * Lowest edges of the views, for scores that are means and quadratic means of digits. They grow with the
 * rarity of an alarm among the values, but less, because neighbouring values are alike. Those for one value
 * grow most, because the value of an hour is a mean already and that of a minute is not.
 */
const singleFloor = { base: 0.58, perDigit: 0.69 }
const lastingFloor = { base: 0.75, perDigit: 0.2 }
const noveltyFloor = { base: 0.71, perDigit: 0.39 }
const courseFloor = { base: 1.05, perDigit: 0.36 }
const slopeFloor = { base: 1.13, perDigit: 0.39 }
/** The score of all views is in units of their edges. */
const allFloor = { base: 0.75, perDigit: 0 }
/** One view that is far outside must not decide alone: the others have their own edge for that. */
const mostOfOne = 2
/**
 * Shares of the alarm budget. Their sum is above 1, because several views notice the same rare deviation.
 * Each gets less of a large budget: only one view notices a small deviation.
 */
const [singleShare, lastingShare, noveltyShare, otherShare] = [1, 0.4, 0.6, 0.4]
const budgetExponent = 0.8
/**
 * Half-life of the reported score of one value or four; short, so that a spike after another one is reported.
 */
const singleMemoryPoints = 8
const lastingValues = 4
/** The looks at one value that also count for the novelty view. */
const seldom = [deviationNames.indexOf('season'), deviationNames.indexOf('gap')]
/** Up to these digits of this look, one in ten, a value is usual for this time of the day or week. */
const seasonLook = deviationNames.indexOf('season')
const usualDigits = 1
/** In wider buckets four values span hours, whose mean the last view uses. */
const widestForLasting = 15
/** Only the first values of an incident are learnt: its length must not make its values usual. */
const startPoints = 3
/** If more than this share of the values is outside the edge, such values are usual. */
const mostOutside = 0.1
/** This many calm values in a row end an episode. */
const calmValues = 3
/** The number of values over which the share is measured. */
const outsideMemory = 1000

interface Judged {
  readonly score: number
  readonly unreported: number
  /** Null up to the edge. */
  readonly comparison: Comparison | null
}

class View {
  readonly edge: LearntEdge
  readonly reported: Reported
  score = 0
  unreported = 0

  constructor(edge: LearntEdge, memoryPoints: number) {
    this.edge = edge
    this.reported = new Reported(memoryPoints)
  }

  judge(score: number): void {
    this.score = score
    this.unreported = this.reported.unreportedOf(score, this.edge.edge)
  }
}

class AutoScorer implements Scorer {
  private readonly params: MethodParams<'auto'>
  private readonly stepMinutes: number
  private readonly confirmed: ConfirmedStarts
  private readonly deviations: Deviations
  private readonly novelties = new Novelties()
  private readonly single: View
  private readonly lasting: View
  private readonly lastSingles = new Float64Array(lastingValues)
  private readonly novelty: View
  private readonly recent: RecentCourse
  private readonly course: View
  private readonly slope: View
  /** The views that `all` is the mean of. */
  private readonly parts: readonly View[]
  private readonly all: View
  private readonly views: readonly View[]
  private readonly weekly: ReportedWeekly
  private values = 0
  private outside = 0
  private outsideShare = 0
  /** The view that opened the present episode. */
  private openedBy: View | null = null
  /** Minutes since 1970: of the newest value, and of the value that opened the last episode. */
  private minute = Number.NaN
  private openedMinute = Number.NaN
  private openedLocally = Number.NaN
  private peak = 0
  private calm = 0

  constructor(params: MethodParams<'auto'>, stepMinutes: number, confirmed: ConfirmedStarts) {
    this.params = params
    this.stepMinutes = stepMinutes
    this.confirmed = confirmed
    this.deviations = new Deviations(stepMinutes, params.history_points)
    const budget = (share: number) => ({
      stepMinutes,
      budgetPerWeek: share * params.alarm_budget_per_week ** budgetExponent,
    })
    const singleMemory = Math.min(singleMemoryPoints, params.memory_points)
    this.single = new View(new LearntEdge({ ...budget(singleShare), ...singleFloor }), singleMemory)
    this.lasting = new View(new LearntEdge({ ...budget(lastingShare), ...lastingFloor }), singleMemory)
    this.novelty = new View(
      new LearntEdge({ ...budget(noveltyShare), ...noveltyFloor }),
      params.memory_points,
    )
    this.recent = new RecentCourse(stepMinutes)
    this.course = new View(new LearntEdge({ ...budget(otherShare), ...courseFloor }), params.memory_points)
    this.slope = new View(new LearntEdge({ ...budget(otherShare), ...slopeFloor }), params.memory_points)
    this.all = new View(new LearntEdge({ ...budget(otherShare), ...allFloor }), params.memory_points)
    const { all, course, single, slope, lasting, novelty } = this
    this.parts = [single, novelty, course, ...(stepMinutes > widestForLasting ? [] : [lasting]), slope]
    this.views = [...this.parts, all]
    this.weekly = new ReportedWeekly(stepMinutes)
  }

  score(piece: Series): Scored {
    const scores = blankScores(piece.values.length)
    const unreported = new Float64Array(piece.values.length).fill(Number.NaN)
    const compared = new Map<number, Comparison>()
    const firstMinute = minuteOf(piece, 0)
    const localTimeAt = localClock(piece, this.params.timezone)
    for (let i = 0; i < piece.values.length; i++) {
      const value = at(piece.values, i)
      if (Number.isNaN(value)) continue
      const { day, minuteOfDay } = localTimeAt(i)
      this.minute = firstMinute + i * piece.stepMinutes
      const judged = this.judge(value, day * 1440 + minuteOfDay)
      scores.expected[i] = this.deviations.expected
      if (judged === null) continue
      scores.score[i] = judged.score
      unreported[i] = judged.unreported
      if (judged.comparison !== null) compared.set(i, judged.comparison)
    }
    return { ...scores, unreported, compared }
  }

  /** Judges and learns the next value; null while warming up. */
  private judge(value: number, minute: number): Judged | null {
    const {
      all,
      course,
      deviations,
      single,
      lasting,
      lastSingles,
      novelties,
      novelty,
      recent,
      slope,
      views,
    } = this
    deviations.compare(minute, value)
    novelties.compare(value)
    recent.compare(minute, value, deviations.fromSeason, deviations.floor)
    const isWarm = this.values++ >= this.params.warmup_points
    single.judge(isWarm ? meanOf(deviations.digits) : 0)
    lastSingles[this.values % lastingValues] = single.score
    lasting.judge(meanOf(lastSingles))
    novelty.judge(isWarm ? noveltyOf(novelties, deviations) : 0)
    course.judge(isWarm ? quadraticMeanOf(recent.digits) : 0)
    slope.judge(isWarm ? quadraticMeanOf(recent.slopeDigits) : 0)
    all.judge(isWarm ? this.scoreOfAll() : 0)
    const score = Math.max(...views.map((view) => view.score / view.edge.edge))
    const leading = views.reduce((a, b) => (b.unreported / b.edge.edge > a.unreported / a.edge.edge ? b : a))
    const unreported = this.unreportedOf(minute, score, leading)
    if (isWarm) this.learnEdges(minute, score, unreported, leading)
    const comparison = score > 1 ? this.comparison() : null
    this.learn(minute, score > 1)
    return isWarm ? { score, unreported, comparison } : null
  }

  private scoreOfAll(): number {
    let sum = 0
    for (const { edge, score } of this.parts) sum += Math.min(score / edge.edge, mostOfOne) ** 2
    return Math.sqrt(sum / this.parts.length)
  }

  /** In units of the edge; 0 where the value is usual for a time of the week that was reported before. */
  private unreportedOf(minute: number, score: number, leading: View): number {
    const unreported = leading.unreported / leading.edge.edge
    if (!(unreported > 1)) return unreported
    const wasReported = this.weekly.wasReported(minute, score)
    return wasReported && (this.deviations.digits[seasonLook] || 0) <= usualDigits ? 0 : unreported
  }

  /** What the view that is farthest beyond its edge, without that of all, compared the newest value with. */
  private comparison(): Comparison | null {
    const { course, deviations, lasting, novelties, novelty, parts, recent, slope } = this
    const farthest = parts.reduce((a, b) => (b.score / b.edge.edge > a.score / a.edge.edge ? b : a))
    if (farthest === slope) return recent.slopeComparison(deviations.days)
    if (farthest === course) return recent.comparison(deviations.days)
    if (farthest === novelty) {
      const isExtreme =
        Math.max(...novelties.digits) >= Math.max(...seldom.map((i) => deviations.digits[i] || 0))
      return isExtreme ? novelties.comparison() : deviations.comparison(seldom)
    }
    const compared = deviations.comparison()
    if (farthest !== lasting || compared === null) return compared
    return { ...compared, together: lastingValues - 1 }
  }

  /** Follows episodes as the alarm layer does. Their scores are not learnt, except for their peak. */
  private learnEdges(minute: number, score: number, unreported: number, leading: View): void {
    if (this.openedBy !== null) {
      this.peak = Math.max(this.peak, score)
      this.calm = score > 1 ? 0 : this.calm + 1
      if (this.calm < calmValues) return
      const { minute: lastMinute, openedMinute, stepMinutes } = this
      const isReal = isConfirmed(this.confirmed, { lastMinute, openedMinute, stepMinutes })
      if (isReal) this.weekly.forget(this.openedLocally, minute)
      else this.openedBy.edge.spend(this.peak)
      this.openedBy = null
      return
    }
    const opens = unreported > 1
    if (opens) {
      this.openedBy = leading
      this.openedMinute = this.minute
      this.openedLocally = minute
      this.peak = score
      this.calm = 0
    }
    for (const view of this.views) view.edge.learn(opens ? 0 : view.unreported)
  }

  private learn(minute: number, isOutside: boolean): void {
    this.outside = isOutside ? this.outside + 1 : 0
    const isUsual = !isOutside || this.outsideShare > mostOutside
    this.outsideShare += ((isOutside ? 1 : 0) - this.outsideShare) / outsideMemory
    const part = isUsual ? 'usual' : this.outside <= startPoints ? 'start' : 'rest'
    this.deviations.learn(minute, part)
    this.novelties.learn(part !== 'rest')
    this.recent.learn(minute, part)
  }
}

export const auto = methodOf(
  'auto',
  (params, stepMinutes, confirmed) => new AutoScorer(params, stepMinutes, confirmed),
)

/** Mean of the numbers that are not NaN; 0 without any. */
function meanOf(digits: Float64Array): number {
  let sum = 0
  let count = 0
  for (const each of digits) {
    if (Number.isNaN(each)) continue
    sum += each
    count++
  }
  return count === 0 ? 0 : sum / count
}

/** The looks of novelty: extremes and spread, with the season and the gap of the single value. */
function noveltyOf(novelties: Novelties, { digits }: Deviations): number {
  return quadraticMeanOf(novelties.digits, ...seldom.map((i) => digits[i] ?? 0))
}

/** A look that has no number yet counts as 0. */
function quadraticMeanOf(digits: Float64Array, ...more: readonly number[]): number {
  let sum = 0
  for (const each of digits) sum += (each || 0) ** 2
  for (const each of more) sum += (each || 0) ** 2
  return Math.sqrt(sum / (digits.length + more.length))
}
