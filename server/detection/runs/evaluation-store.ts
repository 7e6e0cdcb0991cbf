// The courses from which runs continue, one per series, in the memory of one thread only. They are learnt
// from telemetry, so an erasure drops all of the organisation (`forget`), and their number is bounded by the
// bytes they take (kept-courses.ts). A missing course is no error: the caller reads the past again.
//
// Buckets that may still change, because telemetry arrives late, are evaluated on a copy of the course, which
// is then dropped. So the course itself only ever contains time that is settled.

import { comparesPeers } from '../../../contract/detection/methods.ts'
import { newestCounts } from '../alarms/newest-episodes.ts'
import { type MethodChoice, pieceCostOf } from '../methods/catalogue.ts'
import { copyState } from '../methods/copy-state.ts'
import type { PieceCost } from '../methods/method.ts'
import { bucketStartNs, type Series, sliceOf } from '../scoring/series.ts'
import { peersOf } from './evaluate.ts'
import { KeptCourses } from './kept-courses.ts'
import { type JudgedWindow, SeriesCourse, type SeriesFeedback } from './series-course.ts'

/** The next buckets of one series. */
interface EvaluationMember {
  /** Names the series among those of its detector. */
  readonly groupKey: string
  readonly piece: Series
  /** Undefined where there is no feedback. */
  readonly feedback: SeriesFeedback | undefined
}

/**
 * The next buckets of series of one detector: all of its series where its method compares them, otherwise any
 * number.
 */
export interface EvaluationTask {
  readonly tenantId: string
  /** Names the detector and the version of everything that its courses depend on. */
  readonly course: string
  readonly choice: MethodChoice
  /** All pieces have the same buckets where the method compares series. */
  readonly members: readonly EvaluationMember[]
  /** Whether the courses begin with these pieces. Otherwise they continue the pieces before. */
  readonly isStart: boolean
  /** Buckets from here on may still change and are not kept. */
  readonly settledUntilNs: bigint
  /** How many of the newest buckets to report on; 0 where the pieces are only learnt from. */
  readonly reportBuckets: number
  /** Episodes that ended before this minute are not reported, because the run has enough newer ones. */
  readonly reportedSinceMinute?: number
  /** How many of the newest buckets later tasks may ask for. */
  readonly keptBuckets: number
  /** How many buckets the detector looks at in all, once there is data for all of them. */
  readonly spanBuckets: number
}

/** In the order of the members of a task; null where a course is missing and must begin again. */
export type EvaluationResult = readonly JudgedWindow[] | null

export class EvaluationStore {
  private readonly kept: KeptCourses

  constructor(bytesMax?: number) {
    this.kept = new KeptCourses(bytesMax)
  }

  /** How many series it keeps. */
  get size(): number {
    return this.kept.size
  }

  /** Evaluates a task. The columns of the result are valid until the next task of the same series. */
  evaluate(task: EvaluationTask): EvaluationResult {
    const result = this.evaluateKept(task)
    if (result !== null) {
      for (const member of task.members) this.kept.used(keyOf(task, member), task.reportBuckets > 0)
    }
    return result
  }

  private evaluateKept(task: EvaluationTask): EvaluationResult {
    const courses: SeriesCourse[] = []
    for (const member of task.members) {
      const course = task.isStart ? this.start(task, member) : this.find(task, member)
      if (course === null) return null
      courses.push(course)
    }
    const settled = task.members.map(({ piece }) => firstBuckets(piece, task.settledUntilNs))
    this.advance(task, courses, settled)
    if (task.reportBuckets === 0) return []
    const rest = task.members.map(({ piece }, i) => without(piece, settled[i]?.values.length ?? 0))
    const isAllSettled = rest.every(({ values }) => values.length === 0)
    const shown = isAllSettled ? courses : courses.map(copyState)
    if (!isAllSettled) this.advance(task, shown, rest)
    return this.report(task, shown)
  }

  /** Drops everything of an organisation. */
  forget(tenantId: string): void {
    this.kept.dropOf(tenantId)
  }

  /** Drops the series of one course. */
  end(course: string): void {
    this.kept.dropCourse(course)
  }

  private start(task: EvaluationTask, member: EvaluationMember): SeriesCourse {
    const { choice, course, keptBuckets, tenantId } = task
    const { feedback, piece } = member
    const series = new SeriesCourse({ choice, stepMinutes: piece.stepMinutes, feedback, keptBuckets })
    this.kept.begin(keyOf(task, member), { tenantId, course, series })
    return series
  }

  private find(task: EvaluationTask, member: EvaluationMember): SeriesCourse | null {
    const key = keyOf(task, member)
    const found = this.kept.find(key)
    if (found === null) return null
    if (isSameFeedback(found.feedback, member.feedback) && found.endNs === member.piece.startNs) return found
    this.kept.drop(key)
    return null
  }

