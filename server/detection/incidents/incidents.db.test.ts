// Incidents over a real control plane and real spans: what belongs together, where it began, pages, and that
// nothing of hidden telemetry or of another organisation is shown.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { IncidentWithMembers } from '../../../contract/detection/incidents.ts'
import { watchedEngine } from '../../../tests/fixtures.ts'
import { withTurns } from '../../../tests/with-turns.ts'
import { callerNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { Pace } from '../../core/turns/pace.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../../telemetry/row-fixture.ts'
import { raw } from '../../telemetry/sql.ts'
import { TenantReader } from '../../telemetry/tenant-reader.ts'
import {
  acme,
  atNs,
  createErrorsDetector,
  globex,
  noonMs,
  openControlAndEngine,
  removeDetectors,
  type StoresFixture,
} from '../detection-fixture.ts'
import { DetectionStore } from '../detectors/store.ts'
import { relatedIdsOf } from '../related.ts'
import { Incidents } from './incidents.ts'
import { SurroundingsReader } from './surroundings.ts'

const nowNs = atNs(600)

let fixture: StoresFixture
let engine: TelemetryEngine
let gate: TelemetryGate
let store: DetectionStore
let incidents: Incidents
/** What the clock that limits reading says next, and from then on. */
let elapsedMs: number[]
let lastMs = 0
const detectors = new Map<string, string>()

before(async () => {
  fixture = await openControlAndEngine()
  engine = fixture.engine
})
after(() => fixture.close())
beforeEach(async () => {
  for (const table of ['otel_traces', 'otel_logs']) await engine.command(raw(`TRUNCATE TABLE ${table}`))
  await removeDetectors(fixture)
  gate = new TelemetryGate()
  store = new DetectionStore(fixture.control, new ManualClock(noonMs), gate, readActiveHolds)
  elapsedMs = []
  lastMs = 0
  incidents = new Incidents(store, new SurroundingsReader(gate), () => elapsedMs.shift() ?? lastMs)
  for (const place of [acme, globex]) {
    detectors.set(place.tenantId, (await createErrorsDetector(store, place)).id)
  }
})

interface Given {
  readonly id: string
  readonly service: string
  readonly from: number
  readonly until: number
  readonly isOpen?: boolean
  readonly isMuted?: boolean
}

async function record({ tenantId }: TenantPlace, ...all: readonly Given[]): Promise<void> {
  const rows = all.map(({ from, id, isMuted = false, isOpen = false, service, until }) => ({
    id: `ano_${id}`,
    tenant_id: tenantId,
    detector_id: detectors.get(tenantId) ?? '',
    group_key: JSON.stringify({ service }),
    metric_key: 'spans.error_ratio',
    signal: 'traces',
    started_at_ns: atNs(from).toString(),
    ended_at_ns: isOpen ? null : atNs(until).toString(),
    seen_until_ns: atNs(until).toString(),
    peak_at_ns: atNs(from).toString(),
    ...{ value: 0.5, expected: 0, lower: null, upper: 0.1, score: 5, reason: `${service} fails` },
    read_from_ns: atNs(from - 60).toString(),
    unread_ns: '[]',
    muted: isMuted ? 1 : 0,
    created_at_ms: noonMs + until * 60_000,
    updated_at_ms: noonMs + until * 60_000,
  }))
  await fixture.control.insertInto('anomalies').values(rows).execute()
}

/** A request of storefront calls checkout, which calls payments, each as client and server span. */
function requests(from: number, to: number, isFailing = false): FixtureRow[] {
  return Array.from({ length: (to - from) * 4 }, (_, n) => {
    const [trace, at] = [`t${from}-${n}`, atNs(from, n * 15_000)]
    const span = (service: string, kind: string, id: string, parent: string, ms: number): FixtureRow => ({
      ...{ Timestamp: at, TraceId: trace, SpanId: id, ParentSpanId: parent, ServiceName: service },
      ...{ SpanName: 'POST /pay', SpanKind: kind, StatusCode: isFailing ? 'Error' : 'Unset' },
      Duration: ms * 1_000_000,
      SpanAttributes: kind === 'Client' ? { 'server.address': `to-${id}` } : {},
      ResourceAttributes: { 'service.version': '1' },
    })
    return [
      span('storefront', 'Server', 'a', '', 50),
      span('storefront', 'Client', 'b', 'a', 40),
      span('checkout', 'Server', 'c', 'b', 38),
      span('checkout', 'Client', 'd', 'c', 22),
      span('payments', 'Server', 'e', 'd', isFailing ? 21 : 20),
    ]
  }).flat()
}

const readerOf = (place = acme) => new TenantReader(engine, place, gate)
const list = (page: Partial<Parameters<Incidents['list']>[1]> = {}, place = acme) =>
  incidents.list(readerOf(place), { limit: 50, before: null, ...page }, nowNs)

async function found(id: string, place = acme): Promise<IncidentWithMembers> {
  const incident = await incidents.find(readerOf(place), id, nowNs)
  assert.ok(incident !== null, id)
  return incident
}

/** Failures that begin in payments and come up to storefront, and one of another day. */
async function recordFailure(place = acme, prefix = ''): Promise<void> {
  await insertFixture(engine, place, 'otel_traces', [...requests(-60, 0), ...requests(0, 30, true)])
  await record(
    place,
    { id: `${prefix}a`, service: 'storefront', from: 0, until: 30 },
    { id: `${prefix}b`, service: 'payments', from: 0, until: 30 },
    { id: `${prefix}c`, service: 'checkout', from: 5, until: 25 },
    { id: `${prefix}x`, service: 'payments', from: -2000, until: -1990 },
  )
}

test('failures in three services are one incident, which began where nothing below failed', async () => {
  await recordFailure()
  const incident = await found('inc_a')
  assert.equal(incident.title, 'payments: requests fail; 2 other services are affected')
  assert.deepEqual(incident.anomaly_ids, ['ano_a', 'ano_b', 'ano_c'])
  assert.deepEqual([incident.state, incident.ended_at], ['closed', '2026-09-11T12:30:00Z'])
  assert.deepEqual([incident.told_at, incident.muted], ['2026-09-11T12:25:00.000Z', false])
  assert.equal(incident.origin.service, 'payments')
  assert.match(incident.origin.why[0] ?? '', /^\d+ of \d+ additional failures began in payments/)
  assert.deepEqual(
    incident.candidates.map(({ service }) => service),
    ['payments', 'storefront', 'checkout'],
  )
  const score = incident.candidates.reduce((sum, one) => sum + one.score, 0)
  assert.ok(Math.abs(score - 1) < 0.01)
  assert.deepEqual(incident.members[2]?.because, ['calls', 'began_together'])
  assert.deepEqual(
    incident.timeline.map(({ kind }) => kind),
    [
      ...Array(3).fill('anomaly_started'),
      'anomaly_ended',
      'told',
      ...Array(2).fill('anomaly_ended'),
      'closed',
    ],
  )
  const { incidents: listed, next } = await list()
  assert.deepEqual(
    listed.map(({ incident: { id } }) => id),
    ['inc_a', 'inc_x'],
  )
  assert.equal(next, null)
  const { candidates, members, timeline, ...item } = incident
  assert.deepEqual(listed[0]?.incident, item, 'the list says the same')
})

test('the id of a member that was once an incident of its own returns the whole incident', async () => {
  await recordFailure()
  assert.equal((await found('inc_c')).id, 'inc_a')
  assert.equal(await incidents.find(readerOf(), 'inc_nobody', nowNs), null)
  assert.equal(await incidents.find(readerOf(), 'ano_a', nowNs), null)
})

const idsOf = async (anomalyIds: readonly string[], place = acme) => {
  const known = await store.listAnomalies(place.tenantId, { limit: 100, filter: {}, before: null })
  const anomalies = known.filter(({ id }) => anomalyIds.includes(id))
  const ids = await incidents.idsOf(readerOf(place), anomalies, nowNs)
  return anomalyIds.map((id) => ids.get(id) ?? null)
}

test('each listed anomaly has the id of its incident, which the spans decide with', async () => {
  await recordFailure()
  await recordFailure(globex, 'g')
  assert.deepEqual(await idsOf(['ano_a', 'ano_b', 'ano_c', 'ano_x']), ['inc_a', 'inc_a', 'inc_a', 'inc_x'])
  assert.deepEqual(await idsOf(['ano_c']), ['inc_a'], 'alone as well')
  assert.deepEqual(await idsOf([]), [])
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: atNs(-10), endNs: null } })
  assert.deepEqual(await idsOf(['ano_c', 'ano_x']), [null, 'inc_x'], 'hidden anomalies have none')
  assert.deepEqual(await idsOf(['ano_gc'], globex), ['inc_ga'])
})

