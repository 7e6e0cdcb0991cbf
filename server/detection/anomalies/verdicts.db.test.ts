// Verdicts whose anomalies were computed from many stretches of time: they are read in turns, share what they
// have in common, and a run that used them is not recorded once a part of that is hidden.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { nsPerMinute } from '../../../contract/values/instant.ts'
import { withTurns } from '../../../tests/with-turns.ts'
import { actorValues } from '../../control/actor-columns.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import type { BoundedRange, TimeRange } from '../../core/time-range.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import type { TenantPlace } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import {
  acme,
  atNs,
  type ControlFixture,
  createErrorsDetector,
  eraseAnomalies,
  findingOf,
  globex,
  noonMs,
  openControl,
  removeDetectors,
  runRecordOf,
} from '../detection-fixture.ts'
import type { StoredDetector } from '../detectors/detector.ts'
import { DetectionStore } from '../detectors/store.ts'
import { countAnomaliesIn } from './anomaly-erasure.ts'
import { sortableInstant, sourceOf } from './anomaly-rows.ts'
import type { Tuning } from './feedback.ts'
import { preparedRecords } from './write-runs.ts'

let fixture: ControlFixture
let gate: TelemetryGate
let store: DetectionStore

before(async () => {
  fixture = await openControl()
})
after(() => fixture.close())
beforeEach(async () => {
  await removeDetectors(fixture)
  gate = new TelemetryGate()
  store = new DetectionStore(fixture.control, new ManualClock(noonMs), gate, readActiveHolds)
})

const checkout = '{"service":"checkout"}'
const holes = 99

/** Anomalies of checkout, a minute each, with a verdict: their window has 99 holes of a second. */
async function insertVerdicts({ definition, id, tenantId }: StoredDetector, count: number): Promise<void> {
  const unread = Array.from({ length: holes }, (_, i) => [atNs(-5000 + i), atNs(-5000 + i, 1000)].map(String))
  const rows = Array.from({ length: count }, (_, i) => {
    const [from, until] = [atNs(-2 * i - 2), atNs(-2 * i - 1)]
    return {
      ...{ id: `ano_${id}_${String(i).padStart(4, '0')}`, tenant_id: tenantId, detector_id: id },
      ...{
        group_key: checkout,
        metric_key: definition.metric_key,
        signal: 'traces',
        peak_at_ns: String(from),
      },
      ...{ started_at_ns: sortableInstant(from), seen_until_ns: sortableInstant(until) },
      ...{ ended_at_ns: sortableInstant(until), value: 5, expected: 1, lower: 0, upper: 2, score: 3 },
      ...{ reason: 'errors 5.00', read_from_ns: String(atNs(-6000)), unread_ns: JSON.stringify(unread) },
      ...{ created_at_ms: noonMs, updated_at_ms: noonMs, ...actorValues('verdict_by', tokenNamed('me')) },
      ...{ verdict: i % 2 === 0 ? 'not_an_anomaly' : 'real', verdict_at_ms: noonMs - i },
    }
  })
  for (let i = 0; i < count; i += 50) {
    await fixture.control
      .insertInto('anomalies')
      .values(rows.slice(i, i + 50))
      .execute()
  }
}

/** A detector of each organisation, and what a run of it reads of its verdicts. */
async function judged(
  place: TenantPlace,
  count: number,
): Promise<{ detector: StoredDetector; tuning: Tuning }> {
  const detector = await createErrorsDetector(store, place)
  await insertVerdicts(detector, count)
  const [tuning] = await store.feedback.tuningsOf([detector])
  assert(tuning !== undefined)
  return { detector, tuning }
}

test('other work of the event loop runs while hundreds of verdicts with many holes are read', async () => {
  const detectors: StoredDetector[] = []
  for (let i = 0; i < 2; i++) {
    const detector = await createErrorsDetector(store)
    await insertVerdicts(detector, 500)
    detectors.push(detector)
  }
  const { result, turns } = await withTurns(() => store.feedback.tuningsOf(detectors))
  assert.deepEqual(
    result.map(({ confirmed }) => confirmed.get(checkout)?.length),
    [250, 250],
  )
  assert(turns > 5, `${turns} turns`)
})

