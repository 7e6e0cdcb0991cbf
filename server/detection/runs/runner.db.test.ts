// Runs on real telemetry: from an episode to its anomaly and its end, and with erased time.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, beforeEach, test } from 'node:test'
import type { Anomaly } from '../../../contract/detection/detectors.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { AppError } from '../../core/app-error.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import { EngineError, type TelemetryEngine, type TenantPlace } from '../../telemetry/engine.ts'
import { hiddenMeanwhile, TelemetryGate } from '../../telemetry/gate.ts'
import { longReads } from '../../telemetry/sessions/long-reads.ts'
import { raw } from '../../telemetry/sql.ts'
import { TenantReader } from '../../telemetry/tenant-reader.ts'
import { Leases } from '../../worker/lease.ts'
import { countAnomaliesIn } from '../anomalies/anomaly-erasure.ts'
import {
  acme,
  atNs,
  createErrorsDetector,
  eraseAnomalies,
  globex,
  insertSpans,
  noonMs,
  openControlAndEngine,
  removeDetectors,
  type StoresFixture,
  traffic,
} from '../detection-fixture.ts'
import { readDraft, type StoredDetector } from '../detectors/detector.ts'
import { DetectionStore } from '../detectors/store.ts'
import { createSystemDetectors } from '../detectors/system-detectors.ts'
import { readMetricNames } from '../metric-names.ts'
import { backtest } from './backtest.ts'
import { type Evaluations, EvaluationsHere } from './evaluation-pool.ts'
import type { EvaluationTask } from './evaluation-store.ts'
import { DetectorRunner } from './runner.ts'
import { createDetectionWorker, runDueDetectors } from './worker.ts'

const minuteMs = 60_000
/** Milliseconds after a full minute when the minute before is complete. */
const justComplete = 30_000

let fixture: StoresFixture
let engine: TelemetryEngine
let gate: TelemetryGate
let clock: ManualClock
let store: DetectionStore
let runner: DetectorRunner
const warnings: unknown[] = []
const logger = {
  warn: (facts: unknown) => warnings.push(facts),
  error: (facts: unknown) => warnings.push(facts),
}

before(async () => {
  fixture = await openControlAndEngine()
  engine = fixture.engine
})
after(async () => {
  await fixture.close()
})
beforeEach(async () => {
  await engine.command(raw('TRUNCATE TABLE otel_traces'))
  await removeDetectors(fixture)
  gate = new TelemetryGate()
  clock = new ManualClock(noonMs + justComplete)
  store = new DetectionStore(fixture.control, clock, gate, readActiveHolds)
  runner = new DetectorRunner({ store, engine, gate, clock, logger })
  warnings.length = 0
})

const createDetector = (place = acme, more: Record<string, unknown> = {}) =>
  createErrorsDetector(store, place, more)

async function run(detector: StoredDetector, place: TenantPlace = acme): Promise<StoredDetector> {
  await runner.run(place, detector.id)
  const after = await store.findDetector(place.tenantId, detector.id)
  assert(after !== null)
  return after
}

const anomalies = (place: TenantPlace = acme): Promise<Anomaly[]> =>
  store.listAnomalies(place.tenantId, { limit: 50, filter: {}, before: null })

const minute = (instant: string | null) =>
  instant === null ? null : (Date.parse(instant) - noonMs) / minuteMs

test('an episode makes its detector anomalous and creates an anomaly with its band and a reason', async () => {
  await insertSpans(engine, acme, [
    ...traffic(-120, -4, 0),
    ...traffic(-4, 0, 6),
    ...traffic(-120, 0, 0, 'search'),
  ])
  await insertSpans(engine, globex, traffic(-120, 0, 0))
  const [mine, foreign] = [await createDetector(), await createDetector(globex)]
  const after = await run(mine)
  assert.equal(after.lastStatus, 'anomalous')
  assert.equal(after.lastRunAtMs, clock.nowMs())
  assert.match(after.lastNote ?? '', /1 anomalous, 1 ok/)
  const [anomaly, ...rest] = await anomalies()
  assert.deepEqual(rest, [])
  assert(anomaly !== undefined)
  assert.deepEqual(anomaly.group, { service: 'checkout' })
  assert.deepEqual(anomaly.signals, ['traces'])
  assert.equal(minute(anomaly.started_at), -4)
  assert.equal(anomaly.ended_at, null)
  assert.equal(anomaly.value, 0.6)
  assert.equal(anomaly.expected, 0)
  assert.equal(anomaly.lower, 0)
  assert.equal(anomaly.upper, 0.1)
  assert(Math.abs(anomaly.score - 6) < 1e-9)
  assert.equal(
    anomaly.reason,
    'error ratio of checkout 0.600 (6 of 10 requests failed), expected 0 to 0.100; 4 minutes high since 11:56 UTC',
  )
  assert.equal((await run(foreign, globex)).lastStatus, 'ok')
  assert.deepEqual(await anomalies(globex), [])
})

