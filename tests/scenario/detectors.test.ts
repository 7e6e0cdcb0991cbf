// Detectors over HTTP as the interface defines them, and one case from end to end: spans with an incident
// arrive over OTLP, and a detector reports the anomaly with its reason; a part of what it learnt from is
// erased, and the expected values are removed; then the time range itself is erased, and the anomaly with its
// numbers and values is removed. The gap that an erasure leaves raises nothing, while a gap without an
// erasure does.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DeletionPreview } from '../../contract/deletion/requests.ts'
import { AnomalyWithContext } from '../../contract/detection/context.ts'
import { Anomaly, Detector } from '../../contract/detection/detectors.ts'
import { Incident, IncidentWithMembers } from '../../contract/detection/incidents.ts'
import { DetectorPreview } from '../../contract/detection/preview.ts'
import { SeriesAnswer } from '../../contract/telemetry/queries.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { systemClock } from '../../server/core/clock.ts'
import { waitFor } from '../wait-for.ts'
import {
  type Answer,
  assertRefused,
  eraseCompletely,
  placesOf,
  problemsOf,
  type Sent,
  type Service,
  startService,
} from './service.ts'
import { minuteNs } from './telemetry.ts'

const url = '/anomalies/detectors'
const fieldNames = [
  'id',
  'name',
  'metric_key',
  'method_key',
  'params',
  'scope',
  'window_minutes',
  'schedule_minutes',
  'enabled',
  'is_system',
  'last_run_at',
  'last_status',
  'created_at',
]

const queue = {
  name: 'Queue',
  metric_key: 'queue.length',
  method_key: 'threshold',
  params: { upper: 100, violate_n: 1 },
  scope: { service: 'shop', attributes: { queue: 'mail' } },
  window_minutes: 60,
  schedule_minutes: 10_080,
  enabled: false,
}

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.stop())

function detectorIn(answer: Answer, status = 200): Detector {
  assert.equal(answer.status, status, answer.text)
  return Detector.parse(JSON.parse(answer.text))
}

async function create(json: object = queue): Promise<Detector> {
  return detectorIn(await service.send('POST', url, { json }), 201)
}

function patch(id: string, json: unknown, sent: Sent = {}): Promise<Answer> {
  return service.send('PATCH', `${url}/${id}`, { as: 'acme/member', ...sent, json })
}

