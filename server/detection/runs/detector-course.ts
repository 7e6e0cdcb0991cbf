// The state from which the runs of a detector continue: for each of its series, the evaluation of everything
// before. So a run reads only new telemetry, and the last hour again, because telemetry may be late. A run
// without such a state reads the past and has the same result. This happens after a restart, an erasure, a
// change of the definition or of feedback, and every few weeks, when the start of the past moves on
// (run-plan.ts).
// Courses are learnt from telemetry and are in memory only. They are dropped as soon as anything of the
// organisation is hidden, and telemetry that was read before cannot become a course afterwards.

import { createHash } from 'node:crypto'
import { type Ns, nsPerMinute } from '../../../contract/values/instant.ts'
import { signalsOf } from '../../series/event-series.ts'
import type { SeriesSet } from '../../series/series.ts'
import { BucketWidths } from './bucket-widths.ts'
import { type Course, CourseInProgress, CourseLost, type JudgedGroup } from './course-in-progress.ts'
import type { CourseRun, LearntSpan, SeriesRead } from './course-run.ts'
import type { Evaluations } from './evaluation-pool.ts'
import { planRun, type RunPlan } from './run-plan.ts'

export interface JudgedRun {
  readonly plan: RunPlan
  readonly groups: readonly JudgedGroup[]
  /** Of the last read. */
  readonly set: Pick<SeriesSet, 'signals' | 'unit' | 'truncatedGroups' | 'longGroups'>
  /** The known time that was learnt from, in order. */
  readonly learntFrom: readonly LearntSpan[]
}

/** Series that a detector evaluates at most: the busiest. */
export const groupsMax = 50
/** Series of the past that are read, so that those of the window are among them. */
const pastGroupsMax = 200
/** Steps of one read of the past; fewer where there are many groups, because a read is unpacked at once. */
const readSteps = 10_080
const groupedReadSteps = 2016
const weekNs = 7n * 1440n * nsPerMinute
/** A series with fewer values costs little to begin again. */
const fewValues = 3000
const hourMs = 3_600_000
/** A course is kept for this many schedules, and a day, after its last run. */
const keptSchedules = 3
const keptMs = 24 * hourMs

/** What a run reads first, and the state from which it can continue. */
export interface PreparedRun {
  readonly run: CourseRun
  readonly plan: RunPlan
  /** The newest buckets; the past before them is read only where something begins. */
  readonly first: SeriesRead
  readonly course: Course
  /** Whether the past need not be read. */
  readonly goesOn: boolean
}

export class DetectorCourses {
  readonly #evaluations: Evaluations
  readonly #widths: BucketWidths
  readonly #courses = new Map<string, Course>()
  #ordinal = 0

  constructor(evaluations: Evaluations) {
    this.#evaluations = evaluations
    this.#widths = new BucketWidths()
  }

  /** Courses and widths that it keeps. */
  get size(): number {
    return this.#courses.size + this.#widths.size
  }

  /** Drops all of an organisation. */
  forget(tenantId: string): void {
    for (const [id, course] of this.#courses) if (course.tenantId === tenantId) this.#courses.delete(id)
    this.#widths.forget(tenantId)
    this.#evaluations.forget(tenantId)
  }

  /**
   * Drops the courses and widths of detectors that have not run for some of their schedules: they may be
   * deleted.
   */
  forgetUnused(nowMs: number): void {
    for (const [id, { everyMs, usedMs }] of this.#courses) {
      if (nowMs - usedMs > keptSchedules * everyMs + keptMs) this.end(id)
    }
    this.#widths.forgetUnused(nowMs)
  }

  /** Drops the course of a detector. */
  end(detectorId: string): void {
    const course = this.#courses.get(detectorId)
    this.#courses.delete(detectorId)
    if (course !== undefined) this.#evaluations.end(course.name)
  }

  async prepare(run: CourseRun): Promise<PreparedRun> {
    const stepMinutes = await this.#widths.widthFor(run)
    const plan = planRun(run.definition, stepMinutes, run.nowMs)
    return this.#preparedWith(run, run.mayBeLate ? plan : { ...plan, settledNs: plan.endNs })
  }

  /**
   * Evaluates what is new, and the past where there is no course. `first` is what {@link PreparedRun.first}
   * names.
   */
  async judge(prepared: PreparedRun, first?: SeriesSet): Promise<JudgedRun> {
    const { run } = prepared
    let last = prepared
    let set = first ?? (await run.source.read(prepared.first))
    const { course } = prepared
    if (course.values === 0 && course.settledNs > course.startNs && hasValues(set)) {
      // Without any data, neither the width of buckets nor the past is known.
      this.end(run.detectorId)
      this.#widths.forgetDetector(run.detectorId)
      last = await this.prepare(run)
      set = await run.source.read(last.first)
    }
    try {
      return await this.#judgeFrom(last, set)
    } catch (err) {
      if (!(err instanceof CourseLost)) throw err
      this.end(run.detectorId)
      last = this.#preparedWith(run, prepared.plan)
      return await this.#judgeFrom(last, await run.source.read(last.first))
    }
  }

  #preparedWith(run: CourseRun, plan: RunPlan): PreparedRun {
    const course = this.#usable(run, plan) ?? this.#begin(run, plan)
    const isGrouped = run.definition.scope.group_by !== undefined
    const isShort = plan.settledNs < plan.windowStartNs
    const newest = isShort ? plan.settledNs : plan.windowStartNs
    // The busiest groups are those of the whole window.
    const isWhole = isGrouped || course.values === 0 || course.settledNs < newest
    const startNs = isWhole ? newest : course.settledNs
    const stepNs = BigInt(plan.stepMinutes) * nsPerMinute
    const isBorn = course.isCounting && course.begun.size > 0
    const { endNs, stepMinutes } = plan
    // At least one bucket is read, also where none is new.
    const fromNs = startNs < endNs ? startNs : endNs - stepNs
    const first = { startNs: fromNs, endNs, stepMinutes, maxGroups: groupsMax, isBorn }
    return { run, plan, course, first, goesOn: fromNs <= course.settledNs }
  }