test('other work of the event loop runs while anomalies with many holes are listed and counted', async () => {
  await insertVerdicts(await createErrorsDetector(store), 500)
  const range = { startNs: atNs(-5500), endNs: atNs(-5400) }
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range })
  const listed = await withTurns(() => store.listAnomalies('acme', { limit: 500, filter: {}, before: null }))
  assert.equal(listed.result.length, 500)
  assert(listed.result.every(({ expected }) => expected === null))
  assert(listed.turns > 3, `${listed.turns} turns of a list`)
  const counted = await withTurns(() =>
    countAnomaliesIn(fixture.control, 'acme', { signals: ['traces'], range }),
  )
  assert.deepEqual(counted.result, { inRange: 0, learntFrom: 500 })
  assert(counted.turns > 3, `${counted.turns} turns of a count`)
})

test('other work of the event loop runs before a run is recorded whose findings have read different times', async () => {
  const detector = await createErrorsDetector(store)
  const alsoRead = (nth: number) =>
    Array.from({ length: 80 }, (_, i) => ({
      startNs: atNs(-9000 + 2 * i),
      endNs: atNs(-9000 + 2 * i, 1 + nth),
    }))
  const findings = Array.from({ length: 1000 }, (_, i) =>
    findingOf(atNs(-2 * i - 2), atNs(-2 * i - 1), { alsoRead: alsoRead(i) }),
  )
  const { turns } = await withTurns(() => preparedRecords([runRecordOf(detector, noonMs, findings)]))
  assert(turns > 3, `${turns} turns`)
})

test('what verdicts were learnt from is one union for a series, and confirmed anomalies share their ranges', async () => {
  const { tuning } = await judged(acme, 500)
  const learntFrom = tuning.widenings.get(checkout)?.learntFrom ?? []
  assert.equal(learntFrom.length, holes + 1)
  assert.equal(learntFrom.at(-1)?.endNs, atNs(-1))
  assert.equal(learntFrom.at(-2)?.endNs, atNs(-5000 + holes - 1))
  const read = (tuning.confirmed.get(checkout) ?? []).flatMap((one) => one.read)
  assert.equal(read.length, 250 * (holes + 1))
  // The last range of each ends with its own anomaly.
  assert.equal(new Set(read).size, holes + 250)
})

test('anomalies with different holes share the ranges between those that are the same', async () => {
  const { detector } = await judged(acme, 4)
  const fewer = (unread: string) => JSON.stringify(JSON.parse(unread).slice(0, -1))
  const one = fixture.control.selectFrom('anomalies').selectAll().where('id', '=', `ano_${detector.id}_0003`)
  const { id, unread_ns } = await one.executeTakeFirstOrThrow()
  const changed = fixture.control.updateTable('anomalies').set({ unread_ns: fewer(unread_ns ?? '') })
  await changed.where('id', '=', id).execute()
  const [tuning] = await store.feedback.tuningsOf([detector])
  const read = (tuning?.confirmed.get(checkout) ?? []).map((each) => each.read)
  assert.deepEqual(
    read.map(({ length }) => length),
    [holes, holes + 1],
  )
  assert.equal(new Set(read.flat()).size, holes + 2)
})

test('verdicts are derived from exactly what their anomalies have read', async () => {
  const detector = await createErrorsDetector(store)
  await insertVerdicts(detector, 6)
  const change = async (
    nth: number,
    columns: Partial<Record<'read_from_ns' | 'unread_ns', string | null>>,
  ) => {
    const changed = fixture.control.updateTable('anomalies').set({ verdict: 'real', ...columns })
    await changed.where('id', '=', `ano_${detector.id}_000${nth}`).execute()
  }
  const hole = (from: number, until: number) => JSON.stringify([[atNs(from), atNs(until)].map(String)])
  // Until after its own end, in the middle, up to its start, none, before the window, and unknown.
  await change(0, { unread_ns: hole(-2, 0) })
  await change(1, { unread_ns: hole(-50, -40) })
  await change(2, { unread_ns: hole(-6000, -5000) })
  await change(3, { unread_ns: '[]' })
  await change(4, { unread_ns: hole(-7000, -6000) })
  await change(5, { read_from_ns: null, unread_ns: null })
  const rows = await fixture.control.selectFrom('anomalies').selectAll().orderBy('started_at_ns').execute()
  const [tuning] = await store.feedback.tuningsOf([detector])
  assert.deepEqual(
    tuning?.confirmed.get(checkout),
    rows.map((row) => {
      const { read, startedNs } = sourceOf(row)
      return { startedNs, read: read.filter((range) => range.startNs !== null) }
    }),
  )
})

