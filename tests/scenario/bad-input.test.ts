// Every wrong way to request an erasure, and proof that none of them changes anything: after each, the
// requests and ledgers of both organisations are unchanged, and only a failed confirmation writes an audit
// entry, which contains nothing of what was typed. All problems come in one response, in the form of the
// interface.

import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { DeletionRequest, LedgerEntry } from '../../contract/deletion/requests.ts'
import type { ValidationProblem } from '../../contract/errors.ts'
import { AuditEntry } from '../../contract/organisation/audit.ts'
import { pageOf } from '../../contract/values/fields.ts'
import {
  type Answer,
  assertRefused,
  placesOf,
  problemsOf,
  type Sent,
  type Service,
  startService,
  type Tenant,
  tenants,
} from './service.ts'
import { minuteNs, mondayNs, type Readable, readSample, sendSample } from './telemetry.ts'

const url = '/usage/storage/deletions'
const asJson = { 'content-type': 'application/json' }
const times = [0n, 1n, 2n].map((minute) => mondayNs + minute * minuteNs)

let service: Service
/** What the two organisations can read before any bad request. */
let readable: readonly Readable[] = []
/** The records of both organisations after the last request, which must equal those before it. */
let last: Awaited<ReturnType<typeof records>>
let lastOfNeighbour: Awaited<ReturnType<typeof records>>

before(async () => {
  service = await startService()
  for (const tenant of tenants) await sendSample(service, `${tenant}/ingest`, times)
  readable = await readBoth()
  last = await records('acme')
  lastOfNeighbour = await records('globex')
  for (const { logs, spans, readings, storedRows } of readable) {
    assert.deepEqual([logs.length, spans.length, readings.length, storedRows], [3, 3, 3, 9])
  }
})
after(() => service.stop())

afterEach(async () => {
  assert.deepEqual(await readBoth(), readable, 'a refused request changed what can be read')
  assert.deepEqual(await records('globex'), lastOfNeighbour, 'a refused request left a trace elsewhere')
})

function readBoth(): Promise<Readable[]> {
  return Promise.all(tenants.map((tenant) => readSample(service, `${tenant}/viewer`)))
}

/** What a request could change: the organisation's requests and ledger, and the length of its audit log. */
async function records(tenant: Tenant) {
  const as = `${tenant}/owner` as const
  const [requests, ledger, audit] = await Promise.all([
    service.read(url, pageOf(DeletionRequest), as),
    service.read('/ledger', pageOf(LedgerEntry), as),
    service.read('/audit-log?limit=2', pageOf(AuditEntry), as),
  ])
  return { moves: { requests, ledger }, audit: audit.items }
}

const isConfirmation = ({ loc, type }: ValidationProblem) => loc[1] === 'confirm' && type === 'value_error'
/** Sends a request that must be refused, and checks that it changed only what it may change. */
async function refuse(sent: Sent, path = url): Promise<Answer> {
  const answer = await service.send('POST', path, sent)
  const { moves, audit } = await records('acme')
  assert.deepEqual(moves, last.moves)
  const isMisconfirmed = answer.status === 422 && problemsOf(answer).some(isConfirmation)
  const added = audit.filter(({ seq }) => seq > (last.audit[0]?.seq ?? 0))
  assert.deepEqual(
    added.map(({ action, outcome, target }) => [action, outcome, target]),
    isMisconfirmed ? [['deletion.requested', 'refused', null]] : [],
  )
  last = { moves, audit }
  return answer
}

const range = { scope: 'range', confirm: 'acme', range_end: '2026-01-05T00:02:00Z' }
const all = { scope: 'all', confirm: 'acme' }

/** Each body with the location and type of every problem it has. */
type Cases = readonly (readonly [body: unknown, ...problems: string[]])[]

async function refuseAll(cases: Cases): Promise<void> {
  for (const [json, ...problems] of cases) {
    const found = problemsOf(await refuse({ json }))
    assert.deepEqual(placesOf(found), problems.sort(), JSON.stringify(json))
  }
}

