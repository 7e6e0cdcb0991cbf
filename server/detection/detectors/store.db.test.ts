// Detectors and anomalies in a real database: pages, concurrent patches, and what an erasure removes.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { Anomaly, PatchDetector } from '../../../contract/detection/detectors.ts'
import { paceOfSteps } from '../../../tests/with-turns.ts'
import { readChain } from '../../audit/log.ts'
import { trafficByHour } from '../../control/migrations/0006-traffic-by-hour.ts'
import { soonerAlarms } from '../../control/migrations/0010-sooner-alarms.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { AppError, InvalidInput } from '../../core/app-error.ts'
import { pageOfRows } from '../../core/input/cursor.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { allTime, type TimeRange } from '../../core/time-range.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import type { TenantPlace } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { countAnomaliesIn } from '../anomalies/anomaly-erasure.ts'
import type { RunFound } from '../anomalies/anomaly-rows.ts'
import type { Finding } from '../anomalies/findings.ts'
import {
  acme,
  atNs,
  type ControlFixture,
  definitionOf,
  eraseAnomalies,
  findingOf,
  globex,
  noonMs,
  openControl,
  removeDetectors,
  runRecordOf,
} from '../detection-fixture.ts'
import { readDraft, type StoredDetector, toDetector } from './detector.ts'
import { insertDetector } from './detector-rows.ts'
import { type AskedPatch, patchDetector } from './patch.ts'
import { DetectionStore } from './store.ts'
import { createSystemDetectors, systemDetectors } from './system-detectors.ts'

const minuteMs = 60_000
/** Nanoseconds, some minutes after noon: 19 digits, too many for a JavaScript number. */
const at = (minutes: number) => atNs(minutes) + 1n

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

/** Stores detectors of before scopes had a limit, with 60 kB each; oldest first. */
async function insertLongScopes(count: number): Promise<string[]> {
  const attributes = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, '漢'.repeat(1000)]))
  const long = { ...definition(), scope: { service: 'checkout', attributes } }
  const ids: string[] = []
  for (let i = 0; i < count; i++) {
    const row = { tenantId: 'acme', definition: long, isSystem: false, nowMs: noonMs + i }
    ids.push(await fixture.control.transaction().execute((trx) => insertDetector(trx, row)))
  }
  return ids
}

/** A plain patch that names no version, unless more is said. */
function patch(tenantId: string, id: string, body: PatchDetector, more: Partial<AskedPatch> = {}) {
  const asked = { body, isMerge: false, ifMatch: undefined, actor: tokenNamed('me'), ...more }
  return patchDetector(store, { tenantId, id }, asked)
}

const definition = (more: Record<string, unknown> = {}) =>
  definitionOf({
    name: 'Queue',
    metric_key: 'queue.length',
    method_key: 'threshold',
    params: { upper: 100 },
    scope: {},
    window_minutes: 60,
    schedule_minutes: 1,
    enabled: true,
    ...more,
  })

const create = (place: TenantPlace = acme, more: Record<string, unknown> = {}) =>
  store.createDetector(place.tenantId, definition(more), tokenNamed(place.tenantId))

const finding = (from: number, to: number, more: Partial<Finding> = {}) =>
  findingOf(at(from), at(to), {
    value: 120,
    expected: null,
    lower: null,
    upper: 100,
    score: 1.2,
    reason: 'queue.length 120, expected at most 100',
    ...more,
  })

async function record(
  detector: StoredDetector,
  findings: readonly Finding[],
  more: Partial<RunFound> = {},
): Promise<boolean> {
  const current = (await store.findDetector(detector.tenantId, detector.id)) ?? detector
  const run = runRecordOf({ ...current, revision: detector.revision }, clock.nowMs(), findings, {
    window: { startNs: 0n, windowStartNs: 0n, judgedUntilNs: null, isTruncated: false },
    signals: ['metrics'],
    read: [{ startNs: at(-60), endNs: at(60) }],
    isLearnt: false,
    ...more,
  })
  return store.recordRun({
    ...run,
    nextRunAtMs: clock.nowMs() + minuteMs,
    summary: { status: 'ok', note: null },
  })
}

const anomalies = (place: TenantPlace = acme, filter = {}, limit = 50) =>
  store.listAnomalies(place.tenantId, { limit, filter, before: null })

