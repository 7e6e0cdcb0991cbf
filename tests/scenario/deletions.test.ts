// Erasing over HTTP as the interface defines it: the content of responses, that a request can be repeated
// safely, that nobody sees another organisation's requests, and that a 202 keeps its promise: hidden at once,
// removed at the end, and nothing else with it. The erasure can be paused before it begins, so that a test
// sees it in progress.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, afterEach, before, test } from 'node:test'
import { DeletionRequest, LedgerEntry } from '../../contract/deletion/requests.ts'
import { errorCatalogue } from '../../contract/errors.ts'
import { AuditEntry } from '../../contract/organisation/audit.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { Barrier, deletionsUrl, instant, minute, minutesOfEverySignal, requestIn } from './erasing.ts'
import {
  type Answer,
  assertRefused,
  eraseCompletely,
  placesOf,
  problemsOf,
  type Sent,
  type Service,
  startService,
  tenants,
  waitUntilCompleted,
} from './service.ts'
import { readSample, sendSample } from './telemetry.ts'

let service: Service
const barrier = new Barrier()

before(async () => {
  service = await startService({
    failpoint: barrier.failpoint,
  })
  for (const tenant of tenants) await sendSample(service, `${tenant}/ingest`, [0, 1, 2, 3, 4].map(minute))
})
after(() => service.stop())
afterEach(() => barrier.open())

function erase(json: object, sent: Sent = {}): Promise<Answer> {
  return service.send('POST', deletionsUrl, { ...sent, json: { confirm: 'acme', ...json } })
}

test('a 202 has the nine fields of the interface and a location, and the range is already hidden', async () => {
  barrier.close()
  const answer = await erase({ scope: 'range', range_start: instant(1), range_end: instant(2) })
  const body = JSON.parse(answer.text)
  assert.equal(answer.status, 202)
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
  assert.equal(answer.headers.get('location'), `${deletionsUrl}/${body.request_id}`)
  assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
  const { id, request_id, created_at, requested_by, detail, ...rest } = body
  assert.equal(id, request_id)
  assert.match(request_id, /^del_[0-9a-z]{26}$/)
  assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.match(requested_by, /^token:owner \(tok_[0-9a-z]{26}\)$/)
  assert.ok(typeof detail === 'object' && detail !== null && !Array.isArray(detail))
  assert.deepEqual(rest, {
    scope: 'range',
    status: 'running',
    range_start: '2026-01-05T00:01:00Z',
    range_end: '2026-01-05T00:02:00Z',
    finished_at: null,
    signals: ['metrics', 'logs', 'traces'],
    reason: null,
    note: null,
    hidden_at: created_at,
    removed_at: null,
    verified_at: null,
    backups_clear_by: null,
    starts_at: null,
    approve_by: null,
    approved_by: null,
    refuse_late: false,
    late_rows: 0,
  })
  assert.deepEqual(
    await minutesOfEverySignal(service, 'acme'),
    [0, 2, 3, 4],
    'hidden before anything is erased',
  )
  barrier.open()
  const completed = await waitUntilCompleted(service, request_id, 'acme/owner')
  assert.deepEqual(
    [completed.detail.rows_erased, completed.detail.left_over],
    [3, Object.fromEntries(Object.keys(completed.detail.left_over ?? {}).map((store) => [store, 0]))],
  )
  assert.ok(completed.finished_at !== null && completed.verified_at !== null && completed.removed_at !== null)
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [0, 2, 3, 4])
  assert.deepEqual(await minutesOfEverySignal(service, 'globex'), [0, 1, 2, 3, 4])
})

test('an identical request returns the one in progress, until that one is completed', async () => {
  barrier.close()
  const json = { scope: 'range', range_start: instant(10), range_end: instant(11) }
  const first = requestIn(await erase(json), 202)
  const inOtherWords = {
    ...json,
    range_end: '2026-01-05T01:11:00.000+01:00',
    signals: ['traces', 'metrics', 'logs'],
  }
  for (const body of [json, inOtherWords]) {
    const again = await erase(body, { as: 'acme/admin' })
    assert.equal(requestIn(again, 200).request_id, first.request_id)
    assert.equal(again.headers.get('location'), `${deletionsUrl}/${first.request_id}`)
  }
  const foreign = requestIn(await erase({ ...json, confirm: 'globex' }, { as: 'globex/owner' }), 202)
  assert.notEqual(foreign.request_id, first.request_id)
  barrier.open()
  await waitUntilCompleted(service, first.request_id, 'acme/owner')
  const next = await eraseCompletely(service, { confirm: 'acme', ...json })
  assert.notEqual(next.request_id, first.request_id)
})

