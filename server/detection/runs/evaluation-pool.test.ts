// Evaluation in other threads: the same results, this thread stays free, and a thread that fails
// is an error of its task.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { methodKeys, methodParams } from '../../../contract/detection/methods.ts'
import { nsPerMinute } from '../../../contract/values/instant.ts'
import { AppError } from '../../core/app-error.ts'
import { alarmAtOnce } from '../detection-fixture.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import { minuteOf, type Series } from '../scoring/series.ts'
import { EvaluationError, EvaluationPool, type EvaluationShare, tookTooLong } from './evaluation-pool.ts'
import { EvaluationStore, type EvaluationTask, tasksOf } from './evaluation-store.ts'

const pools: EvaluationPool[] = []
after(() => Promise.all(pools.map((pool) => pool.close())))

function poolOf(options: ConstructorParameters<typeof EvaluationPool>[0] = {}): EvaluationPool {
  const pool = new EvaluationPool({ threads: 1, ...options })
  pools.push(pool)
  return pool
}

const share: EvaluationShare = { tenantId: 'acme', kind: 'asked' }

/** Buckets of five minutes with a rhythm, a spike, a gap and erased time. */
function seriesOf(length: number, seed: number): Series {
  const noise = seededNormal(seed)
  const values = Float64Array.from({ length }, (_, i) => 100 + 20 * Math.sin(i / 46) + 5 * noise())
  const unknown = new Uint8Array(length)
  values[length - 20] = 400
  values.fill(Number.NaN, 300, 310)
  values.fill(Number.NaN, 400, 420)
  unknown.fill(1, 400, 420)
  const volumes = values.map((value) => (Number.isNaN(value) ? value : 50))
  return { startNs: 1_789_000_200_000_000_000n, stepMinutes: 5, values, unknown, volumes }
}

function taskOf(key: (typeof methodKeys)[number], series: readonly Series[]): EvaluationTask {
  const params = methodParams[key].parse(key === 'threshold' ? { upper: 150 } : {})
  const [{ startNs, stepMinutes, values } = seriesOf(500, 1)] = series
  return {
    tenantId: 'acme',
    course: `det_${key}#1`,
    choice: { method_key: key, params } as EvaluationTask['choice'],
    members: series.map((piece, i) => ({
      groupKey: `{"host":"${i}"}`,
      piece,
      feedback: i === 0 ? undefined : { widening: { above: 1.5, below: 1 } },
    })),
    isStart: true,
    settledUntilNs: startNs + BigInt((values.length - 12) * stepMinutes) * nsPerMinute,
    reportBuckets: values.length,
    keptBuckets: values.length,
    spanBuckets: values.length,
  }
}

/** A thread that runs the given text for each `request`. */
function threadOf(text: string): URL {
  const program = `import { parentPort } from 'node:worker_threads';parentPort.on('message', (request) => {${text}})`
  return new URL(`data:text/javascript,${encodeURIComponent(program)}`)
}