test('several group_by keys divide series, and the anomaly has each of them', async () => {
  await insertSpans(engine, acme, [
    ...traffic(-120, -4, 0),
    ...traffic(-4, 0, 6),
    ...traffic(-120, 0, 0, 'search'),
  ])
  const after = await run(await createDetector(acme, { scope: { group_by: ['service', 'no.such'] } }))
  assert.match(after.lastNote ?? '', /1 anomalous, 1 ok/)
  const [anomaly] = await anomalies()
  assert.deepEqual(anomaly?.group, { service: 'checkout', 'no.such': '' })
  assert.match(anomaly.reason, /of checkout no\.such= /)
})

test('another run finds the same anomaly, and recovery closes it', async () => {
  const detector = await createDetector()
  await insertSpans(engine, acme, [...traffic(-120, -4, 0), ...traffic(-4, 3, 6)])
  await run(detector)
  const [opened] = await anomalies()
  assert.equal((await run(detector)).lastStatus, 'anomalous')
  assert.equal((await anomalies()).length, 1)

  await clock.advance(3 * minuteMs)
  await run(detector)
  const [longer] = await anomalies()
  assert.equal(longer?.id, opened?.id)
  assert.equal(minute(longer?.seen_until ?? null), 3)

  await insertSpans(engine, acme, traffic(3, 10, 0))
  await clock.advance(2 * minuteMs)
  assert.equal((await run(detector)).lastStatus, 'recovering')
  await clock.advance(2 * minuteMs)
  assert.equal((await run(detector)).lastStatus, 'ok')
  const [closed, ...rest] = await anomalies()
  assert.deepEqual(rest, [])
  assert.equal(closed?.id, opened?.id)
  assert.equal(minute(closed?.started_at ?? null), -4)
  assert.equal(minute(closed?.ended_at ?? null), 3)
})

test('a bucket that may be incomplete is not judged', async () => {
  const detector = await createDetector(acme, {
    metric_key: 'spans.rate',
    params: { warmup_points: 30, violate_n: 1 },
  })
  await insertSpans(engine, acme, traffic(-120, 0, 0))
  await clock.advance(59_999)
  const after = await run(detector)
  assert.equal(after.lastStatus, 'ok')
  await clock.advance(1)
  assert.equal((await run(detector)).lastStatus, 'anomalous', 'once it is complete, missing traffic alarms')
})

test('erased time raises no alarm, and no anomaly includes it', async () => {
  const detector = await createDetector(acme, { metric_key: 'spans.rate', params: { warmup_points: 30 } })
  await insertSpans(engine, acme, [...traffic(-120, -40, 0), ...traffic(-20, 0, 0)])
  const range = {
    startNs: BigInt(noonMs - 40 * minuteMs) * 1_000_000n,
    endNs: BigInt(noonMs - 20 * minuteMs) * 1_000_000n,
  }
  gate.markErased('acme', { id: 'del_1', signals: ['traces'], range })
  assert.equal((await run(detector)).lastStatus, 'ok')
  assert.deepEqual(await anomalies(), [])
  gate.unmarkErased('acme', 'del_1')
  await fixture.control.updateTable('detectors').set({ last_run_at_ms: null }).execute()
  await run(detector)
  assert.equal((await anomalies()).length, 1, 'without the mark the same gap is an episode')
})

test('an anomaly that an erasure removed is found again only outside the erased range', async () => {
  const detector = await createDetector()
  await insertSpans(engine, acme, [...traffic(-120, -10, 0), ...traffic(-10, 0, 6)])
  await run(detector)
  const [before] = await anomalies()
  assert.equal(minute(before?.started_at ?? null), -10)
  const range = {
    startNs: BigInt(noonMs - 6 * minuteMs - 30_000) * 1_000_000n,
    endNs: BigInt(noonMs - 4 * minuteMs) * 1_000_000n,
  }
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range })
  await eraseAnomalies(fixture, 'acme', { signals: ['traces'], range })
  assert.deepEqual(await anomalies(), [])
  await run(detector)
  assert.deepEqual(
    (await anomalies()).map(({ started_at, seen_until }) => [minute(started_at), minute(seen_until)]),
    [
      [-4, 0],
      [-10, -7],
    ],
  )
})