test('an Idempotency-Key means one request of one organisation, also after its completion', async () => {
  const json = { scope: 'range', range_start: instant(12), range_end: instant(13) }
  const headers = { 'idempotency-key': 'order-66' }
  const first = requestIn(await erase(json, { headers }), 202)
  await waitUntilCompleted(service, first.request_id, 'acme/owner')
  assert.equal(requestIn(await erase(json, { headers }), 200).request_id, first.request_id)
  const other = await erase({ ...json, range_end: instant(14) }, { headers })
  assert.deepEqual(placesOf(problemsOf(other)), ['header.Idempotency-Key value_error'])
  const foreign = await erase({ ...json, confirm: 'globex' }, { headers, as: 'globex/owner' })
  assert.notEqual(requestIn(foreign, 202).request_id, first.request_id)
})

test('a range without a start erases everything before its end, and excludes its end', async () => {
  const request = await eraseCompletely(service, { scope: 'range', confirm: 'acme', range_end: instant(2) })
  assert.deepEqual([request.range_start, request.range_end], [null, instant(2)])
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [2, 3, 4])
})

test('an erasure of one signal leaves the others', async () => {
  const json = {
    scope: 'range',
    confirm: 'acme',
    range_end: instant(3),
    signals: ['logs'],
    reason: 'leaked_secret',
    note: 'n',
  }
  const request = await eraseCompletely(service, json, 'acme/admin')
  assert.deepEqual([request.signals, request.reason, request.note], [['logs'], 'leaked_secret', 'n'])
  const { logs, spans, readings } = await readSample(service, 'acme/viewer')
  assert.deepEqual([logs.length, spans.length, readings.length], [2, 3, 3])
})

test('during a full erasure no other deletion can be requested', async () => {
  barrier.close()
  const all = requestIn(await erase({ scope: 'all' }), 202)
  assert.deepEqual([all.scope, all.status, all.range_start, all.range_end], ['all', 'running', null, null])
  assert.deepEqual(await minutesOfEverySignal(service, 'acme'), [])
  const refused = await erase({ scope: 'range', range_end: instant(2) })
  assertRefused(refused, 409, 'deletion_conflict')
  assert.equal(requestIn(await erase({ scope: 'all' }), 200).request_id, all.request_id)
  barrier.open()
  await waitUntilCompleted(service, all.request_id, 'acme/owner')
  assert.equal((await readSample(service, 'acme/viewer')).storedRows, 0)
  assert.deepEqual(await minutesOfEverySignal(service, 'globex'), [0, 1, 2, 3, 4])
  await sendSample(service, 'acme/ingest', [minute(5)])
  const { logs, spans, storedRows } = await readSample(service, 'acme/viewer')
  assert.deepEqual([logs.length, spans.length, storedRows], [1, 1, 3], 'later telemetry is kept')
})

test('a request can be read by its id and in the list, newest first, in pages', async () => {
  const whole = await service.read(`${deletionsUrl}?limit=500`, pageOf(DeletionRequest))
  const ids = whole.items.map(({ request_id }) => request_id)
  assert.ok(ids.length >= 6)
  assert.deepEqual(ids, ids.toSorted().reverse())
  const paged: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const next: string = cursor === '' ? '' : `&cursor=${cursor}`
    const page = await service.read(`${deletionsUrl}?limit=2${next}`, pageOf(DeletionRequest), 'acme/admin')
    paged.push(...page.items.map(({ request_id }) => request_id))
    cursor = page.next_cursor
  }
  assert.deepEqual(paged, ids)
  for (const item of whole.items) {
    const alone = await service.read(`${deletionsUrl}/${item.request_id}`, DeletionRequest)
    const { steps, ...detail } = alone.detail
    assert.deepEqual({ ...alone, detail }, item)
    assert.ok(
      Array.isArray(steps) && steps.length === item.detail.steps_total,
      'read by its id it shows its steps',
    )
  }
  const completed = await service.read(`${deletionsUrl}?status=completed&limit=500`, pageOf(DeletionRequest))
  assert.deepEqual(
    completed.items.map(({ request_id }) => request_id),
    ids,
  )
  assert.deepEqual((await service.read(`${deletionsUrl}?status=failed`, pageOf(DeletionRequest))).items, [])
})

