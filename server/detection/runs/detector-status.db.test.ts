// Every status that a detector can have, each from telemetry that causes it.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type DetectorStatus, detectorStatuses } from '../../../contract/detection.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import { openChdb } from '../../telemetry/chdb.ts'
import { EngineError, type TelemetryEngine } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { raw } from '../../telemetry/sql.ts'
import {
  acme,
  type ControlFixture,
  type FixtureSpan,
  insertSpans,
  openControl,
} from '../detection-fixture.ts'
import { readDraft } from '../detectors/detector.ts'
import { DetectionStore } from '../detectors/store.ts'
import { DetectorRunner } from './runner.ts'

const noonMs = Date.UTC(2026, 8, 11, 12)
const clock = new ManualClock(noonMs + 30_000)

let fixture: ControlFixture
let engine: TelemetryEngine

before(async () => {
  fixture = await openControl()
  engine = await openChdb({ folder: join(fixture.folder, 'telemetry'), maxMemoryBytes: 2 ** 30 })
})
after(async () => {
  await engine.close()
  await fixture.close()
})

/** Ten spans in every `step`th of the minutes `[from, to)` after noon, of which `errors` fail. */
function traffic(from: number, to: number, errors = 0, step = 1, service = 'checkout'): FixtureSpan[] {
  const spans: FixtureSpan[] = []
  for (let minute = from; minute < to; minute += step) {
    for (let n = 0; n < 10; n++) {
      const atNs = BigInt(noonMs + minute * 60_000 + n * 5000) * 1_000_000n
      spans.push({ service, atNs, isError: n < errors })
    }
  }
  return spans
}

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
const services = Array.from({ length: 52 }, (_, i) => traffic(-120, 0, 0, 10, `s${i}`)).flat()

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
    spans: traffic(-170, 0, 0, 12),
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
    for (const table of ['anomalies', 'detector_mutes', 'detectors'] as const) {
      await fixture.control.deleteFrom(table).execute()
    }
    if (given.spans.length > 0) await insertSpans(engine, acme, given.spans)
    const gate = new TelemetryGate()
    const at = (minute: number) => BigInt(noonMs + minute * 60_000) * 1_000_000n
    if (given.hidden !== undefined) {
      const range = { startNs: at(given.hidden[0]), endNs: at(given.hidden[1]) }
      gate.hide('acme', { id: 'del_1', signals: ['traces'], range })
    }
    const store = new DetectionStore(fixture.control, clock, gate, readActiveHolds)
    const read = readDraft({
      name: 'Tried',
      metric_key: 'spans.error_ratio',
      method_key: 'robust_band',
      params: {
        warmup_points: 30,
        window_points: 60,
        min_abs_dev: 0.1,
        cooldown_minutes: 0,
        ...given.params,
      },
      scope: given.groupBy === undefined ? {} : { group_by: given.groupBy },
      window_minutes: 120,
      schedule_minutes: 1,
    })
    assert('value' in read, JSON.stringify(read))
    const { id } = await store.createDetector('acme', read.value, tokenNamed('me'))
    assert.equal((await store.findDetector('acme', id))?.lastStatus, null, 'before its first run')
    if (given.mute)
      await store.feedback.createMute('acme', { detector_id: id, range_start: at(-60) }, tokenNamed('me'))
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