  private advance(
    { choice }: EvaluationTask,
    courses: readonly SeriesCourse[],
    pieces: readonly Series[],
  ): void {
    const peers = peersOf(pieces, choice)
    for (const [i, course] of courses.entries()) {
      const piece = pieces[i]
      if (piece !== undefined && piece.values.length > 0) course.advance(piece, peers[i])
    }
  }

  private report(task: EvaluationTask, courses: readonly SeriesCourse[]): JudgedWindow[] {
    const { choice, reportBuckets, reportedSinceMinute = Number.NEGATIVE_INFINITY, spanBuckets } = task
    const counts = newestCounts(
      courses.map((course) => course.episodeEnds(reportBuckets)),
      reportedSinceMinute,
    )
    const windowOf = (course: SeriesCourse, i: number, peers?: readonly Series[]) =>
      course.newestBuckets(reportBuckets, spanBuckets, { endedMax: counts[i], ...(peers && { peers }) })
    const newest = courses.map((course, i) => windowOf(course, i))
    if (!comparesPeers(choice.method_key)) return newest
    const peers = peersOf(
      newest.map(({ series }) => series),
      choice,
    )
    return courses.map((course, i) => windowOf(course, i, peers[i]))
  }
}

function isSameFeedback(one: SeriesFeedback = {}, other: SeriesFeedback = {}): boolean {
  const { above, below } = one.widening ?? unmoved
  const moved = other.widening ?? unmoved
  const [mine, theirs] = [one.confirmed ?? [], other.confirmed ?? []]
  const isSameList = mine.length === theirs.length && mine.every((start, i) => start === theirs[i])
  return above === moved.above && below === moved.below && isSameList
}

const unmoved = { above: 1, below: 1 }

/** With the organisation: whatever a course is called, no organisation continues what another has learnt. */
const keyOf = ({ course, tenantId }: EvaluationTask, { groupKey }: EvaluationMember) =>
  `${tenantId} ${course} ${groupKey}`

/** The buckets that end no later than a time. */
function firstBuckets(piece: Series, untilNs: bigint): Series {
  const stepNs = bucketStartNs(piece, 1) - piece.startNs
  const count = Number((untilNs - piece.startNs) / stepNs)
  return sliceOf(piece, 0, Math.max(0, Math.min(piece.values.length, count)))
}

function without(piece: Series, first: number): Series {
  return sliceOf(piece, first, piece.values.length)
}

/**
 * What one task may cost, in buckets of `auto`: about 30 ms, which another organisation waits for its turn.
 * Many small series make few tasks, and a long piece is divided.
 */
const taskCost = 2048

/** Each task has its own cost, so none is divided below this. */
const leastCost = 256

/**
 * Divides a task into tasks of bounded cost, to be evaluated in this order. Series that their method compares
 * stay together.
 */
export function tasksOf(task: EvaluationTask): EvaluationTask[] {
  const cost = pieceCostOf(task.choice)
  if (comparesPeers(task.choice.method_key)) return dividedInTime(task, cost)
  const tasks: { members: EvaluationMember[] }[] = []
  let room = 0
  for (const member of task.members) {
    const own = cost.perBucket * (member.piece.values.length + cost.again)
    const last = tasks.at(-1)
    if (last === undefined || room < own) {
      tasks.push({ members: [member] })
      room = taskCost - own
    } else {
      last.members.push(member)
      room -= own
    }
  }
  return tasks.flatMap(({ members }) => dividedInTime({ ...task, members }, cost))
}

/** Only the last part has buckets that may still change, and reports. */
function dividedInTime(task: EvaluationTask, { again, perBucket }: PieceCost): EvaluationTask[] {
  const [first] = task.members
  if (first === undefined) return []
  const { startNs, values } = first.piece
  const isAligned = task.members.every(
    ({ piece }) => piece.startNs === startNs && piece.values.length === values.length,
  )
  const affordable = Math.floor(taskCost / task.members.length / perBucket - again)
  const longest = Math.max(Math.ceil(leastCost / perBucket), again, affordable)
  const settled = firstBuckets(first.piece, task.settledUntilNs).values.length
  if (!isAligned || settled <= longest) return [task]
  const parts = Math.ceil(settled / longest)
  return Array.from({ length: parts }, (_, at) => {
    const isLast = at === parts - 1
    const [from, to] = [at * longest, isLast ? values.length : (at + 1) * longest]
    const members = task.members.map((member) => ({ ...member, piece: sliceOf(member.piece, from, to) }))
    const reportBuckets = isLast ? task.reportBuckets : 0
    return { ...task, members, reportBuckets, isStart: task.isStart && at === 0 }
  })
}