test('a patched detector has the thirteen fields of the interface, and only the given ones are changed', async () => {
  const created = await create()
  const answer = await patch(created.id, { name: 'Mail queue', window_minutes: 120 })
  const body = JSON.parse(answer.text)
  assert.deepEqual(Object.keys(body).slice(0, 13), fieldNames)
  assert.deepEqual(detectorIn(answer), { ...created, name: 'Mail queue', window_minutes: 120 })
  assert.equal(typeof body.params, 'object')
  assert.deepEqual([body.is_system, body.last_run_at, body.last_status], [false, null, null])
  assert.match(body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.deepEqual(await service.read(`${url}/${created.id}`, Detector), detectorIn(answer))
})

test('an empty object changes nothing', async () => {
  const created = await create()
  const answer = await patch(created.id, {})
  assert.deepEqual(detectorIn(answer), created)
})

test('params and scope are replaced completely, or merged with the media type for merging', async () => {
  const created = await create()
  const merged = await patch(
    created.id,
    { params: { lower: 1, upper: null }, scope: { attributes: { queue: null, shard: '1' } } },
    { headers: { 'content-type': 'application/merge-patch+json' } },
  )
  const { params, scope } = detectorIn(merged)
  assert.deepEqual([params.lower, params.upper, params.violate_n], [1, undefined, 1])
  assert.deepEqual(scope, { service: 'shop', attributes: { shard: '1' } })
  const replaced = detectorIn(await patch(created.id, { params: { upper: 5 }, scope: {} }))
  assert.deepEqual(
    [replaced.params.lower, replaced.params.upper, replaced.params.violate_n],
    [undefined, 5, 2],
  )
  assert.deepEqual(replaced.scope, {})
})

test('all problems of a patch come in one response, and it changes nothing', async () => {
  const created = await create()
  const json = {
    id: 'det_mine',
    is_system: true,
    created_at: null,
    naem: 'x',
    name: '',
    enabled: 'yes',
    window_minutes: 0,
    schedule_minutes: 10_081,
    params: { upper: 'high', color: 'red' },
    scope: { service: 5 },
  }
  assert.deepEqual(placesOf(problemsOf(await patch(created.id, json))), [
    'body.created_at extra_forbidden',
    'body.enabled bool_type',
    'body.id extra_forbidden',
    'body.is_system extra_forbidden',
    'body.naem extra_forbidden',
    'body.name string_too_short',
    'body.params.color extra_forbidden',
    'body.params.upper float_type',
    'body.schedule_minutes less_than_equal',
    'body.scope.service string_type',
    'body.window_minutes greater_than_equal',
  ])
  for (const body of ['null', '[]', '7']) {
    const answer = await service.send('PATCH', `${url}/${created.id}`, {
      body,
      headers: { 'content-type': 'application/json' },
    })
    assert.deepEqual(placesOf(problemsOf(answer)), ['body dict_type'])
  }
  assert.deepEqual(await service.read(`${url}/${created.id}`, Detector), created)
})

test('the response for another organisation’s detector equals that for one that does not exist, byte for byte', async () => {
  const created = await create()
  for (const [method, path, json] of [
    ['PATCH', '', { name: 'Mine' }],
    ['PATCH', '', {}],
    ['GET', '', undefined],
    ['DELETE', '', undefined],
    ['POST', '/run', undefined],
  ] as const) {
    const send = (id: string) => service.send(method, `${url}/${id}${path}`, { as: 'globex/owner', json })
    const foreign = await send(created.id)
    assertRefused(foreign, 404, 'not_found')
    assert.deepEqual(foreign.bytes, (await send(`det_${'0'.repeat(26)}`)).bytes)
  }
  assert.deepEqual(await service.read(`${url}/${created.id}`, Detector), created)
})

test('a patch for an earlier version is refused', async () => {
  const created = await create()
  const { headers } = await service.send('GET', `${url}/${created.id}`)
  const etag = headers.get('etag') ?? assert.fail('no ETag')
  const first = await patch(created.id, { name: 'First' }, { headers: { 'if-match': etag } })
  assert.equal(detectorIn(first).name, 'First')
  const second = await patch(created.id, { name: 'Second' }, { headers: { 'if-match': etag } })
  assertRefused(second, 412, 'precondition_failed')
  assert.equal((await service.read(`${url}/${created.id}`, Detector)).name, 'First')
})

test('name, metric and method of a system detector are fixed, and it cannot be deleted', async () => {
  const { items } = await service.read(`${url}?limit=500`, pageOf(Detector))
  const system = items.find(({ is_system }) => is_system) ?? assert.fail('every organisation has some')
  for (const json of [
    { name: 'Mine' },
    { metric_key: 'logs.rate' },
    { method_key: 'threshold', params: { upper: 1 } },
  ]) {
    assertRefused(await patch(system.id, json), 409, 'system_detector')
  }
  assertRefused(await service.send('DELETE', `${url}/${system.id}`), 409, 'system_detector')
  const changed = detectorIn(await patch(system.id, { enabled: false, window_minutes: 1440 }))
  assert.deepEqual([changed.enabled, changed.window_minutes, changed.name], [false, 1440, system.name])
})

const nowMinute = systemClock.nowNs() / minuteNs
const historyMinutes = 180
/**
 * Six minutes in which requests fail, and six without requests, in minutes before now: after the first, up to
 * the last.
 */
const failing = { from: 40, until: 34 }
const pausing = { from: 60, until: 54 }
const startNs = (nowMinute - BigInt(failing.from)) * minuteNs
const endNs = (nowMinute - BigInt(failing.until)) * minuteNs

function isWithin(ago: number, { from, until }: { from: number; until: number }): boolean {
  return ago <= from && ago > until
}

/**
 * Ten requests a minute; where `fails`, eight of ten fail for a while, and where `pauses`, there are none for
 * a while.
 */
function requestsOf(name: string, { fails = false, pauses = false }): object {
  const spans: object[] = []
  // Two minutes into the future, so that the last complete minute is never empty, however slow the machine
  // is.
  for (let ago = historyMinutes; ago >= -2; ago--) {
    if (pauses && isWithin(ago, pausing)) continue
    for (let i = 0; i < 10; i++) {
      const at = (nowMinute - BigInt(ago)) * minuteNs + BigInt(i) * 5_000_000_000n
      const id = String((historyMinutes - ago) * 10 + i + 1)
      const isError = fails && i < 8 && isWithin(ago, failing)
      spans.push({
        traceId: id.padStart(32, '0'),
        spanId: id.padStart(16, '0'),
        name: 'POST /orders',
        kind: 2,
        startTimeUnixNano: String(at),
        endTimeUnixNano: String(at + 20_000_000n),
        status: isError ? { code: 2 } : {},
      })
    }
  }
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: name } }] }
  return { resourceSpans: [{ resource, scopeSpans: [{ spans }] }] }
}

