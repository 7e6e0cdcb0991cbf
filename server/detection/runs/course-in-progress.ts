// A run in progress on the course of a detector: which series the course has, which part of a read is new to
// each of them, and which part is settled. The course itself is changed only once the whole run has
// succeeded.

import { createHash } from 'node:crypto'
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { comparesPeers } from '../../../contract/detection/methods.ts'
import { type Ns, nsPerMinute, nsPerSecond } from '../../../contract/values/instant.ts'
import type { SeriesGroup, SeriesSet } from '../../series/series.ts'
import { NewestEnds } from '../alarms/newest-episodes.ts'
import { bucketStartNs, largestValue, type Series } from '../scoring/series.ts'
import { type CourseRun, groupKeyOf, type LearntSpan } from './course-run.ts'
import type { Evaluations } from './evaluation-pool.ts'
import { tasksOf } from './evaluation-store.ts'
import type { RunPlan } from './run-plan.ts'
import type { JudgedWindow } from './series-course.ts'

/** One series of a run. */
export interface JudgedGroup extends JudgedWindow {
  /** Null where the detector has one series. */
  readonly group: string | null
  readonly groupKey: string
}

/** The state from which the next run of a detector continues. */
export interface Course {
  /** Of the tasks. */
  readonly name: string
  readonly tenantId: string
  readonly version: string
  readonly hidings: number
  readonly startNs: Ns
  readonly stepMinutes: number
  readonly begunMs: number
  /** Time before this is evaluated. */
  settledNs: Ns
  /** Names of the series that have begun; the others have had no value. */
  begun: ReadonlySet<string>
  /** Whether a step without events is zero once there was one. */
  isCounting: boolean
  learntFrom: readonly LearntSpan[]
  values: number
  /** All unknown time up to `settledNs`, as a hash; empty where nothing is settled. */
  unknown: string
  readonly usedMs: number
  readonly everyMs: number
}

interface Member {
  /** What is kept of `groupKey`: it names the series in this and the next runs. */
  readonly name: string
  readonly groupKey: string
  readonly group: string | null
}

/** A longer key is kept as its hash, because every detector keeps those of fifty series. */
const keptKeyMax = 100

function nameOf(groupKey: string): string {
  return groupKey.length <= keptKeyMax ? groupKey : createHash('sha256').update(groupKey).digest('base64url')
}

/** A course was not kept by the thread that had it. */
export class CourseLost extends Error {}

/** A run in progress on a course. */
export class CourseInProgress {
  readonly #evaluations: Evaluations
  readonly #run: CourseRun
  readonly #plan: RunPlan
  readonly #course: Course
  readonly #begun: Set<string>
  /** Until when each series is evaluated; absent where a series has no course. */
  readonly #reached = new Map<string, Ns>()
  #isCounting: boolean
  #values: number
  #learntFrom: readonly LearntSpan[]
  #learntUntilNs: Ns
  readonly #newestEnds = new NewestEnds()
  /** The part of `learntFrom` from which the next run continues. */
  #settledFrom: readonly LearntSpan[]

  constructor(
    evaluations: Evaluations,
    { course, plan, run }: { readonly course: Course; readonly plan: RunPlan; readonly run: CourseRun },
  ) {
    this.#evaluations = evaluations
    this.#run = run
    this.#plan = plan
    this.#course = course
    this.#begun = new Set(course.begun)
    this.#isCounting = course.isCounting
    this.#values = course.values
    this.#learntFrom = course.learntFrom
    this.#learntUntilNs = course.settledNs
    this.#settledFrom = course.learntFrom
  }

  /** Everything that was learnt from so far. */
  get learntFrom(): readonly LearntSpan[] {
    return this.#learntFrom
  }

