// The routes of detectors and anomalies, over a real control plane and engine: every field, every refusal,
// and always two organisations.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { sql } from 'kysely'
import { pino } from 'pino'
import { everyOperation } from '../../contract/operations/every.ts'
import type { Role } from '../../contract/role.ts'
import { readChain } from '../audit/log.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import type { Caller } from '../core/caller.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { readActiveHolds } from '../deletion/governance/active-holds.ts'
import { byAccessToken } from '../http/authentication.ts'
import { openApiAnswer } from '../http/pages/openapi.ts'
import { addReferencePage } from '../http/pages/reference-page.ts'
import { createHttp } from '../http/server.ts'
import type { TelemetryEngine, TenantPlace } from '../telemetry/engine.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import {
  acme,
  atNs,
  globex,
  insertSpans,
  noonMs,
  openControlAndEngine,
  removeDetectors,
  type StoresFixture,
} from './detection-fixture.ts'
import { DetectionStore } from './detectors/store.ts'
import { createSystemDetectors } from './detectors/system-detectors.ts'
import { Incidents } from './incidents/incidents.ts'
import { SurroundingsReader } from './incidents/surroundings.ts'
import { addDetectionRoutes } from './routes.ts'
import { DetectorRunner } from './runs/runner.ts'

let fixture: StoresFixture
let engine: TelemetryEngine
let http: FastifyInstance
let clock: ManualClock
/** Whose turns on the event loop were waited for. */
let turnsOf: string[] = []

before(async () => {
  fixture = await openControlAndEngine()
  engine = fixture.engine
  clock = new ManualClock(noonMs)
  const logger = pino({ level: 'silent' })
  const gate = new TelemetryGate()
  const store = new DetectionStore(fixture.control, clock, gate, readActiveHolds)
  const runner = new DetectorRunner({ store, engine, gate, clock, logger })
  http = createHttp({
    clock,
    logger,
    authenticate: byAccessToken(async (secret) => callerOf(secret)),
    isReady: () => true,
  })
  addReferencePage(http, { document: openApiAnswer(everyOperation, '0'), canTry: true })
  const metricKeysOf = async ({ tenantId }: Caller) => [`${tenantId}.queue`]
  const readerOf = (caller: Caller) =>
    new TenantReader(engine, caller, gate, { turn: async () => void turnsOf.push(caller.tenantId) })
  const incidents = new Incidents(store, new SurroundingsReader(gate))
  addDetectionRoutes(http, { store, runner, incidents, metricKeysOf, readerOf, clock })
  await http.ready()
})
after(async () => {
  await http.close()
  await fixture.close()
})
beforeEach(async () => {
  await removeDetectors(fixture)
})

/** Tokens in these tests are `organisation/role`. */
function callerOf(secret: string): Caller | null {
  const [tenantId, role] = secret.split('/')
  const place = [acme, globex].find((one) => one.tenantId === tenantId)
  if (place === undefined || role === undefined) return null
  return { ...place, organisationName: place.tenantId, role: role as Role, requester: tokenNamed(secret) }
}

interface Sent {
  readonly as?: string
  readonly type?: string | null
  readonly headers?: Record<string, string>
}

