// Erasing anomalies, which are derived from telemetry, in a real control plane. Two organisations have the
// same detectors and the same anomalies. Everything that one of them erases is shown to exist before, and the
// other's is unchanged afterwards.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, beforeEach, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { actorValues } from '../../control/actor-columns.ts'
import { dialectOf } from '../../control/dialect.ts'
import { callerNamed, tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { allTime, type TimeRange } from '../../core/time-range.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import type { ErasedPart, RunAlone } from '../../telemetry/derived-store.ts'
import type { TenantPlace } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import type { ActiveHold, HeldPart } from '../../telemetry/held-part.ts'
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
import { countAnomaliesIn, countVersionsIn, eraseAnomaliesIn } from './anomaly-erasure.ts'
import type { RunFound } from './anomaly-rows.ts'
import type { Finding } from './findings.ts'
import type { RunSummary } from './run-summary.ts'

/** Nanoseconds, some minutes after noon: 19 digits, too many for a JavaScript number. */
const at = (minutes: number) => atNs(minutes) + 1n
const between = (from: number | null, to: number | null): TimeRange => ({
  startNs: from === null ? null : at(from),
  endNs: to === null ? null : at(to),
})

let fixture: ControlFixture
let clock: ManualClock
let gate: TelemetryGate
let store: DetectionStore

before(async () => {
  fixture = await openControl()
})
after(() => fixture.close())
beforeEach(async () => {
  clock = new ManualClock(noonMs)
  gate = new TelemetryGate()
  store = new DetectionStore(fixture.control, clock, gate, readActiveHolds)
  await removeDetectors(fixture)
})

const create = (place: TenantPlace, enabled = true) => createErrorsDetector(store, place, { enabled })

const finding = (from: number, to: number, more: Partial<Finding> = {}) => findingOf(at(from), at(to), more)

/** Stores a run that read from an hour before noon to an hour after. */
async function record(
  { tenantId, id }: StoredDetector,
  findings: readonly Finding[],
  more: Partial<RunFound> = {},
  summary: RunSummary = { status: 'anomalous', note: 'Series: 1 anomalous, 3 ok.' },
): Promise<void> {
  const detector = await store.findDetector(tenantId, id)
  assert(detector !== null)
  const read = [{ startNs: at(-60), endNs: at(60) }]
  const run = runRecordOf(detector, clock.nowMs(), findings, { read, ...more })
  const isRecorded = await store.recordRun({ ...run, summary })
  assert(isRecorded)
}

/** The same run for both organisations. */
async function recordForBoth(findings: readonly Finding[], more: Partial<RunFound> = {}): Promise<void> {
  for (const place of [acme, globex]) await record(await create(place), findings, more)
}

const anomalies = ({ tenantId }: TenantPlace) =>
  store.listAnomalies(tenantId, { limit: 50, filter: {}, before: null })

const count = (range: TimeRange, held: readonly HeldPart[] = []) =>
  countAnomaliesIn(fixture.control, 'acme', { signals: ['traces'], range }, held)

const erase = (range: TimeRange, held: readonly HeldPart[] = [], signals: readonly Signal[] = ['traces']) =>
  eraseAnomalies(fixture, 'acme', { signals, range }, held)

const redacted = {
  expected: null,
  lower: null,
  upper: null,
  score: 0,
  reason: 'Its expected band was computed from telemetry that has since been erased',
}

test('redacting an anomaly that learnt from erased time keeps what was seen, and removes what was expected', async () => {
  await recordForBoth([finding(0, 5)])
  const [mine] = await anomalies(acme)
  const [theirs] = await anomalies(globex)
  assert.equal(mine?.expected, 0.012345)
  assert.deepEqual(await count(between(-50, -40)), { inRange: 0, learntFrom: 1 })
  assert.deepEqual(await erase(between(-50, -40)), { inRange: 0, learntFrom: 1 })
  assert.deepEqual(await anomalies(acme), [{ ...mine, ...redacted }])
  assert.deepEqual(await anomalies(globex), [theirs])
  assert.deepEqual(await count(between(-50, -40)), { inRange: 0, learntFrom: 0 })
  assert.deepEqual(await erase(between(-30, -20)), { inRange: 0, learntFrom: 0 }, 'nothing is left to redact')
  assert.deepEqual(await erase(between(0, 1)), { inRange: 1, learntFrom: 0 }, 'the anomaly itself is left')
  assert.deepEqual(await anomalies(acme), [])
  assert.deepEqual(await anomalies(globex), [theirs])
})

test('removed and redacted anomalies are counted apart, exact to the nanosecond', async () => {
  await recordForBoth([finding(0, 5), finding(10, 15)])
  const justBefore = { startNs: at(-61), endNs: at(-60) }
  assert.deepEqual(await count(justBefore), { inRange: 0, learntFrom: 0 })
  assert.deepEqual(await count({ ...justBefore, endNs: at(-60) + 1n }), { inRange: 0, learntFrom: 2 })
  assert.deepEqual(await count(between(4, 6)), { inRange: 1, learntFrom: 1 })
  assert.deepEqual(await count(between(5, 10)), { inRange: 0, learntFrom: 1 }, 'only the later one')
  assert.deepEqual(
    await count(between(15, 60)),
    { inRange: 0, learntFrom: 0 },
    'no anomaly learns from later time',
  )
  assert.deepEqual(await count(allTime), { inRange: 2, learntFrom: 0 })
})

test('no byte of a redacted band is left in the files, and the neighbour’s band is still there', async () => {
  const secretOf = ({ tenantId }: TenantPlace) => `checkout of ${tenantId} was expected at 31337`
  for (const place of [acme, globex]) {
    // Longer than a page, so that bytes of the old row are freed and not written over; and random, because a
    // search of the files misses a text that the database has compressed.
    const reason = `${randomBytes(6750).toString('base64')} ${secretOf(place)}`
    await record(await create(place), [finding(0, 5, { reason })])
  }
  await dialectOf(fixture.control).flushErased(fixture.control, ['anomalies'])
  assert.notDeepEqual(fixture.filesWith(secretOf(acme)), [])
  await erase(between(-50, -40))
  await dialectOf(fixture.control).flushErased(fixture.control, ['anomalies'])
  assert.deepEqual(fixture.filesWith(secretOf(acme)), [])
  assert.notDeepEqual(fixture.filesWith(secretOf(globex)), [])
})

test('a band from a configured limit is not learnt: only erasing its own time touches the anomaly', async () => {
  await recordForBoth([finding(0, 5)], { isLearnt: false })
  assert.deepEqual(await count(between(null, 0)), { inRange: 0, learntFrom: 0 })
  assert.deepEqual(await count(between(null, 1)), { inRange: 1, learntFrom: 0 })
})

test('an anomaly that a later run computed without the erased time is not redacted again', async () => {
  const detector = await create(acme)
  await record(detector, [finding(0, 5, { isOpen: true })])
  await erase(between(-50, -40))
  const read = [
    { startNs: at(-60), endNs: at(-50) },
    { startNs: at(-40), endNs: at(60) },
  ]
  await record(detector, [finding(0, 8, { isOpen: true })], { read })
  const [again] = await anomalies(acme)
  assert.equal(again?.expected, 0.012345)
  assert.deepEqual(await count(between(-50, -40)), { inRange: 0, learntFrom: 0 })
  assert.deepEqual(await count(between(-51, -40)), { inRange: 0, learntFrom: 1 }, 'the rest was read')
  assert.deepEqual(await erase(between(-41, -39)), { inRange: 0, learntFrom: 1 })
})

test('an anomaly whose past is erased in too many places has nothing learnt and claims no erased time', async () => {
  const pieces = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ startNs: at(-i - 1), endNs: at(-i - 0.5) })).reverse()
  const [mine, theirs] = [await create(acme), await create(globex)]
  const note = { verdict: 'real', note: 'as on 24 December' } as const
  for (const [detector, place] of [
    [mine, acme],
    [theirs, globex],
  ] as const) {
    await record(detector, [finding(0, 5, { isOpen: true })], { read: pieces(100) })
    const [first] = await anomalies(place)
    await store.feedback.giveFeedback(place.tenantId, first?.id ?? '', note, callerNamed('me'))
  }
  const [before] = await anomalies(globex)
  assert.deepEqual(await count(between(-50, -49)), { inRange: 0, learntFrom: 1 }, 'learnt from 100 pieces')
  await record(mine, [finding(0, 8, { isOpen: true })], { read: pieces(101) })
  const [divided] = await anomalies(acme)
  assert(divided !== undefined)
  const { expected, feedback, lower, reason, score, upper, value } = divided
  assert.deepEqual([expected, lower, upper, score, value], [null, null, null, 0, 0.6])
  assert.match(reason, /^Its expected band is not recorded, because .* erased in too many places$/)
  assert.deepEqual([feedback?.verdict, feedback?.note], ['real', null], 'the note may be about the band')
  assert.deepEqual(await count(between(null, 0)), { inRange: 0, learntFrom: 0 })
  assert.deepEqual(await erase(between(null, 0)), { inRange: 0, learntFrom: 0 })
  assert.deepEqual(await anomalies(acme), [divided])
  await record(mine, [finding(0, 9, { isOpen: true })])
  assert.equal((await anomalies(acme))[0]?.expected, 0.012345, 'a later run has read less divided time')
  await record(mine, [finding(0, 10, { isOpen: true })], { read: pieces(101) })
  assert.deepEqual(await count(between(4, 6)), { inRange: 1, learntFrom: 0 })
  assert.deepEqual(await erase(between(4, 6)), { inRange: 1, learntFrom: 0 }, 'its own time')
  assert.deepEqual(await anomalies(acme), [])
  assert.deepEqual(await anomalies(globex), [before])
})

