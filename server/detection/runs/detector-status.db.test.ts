// Every status that a detector can have, each from telemetry that causes it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type DetectorStatus, detectorStatuses } from '../../../contract/detection/detectors.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import { EngineError, type TelemetryEngine } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { raw } from '../../telemetry/sql.ts'
import {
  acme,
  atNs,
  createErrorsDetector,
  errorsDraft,
  type FixtureSpan,
  insertSpans,
  noonMs,
  openControlAndEngine,
  removeDetectors,
  type StoresFixture,
  traffic,
} from '../detection-fixture.ts'
import { DetectionStore } from '../detectors/store.ts'
import { DetectorRunner } from './runner.ts'

const clock = new ManualClock(noonMs + 30_000)

let fixture: StoresFixture
let engine: TelemetryEngine

before(async () => {
  fixture = await openControlAndEngine()
  engine = fixture.engine
})
after(async () => {
  await fixture.close()
})

interface Case {
  readonly spans: readonly FixtureSpan[]
  readonly params?: Record<string, unknown>
  readonly groupBy?: string
  readonly mute?: boolean
  readonly hidden?: readonly [from: number, to: number]
  readonly breaks?: boolean
  readonly status: DetectorStatus
  readonly note: RegExp | null
}

const calm = traffic(-120, 0)
const services = Array.from({ length: 52 }, (_, i) => traffic(-120, 0, 0, `s${i}`, 10)).flat()

const cases: Record<string, Case> = {
  'enough history and nothing unusual': { spans: calm, status: 'ok', note: null },
  'failing now': { spans: [...traffic(-120, -4), ...traffic(-4, 0, 6)], status: 'anomalous', note: null },
  'calm again for a short time': {
    spans: [...traffic(-120, -6), ...traffic(-6, -2, 6), ...traffic(-2, 0)],
    status: 'recovering',
    note: null,
  },
  'calm again for a long time': {
    spans: [...traffic(-120, -12), ...traffic(-12, -8, 6), ...traffic(-8, 0)],
    status: 'ok',
    note: null,
  },
  'little history': { spans: traffic(-10, 0), status: 'learning', note: /20 more buckets/ },
  'never any telemetry': { spans: [], status: 'no_data', note: null },
  'telemetry that has ended': { spans: traffic(-120, -10), status: 'no_data', note: null },
  'too sparse for its buckets': {
    spans: [...traffic(-14_000, -13_999), ...traffic(-1, 0)],
    status: 'insufficient_data',
    note: /too sparse/,
  },
  'muted by a person': { spans: calm, mute: true, status: 'muted', note: /Muted by mut_/ },
  'failing, and muted': {
    spans: [...traffic(-120, -4), ...traffic(-4, 0, 6)],
    mute: true,
    status: 'muted',
    note: /Muted by mut_/,
  },
  'muted, without data': { spans: [], mute: true, status: 'no_data', note: null },
  'failing again, not clearly worse, within the cool-down': {
    spans: [...traffic(-120, -14), ...traffic(-14, -10, 6), ...traffic(-10, -4), ...traffic(-4, 0, 6)],
    params: { cooldown_minutes: 60 },
    status: 'muted',
    note: /not clearly worse/,
  },
  'more series than are judged': {
    spans: services,
    groupBy: 'service',
    params: { warmup_points: 16, window_points: 16, missing: 'zero' },
    status: 'degraded',
    note: /Only 50 of 52 series/,
  },
  'all of its time is erased': { spans: calm, hidden: [-1000, 1000], status: 'no_data', note: null },
  'failing in time that is erased': {
    spans: [...traffic(-120, -4), ...traffic(-4, 0, 6)],
    hidden: [-4, 0],
    status: 'ok',
    note: null,
  },
  'telemetry that cannot be read': { spans: calm, breaks: true, status: 'error', note: /could not be read/ },
}

for (const [name, given] of Object.entries(cases)) {
  test(`${given.status}: ${name}`, async () => {
    await engine.command(raw('TRUNCATE TABLE otel_traces'))
    await removeDetectors(fixture)
    if (given.spans.length > 0) await insertSpans(engine, acme, given.spans)
    const gate = new TelemetryGate()
    if (given.hidden !== undefined) {
      const range = { startNs: atNs(given.hidden[0]), endNs: atNs(given.hidden[1]) }
      gate.hide('acme', { id: 'del_1', signals: ['traces'], range })
    }
    const store = new DetectionStore(fixture.control, clock, gate, readActiveHolds)
    const { id } = await createErrorsDetector(store, acme, {
      params: { ...errorsDraft.params, ...given.params },
      scope: given.groupBy === undefined ? {} : { group_by: given.groupBy },
    })
    assert.equal((await store.findDetector('acme', id))?.lastStatus, null, 'before its first run')
    if (given.mute)
      await store.feedback.createMute('acme', { detector_id: id, range_start: atNs(-60) }, tokenNamed('me'))
    const select = () => Promise.reject(new EngineError('secret words', {}))
    const used: TelemetryEngine = given.breaks ? Object.assign(Object.create(engine), { select }) : engine
    const runner = new DetectorRunner({ store, engine: used, gate, clock, logger: { warn: () => {} } })
    await runner.run(acme, id)
    const after = await store.findDetector('acme', id)
    assert.equal(after?.lastStatus, given.status)
    if (given.note === null) assert.equal(after?.lastNote, null)
    else assert.match(after?.lastNote ?? '', given.note)
  })
}

test('every status of the interface has a case', () => {
  const shown = new Set(Object.values(cases).map(({ status }) => status))
  assert.deepEqual(
    [...detectorStatuses].filter((status) => !shown.has(status)),
    [],
  )
})
