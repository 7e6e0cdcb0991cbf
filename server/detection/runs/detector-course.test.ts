// Continued runs have the same results as a run that reads the whole past, also with late telemetry, and use
// nothing of what was hidden.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { methodParams } from '../../../contract/detection/methods.ts'
import { type Ns, nsPerMinute } from '../../../contract/values/instant.ts'
import type { SeriesSet } from '../../series/series.ts'
import { definitionOf } from '../detection-fixture.ts'
import { methodChoiceOf } from '../detectors/detector.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import type { CourseRun, SeriesRead, SeriesSource } from './course-run.ts'
import { DetectorCourses, type JudgedRun } from './detector-course.ts'
import { EvaluationsHere } from './evaluation-pool.ts'
import { FilePoints } from './file-replay.ts'

const definition = definitionOf({
  name: 'queue',
  metric_key: 'queue.depth',
  method_key: 'robust_band',
  params: { min_rel_dev: 0 },
  window_minutes: 240,
  schedule_minutes: 5,
})
const choice = methodChoiceOf(definition)
assert(choice !== null)
const noonMs = Date.UTC(2026, 8, 11, 12)
const days = 3

/** Minutes of noise that end at noon, with an incident an hour before. */
function points(seed: number): { timeNs: Ns; value: number }[] {
  const noise = seededNormal(seed)
  return Array.from({ length: days * 1440 + 300 }, (_, i) => ({
    timeNs: BigInt(noonMs) * 1_000_000n + BigInt(i - days * 1440) * nsPerMinute,
    value: 100 + noise() + (i > days * 1440 - 60 && i < days * 1440 - 50 ? 40 : 0),
  }))
}

/** Growing telemetry; `reads` lists the reads. */
class Growing implements SeriesSource {
  all = points(1)
  readonly reads: SeriesRead[] = []
  hideCount = 0
  /** Whether the run knows how old the telemetry is. */
  knowsFirst = true
  onRead: (() => void) | null = null

  async read(read: SeriesRead): Promise<SeriesSet> {
    this.reads.push(read)
    const set = new FilePoints(this.all.filter(({ timeNs }) => timeNs < read.endNs)).read(read)
    this.onRead?.()
    return set
  }

  async earliestNs(): Promise<Ns | null> {
    return this.knowsFirst ? (this.all[0]?.timeNs ?? null) : 0n
  }

  hidings(): number {
    return this.hideCount
  }

  unknownTime(): [] {
    return []
  }
}

const autoDefinition = definitionOf({ ...definition, method_key: 'auto', params: {} })
const autoChoice = methodChoiceOf(autoDefinition)
assert(autoChoice !== null)

const runAt = (source: SeriesSource, minute: number): CourseRun => ({
  detectorId: 'det_1',
  version: '1',
  definition,
  choice,
  nowMs: noonMs + minute * 60_000 + 30_000,
  source,
  share: { tenantId: 'acme', kind: 'asked' },
  feedback: new Map(),
  judgedNothing: false,
  mayBeLate: true,
})

async function judge(courses: DetectorCourses, run: CourseRun): Promise<JudgedRun> {
  return courses.judge(await courses.prepare(run))
}

const fresh = (source: SeriesSource, minute: number) =>
  judge(new DetectorCourses(new EvaluationsHere()), runAt(source, minute))

test('a continued run has the result of a run from the beginning, and reads only the last hour', async () => {
  const source = new Growing()
  const courses = new DetectorCourses(new EvaluationsHere())
  for (let minute = 0; minute <= 120; minute += 5) {
    const { groups, learntFrom } = await judge(courses, runAt(source, minute))
    const last = source.reads.at(-1)
    if (minute > 0) assert.equal(Number((last?.endNs ?? 0n) - (last?.startNs ?? 0n)) / 6e10, 65)
    const expected = await fresh(source, minute)
    assert.deepEqual(groups, expected.groups, `after ${minute} minutes`)
    assert.deepEqual(learntFrom, expected.learntFrom)
  }
  assert.equal((await fresh(source, 0)).groups[0]?.evaluation.episodes.length, 1)
})

test('a continued run of auto compares with the same past as a run from the beginning', async () => {
  const source = new Growing()
  const courses = new DetectorCourses(new EvaluationsHere())
  const auto = { definition: autoDefinition, choice: autoChoice }
  for (const minute of [-45, -20, 0, 60]) {
    const { groups } = await judge(courses, { ...runAt(source, minute), ...auto })
    const other = new DetectorCourses(new EvaluationsHere())
    const expected = await judge(other, { ...runAt(source, minute), ...auto })
    assert.deepEqual(groups, expected.groups, `after ${minute} minutes`)
    const [found] = groups[0]?.evaluation.episodes ?? []
    assert.equal(found?.compared?.measured, found?.peakValue)
    assert.notEqual(found?.compared?.count, undefined)
  }
})

