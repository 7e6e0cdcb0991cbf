// The default method: simple looks at the newest values, each calibrated by its own past (scoring/rarity.ts),
// in four views. Nobody has to choose a method or a parameter, and no look has to be right alone.
// - What a person sees at a glance (scoring/deviations.ts): the value is far from this time of the day, from
//   the last minutes, from what both let expect, and from all values seen. The score is their mean.
// - What a person sees at a second glance: the mean of the last four glances. One value alone is often noise,
//   so it must show more than four in a row. Four buckets wider than a quarter of an hour are no glance.
// - What the series has never done (scoring/novelties.ts): records of value, level, step and spread. Here the
//   quadratic mean, because most looks are silent most of the time.
// - How the last hours went (scoring/recent-course.ts): far from this time of the day hour after hour, or
//   more or less restless than usual. The quadratic mean as well.
// Each view has an edge of its own, learnt from its own past for the alarm budget (scoring/learnt-edge.ts).
// What people confirmed does not spend the budget.
//
// `score` is the largest of the views in units of their edges: 1 is the edge of alarm. `unreported` is how
// much of it was not reported before (scoring/alert-once.ts): an unreported score opens an episode, and the
// score keeps it open. What belongs to an episode is not learnt as usual, so a past outage does not hide the
// next one; where a tenth of all values is outside, that is how the series is, and all is learnt. Nothing
// here depends on a particular series, label or unit. A score above the edge comes with what the view with
// the largest score compared the value with.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import { Reported } from '../scoring/alert-once.ts'
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
 * rarity of an alarm among the values, less than that does: values close to each other are alike. Those for
 * one value grow most, because the value of an hour is a mean already and that of a minute is not.
 */
const glanceFloor = { base: 0.58, perDigit: 0.69 }
const lastingFloor = { base: 0.75, perDigit: 0.2 }
const noveltyFloor = { base: 0.71, perDigit: 0.39 }
const courseFloor = { base: 1.05, perDigit: 0.36 }
/**
 * Shares of the alarm budget. Together more than all of it, because the views notice much of the same when it
 * is rare. Of a large budget each gets less: small deviations are noticed by one view only.
 */
const [glanceShare, lastingShare, noveltyShare, courseShare] = [1, 0.4, 0.6, 0.4]
const budgetExponent = 0.8
/** Half-life of what was reported of glances, one or four: a spike is over when it is over. */
const glanceMemoryPoints = 8
const lastingGlances = 4
/** The glances that count as never done as well. */
const seldom = [deviationNames.indexOf('season'), deviationNames.indexOf('gap')]
/** In wider buckets four values are hours, of which the last view has the mean. */
const widestForLasting = 15
/** An incident is learnt as its first values: its length must not make its values usual. */
const startPoints = 3
/** Where more than this share of the values is outside, they are usual. */
const mostOutside = 0.1
/** So many calm values in a row end an episode. */
const calmValues = 3
/** Over so many values the share is measured. */
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
  news = 0

  constructor(edge: LearntEdge, memoryPoints: number) {
    this.edge = edge
    this.reported = new Reported(memoryPoints)
  }

  judge(score: number): void {
    this.score = score
    this.news = this.reported.newsOf(score, this.edge.edge)
  }
}

