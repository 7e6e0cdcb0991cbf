// A detector whose evaluation had to be stopped rests, so that it does not take a core at each of its runs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import {
  acme,
  createErrorsDetector,
  insertSpans,
  noonMs,
  openControlAndEngine,
  type StoresFixture,
  traffic,
} from '../detection-fixture.ts'
import { DetectionStore } from '../detectors/store.ts'
import { EvaluationPool } from './evaluation-pool.ts'
import { DetectorRunner } from './runner.ts'

let fixture: StoresFixture

before(async () => {
  fixture = await openControlAndEngine()
})
after(async () => {
  await fixture.close()
})

test('a detector with a task that took too long rests for an hour, or until it is changed', async () => {
  const { control, engine } = fixture
  const clock = new ManualClock(noonMs + 30_000)
  const gate = new TelemetryGate()
  const store = new DetectionStore(control, clock, gate, readActiveHolds)
  const stuck =
    "import { parentPort } from 'node:worker_threads';parentPort.on('message', () => { for (;;); })"
  const evaluations = new EvaluationPool({
    threads: 1,
    entry: new URL(`data:text/javascript,${encodeURIComponent(stuck)}`),
    clock: { sleep: async () => undefined },
  })
  const runner = new DetectorRunner({
    store,
    engine,
    gate,
    clock,
    logger: { warn: () => undefined },
    evaluations,
  })
  await insertSpans(engine, acme, traffic(-120, 0, 0))
  const detector = await createErrorsDetector(store, acme)
  const dueIds = async () => (await store.dueDetectors(clock.nowMs(), 9)).map(({ id }) => id)
  try {
    await runner.runBatch(acme, [detector.id])
    const stopped = await store.findDetector('acme', detector.id)
    assert(stopped !== null)
    assert.deepEqual([stopped.lastStatus, stopped.nextRunAtMs], ['error', clock.nowMs() + 3_600_000])
    assert.match(stopped.lastNote ?? '', /takes longer than is allowed/)
    await clock.advance(59 * 60_000)
    assert.deepEqual(await dueIds(), [])
    const shorter = { ...stopped.definition, window_minutes: 60 }
    await store.changeDetector({ before: stopped, after: shorter, refused: [] }, undefined, tokenNamed('me'))
    assert.deepEqual(await dueIds(), [detector.id])
  } finally {
    await evaluations.close()
  }
})