/**
 * Runs a detector now. While the schedule is running it, waits for the result of that run in place of asking
 * again, because an organisation may ask for 60 runs a minute.
 */
async function run(id: string): Promise<Detector> {
  for (let tries = 1; ; tries++) {
    const before = await service.read(`${url}/${id}`, Detector)
    const answer = await service.send('POST', `${url}/${id}/run`)
    if (answer.status !== 409 || tries === 10) return detectorIn(answer)
    await waitFor(
      () => service.read(`${url}/${id}`, Detector),
      ({ last_run_at }) => last_run_at !== before.last_run_at,
    )
  }
}

function anomaliesOf(detectorId: string): Promise<{ items: Anomaly[] }> {
  return service.read(`/anomalies?detector_id=${detectorId}`, pageOf(Anomaly), 'acme/viewer')
}

/** The minutes of the incident of a metric of checkout, with the minute before and after. */
async function incidentPoints(metric: string) {
  const range = `start=${formatInstant(startNs - minuteNs)}&end=${formatInstant(endNs + minuteNs)}`
  const path = `/telemetry/series?metric=${metric}&service=checkout&step_seconds=60&${range}`
  const { series } = await service.read(path, SeriesAnswer)
  const points = series.flatMap((one) => one.points.map(({ value, erased }) => ({ value, erased })))
  assert.equal(points.length, 8)
  assert.ok(points[0]?.value !== null && points.at(-1)?.value !== null)
  return points.slice(1, -1)
}

/** Previews the detector of errors on the half hour before the incident, and the incident. */
function sendPreview(as: NonNullable<Sent['as']>): Promise<Answer> {
  const json = {
    metric_key: 'spans.error_ratio',
    method_key: 'robust_band',
    params: { warmup_points: 20, window_points: 60, min_abs_dev: 0.1 },
    scope: { group_by: 'service' },
    window_minutes: 120,
    schedule_minutes: 1,
    start: formatInstant(startNs - 20n * minuteNs),
    end: formatInstant(endNs + minuteNs),
  }
  return service.send('POST', `${url}/preview`, { as, json })
}

async function tryOut(as: NonNullable<Sent['as']> = 'acme/member'): Promise<DetectorPreview> {
  const answer = await sendPreview(as)
  assert.equal(answer.status, 200, answer.text)
  return DetectorPreview.parse(JSON.parse(answer.text))
}

const startAndGroup = ({ group, started_at }: Pick<Anomaly, 'group' | 'started_at'>) => ({
  group,
  started_at,
})