test('a missing field is named, and its input is the object without it', async () => {
  await refuseAll([
    [{}, 'body.scope missing', 'body.confirm missing'],
    [{ scope: 'all' }, 'body.confirm missing'],
    [{ confirm: 'acme' }, 'body.scope missing'],
    [{ scope: 'range', confirm: 'acme' }, 'body.range_end missing'],
    [{ ...range, range_end: undefined, range_start: '2026-01-05T00:00:00Z' }, 'body.range_end missing'],
    [{ scope: 'range' }, 'body.confirm missing', 'body.range_end missing'],
  ])
  const [problem] = problemsOf(await refuse({ json: { scope: 'all' } }))
  assert.deepEqual(problem, {
    loc: ['body', 'confirm'],
    msg: 'Field required',
    type: 'missing',
    input: { scope: 'all' },
    ctx: {},
  })
})

test('a field with a wrong type or value is named with its input', async () => {
  const scopes = [1, null, true, ['all'], { all: true }, 'ALL', ' all', 'all ', 'everything', '']
  await refuseAll(scopes.map((scope) => [{ ...all, scope }, 'body.scope enum'] as const))
  const confirms = [1, 0, null, true, ['acme'], { tenant_id: 'acme' }]
  await refuseAll(confirms.map((confirm) => [{ ...all, confirm }, 'body.confirm string_type'] as const))
  await refuseAll([
    [{ ...all, signals: 'logs' }, 'body.signals list_type'],
    [{ ...all, signals: null }, 'body.signals list_type'],
    [{ ...all, signals: [] }, 'body.signals too_short'],
    [{ ...all, signals: ['logs', 'logs'] }, 'body.signals value_error'],
    [{ ...all, signals: ['logs', 'events'] }, 'body.signals.1 enum'],
    [{ ...all, signals: [['logs']] }, 'body.signals.0 enum'],
    [{ ...all, reason: 'whim' }, 'body.reason enum'],
    [{ ...all, note: 5 }, 'body.note string_type'],
    [{ ...all, note: 'x'.repeat(501) }, 'body.note string_too_long'],
  ])
  const [problem] = problemsOf(await refuse({ json: { ...all, scope: 'ALL' } }))
  assert.deepEqual([problem?.input, problem?.ctx], ['ALL', { expected: "'range' or 'all'" }])
})

test('a wrong confirmation is recorded in a small entry, also with more problems than a response shows', async () => {
  const mistakes = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`field_${i}`, 'x'.repeat(100)]))
  const answer = await service.send('POST', url, { json: { ...all, confirm: 'globex', ...mistakes } })
  assert.equal(problemsOf(answer).at(-1)?.type, 'more_problems')
  const { moves, audit } = await records('acme')
  assert.deepEqual(moves, last.moves)
  const [entry, ...others] = audit.filter(({ seq }) => seq > (last.audit[0]?.seq ?? 0))
  assert.deepEqual([entry?.action, entry?.outcome, others], ['deletion.requested', 'refused', []])
  assert.deepEqual(entry?.facts, {
    problems: ['body: extra_forbidden', 'body: more_problems', 'body.confirm: value_error'],
  })
  last = { moves, audit }
})

test('an unknown field is refused, so that a misspelt bound never widens an erasure', async () => {
  const names = [
    'rangeEnd',
    'range_stop',
    'before',
    'tenant_id',
    'organisation',
    'dry_run',
    'constructor',
    '',
  ]
  await refuseAll(names.map((name) => [{ ...all, [name]: 'x' }, `body.${name} extra_forbidden`] as const))
  await refuseAll([
    [
      { ...range, range_end: undefined, range_ned: range.range_end },
      'body.range_end missing',
      'body.range_ned extra_forbidden',
    ],
  ])
})

test('a repeated field is refused, however its name is written', async () => {
  const twice = {
    scope: ['"scope":"range","scope":"all"', '"scope":"all","\\u0073cope":"all"'],
    range_end: ['"scope":"range","range_end":"2026-01-05T00:00:00Z","range_end":"2027-01-05T00:00:00Z"'],
  }
  for (const [name, bodies] of Object.entries(twice)) {
    for (const fields of bodies) {
      const found = problemsOf(await refuse({ body: `{"confirm":"acme",${fields}}`, headers: asJson }))
      assert.deepEqual(placesOf(found), [`body.${name} value_error`])
    }
  }
  const unknownTwice = '{"scope":"all","confirm":"acme","__proto__":1,"__proto__":1}'
  assert.deepEqual(placesOf(problemsOf(await refuse({ body: unknownTwice, headers: asJson }))), [
    'body.__proto__ extra_forbidden',
    'body.__proto__ value_error',
  ])
  const confirmedTwice = '{"scope":"all","confirm":"globex","confirm":"acme"}'
  const found = problemsOf(await refuse({ body: confirmedTwice, headers: asJson }))
  assert.deepEqual(placesOf(found), ['body.confirm value_error'])
})