/** Sends a string body as it is, and any other body as JSON. */
function send(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', url: string, body?: unknown, sent: Sent = {}) {
  const type = sent.type === undefined ? 'application/json' : sent.type
  return http.inject({
    method,
    url,
    headers: {
      authorization: `Bearer ${sent.as ?? 'acme/member'}`,
      ...(body === undefined || type === null ? {} : { 'content-type': type }),
      ...sent.headers,
    },
    ...(body === undefined ? {} : { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
}

const queue = {
  name: 'Queue',
  metric_key: 'queue.length',
  method_key: 'threshold',
  params: { upper: 100 },
  window_minutes: 60,
  schedule_minutes: 1,
}

async function create(
  more: object = {},
  as = 'acme/member',
): Promise<Record<string, unknown> & { id: string }> {
  const answer = await send('POST', '/anomalies/detectors', { ...queue, ...more }, { as })
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json()
}

async function createSystem(place: TenantPlace = acme): Promise<Record<string, unknown> & { id: string }> {
  await fixture.control.transaction().execute((trx) => createSystemDetectors(trx, place.tenantId, noonMs))
  const answer = await send('GET', '/anomalies/detectors?limit=1', undefined, {
    as: `${place.tenantId}/viewer`,
  })
  return answer.json().items[0]
}

const at = (id: string) => `/anomalies/detectors/${id}`

/** `location type` of each problem of a 422. */
function problems(answer: LightMyRequestResponse): string[] {
  assert.equal(answer.statusCode, 422, answer.body)
  const { detail } = answer.json()
  for (const problem of detail) {
    assert.deepEqual(Object.keys(problem).sort(), ['ctx', 'input', 'loc', 'msg', 'type'])
    assert(problem.loc.every((part: unknown) => typeof part === 'string'))
    assert.equal(typeof problem.ctx, 'object')
  }
  return detail.map(({ loc, type }: { loc: string[]; type: string }) => `${loc.join('.')} ${type}`)
}

function refusedAs(answer: LightMyRequestResponse, status: number, code: string): void {
  assert.equal(answer.statusCode, status, answer.body)
  assert.deepEqual(Object.keys(answer.json()).sort(), ['code', 'detail'])
  assert.equal(answer.json().code, code)
}

test('a created detector has all fields of the interface, an ETag and a Location', async () => {
  const answer = await send('POST', '/anomalies/detectors', queue)
  assert.equal(answer.statusCode, 201)
  const { id, params, ...rest } = answer.json()
  assert.deepEqual(rest, {
    name: 'Queue',
    metric_key: 'queue.length',
    method_key: 'threshold',
    scope: {},
    window_minutes: 60,
    schedule_minutes: 1,
    enabled: true,
    is_system: false,
    last_run_at: null,
    last_status: null,
    created_at: '2026-09-11T12:00:00.000Z',
    last_note: null,
    next_run_at: '2026-09-11T12:00:00.000Z',
  })
  assert.equal(params.upper, 100)
  assert.equal(params.clear_n, 3)
  assert.equal(answer.headers.location, at(id))
  assert.equal(answer.headers.etag, '"1"')
  const read = await send('GET', at(id))
  assert.deepEqual(read.json(), answer.json())
  assert.equal(read.headers.etag, '"1"')
})

test('the response to an invalid body names all problems at once', async () => {
  const answer = await send('POST', '/anomalies/detectors', {
    name: '',
    metric_key: 'spans.nothing',
    method_key: 'threshold',
    params: { upper: 'high', k: 4 },
    scope: { service: 5, colour: 'red' },
    window_minutes: 129_601,
    schedule_minutes: 0,
    enabled: 'yes',
    id: 'mine',
  })
  assert.deepEqual(problems(answer).sort(), [
    'body.enabled bool_type',
    'body.id extra_forbidden',
    'body.metric_key value_error',
    'body.name string_too_short',
    'body.params.k extra_forbidden',
    'body.params.upper float_type',
    'body.schedule_minutes greater_than_equal',
    'body.scope.colour extra_forbidden',
    'body.scope.service string_type',
    'body.window_minutes less_than_equal',
  ])
  assert.deepEqual(problems(await send('POST', '/anomalies/detectors', {})), [
    'body.name missing',
    'body.metric_key missing',
    'body.method_key missing',
  ])
})

test('a method that compares peers is refused without a group, on creation and on patch', async () => {
  const missing = ['body.scope.group_by missing']
  const alone = { name: 'Odd one', metric_key: 'spans.latency_p95', method_key: 'peer_outlier' }
  const refused = await send('POST', '/anomalies/detectors', alone)
  assert.deepEqual(problems(refused), missing)
  assert.match(refused.json().detail[0].msg, /set scope.group_by/)
  const { id } = await create({ ...alone, params: {}, scope: { group_by: 'host.name' } })
  assert.deepEqual(problems(await send('PATCH', at(id), { scope: { service: 'checkout' } })), missing)
  const other = await create()
  const change = { method_key: 'peer_outlier', params: {} }
  assert.deepEqual(problems(await send('PATCH', at(other.id), change)), missing)
  const corrected = await send('PATCH', at(other.id), { ...change, scope: { group_by: 'host.name' } })
  assert.equal(corrected.statusCode, 200)
  assert.equal(corrected.json().params.min_peers, 4)
})

test('a patch changes what it names and returns the whole detector', async () => {
  const { id, ...before } = await create()
  const answer = await send('PATCH', at(id), {
    name: 'Backlog',
    enabled: false,
    scope: { service: 'checkout' },
  })
  assert.equal(answer.statusCode, 200)
  assert.deepEqual(answer.json(), {
    id,
    ...before,
    name: 'Backlog',
    enabled: false,
    next_run_at: null,
    scope: { service: 'checkout' },
  })
  assert.equal(answer.headers.etag, '"2"')
  assert.deepEqual((await send('GET', at(id))).json(), answer.json())
})

test('an empty object is a patch that changes nothing', async () => {
  const created = await create()
  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'application/merge-patch+json',
  ]) {
    const answer = await send('PATCH', at(created.id), {}, { type })
    assert.equal(answer.statusCode, 200)
    assert.deepEqual(answer.json(), created)
    assert.equal(answer.headers.etag, '"1"')
  }
})

test('plain JSON replaces params and scope as a whole, a merge patch merges them', async () => {
  const { id } = await create({
    scope: { service: 'checkout', group_by: 'host' },
    params: { upper: 9, clear_n: 5 },
  })
  const replaced = await send('PATCH', at(id), { params: { lower: 1 }, scope: { service: 'search' } })
  assert.deepEqual(replaced.json().scope, { service: 'search' })
  assert.equal(replaced.json().params.upper, undefined)
  assert.equal(replaced.json().params.clear_n, 3)
  const merged = await send(
    'PATCH',
    at(id),
    { params: { upper: 7 }, scope: { service: null, group_by: 'zone' } },
    { type: 'application/merge-patch+json' },
  )
  assert.deepEqual(merged.json().scope, { group_by: 'zone' })
  assert.equal(merged.json().params.lower, 1)
  assert.equal(merged.json().params.upper, 7)
})

test('a patch without a body, or with one that is no object, is a 422 that says so', async () => {
  const { id } = await create()
  assert.deepEqual(problems(await send('PATCH', at(id))), ['body missing'])
  assert.deepEqual(problems(await send('PATCH', at(id), '', { type: 'application/json' })), ['body missing'])
  for (const body of ['[]', '"x"', '5', 'null', 'true']) {
    assert.deepEqual(problems(await send('PATCH', at(id), body)), ['body dict_type'], body)
  }
  assert.deepEqual(problems(await send('PATCH', at(id), '{"name":')), ['body json_invalid'])
})

test('a detector with a longer scope than one may set is listed, read, renamed, run and deleted', async () => {
  const attributes = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, 'x'.repeat(1000)]))
  assert.deepEqual(
    problems(await send('POST', '/anomalies/detectors', { ...queue, scope: { attributes } })),
    ['body.scope.attributes bytes_too_long'],
  )
  const { id } = await create()
  await fixture.control
    .updateTable('detectors')
    .set({ scope: JSON.stringify({ attributes }) })
    .where('id', '=', id)
    .execute()
  const { items } = (await send('GET', '/anomalies/detectors')).json()
  assert.deepEqual(items[0].scope, { attributes })
  for (const type of ['application/json', 'application/merge-patch+json']) {
    const named = await send('PATCH', at(id), { name: type }, { type })
    assert.deepEqual([named.json().name, named.json().scope], [type, { attributes }])
    const scope = { attributes: { ...attributes, more: '' } }
    assert.deepEqual(problems(await send('PATCH', at(id), { scope }, { type })), [
      'body.scope.attributes too_long',
      'body.scope.attributes bytes_too_long',
    ])
  }
  assert.equal((await send('POST', `${at(id)}/run`)).json().last_status, 'no_data')
  assert.equal((await send('DELETE', at(id))).statusCode, 204)
})