test('only the newest five hundred verdicts of a detector count, those of other organisations never', async () => {
  const { tuning } = await judged(acme, 502)
  const confirmed = tuning.confirmed.get(checkout)
  assert.equal(confirmed?.length, 250)
  assert.equal(confirmed[0]?.startedNs, atNs(-2 * 499 - 2))
  const theirs = await createErrorsDetector(store, globex)
  const [none] = await store.feedback.tuningsOf([theirs])
  assert.equal(none?.confirmed.size, 0)
  assert.equal(none?.widenings.size, 0)
})

const minute = (at: number): BoundedRange => ({ startNs: atNs(at), endNs: atNs(at) + nsPerMinute })

test('a run is not recorded once anything is hidden that a verdict is about or learnt from', async () => {
  const cases: [TimeRange, readonly Signal[], boolean][] = [
    [minute(-4), ['traces'], false],
    [minute(-5500), ['traces', 'logs'], false],
    [minute(-4), ['logs', 'metrics'], true],
    [{ startNs: null, endNs: atNs(-6000) }, ['traces'], true],
    [{ startNs: atNs(-4990), endNs: atNs(-4990, 1000) }, ['traces'], true],
  ]
  for (const [range, signals, isRecorded] of cases) {
    for (const ends of ['hidden', 'erased']) {
      await removeDetectors(fixture)
      const [mine, theirs] = [await judged(acme, 3), await judged(globex, 3)]
      const selection = { id: 'del_1', signals, range }
      gate.hide('acme', selection)
      if (ends === 'erased') {
        gate.markErased('acme', selection)
        gate.unhide('acme', 'del_1')
      }
      const run = ({ detector, tuning }: typeof mine) => ({
        ...runRecordOf(detector, noonMs, [findingOf(atNs(0), atNs(5))], { read: [minute(0)] }),
        tuning,
      })
      assert.equal(await store.recordRun(run(mine)), isRecorded, `${ends} ${range.startNs} ${signals}`)
      assert.equal(await store.recordRun(run(theirs)), true)
      const [again] = await store.feedback.tuningsOf([mine.detector])
      assert(again !== undefined)
      assert.equal(await store.recordRun(run({ ...mine, tuning: again })), true, 'read after it was hidden')
      gate = new TelemetryGate()
      store = new DetectionStore(fixture.control, new ManualClock(noonMs), gate, readActiveHolds)
    }
  }
})

test('a run is not recorded once the own time of a confirmed anomaly without a band is hidden', async () => {
  const detector = await createErrorsDetector(store)
  await insertVerdicts(detector, 3)
  const learnt = { startNs: atNs(-5500), endNs: atNs(-5499) }
  const erased = await eraseAnomalies(fixture, 'acme', { signals: ['traces'], range: learnt })
  assert.deepEqual(erased, { inRange: 0, learntFrom: 3 })
  const [tuning] = await store.feedback.tuningsOf([detector])
  assert(tuning !== undefined)
  assert.deepEqual(tuning.confirmed.get(checkout), [{ startedNs: atNs(-4), read: [] }])
  const record = () => store.recordRun({ ...runRecordOf(detector, noonMs, []), tuning })
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: learnt })
  assert.equal(await record(), true)
  gate.hide('acme', { id: 'del_2', signals: ['traces'], range: minute(-4) })
  assert.equal(await record(), false)
})