  /**
   * The series of this run. A series that is no longer among them begins again if it comes back. A method
   * that compares series begins again where they are not the same.
   */
  membersOf({ groups }: SeriesSet): Member[] {
    const { definition, choice } = this.#run
    const groupBy = definition.scope.group_by
    const members = (groupBy === undefined ? [null] : groups.map(({ group }) => group)).map((group) => {
      const groupKey = groupKeyOf(groupBy, group)
      return { group, groupKey, name: nameOf(groupKey) }
    })
    const names = new Set(members.map(({ name }) => name))
    const isSame = names.size === this.#begun.size && [...names].every((name) => this.#begun.has(name))
    for (const name of this.#begun) {
      if (!names.has(name) || (comparesPeers(choice.method_key) && !isSame)) this.#begun.delete(name)
    }
    const { settledNs, values } = this.#course
    for (const { name } of members) {
      // Where nothing had a value, there is nothing to read again.
      if (this.#begun.has(name) || values === 0) this.#reached.set(name, settledNs)
    }
    return members
  }

  /** The first time that is new to some of these series. */
  nextNs(members: readonly Member[]): Ns {
    const isKnown = members.every(({ name }) => this.#reached.has(name))
    return isKnown ? this.#course.settledNs : this.#course.startNs
  }

  /**
   * Evaluates what a read has of the members. Returns what to report of the newest buckets in the last read.
   */
  async go(set: SeriesSet, members: readonly Member[], isLast: boolean): Promise<JudgedGroup[]> {
    this.#isCounting ||= set.counting
    const settledNs = isLast ? this.#plan.settledNs : endOf(set)
    this.#learn(set, settledNs)
    this.#settledFrom = this.#learntFrom
    const found = new Map(set.groups.map((each) => [each.group, each]))
    const pieces = members.map((member) => ({
      member,
      piece: this.#pieceOf(set, member, found.get(member.group)),
    }))
    await yieldToOthers()
    const starting = this.#trimmed(pieces.filter(({ member }) => !this.#begun.has(member.name)))
    const going = pieces.filter(({ member }) => this.#begun.has(member.name))
    const windows = new Map<string, JudgedWindow>()
    for (const [some, isStart] of [
      [starting, true],
      [going, false],
    ] as const) {
      await this.#evaluate(some, { isStart, isLast, settledNs, windows })
    }
    for (const { member } of starting) this.#begun.add(member.name)
    for (const { member, piece } of pieces) {
      this.#values += countValues(piece, settledNs)
      this.#reached.set(member.name, settledNs)
    }
    this.#learn(set, endOf(set))
    return members.flatMap(({ group, groupKey, name }) => {
      const judged = windows.get(name)
      return judged === undefined ? [] : [{ group, groupKey, ...judged }]
    })
  }

  /** The course once the last read is evaluated. */
  settled(): Course {
    return {
      ...this.#course,
      settledNs: this.#plan.settledNs,
      begun: this.#begun,
      isCounting: this.#isCounting,
      learntFrom: this.#settledFrom,
      values: this.#values,
    }
  }

  async #evaluate(
    some: readonly { readonly member: Member; readonly piece: Series }[],
    how: {
      readonly isStart: boolean
      readonly isLast: boolean
      readonly settledNs: Ns
      readonly windows: Map<string, JudgedWindow>
    },
  ): Promise<void> {
    if (some.length === 0) return
    const { hidings } = this.#course
    const { choice, feedback, share, source } = this.#run
    const { endNs, startNs, stepMinutes, windowStartNs } = this.#plan
    const bucketsIn = (spanNs: Ns) => Number(spanNs / (BigInt(stepMinutes) * nsPerMinute))
    const keptBuckets = bucketsIn(endNs - windowStartNs)
    const task = {
      tenantId: share.tenantId,
      course: this.#course.name,
      choice,
      isStart: how.isStart,
      settledUntilNs: how.settledNs,
      reportBuckets: how.isLast ? keptBuckets : 0,
      keptBuckets,
      spanBuckets: bucketsIn(endNs - startNs),
      members: some.map(({ member: { groupKey, name }, piece }) => ({
        ...{ groupKey: name, piece },
        feedback: feedback.get(groupKey),
      })),
    }
    for (const part of tasksOf(task)) {
      const isCurrent = () => source.hidings() === hidings
      const { sinceMinute } = this.#newestEnds
      const judged = await this.#evaluations.evaluate(
        { ...part, reportedSinceMinute: sinceMinute },
        { ...share, isCurrent },
      )
      if (judged === null) throw new CourseLost()
      for (const [i, { groupKey }] of part.members.entries()) {
        const window = judged[i]
        if (window === undefined) continue
        how.windows.set(groupKey, window)
        this.#newestEnds.add({ series: window.series, episodes: window.evaluation.episodes })
      }
      await yieldToOthers()
    }
  }

  /** The part of a read that is new to a series. */
  #pieceOf(set: SeriesSet, member: Member, group: SeriesGroup | undefined): Series {
    const reachedNs = this.#reached.get(member.name) ?? this.#course.startNs
    const stepNs = BigInt(set.stepSeconds) * nsPerSecond
    const first = reachedNs > set.startNs ? Number((reachedNs - set.startNs) / stepNs) : 0
    const from = Math.min(first, set.steps)
    const unknown = set.unknown.slice(from)
    const values = new Float64Array(unknown.length).fill(Number.NaN)
    if (group !== undefined) {
      for (let i = 0; i < values.length; i++) values[i] = bounded(group.values[from + i] ?? Number.NaN)
    }
    // A read counts nothing before the first event that it has, but this series was counted before.
    const isCut = group === undefined && set.truncatedGroups > 0
    if (this.#isCounting && this.#begun.has(member.name) && !isCut) {
      for (let i = 0; i < values.length; i++) if (Number.isNaN(values[i]) && unknown[i] === 0) values[i] = 0
    }
    const volumes = group?.volume.slice(from) ?? new Float64Array(values.length)
    return {
      startNs: set.startNs + BigInt(from) * stepNs,
      stepMinutes: set.stepSeconds / 60,
      ...{ values, unknown, volumes },
    }
  }

