// Feedback and mutes from end to end: through the routes, runs on real telemetry, and erasures.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { pino } from 'pino'
import type { Anomaly, Detector } from '../../../contract/detection/detectors.ts'
import { type Mute, weekdays } from '../../../contract/detection/feedback.ts'
import type { Role } from '../../../contract/role.ts'
import { paceOfSteps } from '../../../tests/with-turns.ts'
import { readChain } from '../../audit/log.ts'
import { actorValues } from '../../control/actor-columns.ts'
import { figuresOf } from '../../control/dialect.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import type { Caller } from '../../core/caller.ts'
import { countFormatters } from '../../core/formatter-count-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import { byAccessToken } from '../../http/authentication.ts'
import { createHttp } from '../../http/server.ts'
import type { TelemetryEngine } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { raw } from '../../telemetry/sql.ts'
import { TenantReader } from '../../telemetry/tenant-reader.ts'
import {
  acme,
  atNs,
  createErrorsDetector,
  eraseAnomalies,
  errorsDraft,
  globex,
  insertSpans,
  noonMs,
  openControlAndEngine,
  removeDetectors,
  type StoresFixture,
  traffic,
} from '../detection-fixture.ts'
import { methodChoiceOf, type StoredDetector } from '../detectors/detector.ts'
import { DetectionStore } from '../detectors/store.ts'
import { addFeedbackRoutes } from '../feedback-routes.ts'
import { Incidents } from '../incidents/incidents.ts'
import { SurroundingsReader } from '../incidents/surroundings.ts'
import { addDetectionRoutes } from '../routes.ts'
import { courseRunOf } from '../runs/evaluate-run.ts'
import { DetectorRunner } from '../runs/runner.ts'
import { countAnomaliesIn } from './anomaly-erasure.ts'

const minuteMs = 60_000
const at = (minute: number) => new Date(noonMs + minute * minuteMs).toISOString()

let fixture: StoresFixture
let engine: TelemetryEngine
let gate: TelemetryGate
let clock: ManualClock
let store: DetectionStore
let http: FastifyInstance

before(async () => {
  fixture = await openControlAndEngine()
  engine = fixture.engine
})
after(async () => {
  await http.close()
  await fixture.close()
})
beforeEach(async () => {
  await engine.command(raw('TRUNCATE TABLE otel_traces'))
  await removeDetectors(fixture)
  gate = new TelemetryGate()
  clock = new ManualClock(noonMs + 30_000)
  store = new DetectionStore(fixture.control, clock, gate, readActiveHolds)
  const logger = pino({ level: 'silent' })
  const runner = new DetectorRunner({ store, engine, gate, clock, logger })
  await http?.close()
  http = createHttp({
    clock,
    logger,
    isReady: () => true,
    authenticate: byAccessToken(async (secret) => {
      const [tenantId, role] = secret.split('/')
      const place = [acme, globex].find((one) => one.tenantId === tenantId)
      if (place === undefined) return null
      return { ...place, organisationName: place.tenantId, role: role as Role, requester: tokenNamed(secret) }
    }),
  })
  const readerOf = (caller: Caller) => new TenantReader(engine, caller, gate)
  const incidents = new Incidents(store, new SurroundingsReader(gate))
  addDetectionRoutes(http, { store, runner, incidents, metricKeysOf: async () => [], readerOf, clock })
  addFeedbackRoutes(http, store, readerOf)
})

function send(
  method: 'GET' | 'POST' | 'DELETE',
  url: string,
  body?: object,
  as = 'acme/member',
): Promise<LightMyRequestResponse> {
  const headers = { authorization: `Bearer ${as}` }
  return http.inject({ method, url, headers, ...(body === undefined ? {} : { payload: body }) })
}

async function ok<T>(answer: Promise<LightMyRequestResponse>, status = 200): Promise<T> {
  const { body, statusCode } = await answer
  assert.equal(statusCode, status, body)
  return body === '' ? (undefined as T) : JSON.parse(body)
}

const draft = {
  ...errorsDraft,
  params: { ...errorsDraft.params, violate_n: 1 },
  window_minutes: 240,
}

const create = (as = 'acme/member', more: object = {}) =>
  ok<Detector>(send('POST', '/anomalies/detectors', { ...draft, ...more }, as), 201)