async function audit(place: TenantPlace): Promise<Record<string, unknown>[]> {
  const chain = await readChain(fixture.control, 'audit_entries', place.tenantId)
  return chain.map(({ text }) => JSON.parse(text))
}

const refusal = (code: string) => (error: unknown) => error instanceof AppError && error.code === code

test('detectors are listed newest first, in pages, and only for their organisation', async () => {
  const ids: string[] = []
  for (let i = 0; i < 3; i++) {
    await clock.advance(1)
    ids.unshift((await create()).id)
  }
  const foreign = await create(globex)
  const page = await store.listDetectors('acme', { limit: 2, beforeId: null })
  assert.deepEqual(
    page.map(({ id }) => id),
    ids.slice(0, 2),
  )
  const rest = await store.listDetectors('acme', { limit: 2, beforeId: ids[1] ?? '' })
  assert.deepEqual(
    rest.map(({ id }) => id),
    ids.slice(2),
  )
  assert.deepEqual(
    (await store.listDetectors('globex', { limit: 9, beforeId: null })).map(({ id }) => id),
    [foreign.id],
  )
  assert.equal(await store.findDetector('acme', foreign.id), null)
})

test('creating a detector is in the audit log, without naming what is watched', async () => {
  const before = (await audit(acme)).length
  const { id } = await create(acme, { metric_key: 'secret.project.rate', name: 'Secret' })
  const [entry, ...rest] = (await audit(acme)).slice(before)
  assert.deepEqual(rest, [])
  assert.equal(entry?.action, 'detector.created')
  assert.equal(entry?.target, id)
  assert.equal(entry?.actor, 'token:acme (tok_acme)')
  assert.doesNotMatch(JSON.stringify(entry), /secret/i)
})

test('an organisation can have a thousand detectors, and another may still create one', async () => {
  await fixture.control.transaction().execute(async (trx) => {
    for (let i = 0; i < 250; i++) await createSystemDetectors(trx, 'acme', noonMs)
  })
  await assert.rejects(create(), InvalidInput)
  await create(globex)
})

test('a patch changes what it names, increments the revision, makes the detector due and names its fields in the audit log', async () => {
  const detector = await create()
  await record(detector, [])
  await clock.advance(5000)
  const before = (await audit(acme)).length
  const fields = { window_minutes: 120, params: { upper: 50 } }
  const after = await patch('acme', detector.id, fields, { ifMatch: '"1"', actor: tokenNamed('ci') })
  assert.equal(after.definition.window_minutes, 120)
  assert.equal(after.definition.params.upper, 50)
  assert.equal(after.definition.name, 'Queue')
  assert.equal(after.revision, 2)
  assert.equal(after.lastStatus, 'ok', 'the result of the last run stays until the next')
  assert.equal((await store.dueDetectors(clock.nowMs(), 9)).length, 1)
  const [entry] = (await audit(acme)).slice(before)
  assert.deepEqual(entry?.facts, { fields: ['params', 'window_minutes'], revision: 2 })
})

test('a patch that changes nothing leaves revision and audit log as they are', async () => {
  const detector = await create()
  const before = (await audit(acme)).length
  for (const fields of [{}, { name: 'Queue' }, { params: { upper: 100 } }]) {
    assert.deepEqual(await patch('acme', detector.id, fields), detector)
  }
  assert.equal((await audit(acme)).length, before)
})

test('a stale ETag refuses a patch and a deletion, and nothing changes', async () => {
  const detector = await create()
  const stale = patch('acme', detector.id, { name: 'Other' }, { ifMatch: '"2"' })
  await assert.rejects(stale, refusal('precondition_failed'))
  await assert.rejects(
    store.deleteDetector('acme', detector.id, '"2"', tokenNamed('me')),
    refusal('precondition_failed'),
  )
  assert.deepEqual(await store.findDetector('acme', detector.id), detector)
})