test('after an erasure redacted an anomaly, the next run computes its band again without the erased time', async () => {
  const detector = await createDetector()
  await insertSpans(engine, acme, [...traffic(-120, -10, 0), ...traffic(-10, 0, 6)])
  await run(detector)
  const [before] = await anomalies()
  assert.equal(before?.expected, 0)
  const range = {
    startNs: BigInt(noonMs - 80 * minuteMs + 1) * 1_000_000n,
    endNs: BigInt(noonMs - 60 * minuteMs) * 1_000_000n,
  }
  const left = () => countAnomaliesIn(fixture.control, 'acme', { signals: ['traces'], range })
  assert.deepEqual(await left(), { inRange: 0, learntFrom: 1 })
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range })
  assert.equal((await anomalies())[0]?.expected, null, 'hidden before it is erased')
  await eraseAnomalies(fixture, 'acme', { signals: ['traces'], range })
  assert.deepEqual(await left(), { inRange: 0, learntFrom: 0 })
  await run(detector)
  gate.markErased('acme', { id: 'del_1', signals: ['traces'], range })
  gate.unhide('acme', 'del_1')
  const [after] = await anomalies()
  assert.equal(after?.id, before?.id)
  assert.equal(after?.expected, 0)
  assert.deepEqual(await left(), { inRange: 0, learntFrom: 0 }, 'it never read the erased time')
  await run(detector)
  assert.deepEqual(await left(), { inRange: 0, learntFrom: 0 })
  const wider = { ...range, startNs: range.startNs - BigInt(2 * minuteMs) * 1_000_000n }
  assert.equal(
    (await countAnomaliesIn(fixture.control, 'acme', { signals: ['traces'], range: wider })).learntFrom,
    1,
  )
})

test('an anomaly over a fixed limit learns nothing from the past', async () => {
  const detector = await createDetector(acme, { method_key: 'threshold', params: { upper: 0.1 } })
  await insertSpans(engine, acme, [...traffic(-120, -10, 0), ...traffic(-10, 0, 6)])
  await run(detector)
  assert.equal((await anomalies()).length, 1)
  const range = { startNs: null, endNs: BigInt(noonMs - 10 * minuteMs) * 1_000_000n }
  assert.deepEqual(await countAnomaliesIn(fixture.control, 'acme', { signals: ['traces'], range }), {
    inRange: 0,
    learntFrom: 0,
  })
})

test('no telemetry gives no_data, little gives learning, and too sparse telemetry gives insufficient_data', async () => {
  const detector = await createDetector()
  assert.equal((await run(detector)).lastStatus, 'no_data')
  await insertSpans(engine, globex, traffic(-120, 0, 0))
  assert.equal(
    (await run(detector)).lastStatus,
    'no_data',
    'telemetry of another organisation does not count',
  )
  await insertSpans(engine, acme, traffic(-10, 0, 0))
  const learning = await run(detector)
  assert.equal(learning.lastStatus, 'learning')
  assert.match(learning.lastNote ?? '', /20 more buckets/)
  await engine.command(raw('TRUNCATE TABLE otel_traces'))
  await insertSpans(
    engine,
    acme,
    [-14_000, -1].flatMap((from) => traffic(from, from + 1, 0)),
  )
  assert.equal((await run(detector)).lastStatus, 'insufficient_data')
})

test('more groups than are evaluated make the detector degraded, with a note', async () => {
  const detector = await createDetector(acme, {
    window_minutes: 5,
    params: { warmup_points: 16, window_points: 16 },
  })
  const names = Array.from({ length: 53 }, (_, i) => `service-${i}`)
  await insertSpans(
    engine,
    acme,
    names.flatMap((name) => traffic(-20, 0, 0, name)),
  )
  const after = await run(detector)
  assert.equal(after.lastStatus, 'degraded')
  assert.match(after.lastNote ?? '', /Only 50 of 53 series/)
  assert.doesNotMatch(after.lastNote ?? '', /service-/)
})