/** Sets the clock to shortly after a minute of the day is complete, and runs the detector. */
async function runAt(minute: number, { id }: Detector, as = 'acme/member'): Promise<Detector> {
  await clock.advance(noonMs + minute * minuteMs + 30_000 - clock.nowMs())
  return ok(send('POST', `/anomalies/detectors/${id}/run`, undefined, as))
}

const anomalies = async (query = '', as = 'acme/member') =>
  (await ok<{ items: Anomaly[] }>(send('GET', `/anomalies?limit=50${query}`, undefined, as))).items

const judge = (anomaly: Anomaly | undefined, verdict: string, more: object = {}) =>
  ok<Anomaly>(send('POST', `/anomalies/${anomaly?.id}/feedback`, { verdict, ...more }))

test('after "not an anomaly" the same size does not alarm, a larger one does, and "real" undoes it', async () => {
  await insertSpans(engine, acme, [
    ...traffic(-120, 0, 0),
    ...traffic(0, 3, 3),
    ...traffic(3, 30, 0),
    ...traffic(30, 33, 3),
    ...traffic(33, 60, 0),
    ...traffic(60, 63, 6),
    ...traffic(63, 90, 0),
    ...traffic(90, 93, 3),
  ])
  const detector = await create()
  assert.equal((await runAt(2, detector)).last_status, 'anomalous')
  const [first] = await anomalies()
  const judged = await judge(first, 'not_an_anomaly', { note: 'the nightly import' })
  assert.deepEqual(
    { ...judged.feedback, effect: undefined },
    {
      verdict: 'not_an_anomaly',
      note: 'the nightly import',
      given_by: 'token:acme/member (tok_acmemember)',
      given_at: at(2.5),
      effect: undefined,
    },
  )
  assert.match(judged.feedback?.effect ?? '', /3.3 times/)
  const quiet = await runAt(2, detector)
  assert.equal(quiet.last_status, 'ok')
  assert.match(quiet.last_note ?? '', /By feedback the edge of 1 of 1 series is wider/)
  await runAt(10, detector)
  assert.equal((await anomalies())[0]?.ended_at, at(2).replace('.000Z', 'Z'), 'it has ended')
  assert.equal((await runAt(33, detector)).last_status, 'ok', 'the same size')
  assert.equal((await anomalies()).length, 1)

  assert.equal((await runAt(63, detector)).last_status, 'anomalous', 'twice the size')
  const [larger] = await anomalies()
  assert.match(larger?.reason ?? '', /expected 0 to 0.330.*feedback made 3.3 times wider/)
  await judge(first, 'real')
  await runAt(80, detector)
  assert.equal((await runAt(93, detector)).last_status, 'anomalous', 'the first size again')
  const actions = await readChain(fixture.control, 'audit_entries', 'acme')
  assert.match(JSON.stringify(actions), /anomaly\.judged/)
  assert.doesNotMatch(
    JSON.stringify(actions),
    /nightly import/,
    'the log, which is kept longer than the telemetry, does not contain the note',
  )
})

test('feedback applies to one series of one organisation, and needs a role that may change detectors', async () => {
  const spans = [...traffic(-120, 0, 0), ...traffic(0, 3, 3), ...traffic(3, 30, 0), ...traffic(30, 33, 3)]
  const both = [...spans, ...spans.map((span) => ({ ...span, service: 'search' }))]
  await insertSpans(engine, acme, both)
  await insertSpans(engine, globex, both)
  const [mine, theirs] = [await create(), await create('globex/member')]
  await runAt(3, mine)
  await runAt(3, theirs, 'globex/member')
  const own = (await anomalies()).find(({ group }) => group.service === 'checkout')
  const path = `/anomalies/${own?.id}/feedback`
  const verdict = { verdict: 'not_an_anomaly' }
  const foreign = await send('POST', path, verdict, 'globex/owner')
  const unknown = await send('POST', '/anomalies/ano_x/feedback', verdict, 'globex/owner')
  assert.deepEqual([foreign.statusCode, foreign.body], [404, unknown.body])
  assert.equal((await send('POST', path, verdict, 'acme/viewer')).statusCode, 403)
  assert.equal((await send('POST', path, { verdict: 'maybe' })).statusCode, 422)
  assert.equal((await send('POST', path, { ...verdict, because: 'x' })).statusCode, 422)
  await judge(own, 'not_an_anomaly')
  await runAt(33, mine)
  await runAt(33, theirs, 'globex/member')
  const since = `&start=${at(30)}`
  assert.deepEqual(
    (await anomalies(since)).map(({ group }) => group.service),
    ['search'],
  )
  assert.equal((await anomalies(since, 'globex/viewer')).length, 2)
})