test('an anomaly of a version that did not record what it read counts as having read everything', async () => {
  await recordForBoth([finding(0, 5)])
  await fixture.control.updateTable('anomalies').set({ read_from_ns: null, unread_ns: null }).execute()
  assert.deepEqual(await count({ startNs: 0n, endNs: 1n }), { inRange: 0, learntFrom: 1 })
  assert.deepEqual(await erase({ startNs: 0n, endNs: 1n }), { inRange: 0, learntFrom: 1 })
  assert.deepEqual(await count({ startNs: 0n, endNs: 1n }), { inRange: 0, learntFrom: 0 })
})

test('an erasure of other signals touches nothing', async () => {
  await recordForBoth([finding(0, 5)])
  assert.deepEqual(await erase(allTime, [], ['metrics', 'logs']), { inRange: 0, learntFrom: 0 })
  assert.deepEqual(await erase(allTime, [], []), { inRange: 0, learntFrom: 0 })
  assert.equal((await anomalies(acme)).length, 1)
})

test('a legal hold keeps an anomaly about held time as it is, and neither counts nor redacts it', async () => {
  const held: HeldPart[] = [{ signals: ['traces'], range: between(4, 6) }]
  await recordForBoth([finding(0, 5), finding(10, 15)])
  const [, evidence] = await anomalies(acme)
  assert.deepEqual(await count(between(-50, -40)), { inRange: 0, learntFrom: 2 })
  assert.deepEqual(await count(between(-50, -40), held), { inRange: 0, learntFrom: 1 })
  assert.deepEqual(await count(allTime, held), { inRange: 1, learntFrom: 0 })
  assert.deepEqual(await erase(allTime, held), { inRange: 1, learntFrom: 0 })
  assert.deepEqual(await anomalies(acme), [evidence])
  assert.deepEqual(await count(allTime, held), { inRange: 0, learntFrom: 0 })
  assert.deepEqual(await erase(allTime), { inRange: 1, learntFrom: 0 }, 'once the hold is released')
  assert.equal((await anomalies(globex)).length, 2)
})