test('a prototype in the body is a field like any other, and has no effect', async () => {
  const cases: [string, string[]][] = [
    ['{"scope":"all","confirm":"acme","__proto__":{"note":"x"}}', ['body.__proto__ extra_forbidden']],
    [
      '{"scope":"all","__proto__":{"confirm":"acme"}}',
      ['body.__proto__ extra_forbidden', 'body.confirm missing'],
    ],
    [
      '{"__proto__":{"scope":"all","confirm":"acme"}}',
      ['body.__proto__ extra_forbidden', 'body.confirm missing', 'body.scope missing'],
    ],
  ]
  for (const [body, problems] of cases) {
    assert.deepEqual(placesOf(problemsOf(await refuse({ body, headers: asJson }))), problems)
  }
})

test('only the own tenant_id confirms, with exactly the same characters', async () => {
  const almost = [
    'globex',
    'ACME',
    'Acme',
    ' acme',
    'acme ',
    'acme\n',
    'acme\u0000',
    'ac\u200bme',
    '\u0430cme',
    '\uff41cme',
    'acm',
    'acmee',
    '',
  ]
  await refuseAll(
    almost.flatMap((confirm) => [
      [{ ...all, confirm }, 'body.confirm value_error'] as const,
      [{ ...range, confirm }, 'body.confirm value_error'] as const,
    ]),
  )
})

test('the values of a refused request do not reach the audit log', async () => {
  const typed = 'correct horse battery staple'
  await refuse({ json: { ...all, confirm: typed } })
  await refuse({ json: { ...range, confirm: typed, [typed]: typed, note: typed, signals: [typed] } })
  await refuse({ json: { ...all, confirm: typed } }, `${url}?${encodeURIComponent(typed)}=1`)
  await refuse({
    body: `{"scope":"all","confirm":"${typed}","confirm":"","${typed}":1,"${typed}":1}`,
    headers: asJson,
  })
  const log = await service.send('GET', '/audit-log?limit=500')
  assert.ok(!log.text.includes(typed), 'the audit log contains what was typed')
})

const noDates = [
  '',
  'yesterday',
  '2026-01-05',
  '2026-01-05 00:00:00',
  '1767571200',
  'now',
  '-1h',
  'now-15m',
  '2026-02-30T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-01-05T24:00:00Z',
  '2026-01-05T23:59:60Z',
  '2026-01-05T00:00:00+25:00',
  '2026-01-05T00:00:00.1234567890Z',
  '+12026-01-05T00:00:00Z',
  ' 2026-01-05T00:00:00Z',
]
const beyond = [
  '1969-12-31T23:59:59Z',
  '1970-01-01T00:59:59+01:00',
  '2149-06-01T00:00:00.000000001Z',
  '9999-12-31T23:59:59Z',
  '0100-01-01T00:00:00Z',
]

for (const bound of ['range_end', 'range_start'] as const) {
  test(`${bound} must be an instant with an offset that can be stored`, async () => {
    const withBound = (value: unknown) => ({ ...range, [bound]: value })
    await refuseAll(noDates.map((text) => [withBound(text), `body.${bound} datetime_parsing`] as const))
    await refuseAll(beyond.map((text) => [withBound(text), `body.${bound} value_error`] as const))
    await refuseAll([
      [withBound('2026-01-05T00:00:00'), `body.${bound} timezone_aware`],
      [withBound(1_767_571_200), `body.${bound} string_type`],
      [withBound(null), `body.${bound} string_type`],
    ])
  })
}

