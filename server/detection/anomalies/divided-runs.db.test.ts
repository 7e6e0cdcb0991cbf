// A run that creates many anomalies, in a real control plane: several transactions write it, at turns, and
// what changes between two of them counts for the rest. The same run of a neighbour is not affected.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import {
  acme,
  atNs,
  type ControlFixture,
  createErrorsDetector,
  findingOf,
  globex,
  noonMs,
  openControl,
  removeDetectors,
  runRecordOf,
} from '../detection-fixture.ts'
import type { StoredDetector } from '../detectors/detector.ts'
import { DetectionStore } from '../detectors/store.ts'
import type { Tuning } from './feedback.ts'
import type { Finding } from './findings.ts'
import { createdAtOnce } from './write-runs.ts'

let fixture: ControlFixture
let store: DetectionStore

before(async () => {
  fixture = await openControl()
})
after(() => fixture.close())
beforeEach(async () => {
  await removeDetectors(fixture)
  store = new DetectionStore(fixture.control, new ManualClock(noonMs), new TelemetryGate(), readActiveHolds)
})

/** As many ended episodes as two and a half transactions create. */
const ended = 2.5 * createdAtOnce
/** The newest of all, which comes last nevertheless. */
const open = findingOf(atNs(ended), atNs(ended + 1), { isOpen: true, groupKey: '{"service":"search"}' })
const findings: readonly Finding[] = [
  open,
  ...Array.from({ length: ended }, (_, i) => findingOf(atNs(i), atNs(i + 0.5))),
]

/** All of an organisation, by start, latest first. */
const all = (tenantId: string) =>
  store.listAnomalies(tenantId, { limit: 2 * findings.length, filter: {}, before: null })

const minuteOf = (instant: string | undefined) =>
  instant === undefined ? null : (Date.parse(instant) - noonMs) / 60_000

/** What is recorded of a detector: its run, its anomalies, and the first minute of those that have ended. */
async function recordedOf({ id, tenantId }: StoredDetector) {
  const own = (await all(tenantId)).filter(({ detector_id }) => detector_id === id)
  const closed = own.filter(({ ended_at }) => ended_at !== null)
  const detector = await store.findDetector(tenantId, id)
  return {
    ranAtMs: detector?.lastRunAtMs ?? null,
    count: own.length,
    firstMinute: minuteOf(closed.at(-1)?.started_at),
  }
}

/**
 * Records the run. `seen` is what was recorded before each transaction. `between` runs before the second one.
 */
async function recordWith(
  detector: StoredDetector,
  { between, ...more }: { between?: () => unknown; isUnknown?: () => boolean; tuning?: Tuning },
) {
  const { tuning = null, ...found } = more
  const seen: Awaited<ReturnType<typeof recordedOf>>[] = []
  // A run may also wait for a turn before its first transaction, where preparing it takes long.
  const turn = async () => {
    const recorded = await recordedOf(detector)
    if (isDeepStrictEqual(recorded, seen.at(-1))) return
    seen.push(recorded)
    if (seen.length === 2) await between?.()
  }
  const run = { ...runRecordOf(detector, noonMs, findings, found), tuning }
  const result = await store.recordRun(run, turn).catch((error: unknown) => error)
  return { result, seen, end: await recordedOf(detector) }
}

const nothing = { ranAtMs: null, count: 0, firstMinute: null }
/** The newest that have ended, without the run. */
const firstPart = { ranAtMs: null, count: createdAtOnce, firstMinute: ended - createdAtOnce }
const complete = { ranAtMs: noonMs, count: findings.length, firstMinute: 0 }

/** Detectors of both organisations; the neighbour's has the same anomalies. */
async function createBoth(): Promise<{ own: StoredDetector; other: StoredDetector }> {
  const [own, other] = [await createErrorsDetector(store, acme), await createErrorsDetector(store, globex)]
  assert.ok(await store.recordRun(runRecordOf(other, noonMs, findings)))
  return { own, other }
}

test('a run with many new anomalies is written by several transactions, the newest first and its result last', async () => {
  const { own, other } = await createBoth()
  const { end, result, seen } = await recordWith(own, {})
  assert.equal(result, true)
  const second = { ranAtMs: null, count: 2 * createdAtOnce, firstMinute: ended - 2 * createdAtOnce }
  assert.deepEqual(seen, [nothing, firstPart, second])
  assert.deepEqual(end, complete)
  assert.deepEqual(await recordedOf(other), complete)
  const opened = (await all(acme.tenantId)).filter(({ ended_at }) => ended_at === null)
  assert.deepEqual(
    opened.map(({ group }) => group),
    [{ service: 'search' }],
  )
})

test('a run that ends between two transactions is recorded by the next run, which creates nothing twice', async () => {
  const { own, other } = await createBoth()
  const stopped = new Error('the process ends')
  const between = () => {
    throw stopped
  }
  const { end, result } = await recordWith(own, { between })
  assert.equal(result, stopped)
  assert.deepEqual(end, firstPart)
  const ids = new Set((await all(acme.tenantId)).map(({ id }) => id))
  assert.deepEqual((await recordWith(own, {})).end, complete)
  const kept = (await all(acme.tenantId)).filter(({ id }) => ids.has(id))
  assert.equal(kept.length, createdAtOnce)
  assert.deepEqual(await recordedOf(other), complete)
})

test('nothing more is written once the detector was changed, was deleted, or something that was read is hidden', async () => {
  const { own, other } = await createBoth()
  const change = async () => {
    const before = own
    const after = { ...own.definition, window_minutes: 60 }
    return store.changeDetector({ before, after, refused: [] }, undefined, tokenNamed('me'))
  }
  assert.deepEqual(await recordWith(own, { between: change }), {
    result: false,
    seen: [nothing, firstPart],
    end: firstPart,
  })

  const hidden = await createErrorsDetector(store, acme)
  let isHidden = false
  const hide = () => {
    isHidden = true
  }
  const { end, result } = await recordWith(hidden, { between: hide, isUnknown: () => isHidden })
  assert.deepEqual({ end, result }, { end: firstPart, result: false })

  const deleted = await createErrorsDetector(store, acme)
  const remove = () => store.deleteDetector(acme.tenantId, deleted.id, undefined, tokenNamed('me'))
  const gone = await recordWith(deleted, { between: remove })
  assert.deepEqual({ end: gone.end, result: gone.result }, { end: nothing, result: false })
  assert.deepEqual(await recordedOf(other), complete)
})

test('feedback that comes between two transactions keeps the rest from being written', async () => {
  const { own, other } = await createBoth()
  const [tuning] = await store.feedback.tuningsOf([own])
  assert.ok(tuning !== undefined)
  const ofOwn = { detector_id: own.id, open_ended: true }
  const mute = () => store.feedback.createMute(acme.tenantId, ofOwn, tokenNamed('me'))
  const { end, result } = await recordWith(own, { between: mute, tuning })
  assert.deepEqual({ end, result }, { end: firstPart, result: false })
  assert.deepEqual(await recordedOf(other), complete)
})

test('runs that together create too many anomalies for a transaction are all recorded', async () => {
  const few = findings.slice(0, 0.7 * createdAtOnce)
  const detectors = [await createErrorsDetector(store), await createErrorsDetector(store)]
  const runs = detectors.map((detector) => runRecordOf(detector, noonMs, few))
  const counts = new Set<number>()
  const turn = async () => void counts.add((await all(acme.tenantId)).length)
  assert.equal(await store.recordRuns(runs, turn), 2)
  assert.deepEqual([...counts], [0, createdAtOnce])
  for (const detector of detectors) assert.equal((await recordedOf(detector)).count, few.length)
})