test('an id of an incident that needs more reading than a list may do is left out', async () => {
  const pairs = Array.from({ length: 9 }, (_, i) => ({ id: `${i}`, from: -900 * i }))
  for (const { from, id } of pairs) {
    const times = { from, until: from + 10 }
    await record(acme, { id: `a${id}`, service: `s${id}`, ...times })
    await record(acme, { id: `b${id}`, service: `t${id}`, ...times })
  }
  const ids = await idsOf(pairs.map(({ id }) => `ano_b${id}`))
  assert.deepEqual(
    ids,
    pairs.map(({ id }, i) => (i < 6 ? `inc_a${id}` : null)),
  )
  assert.deepEqual(await idsOf(['ano_b8']), ['inc_a8'], 'asked for alone it is known')
  lastMs = 1501
  elapsedMs = [0, 1000, 1500]
  assert.deepEqual(await idsOf(['ano_b0', 'ano_b1', 'ano_b2']), ['inc_a0', 'inc_a1', null], 'nor after 1.5 s')
})

test('an incident is open while an anomaly is, and for half an hour after the last was seen', async () => {
  await record(acme, { id: 'a', service: 'payments', from: 0, until: 30 })
  await record(acme, { id: 'b', service: 'ledger', from: 400, until: 410, isOpen: true })
  const stateAt = async (minute: number) => (await incidents.find(readerOf(), 'inc_a', atNs(minute)))?.state
  assert.equal(await stateAt(59), 'open')
  assert.equal(await stateAt(60), 'closed')
  assert.deepEqual([(await found('inc_b')).state, (await found('inc_b')).ended_at], ['open', null])
  const idsOf = async (page: Parameters<typeof list>[0]) =>
    (await list(page)).incidents.map(({ incident: { id } }) => id)
  assert.deepEqual(await idsOf({ state: 'open' }), ['inc_b'])
  assert.deepEqual(await idsOf({ state: 'closed' }), ['inc_a'])
  assert.deepEqual(await idsOf({ service: 'ledger' }), ['inc_b'])
  assert.deepEqual(await idsOf({ startNs: atNs(30) }), ['inc_b'])
  assert.deepEqual(await idsOf({ endNs: atNs(400) }), ['inc_a'])
})