test('an erasure removes feedback with its anomaly, and its effect on other bands too', async () => {
  const spans = [
    ...traffic(-120, 0, 0),
    ...traffic(0, 3, 3),
    ...traffic(3, 200, 0),
    ...traffic(200, 203, 6),
    ...traffic(203, 400, 0),
  ]
  await insertSpans(engine, acme, spans)
  await insertSpans(engine, globex, spans)
  // Each run reads two hours, so the window of the second episode is far from the first.
  const short = { window_minutes: 60 }
  const [mine, theirs] = [await create('acme/member', short), await create('globex/member', short)]
  for (const [detector, as] of [
    [mine, 'acme/member'],
    [theirs, 'globex/member'],
  ] as const) {
    await runAt(3, detector, as)
    const [first] = await anomalies('', as)
    await ok(
      send('POST', `/anomalies/${first?.id}/feedback`, { verdict: 'not_an_anomaly', note: 'known' }, as),
    )
  }
  for (const [detector, as] of [
    [mine, 'acme/member'],
    [theirs, 'globex/member'],
  ] as const) {
    await runAt(203, detector, as)
  }
  const before = await anomalies()
  assert.deepEqual(
    before.map(({ feedback, upper }) => [feedback?.note ?? null, upper?.toFixed(2)]),
    [
      [null, '0.33'],
      ['known', '0.10'],
    ],
  )
  const range = { startNs: atNs(0), endNs: atNs(3) }
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range })
  const hidden = await anomalies()
  assert.deepEqual(
    hidden.map(({ upper, feedback }) => [upper, feedback]),
    [[null, null]],
  )
  assert.equal(
    (await store.feedback.tuningsOf([(await store.findDetector('acme', mine.id)) as never]))[0]?.widenings
      .size,
    0,
  )
  const count = () => countAnomaliesIn(fixture.control, 'acme', { signals: ['traces'], range })
  assert.deepEqual(await count(), { inRange: 1, learntFrom: 1 })
  await eraseAnomalies(fixture, 'acme', { signals: ['traces'], range })
  assert.deepEqual(await count(), { inRange: 0, learntFrom: 0 })
  const rows = await fixture.control
    .selectFrom('anomalies')
    .selectAll()
    .where('tenant_id', '=', 'acme')
    .execute()
  assert.deepEqual(
    rows.map(({ edge_factor, verdict_note }) => [edge_factor, verdict_note]),
    [[null, null]],
  )
  assert.deepEqual(
    (await anomalies('', 'globex/viewer')).map(({ feedback }) => feedback?.note ?? null),
    [null, 'known'],
  )
})

test('a confirmed anomaly is known to the runs of its detector until its time is hidden', async () => {
  await insertSpans(engine, acme, [...traffic(-120, 0, 0), ...traffic(0, 3, 6), ...traffic(3, 60, 0)])
  const detector = await create()
  await runAt(10, detector)
  const [anomaly] = await anomalies()
  assert(anomaly !== undefined)
  const confirmed = async () => {
    const found = await store.findDetector('acme', detector.id)
    assert(found !== null)
    const [tuning] = await store.feedback.tuningsOf([found])
    const run = courseRunOf(
      { choice: methodChoiceOf(found.definition) as never, detector: found, tuning: tuning ?? null },
      { nowMs: 0, source: {} as never, share: { tenantId: 'acme', kind: 'asked' }, mayBeLate: true },
    )
    return [...run.feedback.values()].map((feedback) => feedback.confirmed)
  }
  assert.deepEqual(await confirmed(), [])
  await judge(anomaly, 'real')
  assert.deepEqual(await confirmed(), [[Date.parse(anomaly.started_at) / minuteMs]])
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: atNs(0), endNs: atNs(3) } })
  assert.deepEqual(await confirmed(), [])
})