test('every request is in the ledger from its first state to its last, and in the audit log', async () => {
  const [{ items }, ledger, audit] = await Promise.all([
    service.read(`${deletionsUrl}?limit=500`, pageOf(DeletionRequest)),
    service.read('/ledger?limit=500', pageOf(LedgerEntry)),
    service.read('/audit-log?limit=500', pageOf(AuditEntry)),
  ])
  for (const { request_id, requested_by } of items) {
    const moves = ledger.items.filter((entry) => entry.request_id === request_id).reverse()
    assert.deepEqual(
      moves.map(({ kind, from_status, to_status }) => [kind, from_status, to_status]),
      [
        ['data_deletion_request', null, 'running'],
        ['data_deletion_request', 'running', 'verifying'],
        ['data_deletion_request', 'verifying', 'completed'],
      ],
    )
    const acts = audit.items.filter(({ target }) => target === request_id).reverse()
    assert.deepEqual(
      acts.map(({ action }) => action),
      ['deletion.requested', 'deletion.completed'],
    )
    assert.deepEqual([acts[0]?.actor, acts[0]?.outcome], [requested_by, 'accepted'])
  }
})

test('a list refuses an invalid limit, cursor or status, and an unknown parameter', async () => {
  const cursorOf = (position: unknown) => Buffer.from(JSON.stringify(position)).toString('base64url')
  const queries: [string, string][] = [
    ['limit=0', 'query.limit greater_than_equal'],
    ['limit=-1', 'query.limit greater_than_equal'],
    ['limit=501', 'query.limit less_than_equal'],
    ['limit=ten', 'query.limit int_parsing'],
    ['limit=1.5', 'query.limit int_parsing'],
    ['limit=', 'query.limit int_parsing'],
    ['limit=1&limit=2', 'query.limit string_type'],
    ['status=done', 'query.status enum'],
    ['status=', 'query.status enum'],
    ['cursor=', 'query.cursor value_error'],
    ['cursor=nonsense', 'query.cursor value_error'],
    [`cursor=${cursorOf([1])}`, 'query.cursor value_error'],
    [`cursor=${cursorOf(['a', 'b'])}`, 'query.cursor value_error'],
    [`cursor=${cursorOf({ id: 'x' })}`, 'query.cursor value_error'],
    [`cursor=${'a'.repeat(6001)}`, 'query.cursor string_too_long'],
    ['tenant_id=globex', 'query.tenant_id extra_forbidden'],
    ['__proto__=1', 'query.__proto__ extra_forbidden'],
  ]
  for (const [query, problem] of queries) {
    assert.deepEqual(
      placesOf(problemsOf(await service.send('GET', `${deletionsUrl}?${query}`))),
      [problem],
      query,
    )
  }
})