test('more anomalies than fit into one statement are all removed and redacted', async () => {
  const groups = Array.from({ length: 401 }, (_, i) => JSON.stringify({ service: `s${i}` }))
  for (const place of [acme, globex, acme, globex, acme, globex]) {
    const half = (from: number) => groups.map((groupKey) => finding(from, from + 1, { groupKey }))
    await record(await create(place), [...half(0), ...half(10)])
  }
  assert.deepEqual(await erase(between(0, 5)), { inRange: 1203, learntFrom: 1203 })
  assert.deepEqual(await count(between(0, 5)), { inRange: 0, learntFrom: 0 })
  const theirs = await countAnomaliesIn(fixture.control, 'globex', {
    signals: ['traces'],
    range: between(0, 5),
  })
  assert.deepEqual(theirs, { inRange: 1203, learntFrom: 1203 })
})

/** Records this number of anomalies of the first five minutes for both organisations. */
async function recordMany(number: number): Promise<void> {
  const groups = Array.from({ length: number }, (_, i) => JSON.stringify({ service: `s${i}` }))
  await recordForBoth(groups.map((groupKey) => finding(0, 5, { groupKey })))
}

const allTraces: ErasedPart = { signals: ['traces'], range: allTime }
const left = async (tenantId = 'acme') =>
  (await countAnomaliesIn(fixture.control, tenantId, allTraces)).inRange

test('few anomalies are removed in each transaction, each alone in the placement', async () => {
  await recordMany(310)
  const removed: number[] = []
  const alone: RunAlone = async (work) => {
    const before = await left()
    const result = await work()
    removed.push(before - (await left()))
    return result
  }
  const readHolds = async () => []
  const counts = await eraseAnomaliesIn(fixture.control, 'acme', allTraces, { alone, readHolds })
  assert.deepEqual(counts, { inRange: 310, learntFrom: 0 })
  assert.deepEqual(removed, [100, 100, 100, 10, 0], 'the last one clears the results of runs')
  assert.equal(await left('globex'), 310)
})