test('a run with feedback or mutes that have changed since is not recorded, and others of the same batch are', async () => {
  const ids = [(await create()).id, (await create()).id]
  const found = await store.findDetectors('acme', [...ids, 'det_gone'])
  const detectors = ids.flatMap((id) => found.get(id) ?? [])
  assert.equal(detectors.length, 2)
  const tunings = await store.feedback.tuningsOf(detectors)
  const recorded = (ranAtMs: number) =>
    store.recordRuns(
      detectors.map((detector, i) => ({
        detector,
        ranAtMs,
        nextRunAtMs: ranAtMs + 1,
        summary: { status: 'ok', note: null },
        found: null,
        tuning: tunings[i] ?? null,
      })),
    )
  const ranAt = async () =>
    [...(await store.findDetectors('acme', ids)).values()].map((one) => one.lastRunAtMs)
  assert.equal(await recorded(1), 2)
  await ok(send('POST', '/anomalies/mutes', { detector_id: ids[0], open_ended: true }), 201)
  assert.equal(await recorded(2), 1)
  assert.deepEqual((await ranAt()).sort(), [1, 2])
  await ok(send('POST', '/anomalies/mutes', { all_detectors: true, open_ended: true }), 201)
  assert.equal(await recorded(3), 0, 'a mute of all detectors is one of each')
})

test('an episode during a mute is recorded without an alarm, and alarms when it lasts longer than the mute', async () => {
  await insertSpans(engine, acme, [
    ...traffic(-120, 0, 0),
    ...traffic(0, 3, 6),
    ...traffic(3, 30, 0),
    ...traffic(30, 50, 6),
    ...traffic(-120, 60, 0, 'search'),
  ])
  const detector = await create()
  const mute = await ok<Mute>(
    send('POST', '/anomalies/mutes', {
      detector_id: detector.id,
      group: { service: 'checkout' },
      from: at(-1),
      until: at(40),
      note: 'moving house',
    }),
    201,
  )
  assert.equal(mute.is_active, true)
  const muted = await runAt(2, detector)
  assert.equal(muted.last_status, 'muted')
  assert.match(muted.last_note ?? '', new RegExp(`Muted by ${mute.id}.*1 muted, 1 ok`))
  assert.deepEqual(
    (await anomalies()).map((one) => one.muted),
    [true],
  )
  assert.deepEqual(await anomalies('&muted=false'), [])
  await runAt(20, detector)
  assert.equal((await runAt(35, detector)).last_status, 'muted')
  assert.equal((await runAt(45, detector)).last_status, 'anomalous')
  const loud = await anomalies('&muted=false')
  assert.deepEqual(
    loud.map(({ started_at }) => started_at),
    [at(30).replace('.000Z', 'Z')],
  )
  const list = async (query = '') =>
    (await ok<{ items: Mute[] }>(send('GET', `/anomalies/mutes?${query}`, undefined, 'acme/viewer'))).items
  assert.deepEqual(await list(), [], 'it has ended')
  assert.deepEqual(
    (await list('expired=true')).map(({ id, is_active }) => [id, is_active]),
    [[mute.id, false]],
  )
})

test('after a mute is deleted, an episode that continues alarms at the next run', async () => {
  await insertSpans(engine, acme, [...traffic(-120, 0, 0), ...traffic(0, 10, 6)])
  const detector = await create()
  const weekly = { days: ['fri'], from: '14:00', until: '15:00', time_zone: 'Europe/Berlin' }
  const asked = { all_detectors: true, range_start: at(-1), open_ended: true, weekly }
  const mute = await ok<Mute>(send('POST', '/anomalies/mutes', asked), 201)
  assert.equal((await runAt(3, detector)).last_status, 'muted')
  await ok(send('DELETE', `/anomalies/mutes/${mute.id}`), 204)
  assert.equal((await runAt(3, detector)).last_status, 'anomalous')
  assert.deepEqual(
    (await anomalies()).map(({ muted }) => muted),
    [false],
  )
})

test('mutes belong to one organisation and its detectors, and need a role that may change detectors', async () => {
  const theirs = await create('globex/member')
  const everything = { all_detectors: true, open_ended: true }
  const mute = await ok<Mute>(send('POST', '/anomalies/mutes', everything, 'globex/member'), 201)
  assert.deepEqual([mute.detector_id, mute.group, mute.range_end, mute.until], [null, null, null, null])
  for (const id of [mute.id, 'mut_x']) {
    assert.equal((await send('DELETE', `/anomalies/mutes/${id}`)).statusCode, 404)
  }
  const refusal = async (body: object, as = 'acme/member') =>
    (await send('POST', '/anomalies/mutes', body, as)).statusCode
  assert.equal(await refusal({ detector_id: theirs.id, range_end: at(60) }), 422)
  assert.equal(await refusal({ all_detectors: true, range_end: at(-5) }), 422)
  assert.equal(await refusal({}, 'acme/viewer'), 403)
  assert.deepEqual((await ok<{ items: Mute[] }>(send('GET', '/anomalies/mutes'))).items, [])
  await ok(send('DELETE', `/anomalies/mutes/${mute.id}`, undefined, 'globex/owner'), 204)
})