  #usable(run: CourseRun, plan: RunPlan): Course | null {
    const course = this.#courses.get(run.detectorId)
    if (course === undefined) return null
    const isYoung = run.nowMs - course.begunMs < hourMs && course.values >= fewValues
    const isSame =
      course.version === run.version &&
      course.stepMinutes === plan.stepMinutes &&
      course.startNs === plan.startNs &&
      course.settledNs <= plan.settledNs &&
      course.hidings === run.source.hidings() &&
      course.unknown === unknownKey(run, course.startNs, course.settledNs)
    if (isSame && (!run.judgedNothing || course.values === 0 || isYoung)) return course
    this.end(run.detectorId)
    return null
  }

  #begin(run: CourseRun, plan: RunPlan): Course {
    return {
      name: `${run.detectorId}#${this.#ordinal++}`,
      tenantId: run.share.tenantId,
      version: run.version,
      hidings: run.source.hidings(),
      startNs: plan.startNs,
      stepMinutes: plan.stepMinutes,
      begunMs: run.nowMs,
      everyMs: run.definition.schedule_minutes * 60_000,
      settledNs: plan.startNs,
      begun: new Set(),
      isCounting: false,
      learntFrom: [],
      values: 0,
      unknown: '',
      usedMs: run.nowMs,
    }
  }

  async #judgeFrom(prepared: PreparedRun, last: SeriesSet): Promise<JudgedRun> {
    try {
      return await this.#judgeParts(prepared, last)
    } catch (err) {
      const { course, run } = prepared
      // Nobody would continue it, so it would take memory from others.
      if (this.#courses.get(run.detectorId)?.name !== course.name) this.#evaluations.end(course.name)
      throw err
    }
  }

  async #judgeParts(prepared: PreparedRun, last: SeriesSet): Promise<JudgedRun> {
    const going = new CourseInProgress(this.#evaluations, prepared)
    const { plan, run } = prepared
    const members = going.membersOf(last)
    const stepsAtOnce = run.definition.scope.group_by === undefined ? readSteps : groupedReadSteps
    const longNs = BigInt(stepsAtOnce * plan.stepMinutes) * nsPerMinute
    const newNs = { startNs: going.nextNs(members), endNs: last.startNs }
    for (let startNs = await firstWithRows(run.source, newNs, longNs); startNs < last.startNs; ) {
      const endNs = startNs + longNs < last.startNs ? startNs + longNs : last.startNs
      const read = { startNs, endNs, stepMinutes: plan.stepMinutes, isBorn: false }
      const set = await run.source.read({ ...read, maxGroups: pastGroupsMax })
      await going.go(set, members, false)
      startNs = endNs
    }
    const groups = await going.go(last, members, true)
    this.#keep(run, plan, going)
    const { longGroups, signals, truncatedGroups, unit } = last
    return { plan, groups, set: { signals, truncatedGroups, longGroups, unit }, learntFrom: going.learntFrom }
  }

  /** State that was learnt before something was hidden is not kept. */
  #keep(run: CourseRun, plan: RunPlan, going: CourseInProgress): void {
    const course = going.settled()
    if (course.hidings !== run.source.hidings()) {
      this.#evaluations.end(course.name)
      this.#courses.delete(run.detectorId)
      return
    }
    const before = this.#courses.get(run.detectorId)
    if (before !== undefined && before.name !== course.name) this.#evaluations.end(before.name)
    const unknown = unknownKey(run, plan.startNs, course.settledNs)
    this.#courses.set(run.detectorId, { ...course, unknown, usedMs: run.nowMs })
  }
}

/**
 * Where the past of a young organisation begins: the last of whole weeks before its first row. A span that
 * one read covers is read as it is.
 */
async function firstWithRows(
  source: CourseRun['source'],
  { endNs, startNs }: LearntSpan,
  longNs: Ns,
): Promise<Ns> {
  if (endNs - startNs <= longNs) return startNs
  const earliestNs = (await source.earliestNs()) ?? endNs
  let firstNs = startNs
  while (endNs - firstNs > longNs && firstNs + weekNs <= earliestNs) firstNs += weekNs
  return firstNs
}

function hasValues({ groups }: SeriesSet): boolean {
  return groups.some(({ values }) => values.some((value) => !Number.isNaN(value)))
}

/**
 * Identifies what is unknown between two instants. A hash, because every course keeps it, and an organisation
 * may have thousands of erased ranges.
 */
function unknownKey({ definition, source }: CourseRun, startNs: Ns, endNs: Ns): string {
  if (startNs >= endNs) return ''
  const ranges = signalsOf(definition.metric_key).map((signal) =>
    source.unknownTime(signal, { startNs, endNs }),
  )
  const text = JSON.stringify(ranges, (_, value) => (typeof value === 'bigint' ? String(value) : value))
  return createHash('sha256').update(text).digest('base64url')
}