test('a patch of the wrong content type is refused', async () => {
  const { id } = await create()
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json-patch+json']) {
    refusedAs(await send('PATCH', at(id), '{}', { type }), 415, 'unsupported_media_type')
  }
})

test('each field of a wrong type is named with the type of the problem', async () => {
  const { id } = await create()
  const rows: [string, unknown, string][] = [
    ['name', 5, 'string_type'],
    ['name', null, 'string_type'],
    ['name', '', 'string_too_short'],
    ['name', 'x'.repeat(201), 'string_too_long'],
    ['metric_key', 5, 'string_type'],
    ['metric_key', 'a b', 'value_error'],
    ['metric_key', 'logs.errors', 'value_error'],
    ['method_key', 5, 'enum'],
    ['method_key', 'oracle', 'enum'],
    ['params', [], 'dict_type'],
    ['params', null, 'dict_type'],
    ['params', 'upper', 'dict_type'],
    ['scope', [], 'dict_type'],
    ['scope', 'all', 'dict_type'],
    ['window_minutes', '60', 'int_type'],
    ['window_minutes', 1.5, 'int_type'],
    ['window_minutes', true, 'int_type'],
    ['window_minutes', 0, 'greater_than_equal'],
    ['window_minutes', 129_601, 'less_than_equal'],
    ['schedule_minutes', null, 'int_type'],
    ['schedule_minutes', -5, 'greater_than_equal'],
    ['schedule_minutes', 10_081, 'less_than_equal'],
    ['enabled', 'true', 'bool_type'],
    ['enabled', 1, 'bool_type'],
  ]
  for (const [field, value, type] of rows) {
    const answer = await send('PATCH', at(id), { [field]: value })
    assert.deepEqual(problems(answer), [`body.${field} ${type}`], `${field}: ${JSON.stringify(value)}`)
    assert.deepEqual(answer.json().detail[0].input, value)
  }
  const all = await send('PATCH', at(id), {
    name: 5,
    enabled: 5,
    params: { upper: 'x' },
    scope: { service: 5 },
  })
  assert.deepEqual(problems(all).sort(), [
    'body.enabled bool_type',
    'body.name string_type',
    'body.params.upper float_type',
    'body.scope.service string_type',
  ])
})