test('the response for another organisation’s request equals that for one that does not exist, byte for byte', async () => {
  const unknown = await service.send('GET', `${deletionsUrl}/del_${'0'.repeat(26)}`)
  const [own] = (await service.read(deletionsUrl, pageOf(DeletionRequest), 'globex/owner')).items
  const foreignId = own?.request_id ?? assert.fail('globex has a request of its own')
  const foreign = await service.send('GET', `${deletionsUrl}/${foreignId}`)
  assertRefused(foreign, 404, 'not_found')
  assert.deepEqual(foreign.bytes, unknown.bytes)
  const plain = ({ headers }: Answer) =>
    [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id')
  assert.deepEqual(plain(foreign), plain(unknown))
  for (const id of ['%00', '..%2f', '%20', foreignId.toUpperCase(), `${foreignId}%00`]) {
    assert.equal((await service.send('GET', `${deletionsUrl}/${id}`)).status, 404, id)
  }
  const foreignPage = await service.read(`${deletionsUrl}?limit=500`, pageOf(DeletionRequest), 'globex/owner')
  const isOfGlobex = new Set(foreignPage.items.map(({ request_id }) => request_id))
  const beforeForeign = Buffer.from(JSON.stringify([`${foreignId}z`])).toString('base64url')
  const page = await service.read(`${deletionsUrl}?cursor=${beforeForeign}`, pageOf(DeletionRequest))
  assert.ok(page.items.every(({ request_id }) => request_id < foreignId && !isOfGlobex.has(request_id)))
})

test('input that is not HTTP is refused in the same form, and the connection ends', async () => {
  const { hostname, port } = new URL(service.address)
  const heads = [
    ['FOO / HTTP/1.1\r\n\r\n', 400, 'bad_request'],
    ['nonsense\r\n\r\n', 400, 'bad_request'],
    [`GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
  ] as const
  for (const [head, status, code] of heads) {
    const socket = connect(Number(port), hostname)
    socket.end(head)
    const [answer = '', body = ''] = (await text(socket)).split('\r\n\r\n')
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `))
    assert.deepEqual(JSON.parse(body), { code, detail: errorCatalogue[code].sentence })
  }
})

test('an unsupported method returns the supported ones, and an unknown address returns 404', async () => {
  const send = (method: string, path: string) => service.send(method, path)
  for (const [method, path, allow] of [
    ['PUT', deletionsUrl, 'GET, HEAD, POST'],
    ['PATCH', deletionsUrl, 'GET, HEAD, POST'],
    ['DELETE', deletionsUrl, 'GET, HEAD, POST'],
    ['OPTIONS', deletionsUrl, 'GET, HEAD, POST'],
    ['DELETE', `${deletionsUrl}/del_1`, 'GET, HEAD'],
    ['PATCH', `${deletionsUrl}/del_1`, 'GET, HEAD'],
    ['PUT', '/anomalies/detectors/det_1', 'DELETE, GET, HEAD, PATCH'],
    ['GET', '/v1/logs', 'POST'],
  ] as const) {
    const answer = await send(method, path)
    assertRefused(answer, 405, 'method_not_allowed')
    assert.equal(answer.headers.get('allow'), allow, `${method} ${path}`)
  }
  for (const path of [
    '/usage',
    '/usage//storage',
    '/Usage/Storage',
    '/v1/profiles',
    '/usage/storage/deletions/a/b',
  ]) {
    assertRefused(await send('GET', path), 404, 'not_found')
    assertRefused(await send('OPTIONS', path), 404, 'not_found')
  }
  const head = await send('HEAD', deletionsUrl)
  assert.deepEqual([head.status, head.bytes.length], [200, 0])
})

test('an organisation may request 400 erasures at once, further ones get 429, and others are not limited', async () => {
  const [own, neighbour] = ['globex/owner', 'acme/owner'] as const
  const json = { scope: 'range', confirm: 'globex', range_start: instant(1), range_end: instant(1) }
  const answers: Answer[] = []
  const client = async () => {
    for (let at = 0; at < 55; at++) answers.push(await service.send('POST', deletionsUrl, { as: own, json }))
  }
  await Promise.all(Array.from({ length: 8 }, client))
  const refused = answers.filter(({ status }) => status === 429)
  assert.equal(answers.filter(({ status }) => status === 422).length, 440 - refused.length)
  // The tests before have used some, and one more is allowed every three seconds.
  assert.ok(refused.length > 0 && refused.length < 80, `${refused.length} of 440`)
  for (const answer of refused) assertRefused(answer, 429, 'too_many_requests')
  assert.match(refused[0]?.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  const good = await service.send('POST', deletionsUrl, {
    as: neighbour,
    json: { ...json, confirm: 'acme', range_end: instant(2) },
  })
  assert.equal(good.status, 202)
  await waitUntilCompleted(service, requestIn(good, 202).request_id, neighbour)
})