test('a hold that is placed between two transactions of an erasure keeps what is left', async () => {
  await recordMany(250)
  const hold: HeldPart = { signals: ['traces'], range: between(4, 6) }
  let held: ActiveHold[] = []
  const alone: RunAlone = async (work) => {
    const result = await work()
    held = [{ ...hold, holdId: 'hld_late' }]
    return result
  }
  const readHolds = async () => held
  const counts = await eraseAnomaliesIn(fixture.control, 'acme', allTraces, { alone, readHolds })
  assert.deepEqual([counts.inRange, await left(), await left('globex')], [100, 150, 250])
})

test('an erasure that was interrupted between two transactions removes the rest when it is repeated', async () => {
  await recordMany(250)
  let isFirst = true
  const alone: RunAlone = async (work) => {
    if (!isFirst) throw new Error('interrupted')
    isFirst = false
    return work()
  }
  const by = { alone, readHolds: async () => [] }
  await assert.rejects(eraseAnomaliesIn(fixture.control, 'acme', allTraces, by), /interrupted/)
  assert.equal(await left(), 150)
  assert.deepEqual(await erase(allTime), { inRange: 150, learntFrom: 0 })
  assert.deepEqual([await left(), await left('globex')], [0, 250])
})

test('others take turns while very many anomalies and versions are counted', async () => {
  await recordMany(510)
  const [row] = await fixture.control.selectFrom('anomalies').selectAll().limit(1).execute()
  const stored = Array.from({ length: 260 }, (_, version) => ({
    ...{ anomaly_id: 'ano_1', version: version + 1, tenant_id: 'acme', detector_id: 'det_1', holds: '[]' },
    ...{ record: JSON.stringify(row), replaced_at_ms: 0, ...actorValues('replaced_by', tokenNamed('me')) },
  }))
  await fixture.control.insertInto('held_anomaly_versions').values(stored).execute()
  const counts = [() => left(), () => countVersionsIn(fixture.control, 'acme', allTraces)]
  const found: [number, boolean][] = []
  for (const count of counts) {
    let turns = 0
    const taking = { isOver: false }
    const others = (async () => {
      for (; !taking.isOver; turns++) await turn()
    })()
    const counted = await count()
    taking.isOver = true
    // Between two stretches, and between two pages.
    found.push([counted, turns > 0])
    await others
  }
  assert.deepEqual(found, [
    [510, true],
    [260, true],
  ])
})

test('an anomaly of a group with long labels is recorded and erased', async () => {
  const groupKey = JSON.stringify({ service: randomBytes(20_000).toString('base64') })
  for (const place of [acme, globex]) await record(await create(place), [finding(0, 5, { groupKey })])
  assert.equal((await anomalies(acme)).length, 1)
  assert.deepEqual(await erase(allTime), { inRange: 1, learntFrom: 0 })
  assert.equal((await anomalies(acme)).length, 0)
  assert.equal((await anomalies(globex)).length, 1)
})

test("the status and note of a detector's last run are cleared, enabled or not, except that nothing could be judged", async () => {
  const states: [StoredDetector, RunSummary][] = [
    [await create(acme), { status: 'anomalous', note: 'Series: 1 anomalous, 3 ok.' }],
    [await create(acme, false), { status: 'ok', note: 'Series: 4 ok.' }],
    [await create(acme), { status: 'learning', note: 'It needs 20 more buckets with data.' }],
    [await create(globex), { status: 'ok', note: 'Series: 4 ok.' }],
  ]
  for (const [detector, summary] of states) await record(detector, [], {}, summary)
  await erase(between(-50, -40))
  const after = await Promise.all(
    states.map(async ([{ tenantId, id }]) => {
      const detector = await store.findDetector(tenantId, id)
      return [detector?.lastStatus, detector?.lastNote]
    }),
  )
  assert.deepEqual(after, [
    [null, null],
    [null, null],
    ['learning', null],
    ['ok', 'Series: 4 ok.'],
  ])
  const due = await store.dueDetectors(clock.nowMs(), 9)
  assert.deepEqual(due.map(({ id }) => id).sort(), [states[0]?.[0].id, states[2]?.[0].id].sort())
})

test('a band that was learnt from hidden telemetry is hidden with it, and shown again when the telemetry is', async () => {
  await recordForBoth([finding(0, 5), finding(10, 15)])
  const [late, early] = await anomalies(acme)
  const theirs = await anomalies(globex)
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: between(4, 6) })
  assert.ok(late !== undefined && early !== undefined)
  assert.deepEqual(await anomalies(acme), [{ ...late, ...redacted }])
  assert.deepEqual(await store.findAnomaly('acme', late.id), { ...late, ...redacted })
  assert.deepEqual(await anomalies(globex), theirs)
  gate.unhide('acme', 'del_1')
  assert.deepEqual(await anomalies(acme), [late, early])
})