test('the context of a problem has the bound that was exceeded', async () => {
  const { id } = await create()
  const answer = await send('PATCH', at(id), { window_minutes: 0, schedule_minutes: 10_081 })
  assert.deepEqual(
    answer.json().detail.map(({ ctx }: { ctx: object }) => ctx),
    [{ ge: 1 }, { le: 10_080 }],
  )
})

test('read-only and unknown fields are refused, one problem each', async () => {
  const created = await create()
  const body = {
    id: 'x',
    is_system: true,
    last_run_at: null,
    last_status: 'ok',
    created_at: 'now',
    last_note: '',
    nmae: 1,
  }
  const answer = await send('PATCH', at(created.id), body)
  assert.deepEqual(
    problems(answer).sort(),
    Object.keys(body)
      .map((key) => `body.${key} extra_forbidden`)
      .sort(),
  )
  assert.deepEqual((await send('GET', at(created.id))).json(), created)
})

test('a field given twice is refused', async () => {
  const { id } = await create()
  const answer = await send(
    'PATCH',
    at(id),
    '{"enabled":false,"params":{"upper":1,"upper":2},"enabled":true}',
  )
  assert.deepEqual(problems(answer), ['body.params.upper value_error', 'body.enabled value_error'])
})

test('params are validated by the schema of their method', async () => {
  const { id } = await create()
  const wrong = await send('PATCH', at(id), { params: { upper: 1, k: 4, window_points: 300 } })
  assert.deepEqual(problems(wrong), [
    'body.params.k extra_forbidden',
    'body.params.window_points extra_forbidden',
  ])
  assert.deepEqual(problems(await send('PATCH', at(id), { params: {} })), ['body.params.upper value_error'])
  assert.deepEqual(problems(await send('PATCH', at(id), { params: { upper: 1, violate_n: 9 } })), [
    'body.params.violate_n value_error',
  ])
  assert.deepEqual(problems(await send('PATCH', at(id), { method_key: 'robust_band' })), [
    'body.params missing',
  ])
  const changed = await send('PATCH', at(id), { method_key: 'robust_band', params: { k: 6 } })
  assert.equal(changed.statusCode, 200, changed.body)
  assert.equal(changed.json().params.k, 6)
})