test('a mute without a detector or without an end is refused, with all problems at once and under the names that were sent', async () => {
  const problems = async (body: object) => {
    const answer = await send('POST', '/anomalies/mutes', body)
    assert.equal(answer.statusCode, 422, answer.body)
    return answer
      .json()
      .detail.map(({ loc, type }: { loc: string[]; type: string }) => `${loc.join('.')} ${type}`)
      .sort()
  }
  assert.deepEqual(await problems({}), ['body.detector_id missing', 'body.range_end missing'])
  assert.deepEqual(await problems({ group: {}, note: 5 }), [
    'body.detector_id missing',
    'body.note string_type',
    'body.range_end missing',
  ])
  const group = { service: 'checkout' }
  assert.deepEqual(await problems({ group, from: at(5), until: at(5) }), ['body.until greater_than'])
  assert.deepEqual(await problems({ group, until: at(5), range_end: at(6) }), ['body.until value_error'])
  assert.deepEqual(await problems({ group, from: at(5), range_end: 'soon' }), [
    'body.range_end datetime_parsing',
  ])
  assert.deepEqual((await ok<{ items: Mute[] }>(send('GET', '/anomalies/mutes?expired=true'))).items, [])
  const mute = await ok<Mute>(send('POST', '/anomalies/mutes', { group, from: at(5), until: at(9) }), 201)
  assert.deepEqual([mute.range_start, mute.range_end], [mute.from, mute.until])
  assert.equal(
    mute.detector_id,
    null,
    'a label is enough: the mute applies to every detector with that series',
  )
})

test('an unlimited mute of everything from an earlier version still mutes', async () => {
  await insertSpans(engine, acme, [...traffic(-120, 0, 0), ...traffic(0, 10, 6)])
  const detector = await create()
  const row = { id: 'mut_old', tenant_id: 'acme', created_at_ms: noonMs - minuteMs }
  const empty = {
    detector_id: null,
    group_key: null,
    from_ns: null,
    until_ns: null,
    weekly: null,
    note: null,
  }
  await fixture.control
    .insertInto('detector_mutes')
    .values({ ...row, ...empty, ...actorValues('created_by', tokenNamed('owner')) })
    .execute()
  assert.equal((await runAt(3, detector)).last_status, 'muted')
  const { items } = await ok<{ items: Mute[] }>(send('GET', '/anomalies/mutes'))
  assert.deepEqual(
    items.map(({ id, is_active, range_end }) => [id, is_active, range_end]),
    [['mut_old', true, null]],
  )
})

test('a mute that ended before the longest window began is forgotten everywhere, also before its row is deleted', async () => {
  const mute = await ok<Mute>(
    send('POST', '/anomalies/mutes', { all_detectors: true, from: at(-10), until: at(40) }),
    201,
  )
  const kept = await ok<Mute>(
    send('POST', '/anomalies/mutes', { all_detectors: true, from: at(-10), until: at(60 * 24 * 5) }),
    201,
  )
  const all = async () =>
    (await ok<{ items: Mute[] }>(send('GET', '/anomalies/mutes?expired=true'))).items.map(({ id }) => id)
  const days = (count: number) => clock.advance(count * 1440 * minuteMs)
  await days(90)
  assert.deepEqual((await all()).sort(), [kept.id, mute.id].sort())
  await days(1)
  assert.deepEqual(await all(), [kept.id], 'neither listed')
  const detector = await create()
  const stored = await store.findDetector(acme.tenantId, detector.id)
  assert(stored !== null)
  assert.deepEqual(
    (await store.feedback.tuningsOf([stored]))[0]?.mutes.map(({ id }) => id),
    [kept.id],
    'nor used',
  )
  assert.equal((await send('DELETE', `/anomalies/mutes/${mute.id}`)).statusCode, 404, 'nor deleted')
})