  /**
   * The pieces with which series begin: each at its first value; where the method compares series, all at the
   * first value of any of them. Series without a value do not begin.
   */
  #trimmed<T extends { readonly piece: Series }>(pieces: readonly T[]): T[] {
    const firsts = pieces.map(({ piece }) => piece.values.findIndex((value) => !Number.isNaN(value)))
    const known = firsts.filter((first) => first >= 0)
    const least = Math.min(...known)
    return pieces.flatMap((each, i) => {
      const own = firsts[i] ?? -1
      const first = comparesPeers(this.#run.choice.method_key) ? least : own
      return known.length === 0 || first < 0 ? [] : [{ ...each, piece: withoutFirst(each.piece, first) }]
    })
  }

  /** Adds the part of a read before a time, except for unknown time. */
  #learn(set: SeriesSet, untilNs: Ns): void {
    const stepNs = BigInt(set.stepSeconds) * nsPerSecond
    const stepsUntil = (ns: Ns) => Math.max(0, Math.min(set.steps, Number((ns - set.startNs) / stepNs)))
    const spans = [...this.#learntFrom]
    const end = stepsUntil(untilNs)
    for (let from = stepsUntil(this.#learntUntilNs); from < end; from++) {
      if (set.unknown[from] === 1) continue
      const hole = set.unknown.indexOf(1, from)
      const to = hole < 0 ? end : Math.min(end, hole)
      const startNs = set.startNs + BigInt(from) * stepNs
      const endNs = set.startNs + BigInt(to) * stepNs
      const last = spans.at(-1)
      if (last?.endNs === startNs) spans[spans.length - 1] = { startNs: last.startNs, endNs }
      else spans.push({ startNs, endNs })
      from = to
    }
    this.#learntFrom = spans
    if (untilNs > this.#learntUntilNs) this.#learntUntilNs = untilNs
  }
}

function withoutFirst(piece: Series, count: number): Series {
  if (count === 0) return piece
  return {
    startNs: bucketStartNs(piece, count),
    stepMinutes: piece.stepMinutes,
    values: piece.values.slice(count),
    unknown: piece.unknown.slice(count),
    volumes: piece.volumes?.slice(count) ?? null,
  }
}

function bounded(value: number): number {
  return Math.max(-largestValue, Math.min(largestValue, value))
}

function endOf({ startNs, stepSeconds, steps }: SeriesSet): Ns {
  return startNs + BigInt(steps) * BigInt(stepSeconds) * nsPerSecond
}

function countValues(piece: Series, untilNs: Ns): number {
  const stepNs = bucketStartNs(piece, 1) - piece.startNs
  const settled = Math.max(0, Number((untilNs - piece.startNs) / stepNs))
  return piece.values
    .subarray(0, settled)
    .reduce((count, value) => (Number.isNaN(value) ? count : count + 1), 0)
}
