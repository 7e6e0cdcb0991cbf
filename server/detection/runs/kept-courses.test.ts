// The memory of courses: who loses some where all together are too large, and that a run never loses those it
// is using.

import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { methodParams } from '../../../contract/detection/methods.ts'
import { nsPerMinute } from '../../../contract/values/instant.ts'
import { stateBytes } from '../methods/copy-state.ts'
import { EvaluationStore, tasksOf } from './evaluation-store.ts'
import { KeptCourses } from './kept-courses.ts'
import { SeriesCourse } from './series-course.ts'

const choice = { method_key: 'threshold', params: methodParams.threshold.parse({ upper: 150 }) } as const
const startNs = 1_789_000_200_000_000_000n

const pieceOf = (length: number) => ({
  startNs,
  stepMinutes: 5,
  values: new Float64Array(length).fill(100),
  unknown: new Uint8Array(length),
  volumes: null,
})

function learnt(): SeriesCourse {
  const series = new SeriesCourse({ choice, stepMinutes: 5, feedback: undefined, keptBuckets: 500 })
  series.advance(pieceOf(500))
  return series
}

/** Room for ten courses and not for eleven. */
const bytesMax = 10.5 * stateBytes(learnt())
let kept: KeptCourses
beforeEach(() => {
  kept = new KeptCourses(bytesMax)
})

/** Keeps a course of the organisation after its first run. */
function keep(tenantId: string, name: number): void {
  kept.begin(`${tenantId} ${name}`, { tenantId, course: `det_${tenantId}${name}#1`, series: learnt() })
  kept.used(`${tenantId} ${name}`, true)
}

function keepMany(tenantId: string, count: number): void {
  for (let name = 0; name < count; name++) keep(tenantId, name)
}

/** Returns which of the first twenty courses of an organisation are kept. */
const namesOf = (tenantId: string) =>
  Array.from({ length: 20 }, (_, name) => name).filter((name) => kept.find(`${tenantId} ${name}`) !== null)

test('an organisation with more courses than fit keeps those that it had first', () => {
  keepMany('acme', 20)
  assert.deepEqual(namesOf('acme'), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

test('an organisation that comes later has room, and the one with the most courses loses some', () => {
  keepMany('acme', 20)
  keepMany('globex', 3)
  assert.deepEqual(namesOf('globex'), [0, 1, 2])
  assert.equal(namesOf('acme').length, 7)
  keepMany('globex', 20)
  assert.deepEqual([namesOf('acme').length, namesOf('globex').length], [5, 5])
})

test('what nobody has used for long is dropped first, whoever has the most', () => {
  keepMany('acme', 2)
  keepMany('globex', 8)
  for (let round = 0; round < 10; round++) {
    for (let name = 0; name < 8; name++) kept.used(`globex ${name}`, true)
  }
  keep('globex', 8)
  assert.deepEqual(namesOf('acme'), [1])
  assert.deepEqual(namesOf('globex'), [0, 1, 2, 3, 4, 5, 6, 7, 8])
})

test('a course that a run is using is not dropped for another organisation', () => {
  keepMany('acme', 10)
  for (const name of namesOf('acme')) if (name !== 6) kept.used(`acme ${name}`, false)
  keep('globex', 0)
  assert.deepEqual([namesOf('acme'), namesOf('globex')], [[0, 1, 2, 3, 4, 5, 7, 8, 9], [0]])
  keep('globex', 1)
  assert.deepEqual([namesOf('acme'), namesOf('globex')], [[0, 1, 2, 3, 4, 5, 7, 8, 9], [0]])
})

test('a run that is divided into tasks ends also where there is no room for its course afterwards', () => {
  const store = new EvaluationStore(1)
  const piece = pieceOf(5000)
  const settledUntilNs = startNs + 5000n * 5n * nsPerMinute
  const members = [{ groupKey: '{}', piece, feedback: undefined }]
  const buckets = { reportBuckets: 100, keptBuckets: 100, spanBuckets: 5000 }
  const parts = tasksOf({
    ...{ tenantId: 'acme', course: 'det_a#1', choice, members, isStart: true, settledUntilNs },
    ...buckets,
  })
  assert.ok(parts.length > 1)
  const results = parts.map((part) => store.evaluate(part))
  assert.equal(results.at(-1)?.[0]?.series.values.length, 100)
  assert.equal(store.size, 0)
})