test('creating and previewing a method that compares peers without a group is refused with the reason', async () => {
  const alone = { name: 'Odd one', metric_key: 'spans.latency_p95', method_key: 'peer_outlier' }
  const range = { start: formatInstant(startNs - 60n * minuteNs), end: formatInstant(endNs) }
  for (const [path, json] of [
    [url, alone],
    [`${url}/preview`, { ...alone, ...range }],
  ] as const) {
    const refused = await service.send('POST', path, { as: 'acme/member', json })
    assert.equal(refused.status, 422, refused.text)
    assert.deepEqual(placesOf(problemsOf(refused)), ['body.scope.group_by missing'])
    const scope = { group_by: 'host.name' }
    const taken = await service.send('POST', path, { as: 'acme/member', json: { ...json, scope } })
    assert.ok(taken.status < 300, taken.text)
  }
})

/** The incident of an anomaly, listed and alone, which nobody else may read. */
async function incidentOf(anomaly: Anomaly): Promise<Incident> {
  const { items } = await service.read('/incidents?service=checkout&limit=1', pageOf(Incident))
  const [incident] = items
  assert.ok(incident)
  assert.deepEqual(incident.anomaly_ids, [anomaly.id])
  assert.equal(incident.origin.service, 'checkout')
  assert.match(incident.origin.why[0] ?? '', /additional failures began in checkout/)
  const whole = await service.read(`/incidents/${incident.id}`, IncidentWithMembers)
  assert.deepEqual([whole.title, whole.members[0]?.reason], [incident.title, anomaly.reason])
  const foreign = await service.send('GET', `/incidents/${incident.id}`, { as: 'globex/owner' })
  const unknown = await service.send('GET', '/incidents/inc_nobody', { as: 'globex/owner' })
  assert.deepEqual([foreign.status, foreign.text], [404, unknown.text])
  const others = await service.read('/incidents', pageOf(Incident), 'globex/owner')
  assert.deepEqual(others.items, [])
  for (const query of ['state=ended', 'cursor=x', 'range_start=yesterday', 'limit=501', 'colour=red']) {
    assert.equal((await service.send('GET', `/incidents?${query}`)).status, 422, query)
  }
  return incident
}