test('an unknown id and an id of another organisation give identical responses', async () => {
  const { id } = await create({}, 'globex/owner')
  const unknown = `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`
  const asks: ((id: string) => Promise<LightMyRequestResponse>)[] = [
    (one) => send('GET', at(one)),
    (one) => send('PATCH', at(one), { name: 'Mine' }),
    (one) => send('PATCH', at(one), { name: 'Mine' }, { headers: { 'if-match': '"9"' } }),
    (one) => send('PATCH', at(one), { params: { k: 4 } }),
    (one) => send('PATCH', at(one), { name: 5 }),
    (one) => send('DELETE', at(one)),
    (one) => send('POST', `${at(one)}/run`),
    (one) => send('GET', `/anomalies/${one}`),
  ]
  for (const [i, ask] of asks.entries()) {
    const [foreign, none] = [await ask(id), await ask(unknown)]
    assert.equal(foreign.statusCode, none.statusCode)
    assert.equal(foreign.body, none.body)
    assert.deepEqual(Object.keys(foreign.headers), Object.keys(none.headers))
    if (i !== 4) refusedAs(none, 404, 'not_found')
  }
  assert.equal((await send('GET', at(id), undefined, { as: 'globex/viewer' })).json().name, 'Queue')
})

test('an id that is too long is a problem of the path', async () => {
  assert.deepEqual(problems(await send('PATCH', at('x'.repeat(101)), {})), [
    'path.detector_id string_too_long',
  ])
})

test('name, metric and method of a system detector are fixed, the rest is not', async () => {
  const { id, ...system } = await createSystem()
  for (const body of [
    { name: 'Mine' },
    { metric_key: 'spans.latency_p50' },
    { method_key: 'threshold' },
    { method_key: 'threshold', params: { upper: 1 } },
    { name: 'Mine', params: { upper: 1 } },
  ]) {
    refusedAs(await send('PATCH', at(id), body), 409, 'system_detector')
  }
  refusedAs(await send('DELETE', at(id)), 409, 'system_detector')
  assert.deepEqual((await send('GET', at(id))).json(), { id, ...system })
  const same = await send('PATCH', at(id), { name: system.name, metric_key: system.metric_key })
  assert.equal(same.statusCode, 200)
  const changed = await send(
    'PATCH',
    at(id),
    { enabled: false, params: { k: 9 }, scope: { service: 'a' }, window_minutes: 1440, schedule_minutes: 15 },
    { type: 'application/merge-patch+json' },
  )
  assert.equal(changed.statusCode, 200, changed.body)
  assert.equal(changed.json().enabled, false)
  assert.equal(changed.json().params.k, 9)
  assert.deepEqual(changed.json().scope, { service: 'a', group_by: 'service' })
  assert.equal(changed.json().is_system, true)
})