test('two hundred mutes in as many time zones are listed with others in between, and without formatters from then on', async () => {
  const rows = Intl.supportedValuesOf('timeZone')
    .slice(0, 200)
    .map((name, i) => {
      // No other test in this process has asked for this spelling.
      const weekly = { days: [...weekdays], from: '00:00', until: '00:00', time_zone: name.toLowerCase() }
      return {
        ...{ id: `mut_${i}`, tenant_id: 'acme', created_at_ms: noonMs - minuteMs, detector_id: null },
        ...{ group_key: null, from_ns: null, until_ns: null, weekly: JSON.stringify(weekly), note: null },
        ...actorValues('created_by', tokenNamed('owner')),
      }
    })
  await fixture.control.insertInto('detector_mutes').values(rows).execute()
  const page = { limit: 200, beforeId: null, detectorId: undefined, withExpired: false }
  const { pace, turns } = paceOfSteps()
  const listed = await store.feedback.listMutes('acme', page, pace)
  assert(listed.length === 200 && listed.every(({ is_active }) => is_active))
  assert(turns() > 10, `${turns()} turns`)
  assert.equal(await countFormatters(() => store.feedback.listMutes('acme', page)), 0)
})

/** A row of a mute of before groups had a limit, with 60 kB of labels. */
const longMute = (i: number, detectorId: string | null = null) => {
  const group = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, '漢'.repeat(1000)]))
  return {
    ...{ id: `mut_${String(i).padStart(3, '0')}`, tenant_id: 'acme', created_at_ms: noonMs - minuteMs },
    ...{ detector_id: detectorId, group_key: JSON.stringify(group), weekly: null, note: null },
    ...{ from_ns: null, until_ns: null },
    ...actorValues('created_by', tokenNamed('owner')),
  }
}

const insertMutes = (rows: readonly ReturnType<typeof longMute>[]) =>
  fixture.control.insertInto('detector_mutes').values(rows).execute()

async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  const before = figuresOf(fixture.control).statements
  await work()
  return figuresOf(fixture.control).statements - before
}

test('the group of a mute has at most 4,096 bytes as JSON', async () => {
  const create = (bytes: number) => {
    const group = { a: '漢'.repeat(600), b: '漢'.repeat(600), c: '' }
    group.c = 'x'.repeat(bytes - Buffer.byteLength(JSON.stringify(group)))
    return send('POST', '/anomalies/mutes', { group, open_ended: true })
  }
  await ok(create(4096), 201)
  const refused = await create(4097)
  assert.equal(refused.statusCode, 422)
  const [problem] = refused.json().detail
  assert.deepEqual(
    [problem.loc, problem.type, problem.ctx],
    [['body', 'group'], 'bytes_too_long', { max_length: 4096 }],
  )
})

test('a page of mutes is read in pieces, until a response is full, and a short one by a statement', async () => {
  const rows = Array.from({ length: 120 }, (_, i) => longMute(i))
  await insertMutes(rows)
  const { pace, turns } = paceOfSteps()
  const ids: string[] = []
  const page = { limit: 201, beforeId: null, detectorId: undefined, withExpired: false }
  const first = await store.feedback.listMutes('acme', page, pace)
  // A response has room for 69 of them.
  assert.equal(first.length, 70)
  assert(turns() >= 6, `${turns()} turns`)
  for (let url = '/anomalies/mutes?limit=200'; ; ) {
    const { items, next_cursor } = await ok<{ items: Mute[]; next_cursor: string | null }>(send('GET', url))
    ids.push(...items.map(({ id }) => id))
    if (next_cursor === null) break
    url = `/anomalies/mutes?limit=200&cursor=${next_cursor}`
  }
  assert.deepEqual(ids, rows.map(({ id }) => id).toReversed(), 'each once')
  const one = paceOfSteps()
  assert.equal(await statementsOf(() => store.feedback.listMutes('acme', { ...page, limit: 2 }, one.pace)), 1)
  assert.equal(one.turns(), 0)
})

test('the mutes of many detectors are read once for all of them, with others in between', async () => {
  const detectors: StoredDetector[] = []
  for (let i = 0; i < 60; i++) detectors.push(await createErrorsDetector(store))
  const first = detectors[0]?.id ?? null
  await insertMutes(Array.from({ length: 60 }, (_, i) => longMute(i, i < 30 ? null : first)))
  const { pace, turns } = paceOfSteps()
  let mutes: number[] = []
  const statements = await statementsOf(async () => {
    mutes = (await store.feedback.tuningsOf(detectors, pace)).map((tuning) => tuning.mutes.length)
  })
  assert.deepEqual(
    mutes,
    detectors.map(({ id }) => (id === first ? 60 : 30)),
  )
  // Mutes in pieces of 25, and verdicts of 25 detectors at a time.
  assert.equal(statements, 6)
  assert(turns() >= 5, `${turns()} turns`)
})