test('of two patches that read the same version only one is applied', async () => {
  const { id } = await create()
  const rename = (name: string) => patch('acme', id, { name }, { ifMatch: '"1"' })
  const renames = await Promise.allSettled([rename('A'), rename('B')])
  assert.deepEqual(renames.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
})

test('of two patches at once that name no version neither is lost', async () => {
  const { id } = await create()
  await Promise.all([patch('acme', id, { name: 'A' }), patch('acme', id, { window_minutes: 61 })])
  const after = await store.findDetector('acme', id)
  assert.deepEqual([after?.definition.name, after?.definition.window_minutes, after?.revision], ['A', 61, 3])
})

test('another organisation can neither change nor delete a detector', async () => {
  const { id } = await create(globex)
  await assert.rejects(patch('acme', id, { name: 'Mine' }), refusal('not_found'))
  await assert.rejects(store.deleteDetector('acme', id, undefined, tokenNamed('me')), refusal('not_found'))
  assert.equal((await store.findDetector('globex', id))?.definition.name, 'Queue')
})

test('an organisation starts with the system detectors, whose identity and existence are fixed', async () => {
  await fixture.control.transaction().execute((trx) => createSystemDetectors(trx, 'acme', noonMs))
  const listed = await store.listDetectors('acme', { limit: 50, beforeId: null })
  assert.deepEqual(
    listed.map(({ definition: { metric_key } }) => metric_key).sort(),
    systemDetectors.map(({ metric_key }) => metric_key).sort(),
  )
  assert.deepEqual(await store.listDetectors('globex', { limit: 50, beforeId: null }), [])
  const [system] = listed
  assert(system?.isSystem)
  const merge = (fields: PatchDetector) => patch('acme', system.id, fields, { isMerge: true })
  await assert.rejects(merge({ name: 'Mine' }), refusal('system_detector'))
  await assert.rejects(merge({ method_key: 'threshold', params: { upper: 1 } }), refusal('system_detector'))
  await assert.rejects(
    store.deleteDetector('acme', system.id, undefined, tokenNamed('me')),
    refusal('system_detector'),
  )
  const after = await merge({ name: system.definition.name, enabled: false, params: { k: 8 } })
  assert.equal(after.definition.enabled, false)
  assert.equal(after.definition.params.k, 8)
})

test('an old request rate detector is replaced by the present one where nobody changed it, and stays otherwise', async () => {
  const today = systemDetectors.find(({ metric_key }) => metric_key === 'spans.rate')
  assert(today)
  const old = readDraft({
    ...today,
    method_key: 'robust_band',
    params: { k: 5, min_abs_dev: 0.5, direction: 'both' },
    window_minutes: 5760,
    schedule_minutes: 5,
  })
  assert('value' in old)
  const insert = (tenantId: string, isSystem: boolean) =>
    fixture.control
      .transaction()
      .execute((trx) => insertDetector(trx, { tenantId, definition: old.value, isSystem, nowMs: noonMs }))
  const [untouched, changed, own] = [
    await insert('acme', true),
    await insert('globex', true),
    await insert('acme', false),
  ]
  await patch('globex', changed, { enabled: false })
  const stored = async (tenantId: string, id: string) => await store.findDetector(tenantId, id)

  for (let again = 0; again < 2; again++) {
    await trafficByHour.up(fixture.control)
    const after = await stored('acme', untouched)
    assert.deepEqual([after?.definition, after?.revision, after?.isSystem], [today, 2, true])
    assert.deepEqual((await stored('globex', changed))?.definition, { ...old.value, enabled: false })
    assert.deepEqual((await stored('acme', own))?.definition, old.value)
  }
})

test('old detectors of error logs and latency alarm as soon as the present ones where nobody changed them', async () => {
  for (const key of ['logs.error_count', 'spans.latency_p95']) {
    const today = systemDetectors.find(({ metric_key }) => metric_key === key)
    assert(today)
    const old = { ...today, params: { ...today.params, violate_n: 3, window_m: 4 } }
    const insert = (tenantId: string, isSystem: boolean) =>
      fixture.control
        .transaction()
        .execute((trx) => insertDetector(trx, { tenantId, definition: old, isSystem, nowMs: noonMs }))
    const [untouched, changed, own] = [
      await insert('acme', true),
      await insert('globex', true),
      await insert('acme', false),
    ]
    await patch('globex', changed, { enabled: false })
    for (let again = 0; again < 2; again++) {
      await soonerAlarms.up(fixture.control)
      const after = await store.findDetector('acme', untouched)
      assert.deepEqual([after?.definition, after?.revision], [today, 2])
      assert.deepEqual((await store.findDetector('globex', changed))?.definition.params, old.params)
      assert.deepEqual((await store.findDetector('acme', own))?.definition, old)
    }
  }
})

test('deleting a detector deletes its anomalies and no others', async () => {
  const [mine, other, foreign] = [await create(), await create(), await create(globex)]
  for (const detector of [mine, other, foreign]) await record(detector, [finding(0, 5)])
  await store.deleteDetector('acme', mine.id, '"1"', tokenNamed('me'))
  assert.equal(await store.findDetector('acme', mine.id), null)
  assert.deepEqual(
    (await anomalies()).map(({ detector_id }) => detector_id),
    [other.id],
  )
  assert.equal((await anomalies(globex)).length, 1)
  const entry = (await audit(acme)).at(-1)
  assert.equal(entry?.action, 'detector.deleted')
  assert.deepEqual(entry?.facts, { anomalies: 1 })
})

test('enabled detectors are due when their time has come, the longest overdue first, with their placement', async () => {
  const late = await create(globex)
  await clock.advance(1000)
  const later = await create()
  await create(acme, { enabled: false })
  assert.deepEqual(await store.dueDetectors(clock.nowMs(), 9), [
    { tenantId: 'globex', placement: 1, id: late.id, dueAtMs: clock.nowMs() - 1000 },
    { tenantId: 'acme', placement: 0, id: later.id, dueAtMs: clock.nowMs() },
  ])
  await record(late, [])
  assert.deepEqual(
    (await store.dueDetectors(clock.nowMs(), 9)).map(({ id }) => id),
    [later.id],
  )
  await clock.advance(60_000)
  assert.equal((await store.dueDetectors(clock.nowMs(), 1)).length, 1)
})

test('a run that finds the same episodes records nothing twice, and one that continues keeps its id and start', async () => {
  const detector = await create()
  await record(detector, [finding(0, 5), finding(10, 15, { isOpen: true })])
  const [open, ended] = await anomalies()
  assert(open !== undefined && ended !== undefined)
  assert.equal(open.ended_at, null)
  await clock.advance(60_000)
  await record(detector, [finding(0, 5), finding(11, 20, { isOpen: true, value: 200, peakNs: at(17) })])
  const [later, same, ...rest] = await anomalies()
  assert.deepEqual(rest, [])
  assert.deepEqual(same, ended)
  assert(later !== undefined)
  assert.equal(later.id, open.id)
  assert.equal(later.started_at, open.started_at)
  assert.equal(later.value, 200)
  assert.notEqual(later.updated_at, later.created_at)
  await record(detector, [finding(0, 5), finding(11, 25)])
  assert.equal((await anomalies())[0]?.ended_at, '2026-09-11T12:25:00.000000001Z')
})

test('findings of a new metric are not merged with anomalies of the old metric', async () => {
  const detector = await create()
  await record(detector, [finding(0, 5, { isOpen: true })])
  const changed = await patch('acme', detector.id, { metric_key: 'queue.age' })
  await record(changed, [finding(0, 6, { isOpen: true })])
  const found = await anomalies()
  assert.deepEqual(found.map(({ metric_key, ended_at }) => [metric_key, ended_at !== null]).sort(), [
    ['queue.age', false],
    ['queue.length', true],
  ])
})

test('a run that read an older definition, or a deleted detector, records nothing', async () => {
  const detector = await create()
  await patch('acme', detector.id, { window_minutes: 61 })
  assert.equal(await record(detector, [finding(0, 5)]), false)
  assert.equal((await store.findDetector('acme', detector.id))?.lastRunAtMs, null)
  await store.deleteDetector('acme', detector.id, undefined, tokenNamed('me'))
  assert.equal(await record({ ...detector, revision: 2 }, [finding(0, 5)]), false)
  assert.deepEqual(await anomalies(), [])
})

test('a run that failed leaves the anomalies as they are', async () => {
  const detector = await create()
  await record(detector, [finding(0, 5, { isOpen: true })])
  const before = await anomalies()
  const current = await store.findDetector('acme', detector.id)
  assert(current !== null)
  await store.recordRun({
    detector: current,
    ranAtMs: clock.nowMs(),
    nextRunAtMs: clock.nowMs() + 1,
    summary: { status: 'error', note: 'It could not be read.' },
    found: null,
    tuning: null,
  })
  assert.deepEqual(await anomalies(), before)
  const after = await store.findDetector('acme', detector.id)
  assert.equal(after?.lastStatus, 'error')
  assert.equal(after?.lastNote, 'It could not be read.')
})

test('anomalies are listed by start, latest first, in pages without gaps, also where starts are equal', async () => {
  const detector = await create()
  const groups = ['a', 'b', 'c'].map((service) => JSON.stringify({ service }))
  await record(
    detector,
    groups.flatMap((groupKey) => [finding(0, 5, { groupKey }), finding(10, 15, { groupKey })]),
  )
  await record(await create(globex), [finding(7, 8)])
  const all = await anomalies()
  assert.equal(all.length, 6)
  assert.deepEqual(
    all.map(({ started_at }) => started_at),
    all
      .map(({ started_at }) => started_at)
      .toSorted()
      .reverse(),
  )
  const seen: string[] = []
  let position: { startedNs: bigint; id: string } | null = null
  for (let page = 0; page < 4; page++) {
    const next: Anomaly[] = await store.listAnomalies('acme', { limit: 2, filter: {}, before: position })
    seen.push(...next.map(({ id }) => id))
    const last = next.at(-1)
    if (last !== undefined)
      position = { startedNs: last.started_at.includes(':10:') ? at(10) : at(0), id: last.id }
  }
  assert.deepEqual(
    seen,
    all.map(({ id }) => id),
  )
})

test('anomalies can be filtered by detector, by whether they are open, and by time, exact to the nanosecond', async () => {
  const [one, two] = [await create(), await create()]
  await record(one, [finding(0, 5), finding(10, 15, { isOpen: true })])
  await record(two, [finding(20, 25)])
  const starts = async (filter: object) =>
    (await anomalies(acme, filter)).map(({ started_at }) => started_at.slice(14, 16))
  assert.deepEqual(await starts({ detector_id: one.id }), ['10', '00'])
  assert.deepEqual(await starts({ open: 'true' }), ['10'])
  assert.deepEqual(await starts({ open: 'false' }), ['20', '00'])
  assert.deepEqual(await starts({ range_start: at(5) - 1n }), ['20', '10', '00'])
  assert.deepEqual(await starts({ range_start: at(5) }), ['20', '10'])
  assert.deepEqual(await starts({ range_end: at(10) }), ['00'])
  assert.deepEqual(await starts({ range_end: at(10) + 1n }), ['10', '00'])
  assert.deepEqual(await starts({ range_start: at(6), range_end: at(16) }), ['10'])
})

test('an anomaly is found by its own organisation only', async () => {
  await record(await create(), [finding(0, 5)])
  const [anomaly] = await anomalies()
  assert(anomaly !== undefined)
  assert.deepEqual(anomaly.group, { service: 'checkout' })
  assert.deepEqual(anomaly.signals, ['metrics'])
  assert.deepEqual(await store.findAnomaly('acme', anomaly.id), anomaly)
  assert.equal(await store.findAnomaly('globex', anomaly.id), null)
})

test('hiding telemetry hides the anomalies derived from it, only for its own organisation', async () => {
  for (const place of [acme, globex]) await record(await create(place), [finding(0, 5), finding(10, 15)])
  const [late, early] = await anomalies()
  assert(early !== undefined && late !== undefined)
  gate.hide('acme', { id: 'del_1', signals: ['metrics'], range: { startNs: null, endNs: at(5) } })
  gate.hide('acme', { id: 'del_2', signals: ['logs'], range: allTime })
  assert.deepEqual(await anomalies(), [late])
  assert.equal(await store.findAnomaly('acme', early.id), null)
  assert.equal((await anomalies(globex)).length, 2)
  gate.unhide('acme', 'del_1')
  assert.deepEqual(await anomalies(), [late, early])
})

const erase = async (place: TenantPlace, signals: readonly Signal[], range: TimeRange = allTime) =>
  (await eraseAnomalies(fixture, place.tenantId, { signals, range })).inRange

const count = (place: TenantPlace, signals: readonly Signal[], range: TimeRange) =>
  countAnomaliesIn(fixture.control, place.tenantId, { signals, range })

test('an erasure removes exactly the anomalies that share an instant with its range', async () => {
  for (const place of [acme, globex]) await record(await create(place), [finding(0, 5), finding(10, 15)])
  const range = { startNs: at(5), endNs: at(10) }
  assert.equal(await erase(acme, ['metrics'], range), 0, 'both bounds are half-open')
  const wider = { startNs: at(5) - 1n, endNs: at(10) }
  assert.equal((await count(acme, ['metrics'], wider)).inRange, 1)
  assert.equal(await erase(acme, ['metrics'], wider), 1)
  assert.equal((await count(acme, ['metrics'], wider)).inRange, 0)
  assert.equal(await erase(acme, ['metrics'], { startNs: null, endNs: at(10) + 1n }), 1)
  assert.equal((await anomalies(globex)).length, 2)
})

test('an erasure removes anomalies that came from its signals, also where other signals contributed', async () => {
  await record(await create(), [finding(0, 5)], { signals: ['logs'] })
  await record(await create(), [finding(0, 5)], { signals: ['metrics', 'logs', 'traces'] })
  await record(await create(), [finding(0, 5)], { signals: ['traces'] })
  assert.equal(await erase(acme, []), 0)
  assert.equal((await count(acme, ['metrics', 'traces'], allTime)).inRange, 2)
  assert.equal(await erase(acme, ['traces']), 2)
  assert.deepEqual(
    (await anomalies()).map(({ signals }) => signals),
    [['logs']],
  )
})

test('an erasure makes the detectors of its organisation due, so that their statuses are computed again', async () => {
  for (const place of [acme, globex]) await record(await create(place), [finding(0, 5)])
  await erase(acme, ['metrics'])
  assert.deepEqual(
    (await store.dueDetectors(clock.nowMs(), 9)).map(({ tenantId }) => tenantId),
    ['acme'],
  )
})

test('a run is not recorded when a part of what it read was hidden since, and its detector stays due', async () => {
  const detector = await create()
  await record(detector, [finding(0, 5, { isOpen: true })])
  await erase(acme, ['logs'])
  const read = [
    { startNs: at(-60), endNs: at(-30) },
    { startNs: at(-20), endNs: at(60) },
  ]
  const hiddenAt = (ns: bigint) => (range: { startNs: bigint; endNs: bigint }) =>
    range.startNs <= ns && ns < range.endNs
  const found = [finding(0, 8, { isOpen: true, value: 999 }), finding(10, 12)]
  assert.equal(await record(detector, found, { read, isUnknown: hiddenAt(at(-40)) }), false)
  assert.deepEqual(
    (await anomalies()).map(({ value }) => value),
    [120],
  )
  assert.equal((await store.dueDetectors(clock.nowMs(), 9)).length, 1)
  assert.equal(await record(detector, found, { read, isUnknown: hiddenAt(at(-25)) }), true, 'not read')
  assert.equal((await anomalies()).length, 2)
})

test('a page of detectors is read in pieces, until a response is full', async () => {
  const ids = (await insertLongScopes(120)).toReversed()
  const { pace, turns } = paceOfSteps()
  const read: string[] = []
  const pages: number[] = []
  for (let beforeId: string | null = null; ; ) {
    const rows = await store.listDetectors('acme', { limit: 101, beforeId }, pace)
    const page = pageOfRows(rows, 100, ({ id }) => [id], toDetector)
    read.push(...page.items.map(({ id }) => id))
    pages.push(rows.length)
    if (page.next_cursor === null) break
    beforeId = read.at(-1) ?? null
  }
  assert.deepEqual(read, ids, 'each once')
  // A page has room for 69 of them.
  assert.deepEqual(pages, [75, 51])
  assert(turns() >= 10, `${turns()} turns`)
})

test('services of any number of detectors are read with others in between, also from long scopes', async () => {
  const ids = await insertLongScopes(60)
  const foreign = await create(globex, { scope: { service: 'theirs' } })
  const { pace, turns } = paceOfSteps()
  const subjects = await store.findSubjects('acme', [...ids, foreign.id, 'det_gone'], pace)
  const subject = { metricKey: 'queue.length', methodKey: 'threshold', service: 'checkout' }
  assert.deepEqual(new Map(ids.map((id) => [id, subject])), subjects)
  assert(turns() >= 5, `${turns()} turns`)
})