test('a series with labels of more than 4 kB is left out with a note, and one with less is judged and kept by its hash', async () => {
  const [long, tooLong] = ['ü'.repeat(2000), 'ü'.repeat(2048)]
  const detector = await createDetector()
  const failing = (service: string) => [...traffic(-120, -4, 0, service), ...traffic(-4, 3, 6, service)]
  await insertSpans(engine, acme, [...failing(long), ...failing(tooLong), ...failing('checkout')])
  const here = new EvaluationsHere()
  const keys = new Set<string>()
  const evaluations: Evaluations = {
    evaluate: async (task, share) => {
      for (const { groupKey } of task.members) keys.add(groupKey)
      return here.evaluate(task, share)
    },
    forget: (tenantId) => here.forget(tenantId),
    end: (course) => here.end(course),
  }
  runner = new DetectorRunner({ store, engine, gate, clock, logger, evaluations })
  await run(detector)
  const opened = await anomalies()
  assert.deepEqual(opened.map(({ group }) => group.service).sort(), ['checkout', long])
  const reason = opened.find(({ group }) => group.service === long)?.reason ?? ''
  assert.match(reason, /^error ratio of ü{200}… \(1800 more characters\) 0\.600 /)
  assert.deepEqual([...keys].map(({ length }) => length).sort(), ['{"service":"checkout"}'.length, 43])

  await clock.advance(3 * minuteMs)
  const { lastNote } = await run(detector)
  const note =
    'Only 2 of 3 series were evaluated. The labels of 1 series are longer than 4096 bytes; group by others.'
  assert.equal(lastNote, `${note} Series: 2 anomalous.`)
  const continued = await anomalies()
  assert.deepEqual(
    continued.map(({ id, seen_until }) => [id, minute(seen_until)]),
    opened.map(({ id }) => [id, 3]),
  )
  assert.equal(here.size, 2)

  const range = { startNs: atNs(-4), endNs: atNs(3) }
  const reader = new TenantReader(engine, acme, gate)
  const preview = await backtest(reader, detector.definition, range, { clock })
  assert.deepEqual(preview.series.map(({ group }) => group.service).sort(), ['checkout', long])
  assert.equal(preview.last_note?.startsWith(note), true)
  assert.deepEqual(
    preview.warnings.map(({ code }) => code),
    ['groups_cut'],
  )
})

const brokenEngine: TelemetryEngine = {
  select: () => Promise.reject(new EngineError('Code: 47. SELECT secret', { code: 47 })),
  bytes: () => Promise.reject(new EngineError('Code: 47. SELECT secret', { code: 47 })),
  command: () => Promise.reject(new Error('not here')),
  insert: () => Promise.reject(new Error('not here')),
  close: () => Promise.resolve(),
}

test("an engine failure gives the status error without the engine's message, and the next run catches up", async () => {
  const detector = await createDetector(acme, { window_minutes: 240 })
  await insertSpans(engine, acme, [...traffic(-120, 5, 0), ...traffic(5, 10, 6), ...traffic(10, 151, 0)])
  assert.equal((await run(detector)).lastStatus, 'ok')
  await clock.advance(150 * minuteMs)
  await new DetectorRunner({ store, engine: brokenEngine, gate, clock, logger }).run(acme, detector.id)
  const failed = await store.findDetector('acme', detector.id)
  assert.equal(failed?.lastStatus, 'error')
  assert.equal(failed?.lastNote, 'Its telemetry could not be read; the next run tries again.')
  assert.equal(warnings.length, 1)
  assert.deepEqual(await store.dueDetectors(clock.nowMs(), 9), [], 'it is not tried again at once')
  await clock.advance(minuteMs)
  assert.equal((await run(detector)).lastStatus, 'ok')
  assert.deepEqual(
    (await anomalies()).map(({ started_at }) => minute(started_at)),
    [5],
    'an episode during the failure is reported late',
  )
})

const refusingEngine = (refusal: Error): TelemetryEngine => ({
  ...brokenEngine,
  select: () => Promise.reject(refusal),
  bytes: () => Promise.reject(refusal),
})

test('a read that ends or finds no place because of others, or of erasures, leaves the detector as it was, and due', async () => {
  const detector = await createDetector()
  await insertSpans(engine, acme, traffic(-120, 1, 0))
  const before = await run(detector)
  assert.equal(before.lastStatus, 'ok')
  await clock.advance(minuteMs)
  for (const refusal of [longReads.refusal(), new AppError('too_many_requests'), hiddenMeanwhile()]) {
    const crowded = new DetectorRunner({
      store,
      engine: refusingEngine(refusal),
      gate,
      clock,
      logger,
    })
    await assert.rejects(crowded.run(acme, detector.id), refusal)
    assert.deepEqual([...(await crowded.runBatch(acme, [detector.id]))], [[detector.id, refusal]])
    assert.deepEqual(await store.findDetector('acme', detector.id), before)
  }
  assert.deepEqual(
    (await store.dueDetectors(clock.nowMs(), 9)).map(({ id }) => id),
    [detector.id],
  )
})