test('an incident of muted anomalies is muted and has no told_at; with one that alarms it has one', async () => {
  await record(acme, { id: 'a', service: 'payments', from: 0, until: 30, isMuted: true })
  const muted = await found('inc_a')
  assert.deepEqual([muted.muted, muted.told_at], [true, null])
  await record(acme, { id: 'b', service: 'payments', from: 10, until: 40 })
  const alarming = await found('inc_a')
  assert.deepEqual([alarming.muted, alarming.told_at], [false, '2026-09-11T12:40:00.000Z'])
})

test('an incident of days is complete, whichever of its anomalies is requested', async () => {
  const all = Array.from({ length: 6 }, (_, i) => ({
    id: `d${i}`,
    service: 'payments',
    from: i * 600 - 4000,
  }))
  await record(acme, ...all.map((one) => ({ ...one, until: one.from + 601 })))
  for (const { id } of all) {
    const incident = await found(`inc_${id}`)
    assert.deepEqual([incident.id, incident.anomaly_count], ['inc_d0', 6], id)
    assert.deepEqual(await idsOf([`ano_${id}`]), ['inc_d0'])
  }
})

test('a verdict on an anomaly is shown with its incident, and excludes it from the search for the origin', async () => {
  await record(acme, { id: 'a', service: 'payments', from: 0, until: 30 })
  await record(acme, { id: 'b', service: 'checkout', from: 5, until: 30 })
  assert.equal((await found('inc_a')).origin.service, 'payments')
  const says = (id: string) =>
    store.feedback.giveFeedback('acme', id, { verdict: 'not_an_anomaly' }, callerNamed('me'))
  await says('ano_a')
  const incident = await found('inc_a')
  assert.deepEqual([incident.verdict, incident.origin.service], [null, 'checkout'])
  await says('ano_b')
  assert.equal((await found('inc_a')).verdict, 'not_an_anomaly')
})

test('a page continues where the one before ended, and each incident is on one page', async () => {
  const all = Array.from({ length: 7 }, (_, i) => ({ id: `p${i}`, service: `s${i}`, from: i * 70 }))
  await record(acme, ...all.map((one) => ({ ...one, until: one.from + 10 })))
  const ids: string[] = []
  let before = null
  do {
    const { incidents: items, next } = await list({ limit: 3, before })
    assert.ok(items.length <= 3)
    ids.push(...items.map(({ incident: { id } }) => id))
    before = next
  } while (before !== null)
  assert.deepEqual(ids, all.map(({ id }) => `inc_${id}`).toReversed())
})

test('what is hidden belongs to no incident, names no origin, and is not kept in memory', async () => {
  await recordFailure()
  await recordFailure(globex, 'g')
  assert.match((await found('inc_a')).origin.why.join(' '), /additional failures began in payments/)
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: atNs(-10), endNs: null } })
  assert.equal(await incidents.find(readerOf(), 'inc_a', nowNs), null)
  const { incidents: left } = await list()
  assert.deepEqual(
    left.map(({ incident: { id } }) => id),
    ['inc_x'],
  )
  assert.equal((await found('inc_ga', globex)).anomaly_count, 3, 'the neighbour has its own')
})

/** The same failure as anomalies of logs, which stay where spans are hidden. */
async function recordFailureInLogs(): Promise<void> {
  await recordFailure()
  await fixture.control
    .updateTable('anomalies')
    .set({ signal: 'logs' } as object)
    .execute()
}