test('a range must not be empty, and a full erasure has no bounds', async () => {
  const start = '2026-01-05T00:01:00Z'
  await refuseAll([
    [{ ...range, range_start: start, range_end: start }, 'body.range_end value_error'],
    [{ ...range, range_start: start, range_end: '2026-01-05T01:01:00+01:00' }, 'body.range_end value_error'],
    [
      { ...range, range_start: start, range_end: '2026-01-05T00:00:59.999999999Z' },
      'body.range_end value_error',
    ],
    [{ ...all, range_end: start }, 'body.range_end value_error'],
    [{ ...all, range_start: start }, 'body.range_start value_error'],
    [{ ...all, range_start: null }, 'body.range_start string_type', 'body.range_start value_error'],
    [
      { ...all, range_start: start, range_end: start },
      'body.range_start value_error',
      'body.range_end value_error',
    ],
  ])
})

test('all problems come in one response', async () => {
  const headers = { 'idempotency-key': 'not one word' }
  const json = {
    scope: 'range',
    confirm: 'globex',
    range_start: 'x',
    signals: ['events'],
    note: 1,
    extra: true,
  }
  assert.deepEqual(placesOf(problemsOf(await refuse({ json, headers }, `${url}?confirm=acme`))), [
    'body.confirm value_error',
    'body.extra extra_forbidden',
    'body.note string_type',
    'body.range_end missing',
    'body.range_start datetime_parsing',
    'body.signals.0 enum',
    'header.Idempotency-Key value_error',
    'query.confirm extra_forbidden',
  ])
})

test('a body that is not a JSON object is refused with the location of the error, and without an excerpt', async () => {
  const notJson = [
    '{',
    '{"scope":"all","confirm":"acme",}',
    "{'scope':'all'}",
    '{"scope":NaN}',
    '{}{}',
    'scope=all',
    '\u0000',
    '[',
    '{"confirm":"secret-thing" "x"}',
  ]
  for (const body of notJson) {
    const answer = await refuse({ body, headers: asJson })
    assert.deepEqual(placesOf(problemsOf(answer)), ['body json_invalid'], body)
    assert.ok(!answer.text.includes('secret-thing'))
  }
  for (const body of ['null', '[]', '"all"', '1', 'true', '[{"scope":"all","confirm":"acme"}]']) {
    assert.deepEqual(placesOf(problemsOf(await refuse({ body, headers: asJson }))), ['body dict_type'], body)
  }
  const binary = [Buffer.from('{"scope":"all\xff"}', 'latin1'), Buffer.from(JSON.stringify(all), 'utf16le')]
  for (const body of binary) {
    assert.deepEqual(placesOf(problemsOf(await refuse({ body, headers: asJson }))), ['body json_invalid'])
  }
  for (const sent of [{ body: '', headers: asJson }, { body: '' }, {}]) {
    assert.deepEqual(placesOf(problemsOf(await refuse(sent))), ['body missing'])
  }
})

test('a body of any nesting depth is refused with an error', async () => {
  for (const depth of [10, 100, 1000, 2000, 3000, 4000, 4500, 5000, 6000, 8000, 15_000]) {
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const inner = `${open.repeat(depth)}1${close.repeat(depth)}`.slice(0, 60_000)
      problemsOf(await refuse({ body: `{"scope":"all","confirm":"acme","note":${inner}}`, headers: asJson }))
    }
  }
})

test('a body that is too large, or of another media type, is refused before it is read', async () => {
  const text = JSON.stringify(all)
  const padded = (bytes: number) => text.padEnd(bytes, ' ')
  assertRefused(await refuse({ body: padded(64 * 1024 + 1), headers: asJson }), 413, 'body_too_large')
  assertRefused(await refuse({ body: padded(4 * 1024 * 1024), headers: asJson }), 413, 'body_too_large')
  const kinds = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json5',
    'application/merge-patch+json',
    'application/vnd.api+json',
    'json',
    '',
    null,
  ]
  for (const kind of kinds) {
    const answer = await refuse({ body: text, headers: { 'content-type': kind } })
    assertRefused(answer, 415, 'unsupported_media_type')
  }
  const encoded = await refuse({ body: text, headers: { ...asJson, 'content-encoding': 'gzip' } })
  assertRefused(encoded, 415, 'unsupported_media_type')
})

test('a bad Idempotency-Key is refused', async () => {
  for (const key of ['', 'two words', 'x'.repeat(201), 'caf\u00e9']) {
    const found = problemsOf(await refuse({ json: all, headers: { 'idempotency-key': key } }))
    assert.deepEqual(placesOf(found), ['header.Idempotency-Key value_error'], key)
  }
})