test('a run reads, judges and records at the turns of its organisation on the event loop', async () => {
  const [detector, other] = [await createDetector(), await createDetector(globex)]
  await insertSpans(engine, acme, traffic(-120, 1, 0))
  const held = Promise.withResolvers<void>()
  const asked: string[] = []
  const turns = {
    turnOf: async (tenantId: string) => {
      asked.push(tenantId)
      if (tenantId === acme.tenantId) await held.promise
    },
  }
  const taking = new DetectorRunner({ store, engine, gate, clock, logger, turns })
  const ran = taking.run(acme, detector.id)
  await taking.run(globex, other.id)
  assert.notEqual((await store.findDetector('globex', other.id))?.lastRunAtMs, null)
  assert.equal((await store.findDetector('acme', detector.id))?.lastRunAtMs, null, 'its turn has not come')
  held.resolve()
  await ran
  assert.notEqual((await store.findDetector('acme', detector.id))?.lastRunAtMs, null)
  assert.deepEqual([...new Set(asked)].sort(), ['acme', 'globex'])
})

test('a read at its own limits gives the status error, also of a run on request', async () => {
  const detector = await createDetector()
  const refusal = new AppError('query_too_expensive', { cause: new EngineError('late', { code: 159 }) })
  const late = new DetectorRunner({ store, engine: refusingEngine(refusal), gate, clock, logger })
  await late.run(acme, detector.id)
  const after = await store.findDetector('acme', detector.id)
  assert.deepEqual([after?.lastStatus, after?.lastNote], ['error', refusal.message])
})

test('a detector is run by one caller at a time, and only for its own organisation', async () => {
  const detector = await createDetector()
  const first = runner.run(acme, detector.id)
  await assert.rejects(
    runner.run(acme, detector.id),
    (error) => error instanceof AppError && error.code === 'detector_running',
  )
  const notFound = (error: unknown) => error instanceof AppError && error.code === 'not_found'
  await assert.rejects(runner.run(globex, detector.id), notFound, 'also while it runs')
  await first
  const foreign = assert.rejects(runner.run(globex, detector.id), notFound)
  await runner.run(acme, detector.id)
  await foreign
})

test('a round runs every due detector once, also after a long pause, and a failure does not delay others', async () => {
  await insertSpans(engine, acme, traffic(-120, 0, 0))
  const mine = await createDetector()
  const foreign = await createDetector(globex)
  const invalid = await createDetector()
  await fixture.control
    .updateTable('detectors')
    .set({ params: '{"k":-1}' })
    .where('id', '=', invalid.id)
    .execute()
  await createDetector(acme, { enabled: false })
  const deps = { store, runner, clock, logger }
  const round = () => runDueDetectors(deps, new AbortController().signal)
  assert.equal(await round(), 3)
  const statuses = await Promise.all(
    [mine, foreign, invalid].map(
      async ({ tenantId, id }) => (await store.findDetector(tenantId, id))?.lastStatus,
    ),
  )
  assert.deepEqual(statuses, ['ok', 'no_data', 'error'])
  assert.equal(await round(), 0)
  await clock.advance(3 * 3_600_000)
  assert.equal(await round(), 3, 'one run covers three hours of missed runs')
  assert.equal(await round(), 0)
})

/** Creates as many detectors that are due. */
async function createMany({ tenantId }: TenantPlace, count: number): Promise<void> {
  const read = readDraft({
    name: 'x',
    metric_key: 'spans.rate',
    method_key: 'threshold',
    params: { upper: 1 },
  })
  assert('value' in read)
  const first = await store.createDetector(tenantId, read.value, tokenNamed('me'))
  const like = await fixture.control
    .selectFrom('detectors')
    .selectAll()
    .where('id', '=', first.id)
    .executeTakeFirstOrThrow()
  const rows = Array.from({ length: count - 1 }, (_, i) => ({
    ...like,
    id: `det_${tenantId}_${String(i).padStart(4, '0')}`,
  }))
  for (let i = 0; i < rows.length; i += 100)
    await fixture.control
      .insertInto('detectors')
      .values(rows.slice(i, i + 100))
      .execute()
}

/** Stands for the record of runs, after which the detectors are due in a minute. */
async function recordOnly(ids: readonly string[]): Promise<void> {
  await fixture.control
    .updateTable('detectors')
    .set({ next_run_at_ms: clock.nowMs() + minuteMs })
    .where('id', 'in', ids)
    .execute()
}