test('hidden spans are no evidence, while the anomalies of logs stay', async () => {
  await recordFailureInLogs()
  const seen = await found('inc_a')
  assert.match(seen.origin.why.join(' '), /additional failures began in payments/)
  assert.deepEqual(await found('inc_a'), seen, 'asked again')
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: null, endNs: null } })
  const why = (await found('inc_a')).origin.why.join(' ')
  assert.doesNotMatch(why, /began in payments/)
  assert.match(why, /There are no spans of that time/)
})

test('what was read while a deletion hid it is read again once that deletion is cancelled', async () => {
  await recordFailureInLogs()
  const seen = await found('inc_a')
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: null, endNs: null } })
  assert.match((await found('inc_a')).origin.why.join(' '), /There are no spans of that time/)
  gate.unhide('acme', 'del_1')
  assert.deepEqual(await found('inc_a'), seen)
})

test('ids of incidents do not follow calls that are hidden while surroundings are read', async () => {
  const failure = async (place: TenantPlace, prefix: string) => {
    await insertFixture(engine, place, 'otel_traces', [...requests(-60, 0), ...requests(0, 30, true)])
    await record(
      place,
      { id: `${prefix}a`, service: 'storefront', from: 0, until: 60 },
      { id: `${prefix}b`, service: 'payments', from: 20, until: 60 },
    )
  }
  await failure(acme, '')
  await failure(globex, 'g')
  await fixture.control
    .updateTable('anomalies')
    .set({ signal: 'logs' } as object)
    .execute()
  assert.deepEqual(await idsOf(['ano_a', 'ano_b']), ['inc_a', 'inc_a'], 'their calls are visible')
  incidents = new Incidents(store, new SurroundingsReader(gate), () => 0)
  const hide = { id: 'del_1', signals: ['traces'], range: { startNs: null, endNs: null } } as const
  let isHidden = false
  engine = watchedEngine(fixture.engine, (statement) => {
    // Deploys are read after the spans.
    if (!isHidden && statement.includes('deployment.environment')) gate.hide('acme', hide)
    isHidden = gate.hidden('acme').length > 0
  })
  try {
    assert.deepEqual(await idsOf(['ano_a', 'ano_b']), ['inc_a', 'inc_b'])
    assert.ok(isHidden)
    assert.deepEqual(await idsOf(['ano_ga', 'ano_gb'], globex), ['inc_ga', 'inc_ga'])
  } finally {
    engine = fixture.engine
  }
})

test('others have their turns while a thousand anomalies are read, related and grouped', async () => {
  const given = Array.from({ length: 999 }, (_, i) => ({
    ...{ id: String(i).padStart(4, '0'), service: `s${i % 20}` },
    ...{ from: i % 50, until: 500 },
  }))
  await record(acme, ...given)
  const whole = { limit: 1000, filter: {}, before: null }
  const { result: all, turns: loopTurns } = await withTurns(() => store.listAnomalies('acme', whole))
  assert.equal(all.length, 999)
  assert.ok(loopTurns > 3, `${loopTurns} turns of the loop while they are read`)
  let turns = 0
  const turn = async () => {
    turns++
  }
  const related = await relatedIdsOf(store, 'acme', all.slice(0, 500), new Pace(turn))
  assert.equal(related.get('ano_0998')?.length, 20)
  assert.ok(turns > 3, `${turns} turns while they are related`)
  const reader = new TenantReader(engine, acme, gate, { turn })
  turns = 0
  const ids = await incidents.idsOf(reader, all.slice(0, 10), nowNs)
  assert.deepEqual([...new Set(ids.values())], ['inc_0000'])
  assert.ok(turns > 3, `${turns} turns while their ids are computed`)
  turns = 0
  const { incidents: listed } = await incidents.list(reader, { limit: 50, before: null }, nowNs)
  assert.deepEqual(
    listed.map(({ incident }) => incident.anomaly_count),
    [999],
  )
  assert.ok(turns > 3, `${turns} turns while their incident is computed`)
  const old = { service: 'old', from: -3000, until: -2900 }
  await record(acme, ...['x', 'y', 'z'].map((id) => ({ ...old, id })))
  const page = await Promise.all(['ano_x', 'ano_0000'].map((id) => store.findAnomaly('acme', id)))
  const far = await relatedIdsOf(
    store,
    'acme',
    page.filter((one) => one !== null),
  )
  assert.deepEqual(far.get('ano_x'), ['ano_y', 'ano_z'], 'one list of both times ends before them')
  assert.equal(far.get('ano_0000')?.length, 20)
})

test('another organisation finds neither the incident nor its id', async () => {
  await recordFailure()
  assert.equal(await incidents.find(readerOf(globex), 'inc_a', nowNs), null)
  assert.deepEqual((await list({}, globex)).incidents, [])
})