class AutoScorer implements Scorer {
  private readonly params: MethodParams<'auto'>
  private readonly stepMinutes: number
  private readonly confirmed: ConfirmedStarts
  private readonly deviations: Deviations
  private readonly novelties = new Novelties()
  private readonly glance: View
  private readonly lasting: View
  private readonly lastGlances = new Float64Array(lastingGlances)
  private readonly novelty: View
  private readonly recent: RecentCourse
  private readonly course: View
  private readonly views: readonly View[]
  private values = 0
  private outside = 0
  private outsideShare = 0
  /** The view that opened the present episode. */
  private openedBy: View | null = null
  /** Minutes since 1970: of the newest value, and of the value that opened the last episode. */
  private minute = Number.NaN
  private openedMinute = Number.NaN
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
    const glanceMemory = Math.min(glanceMemoryPoints, params.memory_points)
    this.glance = new View(new LearntEdge({ ...budget(glanceShare), ...glanceFloor }), glanceMemory)
    this.lasting = new View(new LearntEdge({ ...budget(lastingShare), ...lastingFloor }), glanceMemory)
    this.novelty = new View(
      new LearntEdge({ ...budget(noveltyShare), ...noveltyFloor }),
      params.memory_points,
    )
    this.recent = new RecentCourse(stepMinutes)
    this.course = new View(new LearntEdge({ ...budget(courseShare), ...courseFloor }), params.memory_points)
    const { course, glance, lasting, novelty } = this
    this.views =
      stepMinutes > widestForLasting ? [glance, novelty, course] : [glance, novelty, course, lasting]
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
    const { course, deviations, glance, lasting, lastGlances, novelties, novelty, recent, views } = this
    deviations.compare(minute, value)
    novelties.compare(value)
    recent.compare(minute, value, deviations.fromSeason, deviations.floor)
    const isWarm = this.values++ >= this.params.warmup_points
    glance.judge(isWarm ? meanOf(deviations.digits) : 0)
    lastGlances[this.values % lastingGlances] = glance.score
    lasting.judge(meanOf(lastGlances))
    novelty.judge(isWarm ? noveltyOf(novelties, deviations) : 0)
    course.judge(isWarm ? quadraticMeanOf(recent.digits) : 0)
    const score = Math.max(...views.map((view) => view.score / view.edge.edge))
    const leading = views.reduce((a, b) => (b.news / b.edge.edge > a.news / a.edge.edge ? b : a))
    const unreported = leading.news / leading.edge.edge
    if (isWarm) this.learnEdges(score, unreported, leading)
    const comparison = score > 1 ? this.comparison() : null
    this.learn(minute, score > 1)
    return isWarm ? { score, unreported, comparison } : null
  }

  /** What the view that is farthest beyond its edge compared the newest value with. */
  private comparison(): Comparison | null {
    const { course, deviations, lasting, novelties, novelty, recent, views } = this
    const farthest = views.reduce((a, b) => (b.score / b.edge.edge > a.score / a.edge.edge ? b : a))
    if (farthest === course) return recent.comparison(deviations.days)
    if (farthest === novelty) {
      const isRecord =
        Math.max(...novelties.digits) >= Math.max(...seldom.map((i) => deviations.digits[i] || 0))
      return isRecord ? novelties.comparison() : deviations.comparison(seldom)
    }
    const compared = deviations.comparison()
    if (farthest !== lasting || compared === null) return compared
    return { ...compared, together: lastingGlances - 1 }
  }

  /** Follows episodes as the alarm layer does. Their scores are not learnt; only how far they went is. */
  private learnEdges(score: number, unreported: number, leading: View): void {
    if (this.openedBy !== null) {
      this.peak = Math.max(this.peak, score)
      this.calm = score > 1 ? 0 : this.calm + 1
      if (this.calm < calmValues) return
      const { minute: lastMinute, openedMinute, stepMinutes } = this
      const isReal = isConfirmed(this.confirmed, { lastMinute, openedMinute, stepMinutes })
      if (!isReal) this.openedBy.edge.spend(this.peak)
      this.openedBy = null
      return
    }
    const opens = unreported > 1
    if (opens) {
      this.openedBy = leading
      this.openedMinute = this.minute
      this.peak = score
      this.calm = 0
    }
    for (const { edge, news } of this.views) edge.learn(opens ? 0 : news)
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

/** The records and the spread, with the season and the gap of the other view. */
function noveltyOf(novelties: Novelties, { digits }: Deviations): number {
  return quadraticMeanOf(novelties.digits, ...seldom.map((i) => digits[i] ?? 0))
}

/** What a look does not know yet counts as 0. */
function quadraticMeanOf(digits: Float64Array, ...more: readonly number[]): number {
  let sum = 0
  for (const each of digits) sum += (each || 0) ** 2
  for (const each of more) sum += (each || 0) ** 2
  return Math.sqrt(sum / (digits.length + more.length))
}