test('If-Match allows a change only of the version that was read', async () => {
  const { id } = await create()
  const patch = (name: string, tag: string) =>
    send('PATCH', at(id), { name }, { headers: { 'if-match': tag } })
  assert.equal((await patch('A', '"1"')).statusCode, 200)
  refusedAs(await patch('B', '"1"'), 412, 'precondition_failed')
  refusedAs(await patch('B', 'W/"2"'), 412, 'precondition_failed')
  refusedAs(
    await send('DELETE', at(id), undefined, { headers: { 'if-match': '"1"' } }),
    412,
    'precondition_failed',
  )
  assert.equal((await patch('C', '"1", "2"')).json().name, 'C')
  assert.equal((await patch('D', '*')).json().name, 'D')
})

test('deleting returns no body, and afterwards the detector does not exist', async () => {
  const { id } = await create()
  const answer = await send('DELETE', at(id))
  assert.equal(answer.statusCode, 204)
  assert.equal(answer.body, '')
  refusedAs(await send('GET', at(id)), 404, 'not_found')
  refusedAs(await send('DELETE', at(id)), 404, 'not_found')
})

test('viewers read, members change, and ingest tokens can do neither', async () => {
  const { id } = await create()
  const reads = ['/anomalies/detectors', at(id), '/anomalies', '/anomalies/methods', '/anomalies/metrics']
  for (const role of ['owner', 'admin', 'member', 'viewer']) {
    for (const url of reads)
      assert.equal((await send('GET', url, undefined, { as: `acme/${role}` })).statusCode, 200, url)
  }
  for (const url of reads)
    refusedAs(await send('GET', url, undefined, { as: 'acme/ingest' }), 403, 'role_not_permitted')
  for (const as of ['acme/viewer', 'acme/ingest']) {
    refusedAs(await send('POST', '/anomalies/detectors', queue, { as }), 403, 'role_not_permitted')
    refusedAs(await send('PATCH', at(id), { bad: 1 }, { as }), 403, 'role_not_permitted')
    refusedAs(await send('DELETE', at(id), undefined, { as }), 403, 'role_not_permitted')
    refusedAs(await send('POST', `${at(id)}/run`, undefined, { as }), 403, 'role_not_permitted')
  }
  for (const role of ['owner', 'admin', 'member']) {
    assert.equal((await send('PATCH', at(id), { name: role }, { as: `acme/${role}` })).statusCode, 200)
  }
  refusedAs(await send('GET', '/anomalies', undefined, { as: 'nobody/owner' }), 401, 'token_unknown')
})

test('refused requests are not in the audit log, and changes are there with their actor', async () => {
  const { id } = await create()
  await send('PATCH', at(id), { name: 5 })
  await send('PATCH', at(id), { enabled: false }, { as: 'acme/admin' })
  const chain = await readChain(fixture.control, 'audit_entries', 'acme')
  const mine = chain.map(({ text }) => JSON.parse(text)).filter(({ target }) => target === id)
  assert.deepEqual(
    mine.map(({ action, actor }) => [action, actor]),
    [
      ['detector.created', 'token:acme/member (tok_acmemember)'],
      ['detector.updated', 'token:acme/admin (tok_acmeadmin)'],
    ],
  )
})

test('detectors are listed in pages, without those of other organisations', async () => {
  const ids: string[] = []
  for (let i = 0; i < 3; i++) {
    await clock.advance(1)
    ids.unshift((await create()).id)
    await create({}, 'globex/owner')
  }
  const first = (await send('GET', '/anomalies/detectors?limit=2')).json()
  const rest = (await send('GET', `/anomalies/detectors?limit=2&cursor=${first.next_cursor}`)).json()
  assert.deepEqual(
    [...first.items, ...rest.items].map(({ id }) => id),
    ids,
  )
  assert.equal(rest.next_cursor, null)
  assert.deepEqual(problems(await send('GET', '/anomalies/detectors?limit=0&cursor=x&sort=up')).sort(), [
    'query.limit greater_than_equal',
    'query.sort extra_forbidden',
  ])
  assert.deepEqual(problems(await send('GET', '/anomalies/detectors?cursor=x')), ['query.cursor value_error'])
})