test('an incident is found and explained, and its anomaly is erased with the telemetry', async () => {
  for (const [name, kind] of [
    ['checkout', { fails: true }],
    ['payment', { pauses: true }],
    ['calm', {}],
  ] as const) {
    const answer = await service.send('POST', '/v1/traces', {
      as: 'acme/ingest',
      json: requestsOf(name, kind),
    })
    assert.equal(answer.text, '{}')
  }
  const common = { scope: { group_by: 'service' }, window_minutes: 120, schedule_minutes: 1 }
  const errors = await create({
    ...common,
    name: 'Errors',
    metric_key: 'spans.error_ratio',
    method_key: 'robust_band',
    params: { warmup_points: 30, window_points: 60, min_abs_dev: 0.1 },
  })
  await run(errors.id)
  const [found, ...more] = (await anomaliesOf(errors.id)).items
  assert.ok(found)
  assert.deepEqual(more, [])
  const { value, expected, lower, upper } = found
  assert.deepEqual(found.group, { service: 'checkout' })
  assert.deepEqual([found.started_at, found.ended_at], [formatInstant(startNs), formatInstant(endNs)])
  assert.deepEqual([value, expected], [0.8, 0])
  assert.ok(
    lower !== null && upper !== null && lower <= 0 && upper >= 0.1 && upper < 0.8,
    `${lower} to ${upper}`,
  )
  assert.match(found.reason, /error.* of checkout 0\.8.*expected.*6 minutes/)
  assert.deepEqual(await service.read(`/anomalies/${found.id}`, Anomaly), found)
  assert.deepEqual(
    await incidentPoints('spans.error_ratio'),
    Array(6).fill({ value: 0.8, erased: undefined }),
  )
  assert.equal((await service.send('GET', `/anomalies/${found.id}`, { as: 'globex/owner' })).status, 404)
  const { context } = await service.read(`/anomalies/${found.id}`, AnomalyWithContext)
  assert.equal(context.contributors?.summary, '48 of 60 requests failed')
  const incident = await incidentOf(found)
  await service.read(context.links.series, SeriesAnswer)
  assert.deepEqual((await tryOut()).anomalies.map(startAndGroup), [startAndGroup(found)])
  assert.deepEqual((await tryOut('globex/member')).anomalies, [])
  assertRefused(await sendPreview('acme/viewer'), 403, 'role_not_permitted')

  const learntFrom = {
    scope: 'range',
    range_start: formatInstant(startNs - 60n * minuteNs),
    range_end: formatInstant(startNs - 58n * minuteNs),
  }
  const preview = await service.send('POST', '/usage/storage/deletions/preview', { json: learntFrom })
  const { derived } = DeletionPreview.parse(JSON.parse(preview.text))
  assert.deepEqual(derived, { anomalies: 0, anomalies_learned_from: 1 })
  await eraseCompletely(service, { confirm: 'acme', ...learntFrom })
  await run(errors.id)
  const reason = 'Its expected band was computed from telemetry that has since been erased'
  assert.deepEqual(
    await service.read(`/anomalies/${found.id}`, Anomaly),
    { ...found, expected: null, lower: null, upper: null, score: 0, reason },
    'the anomaly stays; its expected values were learnt from erased telemetry and are removed',
  )

  const verdict = { verdict: 'real', note: 'the import of 4711' }
  const judged = await service.send('POST', `/anomalies/${found.id}/feedback`, { json: verdict })
  assert.equal(Anomaly.parse(JSON.parse(judged.text)).feedback?.note, 'the import of 4711')

  const request = await eraseCompletely(service, {
    scope: 'range',
    confirm: 'acme',
    range_start: formatInstant(startNs),
    range_end: formatInstant(endNs),
  })
  assert.equal(request.detail.rows_erased, 6 * 10 * 3 + 1, 'spans of three services, and the anomaly')
  assertRefused(await service.send('GET', `/anomalies/${found.id}`), 404, 'not_found')
  assertRefused(await service.send('GET', `/incidents/${incident.id}`), 404, 'not_found')
  assert.deepEqual((await service.read('/incidents?service=checkout', pageOf(Incident))).items, [])
  assert.deepEqual((await anomaliesOf(errors.id)).items, [])
  for (const metric of ['spans.error_ratio', 'spans.rate']) {
    assert.deepEqual(await incidentPoints(metric), Array(6).fill({ value: null, erased: true }))
  }
  const everything = await service.send('GET', '/anomalies?limit=500')
  assert.ok(!everything.text.includes(found.id))
  assert.ok(!everything.text.includes('4711'))
  const holed = await tryOut()
  assert.deepEqual(holed.anomalies, [])
  const gone = holed.series.flatMap(({ points }) => points.filter(({ erased }) => erased === true))
  assert.ok(gone.length >= 6)
  assert.ok(gone.every((point) => point.value === null))
})

test('the gap of an erasure raises nothing, while a gap without an erasure does', async () => {
  const silence = await create({
    name: 'Silence',
    metric_key: 'spans.rate',
    method_key: 'threshold',
    params: { lower: 0.05, missing: 'alert', violate_n: 1, window_m: 1, clear_n: 1 },
    scope: { group_by: 'service' },
    window_minutes: 120,
    schedule_minutes: 1,
  })
  await run(silence.id)
  const silent = (await anomaliesOf(silence.id)).items
  assert.deepEqual(
    silent.map(({ group, started_at, ended_at, value }) => ({ group, started_at, ended_at, value })),
    [
      {
        group: { service: 'payment' },
        started_at: formatInstant((nowMinute - BigInt(pausing.from)) * minuteNs),
        ended_at: formatInstant((nowMinute - BigInt(pausing.until)) * minuteNs),
        value: 0,
      },
    ],
    'the erased gap is unknown, not missing data',
  )
  const { items } = await service.read(`${url}?limit=500`, pageOf(Detector))
  const errors = items.find(({ name }) => name === 'Errors') ?? assert.fail('it was created before')
  assert.notEqual((await run(errors.id)).last_status, 'error')
  assert.deepEqual((await anomaliesOf(errors.id)).items, [])
})