describe('the evaluation pool', () => {
  test('returns the same results as the calling thread, with every method', async () => {
    const pool = poolOf()
    const group = [1, 2, 3, 4].map((seed) => seriesOf(600, seed))
    for (const key of methodKeys) {
      const task = taskOf(key, group)
      const copy = structuredClone(group)
      const found = await pool.evaluate(task, share)
      assert.deepEqual(found, new EvaluationStore().evaluate(task), key)
      const compares = found?.some(({ evaluation }) => evaluation.episodes.some(({ compared }) => compared))
      assert.equal(compares, key === 'auto', `${key} says what it compared with`)
      assert.deepEqual(group, copy, `${key} left the series as they were`)
    }
  })

  test('leaves this thread free for others', async () => {
    const pool = poolOf()
    const task = taskOf('auto', [seriesOf(1200, 1)])
    await pool.evaluate(task, share)
    let turns = 0
    let isDone = false
    const judged = pool.evaluate(taskOf('auto', [seriesOf(6000, 2)]), share).finally(() => {
      isDone = true
    })
    while (!isDone) {
      turns++
      await new Promise((resolve) => setImmediate(resolve))
    }
    await judged
    assert.ok(turns > 50, `${turns} turns of the event loop`)
  })

  test('returns the newest thousand ended episodes of all series of a task, and how many it left out', async () => {
    const length = 1400
    const alternating = Float64Array.from({ length }, (_, i) => (i % 2 === 0 ? 200 : 1))
    const series = { ...seriesOf(length, 1), values: alternating, unknown: new Uint8Array(length) }
    const alarms = { upper: 150, ...alarmAtOnce }
    const choice = { method_key: 'threshold' as const, params: methodParams.threshold.parse(alarms) }
    const [pool, task] = [poolOf(), { ...taskOf('threshold', [series, series]), choice }]
    const found = await pool.evaluate(task, share)
    assert(found !== null)
    const counts = found.map(({ evaluation: { episodes, leftOut } }) => [episodes.length, leftOut])
    assert.deepEqual(counts, [
      [500, 200],
      [500, 200],
    ])
    assert.equal(found[0]?.evaluation.episodes[0]?.lastIndex, length - 1000)
    const reportedSinceMinute = minuteOf(series, length - 99)
    const late = await pool.evaluate({ ...task, reportedSinceMinute }, share)
    assert.deepEqual(
      late?.map(({ evaluation: { episodes, leftOut } }) => [episodes.length, leftOut]),
      [
        [50, 650],
        [50, 650],
      ],
    )
  })

  test('reports a crash as an error of its task, and uses another thread for the next task', async () => {
    const crashing = poolOf({ entry: threadOf('process.exit(1)') })
    const throwing = poolOf({ entry: threadOf("setImmediate(() => { throw new Error('broken') })") })
    const empty = poolOf({ entry: threadOf('parentPort.postMessage({ result: [] })') })
    const task = taskOf('threshold', [seriesOf(600, 1)])
    for (const pool of [crashing, throwing, crashing, throwing]) {
      await assert.rejects(pool.evaluate(task, share), EvaluationError)
    }
    assert.deepEqual(await empty.evaluate(task, share), [])
  })

  test('reports an exception as an error of its task, and the thread continues', async () => {
    const pool = poolOf()
    const broken = { ...taskOf('auto', [seriesOf(600, 1)]), choice: { method_key: 'nonsense', params: {} } }
    await assert.rejects(pool.evaluate(broken as unknown as EvaluationTask, share), EvaluationError)
    const task = taskOf('robust_band', [seriesOf(600, 1)])
    assert.deepEqual(await pool.evaluate(task, share), new EvaluationStore().evaluate(task))
  })

  test('stops a task that runs too long, and reports it', async () => {
    const clock = { sleep: async () => undefined }
    const pool = poolOf({ entry: threadOf('for (;;);'), clock })
    const tooLong = (error: unknown) => error instanceof AppError && error.code === 'query_too_expensive'
    const task = taskOf('threshold', [seriesOf(600, 1)])
    await assert.rejects(pool.evaluate(task, share), tooLong)
    await assert.rejects(pool.evaluate(task, share), tooLong)
  })

  test('an organisation whose task took too long ends the thread of the others no second time', async () => {
    const [mine, foreign] = ['acme', 'globex'].map((tenantId) => {
      return { share: { ...share, tenantId }, task: { ...taskOf('threshold', [seriesOf(600, 1)]), tenantId } }
    })
    assert(mine !== undefined && foreign !== undefined)
    let isLate = false
    const untilEnded = (signal?: AbortSignal) =>
      new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
    const clock = {
      sleep: async (_: number, signal?: AbortSignal) => (isLate ? undefined : untilEnded(signal)),
    }
    const stuckForAcme = `
      if (request.task?.tenantId === 'acme') for (;;);
      if (request.task) {
        globalThis.tasks = (globalThis.tasks ?? 0) + 1
        parentPort.postMessage({ result: [globalThis.tasks] })
      }`
    const pool = poolOf({ entry: threadOf(stuckForAcme), clock })
    const stop = async () => {
      isLate = true
      await assert.rejects(pool.evaluate(mine.task, mine.share), tookTooLong)
      isLate = false
    }
    const evaluated = () => pool.evaluate(foreign.task, foreign.share)
    assert.deepEqual(await evaluated(), [1])
    await stop()
    assert.deepEqual(await evaluated(), [1], 'its thread was ended once')
    await stop()
    await stop()
    assert.deepEqual(await evaluated(), [2])
  })

  test('stops running tasks when it is closed, and starts no others', async () => {
    const pool = poolOf({ entry: threadOf('for (;;);') })
    const task = taskOf('threshold', [seriesOf(600, 1)])
    const failing = [assert.rejects(pool.evaluate(task, share), EvaluationError)]
    failing.push(assert.rejects(pool.evaluate(task, share), AppError))
    await new Promise((resolve) => setImmediate(resolve))
    await pool.close()
    await Promise.all(failing)
  })
})