test('the past of a young series is read from the week of its first row on, with the same result', async () => {
  const [young, whole] = [new Growing(), new Growing()]
  whole.knowsFirst = false
  const { groups } = await fresh(young, 0)
  assert.deepEqual(groups, (await fresh(whole, 0)).groups)
  const weekNs = 10_080n * nsPerMinute
  const earliest = ({ reads }: Growing) =>
    reads.map(({ startNs }) => startNs).sort((a, b) => (a < b ? -1 : 1))[0] ?? 0n
  const firstNs = young.all[0]?.timeNs ?? 0n
  assert.ok(earliest(young) <= firstNs && firstNs - earliest(young) < weekNs)
  assert.ok(firstNs - earliest(whole) > weekNs)
})

test('telemetry that is late by less than an hour counts as if it had come in time', async () => {
  const source = new Growing()
  const whole = source.all
  const courses = new DetectorCourses(new EvaluationsHere())
  for (let minute = 0; minute <= 60; minute += 5) {
    const untilNs = BigInt(noonMs + minute * 60_000) * 1_000_000n - 7n * nsPerMinute
    source.all = whole.filter(({ timeNs }) => timeNs < untilNs)
    const { groups } = await judge(courses, runAt(source, minute))
    assert.deepEqual(groups, (await fresh(source, minute)).groups)
  }
})

test('after something was hidden a run starts from the beginning, and uses only what it reads then', async () => {
  const source = new Growing()
  const evaluations = new EvaluationsHere()
  const courses = new DetectorCourses(evaluations)
  await judge(courses, runAt(source, 0))
  assert.equal(evaluations.size, 1)
  source.hideCount++
  courses.forget('acme')
  assert.equal(evaluations.size, 0, 'nothing of it is in memory')
  source.all = points(2)
  const { groups } = await judge(courses, runAt(source, 5))
  assert.deepEqual(groups, (await fresh(source, 5)).groups)
})

test('what was read before something was hidden is not used after it', async () => {
  const source = new Growing()
  const courses = new DetectorCourses(new EvaluationsHere())
  await judge(courses, runAt(source, 0))
  // The hiding comes between the read of the next run and its evaluation.
  source.onRead = () => {
    source.onRead = null
    source.hideCount++
    source.all = points(2)
    courses.forget('acme')
  }
  const { groups } = await judge(courses, runAt(source, 5))
  assert.deepEqual(groups, (await fresh(source, 5)).groups)
  assert.deepEqual((await judge(courses, runAt(source, 10))).groups, (await fresh(source, 10)).groups)
})

test('with another definition, other feedback or a dropped course, a run starts from the beginning', async () => {
  const source = new Growing()
  const evaluations = new EvaluationsHere()
  const courses = new DetectorCourses(evaluations)
  await judge(courses, runAt(source, 0))
  const widened = { ...runAt(source, 5), feedback: new Map([['{}', { widening: { above: 3, below: 1 } }]]) }
  const other = new DetectorCourses(new EvaluationsHere())
  assert.deepEqual((await judge(courses, widened)).groups, (await judge(other, widened)).groups)
  const params = methodParams.robust_band.parse({ k: 2, min_rel_dev: 0 })
  const narrow = {
    ...runAt(source, 10),
    version: '2',
    choice: { method_key: 'robust_band' as const, params },
    definition: { ...definition, params },
  }
  const [again] = (await judge(courses, narrow)).groups
  const [expected] = (await judge(new DetectorCourses(new EvaluationsHere()), narrow)).groups
  assert.deepEqual(again, expected)
  evaluations.forget('acme')
  assert.deepEqual((await judge(courses, { ...narrow, nowMs: narrow.nowMs + 300_000 })).groups.length, 1)
})

test('a detector that does not run any more is dropped', async () => {
  const source = new Growing()
  const evaluations = new EvaluationsHere()
  const courses = new DetectorCourses(evaluations)
  await judge(courses, runAt(source, 0))
  courses.forgetUnused(noonMs + 3_600_000)
  assert.deepEqual([evaluations.size, courses.size], [1, 2])
  courses.forgetUnused(noonMs + 2 * 86_400_000)
  assert.deepEqual([evaluations.size, courses.size], [0, 0])
})

test('a run that fails leaves no course that nobody continues', async () => {
  const source = new Growing()
  const evaluations = new EvaluationsHere()
  const courses = new DetectorCourses(evaluations)
  source.onRead = () => {
    if (source.reads.length > 1 && evaluations.size > 0) throw new Error('The engine is gone')
  }
  await assert.rejects(judge(courses, runAt(source, 0)), /The engine is gone/)
  assert.equal(evaluations.size, 0)
  source.onRead = null
  assert.equal((await judge(courses, runAt(source, 5))).groups.length, 1)
  assert.equal(evaluations.size, 1)
})