test('a list that passes over many anomalies waits for turns of its organisation', async () => {
  const many = 7_500
  await sql`
    with recursive numbers (i) as (select 0 union all select i + 1 from numbers where i < ${sql.lit(many - 1)})
    insert into anomalies (id, tenant_id, detector_id, group_key, metric_key, signal, started_at_ns,
      ended_at_ns, seen_until_ns, peak_at_ns, score, reason, created_at_ms, updated_at_ms)
    select 'ano_' || i, 'acme', 'det_1', '{}', 'spans.rate', 'traces', at, at, at, at, 1, 'r', 0, 0
    from (select i, cast(${atNs(0).toString()} + cast(i as bigint) as text) as at from numbers) as all_of_them`.execute(
    fixture.control,
  )
  turnsOf = []
  const answer = await send('GET', '/anomalies?muted=true', undefined, { as: 'acme/viewer' })
  assert.deepEqual([answer.statusCode, answer.json().items], [200, []])
  assert.deepEqual(turnsOf, ['acme', 'acme', 'acme'])
})

test('a run on request returns the detector after the run, and its anomalies can be read', async () => {
  const minute = (i: number) => BigInt(noonMs + i * 60_000) * 1_000_000n
  const slow = (service: string, from: number, to: number, durationMs: number) =>
    Array.from({ length: to - from }, (_, i) => ({ service, atNs: minute(from + i), durationMs }))
  await insertSpans(engine, acme, [
    ...slow('a', -30, 0, 900),
    ...slow('b', -20, -10, 900),
    ...slow('b', -10, 0, 5),
    ...slow('c', -30, 0, 5),
  ])
  await insertSpans(engine, globex, slow('a', -30, 0, 900))
  const latency = {
    metric_key: 'spans.latency_p50',
    params: { upper: 100 },
    scope: { group_by: 'service' },
    enabled: false,
  }
  const { id } = await create(latency)
  const foreign = await create(latency, 'globex/owner')
  await clock.advance(60_000 - (clock.nowMs() - noonMs))
  const ran = await send('POST', `${at(id)}/run`)
  assert.equal(ran.statusCode, 200, ran.body)
  assert.equal(ran.json().last_status, 'anomalous')
  assert.equal(ran.json().last_run_at, '2026-09-11T12:01:00.000Z')
  assert.equal(ran.headers.etag, '"1"')
  await send('POST', `${at(foreign.id)}/run`, undefined, { as: 'globex/owner' })

  const listed = (await send('GET', '/anomalies')).json()
  assert.deepEqual(
    listed.items.map(({ group, ended_at }: Record<string, unknown>) => [group, ended_at]),
    [
      [{ service: 'b' }, '2026-09-11T11:50:00Z'],
      [{ service: 'a' }, null],
    ],
  )
  const [ended, open] = listed.items
  const { context, ...same } = (await send('GET', `/anomalies/${open.id}`)).json()
  assert.deepEqual(same, open)
  assert.deepEqual(Object.keys(context), ['similar', 'contributors', 'links', 'related', 'deploys'])
  assert.deepEqual(context.related.anomalies[0].because, ['began_together'])
  assert.deepEqual([open.related_ids, ended.related_ids], [[ended.id], [open.id]])
  const incidentId = [open.id, ended.id].sort()[0].replace('ano_', 'inc_')
  assert.deepEqual([open.incident_id, ended.incident_id], [incidentId, incidentId])
  assert.equal(open.value, 900)
  assert.equal(open.upper, 100)
  assert.match(
    open.reason,
    /^p50 latency of a 900 ms over 1 request, expected at most 100 ms; 30 minutes high since 11:30 UTC$/,
  )
  const query = async (text: string) =>
    (await send('GET', `/anomalies?${text}`)).json().items.map((item: { id: string }) => item.id)
  assert.deepEqual(await query('open=true'), [open.id])
  assert.deepEqual(await query('open=false'), [ended.id])
  assert.deepEqual(await query(`detector_id=${foreign.id}`), [])
  assert.deepEqual(await query('end=2026-09-11T11:40:00Z'), [open.id])
  assert.deepEqual(await query('start=2026-09-11T13:50:00%2B02:00'), [open.id])
  // The time is 12:01.
  assert.deepEqual(await query('end=-21m'), [open.id])
  assert.deepEqual(await query('start=now-11m&end=now'), [open.id])
  assert.deepEqual(await query('start=-11m1s'), [ended.id, open.id])
  const page = (await send('GET', '/anomalies?limit=1')).json()
  assert.deepEqual(await query(`limit=1&cursor=${page.next_cursor}`), [open.id])
  const theirs = (await send('GET', '/anomalies', undefined, { as: 'globex/viewer' })).json().items
  assert.equal(theirs.length, 1)
  refusedAs(await send('GET', `/anomalies/${theirs[0].id}`), 404, 'not_found')
  assert.deepEqual(
    problems(await send('GET', '/anomalies?open=maybe&start=2026-09-11T12:00:00&end=soon')).sort(),
    ['query.end datetime_parsing', 'query.open enum', 'query.start timezone_aware'],
  )
})