test('a course of one organisation is never continued for another, whatever its name', () => {
  const store = new EvaluationStore()
  const series = seriesOf(1000, 1)
  const part = (from: number, to: number): Series => ({
    ...series,
    startNs: series.startNs + BigInt(from * series.stepMinutes) * nsPerMinute,
    values: series.values.slice(from, to),
    unknown: series.unknown.slice(from, to),
    volumes: series.volumes?.slice(from, to) ?? null,
  })
  const settledUntilNs = part(1000, 1000).startNs
  const begun = { ...taskOf('robust_band', [part(0, 600)]), settledUntilNs }
  const next = { ...taskOf('robust_band', [part(600, 1000)]), settledUntilNs, isStart: false }
  store.evaluate(begun)
  assert.equal(store.evaluate({ ...next, tenantId: 'globex' }), null)
  assert.notEqual(store.evaluate(next), null)
})

describe('a task', () => {
  const pointsOf = ({ members }: EvaluationTask) =>
    members.reduce((sum, { piece }) => sum + piece.values.length, 0)

  test('keeps series together that its method compares, and is divided between others', () => {
    const group = Array.from({ length: 10 }, (_, i) => seriesOf(600, i))
    assert.deepEqual(
      tasksOf(taskOf('peer_outlier', group)).map(({ members }) => members.length),
      [10, 10, 10],
    )
    const tasks = tasksOf(taskOf('auto', group))
    assert.deepEqual(
      tasks.map(({ members }) => members.length),
      [3, 3, 3, 1],
    )
    assert.deepEqual(
      tasks.flatMap(({ members }) => members.map(({ piece }) => piece)),
      group,
    )
  })

  test('has a bounded number of points, also of one long series', () => {
    const tasks = [taskOf('auto', [seriesOf(20_160, 1)]), taskOf('robust_band', [seriesOf(8192, 1)])]
    for (const part of tasks.flatMap(tasksOf)) assert.ok(pointsOf(part) <= 2100, `${pointsOf(part)} points`)
  })

  test('is bounded by what its method costs, also where pieces are short', () => {
    const group = Array.from({ length: 10 }, (_, i) => seriesOf(600, i))
    const membersOf = (task: EvaluationTask) => tasksOf(task).map(({ members }) => members.length)
    const short = group.map((series) => ({ ...series, values: series.values.slice(0, 61) }))
    assert.deepEqual(membersOf(taskOf('threshold', short)), [10])
    assert.deepEqual(membersOf(taskOf('rcf', short)), Array(10).fill(1), 'each builds a forest')
    const params = methodParams.spectral_residual.parse({ window_points: 4096 })
    const choice = { method_key: 'spectral_residual' as const, params }
    const wide = tasksOf({ ...taskOf('spectral_residual', group.slice(0, 1)), choice })
    assert.ok(wide.length > 50)
    for (const part of wide.slice(0, -1)) assert.ok(pointsOf(part) <= 10, `${pointsOf(part)} points`)
  })

  test('has the same result when it is divided', () => {
    const peers = [1, 2, 3].map((seed) => seriesOf(800, seed))
    const keys = ['auto', 'robust_band', 'threshold', 'peer_outlier', 'shape_discord', 'sub_pca'] as const
    for (const key of keys) {
      const group = key === 'peer_outlier' ? peers : [seriesOf(3500, 1)]
      const task = { ...taskOf(key, group), reportBuckets: 600 }
      const store = new EvaluationStore()
      const parts = tasksOf(task)
      assert.ok(parts.length > 1)
      const results = parts.map((part) => structuredClone(store.evaluate(part)))
      assert.deepEqual(
        results.flatMap((result) => result ?? []),
        new EvaluationStore().evaluate(task),
        key,
      )
    }
  })
})