/** Lets a round go on until it has come this far. Its sleeps end at once. */
async function until(hasCome: () => boolean): Promise<void> {
  for (let tries = 0; !hasCome(); tries++) {
    assert.ok(tries < 1_000_000, 'the round did not come this far')
    if (clock.waiting > 0) await clock.advance(1_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

test("a thousand due detectors of one organisation do not delay another's, also one that becomes due meanwhile", async () => {
  await createMany(acme, 1001)
  await clock.advance(60_000)
  await createDetector(globex)
  const order: [tenantId: string, count: number][] = []
  const counting = {
    runBatch: async ({ tenantId }: TenantPlace, ids: readonly string[]) => {
      const turn = order.push([tenantId, ids.length])
      // Stands for the time that the engine and the methods take.
      await clock.advance(3_000)
      await recordOnly(ids)
      if (turn === 3) await createDetector(globex)
      return new Map()
    },
  }
  await runDueDetectors({ store, runner: counting, clock, logger }, new AbortController().signal)
  const turnsOfGlobex = order.flatMap(([tenantId], i) => (tenantId === 'globex' ? [i] : []))
  const runsBefore = turnsOfGlobex.map((turn) =>
    order.slice(0, turn).reduce((sum, [tenantId, count]) => sum + (tenantId === 'acme' ? count : 0), 0),
  )
  assert.ok((runsBefore[0] ?? 1000) <= 100, String(runsBefore))
  assert.ok((runsBefore[1] ?? 1000) <= 400, String(runsBefore))
  const ran = (tenant: string) =>
    order.filter(([tenantId]) => tenantId === tenant).reduce((sum, [, count]) => sum + count, 0)
  assert.deepEqual([ran('acme'), ran('globex')], [1001, 2])
})

test("during a long turn of one organisation another's detectors run whenever they are due", async () => {
  await createDetector()
  const order: string[] = []
  const isOver = Promise.withResolvers<void>()
  const longForAcme = {
    runBatch: async (place: TenantPlace, ids: readonly string[]) => {
      order.push(place.tenantId)
      if (place.tenantId === 'acme') await isOver.promise
      return runner.runBatch(place, ids)
    },
  }
  const deps = { store, runner: longForAcme, clock, logger }
  const round = runDueDetectors(deps, new AbortController().signal)
  await clock.advance(1000)
  await createDetector(globex, { schedule_minutes: 1 })
  await until(() => order.length >= 3)
  assert.deepEqual(order.slice(0, 3), ['acme', 'globex', 'globex'])
  isOver.resolve()
  assert.ok((await round) >= 3, 'runs')
})

test("however long a turn lasts and however much runs meanwhile, another's detectors run when they are due", async () => {
  await createDetector()
  const isOver = Promise.withResolvers<void>()
  const ran: string[] = []
  const longForAcme = {
    runBatch: async ({ tenantId }: TenantPlace, ids: readonly string[]) => {
      if (tenantId === 'acme') await isOver.promise
      else ran.push(...ids)
      await recordOnly(ids)
      return new Map()
    },
  }
  const limits: number[] = []
  const listing: Pick<DetectionStore, 'dueDetectors'> = {
    dueDetectors: (nowMs, limit, ofOne) => {
      limits.push(limit)
      return store.dueDetectors(nowMs, limit, ofOne)
    },
  }
  const deps = { store: listing, runner: longForAcme, clock, logger }
  const round = runDueDetectors(deps, new AbortController().signal)
  await createMany(globex, 900)
  await until(() => ran.length > 4_000)
  const late = await createDetector(globex)
  await until(() => ran.includes(late.id))
  const least = Math.min(...limits.slice(limits.length >> 1))
  assert.ok(least <= 1_100, `lists of ${least}: runs are not forgotten`)
  isOver.resolve()
  assert.ok((await round) > 4_000)
})

test("a run that fails is tried again during another's long turn, and does not continue a round alone", async () => {
  await createDetector()
  const isOver = Promise.withResolvers<void>()
  let [failed, turns] = [0, 0]
  const failing = {
    runBatch: async ({ tenantId }: TenantPlace, ids: readonly string[]) => {
      turns++
      if (tenantId === 'acme') await isOver.promise
      else failed++
      return new Map(ids.map((id) => [id, new AppError('erasing')]))
    },
  }
  const round = runDueDetectors({ store, runner: failing, clock, logger }, new AbortController().signal)
  await createDetector(globex)
  const startMs = clock.nowMs()
  await until(() => failed === 4)
  assert.ok(clock.nowMs() - startMs >= 3 * 5_000, 'after a pause')
  isOver.resolve()
  assert.equal(await round, turns)
})

test('the stop of the service ends a round, and no turn begins after it', async () => {
  await createDetector()
  const stop = new AbortController()
  let turns = 0
  const untilStopped = {
    runBatch: async (_: TenantPlace, __: readonly string[], signal?: AbortSignal) => {
      turns++
      await once(signal ?? assert.fail(), 'abort')
      return new Map()
    },
  }
  const round = runDueDetectors({ store, runner: untilStopped, clock, logger }, stop.signal)
  await until(() => turns === 1)
  await createDetector(globex)
  stop.abort()
  assert.equal(await round, 1)
  assert.equal(turns, 1)
})

test('a round logs a failure, and does not log a detector that is deleted or running already', async () => {
  const [failing, busy, healthy] = [await createDetector(), await createDetector(), await createDetector()]
  const failingRunner = {
    runBatch: async (place: TenantPlace, ids: readonly string[]) => {
      const failures = await runner.runBatch(
        place,
        ids.filter((id) => id === healthy.id),
      )
      failures.set(failing.id, new Error('the control plane is not available'))
      return failures.set(busy.id, new AppError('detector_running'))
    },
  }
  await runDueDetectors({ store, runner: failingRunner, clock, logger }, new AbortController().signal)
  assert.equal(warnings.length, 1)
  assert.match(JSON.stringify(warnings), new RegExp(failing.id))
  assert.equal((await store.findDetector('acme', healthy.id))?.lastStatus, 'no_data')
  assert.equal(
    (await store.dueDetectors(clock.nowMs(), 9)).length,
    2,
    'both are tried again in the next round',
  )
})

test('detectors that run in a batch give the same results as separate runs', async () => {
  await insertSpans(engine, acme, [
    ...traffic(-120, 0, 0),
    ...traffic(-120, -8, 0, 'cart'),
    ...traffic(-8, 0, 9, 'cart'),
  ])
  const scopes = ['checkout', 'cart', 'nobody'].map((service) => ({ scope: { service } }))
  const due = [await createDetector()]
  for (const more of [...scopes, ...scopes]) due.push(await createDetector(acme, more))
  const [broken] = due
  assert(broken !== undefined)
  const gone = 'det_gone'
  const failures = await runner.runBatch(acme, [...due.map(({ id }) => id), gone])
  assert.deepEqual([...failures.keys()], [gone])
  const found = await Promise.all(due.map(({ id }) => store.findDetector('acme', id)))
  assert.deepEqual(
    found.map((detector) => detector?.lastStatus),
    ['anomalous', 'ok', 'anomalous', 'no_data', 'ok', 'anomalous', 'no_data'],
  )
  const byDetector = Map.groupBy(await anomalies(), ({ detector_id }) => detector_id)
  assert.deepEqual(
    due.map(({ id }) => byDetector.get(id)?.map(({ started_at }) => minute(started_at))),
    [[-8], undefined, [-8], undefined, undefined, [-8], undefined],
  )
})

test('four detectors of an organisation wait for a thread at the same time, and no more', async () => {
  await insertSpans(engine, acme, traffic(-120, 10, 0))
  const due: string[] = []
  for (let n = 0; n < 6; n++) due.push((await createDetector(acme, { scope: { service: 'checkout' } })).id)
  const here = new EvaluationsHere()
  const waiting = new Set<EvaluationTask>()
  const most: number[] = []
  const evaluations: Evaluations = {
    evaluate: async (task, share) => {
      waiting.add(task)
      most.push(waiting.size)
      // The others begin within a few turns of the loop, because their series are read already.
      for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
      waiting.delete(task)
      return here.evaluate(task, share)
    },
    forget: (tenantId) => here.forget(tenantId),
    end: (course) => here.end(course),
  }
  const slow = new DetectorRunner({ store, engine, gate, clock, logger, evaluations })
  assert.equal((await slow.runBatch(acme, due)).size, 0)
  await clock.advance(5 * minuteMs)
  most.length = 0
  assert.equal((await slow.runBatch(acme, due)).size, 0)
  assert.equal(Math.max(...most), 4)
})

test('where reading a batch fails, each detector is read separately', async () => {
  await insertSpans(engine, acme, [...traffic(-120, 10, 0), ...traffic(-120, 10, 0, 'cart')])
  const due = [
    await createDetector(acme, { scope: { service: 'checkout' } }),
    await createDetector(acme, { scope: { service: 'cart' } }),
  ]
  const select: TelemetryEngine['select'] = (statement, limits) =>
    statement.strings.length > 0 && JSON.stringify(statement).includes(') IN (')
      ? Promise.reject(new EngineError('too much at once', {}))
      : engine.select(statement, limits)
  const narrow: TelemetryEngine = Object.assign(Object.create(engine), { select })
  const batchRunner = new DetectorRunner({ store, engine: narrow, gate, clock, logger })
  const runBatch = () =>
    batchRunner.runBatch(
      acme,
      due.map(({ id }) => id),
    )
  assert.equal((await runBatch()).size, 0)
  assert.equal(warnings.length, 0, 'what begins is read separately anyway')
  await clock.advance(5 * minuteMs)
  assert.equal((await runBatch()).size, 0)
  assert.equal(warnings.length, 1)
  const found = await Promise.all(due.map(({ id }) => store.findDetector('acme', id)))
  assert.deepEqual(
    found.map((detector) => detector?.lastStatus),
    ['ok', 'ok'],
  )
})

test('the worker runs due detectors as time passes', async () => {
  await insertSpans(engine, acme, traffic(-120, 0, 0))
  const detector = await createDetector()
  const worker = createDetectionWorker({
    store,
    runner,
    clock,
    logger,
    leases: new Leases(fixture.control, clock, 'test'),
  })
  worker.start()
  try {
    const status = async () => (await store.findDetector('acme', detector.id))?.lastStatus
    while ((await status()) === null) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(await status(), 'ok')
  } finally {
    await worker.stop()
  }
})

test('the system detectors of an organisation with little traffic do not alarm, and notice when its service fails', async () => {
  await fixture.control.transaction().execute((trx) => createSystemDetectors(trx, 'acme', clock.nowMs()))
  const busy = (from: number, to: number, errors: number) =>
    traffic(from, to, errors).flatMap((span) => [span, { ...span, atNs: span.atNs + 1_000_000n }])
  const twoDays = 2 * 1440
  await insertSpans(engine, acme, busy(-twoDays, 0, 0))
  const detectors = await store.listDetectors('acme', { limit: 50, beforeId: null })
  const statuses = async () => {
    for (const detector of detectors) await run(detector)
    const after = await store.listDetectors('acme', { limit: 50, beforeId: null })
    return Object.fromEntries(after.map(({ definition, lastStatus }) => [definition.metric_key, lastStatus]))
  }
  const calm = {
    'spans.error_ratio': 'ok',
    'spans.latency_p95': 'ok',
    'spans.rate': 'learning',
    'logs.error_count': 'no_data',
  }
  assert.deepEqual(await statuses(), calm)
  await insertSpans(engine, acme, busy(0, 30, 7))
  await clock.advance(30 * minuteMs)
  assert.deepEqual(await statuses(), { ...calm, 'spans.error_ratio': 'anomalous' })
  assert.equal((await anomalies()).length, 1)
})

test('the listed metrics are those of the organisation', async () => {
  const point = (place: TenantPlace, name: string) =>
    engine.command(
      raw(
        `INSERT INTO otel_metrics_gauge (Placement, TenantId, MetricName, TimeUnix, Value) VALUES (${place.placement}, '${place.tenantId}', '${name}', '2026-09-11 11:00:00', 1)`,
      ),
    )
  await point(acme, 'queue.length')
  await point(acme, 'no detector could name this')
  await point(globex, 'theirs')
  const reader = new TenantReader(engine, acme, gate)
  assert.deepEqual(await readMetricNames(reader, BigInt(noonMs - 7 * 86_400_000) * 1_000_000n), [
    'queue.length',
  ])
  assert.deepEqual(await readMetricNames(reader, BigInt(noonMs) * 1_000_000n), [])
})

test("a service that differs from its peers is found, and the reason gives the peers' range", async () => {
  const peers = ['basket', 'cart', 'search', 'users', 'mail']
  await insertSpans(engine, acme, [
    ...traffic(-120, -3, 1),
    ...traffic(-3, 0, 9),
    ...peers.flatMap((service, i) => traffic(-120, 0, 1 + (i % 2), service)),
  ])
  await insertSpans(engine, globex, traffic(-120, 0, 0))
  const definition = { method_key: 'peer_outlier', params: {} }
  const [mine, foreign] = [await createDetector(acme, definition), await createDetector(globex, definition)]
  const after = await run(mine)
  assert.equal(after.lastStatus, 'anomalous', after.lastNote ?? '')
  const [anomaly, ...rest] = await anomalies()
  assert.deepEqual(rest, [])
  assert.deepEqual(anomaly?.group, { service: 'checkout' })
  assert.equal(minute(anomaly?.started_at ?? null), -3)
  assert.equal(
    anomaly?.reason,
    'error ratio of checkout 0.900 (9 of 10 requests failed); its 5 peers 0.100 to 0.200; 3 minutes high since 11:57 UTC',
  )
  const alone = await run(foreign, globex)
  assert.equal(alone.lastStatus, 'insufficient_data')
  assert.match(alone.lastNote ?? '', /4 more series of the group/)
})