test('a detector that is running cannot be started again', async () => {
  const { id } = await create({ metric_key: 'spans.rate' })
  const answers = await Promise.all([send('POST', `${at(id)}/run`), send('POST', `${at(id)}/run`)])
  assert.deepEqual(answers.map(({ statusCode }) => statusCode).sort(), [200, 409])
  const refused = answers.find(({ statusCode }) => statusCode === 409)
  assert.equal(refused?.json().code, 'detector_running')
})

test('the catalogues list the methods and the metrics', async () => {
  const methods = (await send('GET', '/anomalies/methods')).json().items
  const threshold = methods.find(({ method_key }: { method_key: string }) => method_key === 'threshold')
  assert.equal(threshold.params_schema.type, 'object')
  assert('upper' in threshold.params_schema.properties)
  assert.equal(threshold.needs_group_by, false)
  const peers = methods.find(({ method_key }: { method_key: string }) => method_key === 'peer_outlier')
  assert.equal(peers.needs_group_by, true)
  assert('min_peers' in peers.params_schema.properties)
  const metrics = (await send('GET', '/anomalies/metrics')).json().items
  assert.deepEqual(metrics[0], {
    metric_key: 'spans.rate',
    description: 'Requests (spans that enter a service) per second.',
    is_built_in: true,
  })
  assert.deepEqual(metrics.at(-1), { metric_key: 'acme.queue', description: '', is_built_in: false })
})

test('the reference page knows the operations, their path parameter and their bodies', async () => {
  const { components, paths } = (await http.inject('/openapi.json')).json()
  const patch = paths['/anomalies/detectors/{detector_id}'].patch
  assert.deepEqual(
    patch.parameters.map(({ name, in: place }: { name: string; in: string }) => [name, place]),
    [
      ['detector_id', 'path'],
      ['if-match', 'header'],
    ],
  )
  assert.deepEqual(Object.keys(patch.requestBody.content), [
    'application/json',
    'application/merge-patch+json',
  ])
  assert.deepEqual(patch.requestBody.content['application/json'].schema, {
    $ref: '#/components/schemas/PatchDetector',
  })
  assert.deepEqual(Object.keys(components.schemas.PatchDetector.properties), [
    'name',
    'metric_key',
    'method_key',
    'params',
    'scope',
    'window_minutes',
    'schedule_minutes',
    'enabled',
  ])
  assert('204' in paths['/anomalies/detectors/{detector_id}'].delete.responses)
})
