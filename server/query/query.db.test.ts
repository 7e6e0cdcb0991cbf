// Reading telemetry over HTTP with a real engine. Two organisations share a placement and hold the same rows, so
// whatever leaks shows as a row too many; everything is asked through the routes, as a client would.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { formatInstant } from '../../contract/instant.ts'
import type { Role } from '../../contract/tenancy.ts'
import type { Caller } from '../core/caller.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { createHttp } from '../http/server.ts'
import { openChdb } from '../telemetry/chdb.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import { signals, type TableName, tables } from '../telemetry/schema/tables.ts'
import { sql } from '../telemetry/sql.ts'
import type { StatementLimits } from '../telemetry/telemetry.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { addQueryRoutes } from './routes.ts'

const folder = mkdtempSync(join(tmpdir(), 'lethe-query-'))
const engine = await openChdb({ folder, maxMemoryBytes: 1 << 30 })
const gate = new TelemetryGate()
const clock = new ManualClock(1_763_715_600_000)
const http = open()
after(async () => {
  await http.close()
  await engine.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A secret reads `<tenant>.<role>`. */
async function authenticate(secret: string): Promise<Caller | null> {
  const [tenantId, role] = secret.split('.')
  if (tenantId === undefined || role === undefined) return null
  return { tenantId, placement: 7, organisationName: tenantId, role: role as Role, requester: secret }
}

function open(limits?: StatementLimits): FastifyInstance {
  const made = createHttp({ clock, logger: pino({ level: 'silent' }), authenticate, isReady: () => true })
  addQueryRoutes(made, (caller) => new TenantReader(engine, caller, gate), clock, limits)
  return made
}

type Query = Record<string, string | number | readonly string[]>

// biome-ignore lint/suspicious/noExplicitAny: an answer is whatever came; the assertions say what it should be.
type Body = any

async function ask(
  path: string,
  query: Query = {},
  secret = 'acme.viewer',
  asked = http,
): Promise<{ status: number; body: Body; text: string }> {
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(query))
    for (const one of [value].flat()) search.append(key, String(one))
  const answer = await asked.inject({
    method: 'GET',
    url: `${path}?${search}`,
    headers: { authorization: `Bearer ${secret}` },
  })
  return { status: answer.statusCode, body: answer.json(), text: answer.body }
}

async function ok(path: string, query: Query = {}, secret?: string): Promise<Body> {
  const { status, body, text } = await ask(path, query, secret)
  assert.equal(status, 200, text)
  return body
}

async function allPages(path: string, query: Query, secret?: string): Promise<Body[]> {
  const items: Body[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: Body = await ok(path, cursor === undefined ? query : { ...query, cursor }, secret)
    items.push(...page.items)
    cursor = page.next_cursor
    assert.ok(items.length < 2_000, 'the pages end')
  }
  return items
}

/** The start of the default range: an hour before the clock. */
const t0 = 1_763_712_000_000_000_000n
const at = (seconds: number, ns = 0): bigint => t0 + BigInt(seconds) * 1_000_000_000n + BigInt(ns)

async function insert(tenantId: string, table: TableName, rows: readonly FixtureRow[]): Promise<void> {
  await insertFixture(engine, { tenantId, placement: 7 }, table, rows)
}

async function insertForBoth(table: TableName, rows: readonly FixtureRow[]): Promise<void> {
  await insert('acme', table, rows)
  await insert('zeta', table, rows)
}

const traceId = (n: number): string => n.toString(16).padStart(32, '0')
const burst = Array.from({ length: 1000 }, (_, i) => ({
  Timestamp: at(600),
  ServiceName: 'burst',
  Body: `line ${i % 990}`,
}))

await insertForBoth('otel_logs', [
  ...burst,
  {
    Timestamp: at(10, 123_456_789),
    ServiceName: 'shop',
    SeverityText: 'ERROR',
    SeverityNumber: 17,
    Body: 'Payment of 100% FAILED für Ärger_\'"',
    TraceId: traceId(1),
    SpanId: '00000000000000aa',
    EventName: 'payment',
    LogAttributes: { 'http.route': '/pay', zone: 'own' },
    ResourceAttributes: { 'service.name': 'shop', zone: 'resource', pod: 'p1' },
  },
  {
    Timestamp: at(11),
    ServiceName: 'shop',
    SeverityNumber: 9,
    Body: 'fine',
    ResourceAttributes: { zone: 'resource' },
  },
  { Timestamp: at(-7200), ServiceName: 'old', SeverityNumber: 9, Body: 'before the hour' },
])
await insertForBoth('otel_traces', [
  {
    Timestamp: at(20, 1),
    TraceId: traceId(1),
    SpanId: '00000000000000aa',
    ServiceName: 'shop',
    SpanName: 'GET /pay',
    SpanKind: 'Server',
    StatusCode: 'Error',
    StatusMessage: 'no funds',
    Duration: '18446744073709551615',
    SpanAttributes: { route: '/pay' },
    'Events.Timestamp': [`${(at(20, 7) / 1_000_000_000n).toString()}.000000007`],
    'Events.Name': ['exception'],
    'Events.Attributes': [{ type: 'E' }],
    'Links.TraceId': [traceId(2)],
    'Links.SpanId': ['bb'],
    'Links.TraceState': [''],
    'Links.Attributes': [{ why: 'retry' }],
  },
  {
    Timestamp: at(21),
    TraceId: traceId(1),
    SpanId: '00000000000000ab',
    ParentSpanId: '00000000000000aa',
    ServiceName: 'db',
    SpanName: 'SELECT',
    SpanKind: 'Client',
    StatusCode: 'Unset',
    Duration: 5_000_000,
    ResourceAttributes: { pod: 'p2' },
  },
  ...Array.from({ length: 300 }, (_, i) => ({
    Timestamp: at(700),
    TraceId: traceId(100 + i),
    ServiceName: 'burst',
    SpanName: 'tick',
    SpanKind: 'Consumer',
    StatusCode: 'Ok',
  })),
])
const point = (seconds: number, MetricName: string, more: FixtureRow = {}): FixtureRow => ({
  TimeUnix: at(seconds),
  MetricName,
  ServiceName: 'shop',
  MetricUnit: 'By',
  MetricDescription: 'Used',
  ...more,
})
await insertForBoth('otel_metrics_gauge', [
  point(5, 'memory', { Value: 5 }),
  point(6, 'memory', { Value: 7, ServiceName: 'db' }),
])
await insertForBoth('otel_metrics_sum', [
  point(5, 'requests', { AggregationTemporality: 1, IsMonotonic: true, Value: 60 }),
])
await insertForBoth('otel_metrics_histogram', [point(5, 'size', { Count: 1 })])
await insertForBoth('otel_metrics_exponential_histogram', [point(5, 'size', { Count: 1 })])
await insertForBoth('otel_metrics_summary', [point(5, 'wait', { Count: 1 })])

test('a log record comes back whole, its time exact to the nanosecond', async () => {
  const { items, next_cursor } = await ok('/telemetry/logs', { severity: 'error' })
  assert.equal(next_cursor, null)
  assert.deepEqual(items, [
    {
      time: '2025-11-21T08:00:10.123456789Z',
      service: 'shop',
      severity: 'ERROR',
      severity_number: 17,
      body: 'Payment of 100% FAILED für Ärger_\'"',
      trace_id: traceId(1),
      span_id: '00000000000000aa',
      event_name: 'payment',
      attributes: { 'http.route': '/pay', zone: 'own' },
      resource_attributes: { 'service.name': 'shop', zone: 'resource', pod: 'p1' },
    },
  ])
})

test('logs are filtered by service, severity, text in any case, trace and attributes', async () => {
  const bodies = async (query: Query) =>
    (await ok('/telemetry/logs', query)).items.map((item: Body) => item.body)
  const payment = 'Payment of 100% FAILED für Ärger_\'"'
  assert.deepEqual(await bodies({ service: 'shop' }), ['fine', payment])
  assert.deepEqual(await bodies({ service: 'shop', severity: 'info' }), ['fine', payment])
  assert.deepEqual(await bodies({ severity: 'fatal' }), [])
  assert.deepEqual(await bodies({ text: 'payment OF' }), [payment])
  assert.deepEqual(await bodies({ text: 'FÜR äRGER' }), [payment])
  assert.deepEqual(await bodies({ trace_id: traceId(1).toUpperCase() }), [payment])
  assert.deepEqual(await bodies({ attribute: 'http.route=/pay' }), [payment])
  assert.deepEqual(await bodies({ attribute: ['zone=own', 'pod=p1'] }), [payment])
  assert.deepEqual(
    await bodies({ attribute: 'zone=resource' }),
    ['fine'],
    'the record speaks before its resource',
  )
  assert.deepEqual(await bodies({ service: 'old', start: formatInstant(at(-9000)) }), ['before the hour'])
})

test('wildcards and quotes in a text are only text', async () => {
  for (const [text, count] of [
    ['100%', 1],
    ['1_0%', 0],
    ['%', 1],
    ['_', 1],
    ['Ärger_\'"', 1],
    ["') OR 1=1 --", 0],
    ['\\', 0],
  ] as const) {
    assert.equal((await ok('/telemetry/logs', { text })).items.length, count, text)
  }
})

test('paging over a thousand records of one instant loses and doubles none, full duplicates included', async () => {
  for (const limit of [7, 100, 333, 500]) {
    const items = await allPages('/telemetry/logs', { service: 'burst', limit })
    const bodies = items.map(({ body }) => body).sort()
    assert.deepEqual(bodies, burst.map(({ Body }) => Body).sort(), `limit ${limit}`)
  }
})

test('more full duplicates than a page holds are all shown, each once', async () => {
  const twin = { Timestamp: at(50), ServiceName: 'twin', Body: 'the same' }
  await insert('twins', 'otel_logs', [
    ...Array.from({ length: 30 }, () => twin),
    { ...twin, Body: 'another' },
  ])
  const items = await allPages('/telemetry/logs', { limit: 7 }, 'twins.owner')
  assert.equal(items.filter(({ body }) => body === 'the same').length, 30)
  assert.equal(items.length, 31)
})

test('paging goes from the newest to the oldest across instants, within the range of the first page', async () => {
  const first = await ok('/telemetry/logs', { limit: 500 })
  await clock.advance(3_500_000)
  const second = await ok('/telemetry/logs', { limit: 500, cursor: first.next_cursor })
  const third = await ok('/telemetry/logs', { limit: 500, cursor: second.next_cursor })
  await clock.advance(-3_500_000)
  assert.deepEqual(
    third.items.map((item: Body) => item.body),
    ['fine', 'Payment of 100% FAILED für Ärger_\'"'],
  )
  assert.equal(third.next_cursor, null)
})

test('every range may be a time before now, and its pages keep the instants of the first', async () => {
  // The clock stands at 3600 seconds.
  const bodies = async (query: Query) =>
    (await ok('/telemetry/logs', { service: 'shop', ...query })).items.map((item: Body) => item.body)
  assert.deepEqual(await bodies({ start: '-59m50s', end: 'now' }), [
    'fine',
    'Payment of 100% FAILED für Ärger_\'"',
  ])
  assert.deepEqual(await bodies({ start: '-59m49s' }), ['fine'])
  assert.deepEqual(await bodies({ start: '-1h', end: 'now-59m49s' }), [
    'Payment of 100% FAILED für Ärger_\'"',
  ])
  assert.deepEqual(await bodies({ start: '-1h', end: 'now-59m50s' }), [])
  assert.equal((await ok('/telemetry/spans', { start: '-59m39s', service: 'db' })).items.length, 1)
  assert.deepEqual((await ok('/telemetry/services', { start: '-3h', end: '-2h' })).items.length, 1)
  const series = await ok('/telemetry/series', { metric: 'memory', start: '-1h', end: 'now-58m' })
  assert.deepEqual([series.start, series.end], [formatInstant(at(0)), formatInstant(at(120))])
  const query = { service: 'burst', start: '-51m', end: 'now', limit: 500 }
  const first = await ok('/telemetry/logs', query)
  await clock.advance(3_500_000)
  const second = await ok('/telemetry/logs', { ...query, cursor: first.next_cursor })
  await clock.advance(-3_500_000)
  assert.deepEqual([first.items.length, second.items.length, second.next_cursor], [500, 500, null])
  const refused = await ask('/telemetry/logs', { start: 'now+1h', end: '-1y' })
  assert.deepEqual(
    refused.body.detail.map(({ loc, type }: Body) => [...loc, type]),
    [
      ['query', 'start', 'datetime_parsing'],
      ['query', 'end', 'datetime_parsing'],
    ],
  )
  const empty = await ask('/telemetry/logs', { start: 'now', end: '-1h' })
  assert.deepEqual([empty.status, empty.body.detail[0].loc], [422, ['query', 'end']])
})

test('records that arrive between two pages move nobody else', async () => {
  const rows = Array.from({ length: 20 }, (_, i) => ({
    Timestamp: at(900),
    ServiceName: 'late',
    Body: `early ${i}`,
  }))
  await insert('acme', 'otel_logs', rows)
  const first = await ok('/telemetry/logs', { service: 'late', limit: 10 })
  await insert(
    'acme',
    'otel_logs',
    Array.from({ length: 200 }, (_, i) => ({ ...rows[0], Body: `late ${i}` })),
  )
  const rest = await allPages('/telemetry/logs', { service: 'late', limit: 10, cursor: first.next_cursor })
  const early = [...first.items, ...rest].map(({ body }) => body).filter((body) => body.startsWith('early'))
  assert.deepEqual(early.sort(), rows.map(({ Body }) => Body).sort())
})

test('a span comes back whole, with events and links, and a duration past what a number holds', async () => {
  const { items } = await ok('/telemetry/spans', { status: 'error' })
  assert.deepEqual(items, [
    {
      trace_id: traceId(1),
      span_id: '00000000000000aa',
      parent_span_id: '',
      time: '2025-11-21T08:00:20.000000001Z',
      duration_ns: '18446744073709551615',
      service: 'shop',
      name: 'GET /pay',
      kind: 'Server',
      status: 'Error',
      status_message: 'no funds',
      attributes: { route: '/pay' },
      resource_attributes: {},
      events: [{ time: '2025-11-21T08:00:20.000000007Z', name: 'exception', attributes: { type: 'E' } }],
      links: [{ trace_id: traceId(2), span_id: 'bb', attributes: { why: 'retry' } }],
    },
  ])
})

test('spans are filtered and paged like logs', async () => {
  const names = async (query: Query) =>
    (await ok('/telemetry/spans', query)).items.map((item: Body) => item.name)
  assert.deepEqual(await names({ service: 'db' }), ['SELECT'])
  assert.deepEqual(await names({ min_duration_ms: 5 }), ['SELECT', 'GET /pay'])
  assert.deepEqual(await names({ min_duration_ms: 6 }), ['GET /pay'])
  assert.deepEqual(await names({ name: 'GET /pay', attribute: 'route=/pay' }), ['GET /pay'])
  assert.deepEqual(await names({ attribute: 'pod=p2', status: 'unset' }), ['SELECT'])
  const paged = await allPages('/telemetry/spans', { status: 'ok', limit: 70 })
  assert.equal(new Set(paged.map(({ trace_id }) => trace_id)).size, 300)
  assert.equal(paged.length, 300)
})

test('a trace holds its spans of every service by start time, and an unknown one is not found', async () => {
  const trace = await ok(`/telemetry/traces/${traceId(1).toUpperCase()}`)
  assert.deepEqual(
    trace.spans.map(({ name }: Body) => name),
    ['GET /pay', 'SELECT'],
  )
  assert.deepEqual([trace.trace_id, trace.truncated], [traceId(1), false])
  const unknown = await ask(`/telemetry/traces/${traceId(99_999)}`)
  assert.deepEqual([unknown.status, unknown.body.code], [404, 'not_found'])
  const foreign = await ask(`/telemetry/traces/${traceId(1)}`, {}, 'nobody.owner')
  assert.equal(foreign.text, unknown.text, 'a foreign trace answers like an unknown one')
  assert.deepEqual((await ask('/telemetry/traces/xyz')).body.detail[0].loc, ['path', 'trace_id'])
})

test('a trace of more than ten thousand spans is cut and says so', async () => {
  const span = { Timestamp: at(30), TraceId: traceId(5), ServiceName: 'deep', SpanName: 'x' }
  await insert(
    'deep',
    'otel_traces',
    Array.from({ length: 10_001 }, (_, i) => ({ ...span, SpanId: String(i) })),
  )
  const trace = await ok(`/telemetry/traces/${traceId(5)}`, {}, 'deep.member')
  assert.deepEqual([trace.spans.length, trace.truncated], [10_000, true])
})

test('the catalogue names services with their signals, by name, page by page', async () => {
  const services = await allPages('/telemetry/services', { limit: 2, end: formatInstant(at(800)) })
  assert.deepEqual(services, [
    { service: 'burst', signals: ['logs', 'traces'], last_seen: formatInstant(at(700)) },
    { service: 'db', signals: ['metrics', 'traces'], last_seen: formatInstant(at(21)) },
    { service: 'shop', signals: ['metrics', 'logs', 'traces'], last_seen: formatInstant(at(20, 1)) },
  ])
})

test('services with names longer than a cursor are paged without loss', async () => {
  const names = Array.from({ length: 5 }, (_, i) => `${'ä'.repeat(2000)}${i}`)
  await insert(
    'long',
    'otel_logs',
    [...names, 'a', 'z'].map((ServiceName) => ({ Timestamp: at(1), ServiceName })),
  )
  const services = await allPages('/telemetry/services', { limit: 2 }, 'long.owner')
  assert.deepEqual(
    services.map(({ service }) => service),
    ['a', 'z', ...names],
  )
})

test('the catalogue names metrics by kind, with unit and services', async () => {
  const metrics = await allPages('/telemetry/metrics', { limit: 1 })
  assert.deepEqual(
    metrics.map(({ metric_key, kind }) => [metric_key, kind]),
    [
      ['memory', 'gauge'],
      ['requests', 'sum'],
      ['size', 'exponential_histogram'],
      ['size', 'histogram'],
      ['wait', 'summary'],
    ],
  )
  assert.deepEqual(metrics[0], {
    metric_key: 'memory',
    metric: 'memory',
    kind: 'gauge',
    unit: 'By',
    description: 'Used',
    services: ['db', 'shop'],
    last_seen: formatInstant(at(6)),
  })
})

test('a series has a point per step, null where there is no data', async () => {
  const range = { range_start: formatInstant(at(0)), range_end: formatInstant(at(150)) }
  const answer = await ok('/telemetry/series', { metric_key: 'memory', ...range, service: 'shop' })
  const oldRange = { start: range.range_start, end: range.range_end }
  const underOldNames = { metric: 'memory', ...oldRange, service: 'shop' }
  assert.deepEqual(await ok('/telemetry/series', underOldNames), answer)
  const mixed = await ask('/telemetry/series', { ...underOldNames, metric_key: 'other', range_end: 'x' })
  assert.deepEqual(
    mixed.body.detail.map(({ loc }: { loc: string[] }) => loc.join('.')),
    ['query.metric', 'query.end', 'query.range_end'],
  )
  assert.deepEqual(answer, {
    metric_key: 'memory',
    metric: 'memory',
    unit: 'By',
    aggregation: 'avg',
    step_seconds: 60,
    range_start: formatInstant(at(0)),
    range_end: formatInstant(at(180)),
    start: formatInstant(at(0)),
    end: formatInstant(at(180)),
    series: [
      {
        group: null,
        points: [
          { time: formatInstant(at(0)), value: 5 },
          { time: formatInstant(at(60)), value: null },
          { time: formatInstant(at(120)), value: null },
        ],
      },
    ],
    truncated: false,
  })
})

test('groups beyond the bound are left out and told; time to come has no value', async () => {
  const logs = Array.from({ length: 60 }, (_, i) => ({ Timestamp: at(3590), ServiceName: `s${i}` }))
  await insert('many', 'otel_logs', logs)
  const query = {
    metric: 'logs.rate',
    group_by: 'service',
    aggregation: 'count',
    end: formatInstant(at(3720)),
  }
  const answer = await ok('/telemetry/series', query, 'many.admin')
  assert.deepEqual([answer.series.length, answer.truncated], [50, true])
  assert.deepEqual(
    answer.series[0].points.slice(-3).map(({ value }: Body) => value),
    [1, 0, null],
  )
  const fine = await ok('/telemetry/series', { ...query, step_seconds: 1 }, 'many.admin')
  assert.ok(fine.series.length < 50 && fine.truncated, 'a long series shows fewer groups')
})

test('an empty range, too many steps and an unsuited aggregation are refused with their place', async () => {
  const instant = formatInstant(at(0))
  for (const path of ['series?metric=m&', 'logs?', 'spans?', 'services?', 'metrics?']) {
    const answer = await ask(`/telemetry/${path.split('?')[0]}`, {
      ...(path.startsWith('series') && { metric: 'm' }),
      start: instant,
      end: instant,
    })
    assert.equal(answer.status, 422, path)
    assert.deepEqual(answer.body.detail[0].loc, ['query', 'end'])
    assert.equal(answer.body.detail[0].type, 'value_error')
  }
  const steps = await ask('/telemetry/series', {
    metric: 'm',
    start: formatInstant(at(-11_001)),
    step_seconds: 1,
  })
  assert.deepEqual(steps.body.detail[0].loc, ['query', 'step_seconds'])
  const least = steps.body.detail[0].ctx.ge
  await ok('/telemetry/series', { metric: 'm', start: formatInstant(at(-11_001)), step_seconds: least })
  const last = await ask('/telemetry/series', { metric: 'size', aggregation: 'last' })
  assert.deepEqual(last.body.detail[0].loc, ['query', 'aggregation'])
})

test('cursors that are not ours are refused', async () => {
  const encode = (texts: unknown) => Buffer.from(JSON.stringify(texts)).toString('base64url')
  const bad = [
    'x',
    encode(['1', '2', '3']),
    encode(['1', '2', '3', '4', "5' OR 1"]),
    encode(['-1', '2', '3', '4', '5']),
    encode(['99999999999999999999', '2', '3', '4', '5']),
    encode(['1', '18446744073709551616', '3', '4', '5']),
    encode(['1', '2', '9999999', '4', '5']),
    encode([1, 2, 3, 4, 5]),
  ]
  for (const cursor of bad) {
    for (const path of ['/telemetry/logs', '/telemetry/spans']) {
      const answer = await ask(path, { cursor })
      assert.deepEqual([answer.status, answer.body.detail?.[0]?.loc], [422, ['query', 'cursor']], cursor)
    }
  }
  assert.equal((await ask('/telemetry/services', { cursor: encode(['a', 'x', '1', '2']) })).status, 422)
})

test('people and tokens of the organisation may read, ingest tokens and strangers may not', async () => {
  for (const path of ['series', 'logs', 'spans', `traces/${traceId(1)}`, 'services', 'metrics']) {
    const query = path === 'series' ? { metric: 'memory' } : {}
    for (const role of ['owner', 'admin', 'member', 'viewer']) {
      assert.equal((await ask(`/telemetry/${path}`, query, `acme.${role}`)).status, 200, `${path} ${role}`)
    }
    assert.equal((await ask(`/telemetry/${path}`, query, 'acme.ingest')).status, 403, path)
    assert.equal((await ask(`/telemetry/${path}`, query, 'nonsense')).status, 401, path)
  }
})

/** Every operation, asked so that it would find the rows of both organisations if it could. */
const everything: readonly (readonly [string, Query])[] = [
  ['/telemetry/logs', { limit: 500 }],
  ['/telemetry/logs', { service: 'shop', text: 'payment' }],
  ['/telemetry/spans', { limit: 500 }],
  [`/telemetry/traces/${traceId(1)}`, {}],
  ['/telemetry/services', {}],
  ['/telemetry/metrics', {}],
  ...[
    'memory',
    'requests',
    'size',
    'wait',
    'spans.rate',
    'spans.error_ratio',
    'spans.latency_p95',
    'logs.rate',
    'logs.error_count',
    'ingest.rate',
  ].map((metric) => ['/telemetry/series', { metric }] as const),
  ['/telemetry/series', { metric: 'ingest.rate', group_by: 'service' }],
]

const found = async (secret: string): Promise<string[]> => {
  const texts: string[] = []
  for (const [path, query] of everything) texts.push((await ask(path, query, secret)).text)
  return texts
}

test('an organisation without rows sees nothing of its neighbours, whatever it asks', async () => {
  for (const [path, query] of everything) {
    const { status, body } = await ask(path, query, 'stranger.owner')
    if (path.startsWith('/telemetry/traces/')) assert.equal(status, 404)
    else assert.deepEqual(body.items ?? body.series, [], `${path} ${JSON.stringify(query)}`)
  }
})

test('hidden rows vanish from every operation at once and come back when they are shown again', async () => {
  const before = await found('zeta.owner')
  gate.hide('zeta', { id: 'del_1', signals, range: { startNs: null, endNs: null } })
  for (const [path, query] of everything) {
    const { status, body } = await ask(path, query, 'zeta.owner')
    if (path.startsWith('/telemetry/traces/')) assert.equal(status, 404)
    else assert.deepEqual(body.items ?? body.series, [], `${path} ${JSON.stringify(query)}`)
  }
  assert.equal(
    (await ok('/telemetry/logs', { severity: 'error' }, 'acme.owner')).items.length,
    1,
    'the neighbour sees its own',
  )
  gate.unhide('zeta', 'del_1')
  assert.deepEqual(await found('zeta.owner'), before)
})

test('a hidden range takes away exactly the rows inside it, and charts mark it as erased', async () => {
  gate.hide('zeta', { id: 'del_2', signals: ['logs'], range: { startNs: at(11), endNs: at(600) } })
  const { items } = await ok('/telemetry/logs', { service: 'shop' }, 'zeta.owner')
  assert.deepEqual(
    items.map(({ severity_number }: Body) => severity_number),
    [17],
  )
  assert.equal(
    (await allPages('/telemetry/logs', { service: 'burst', limit: 500 }, 'zeta.owner')).length,
    1000,
  )
  const chart = await ok(
    '/telemetry/series',
    { metric: 'logs.rate', aggregation: 'count', start: formatInstant(at(0)) },
    'zeta.owner',
  )
  const points = chart.series[0].points
  assert.deepEqual(points[0], { time: formatInstant(at(0)), value: null, erased: true })
  assert.deepEqual(points[10], { time: formatInstant(at(600)), value: 1000 })
  assert.equal(points.filter(({ erased }: Body) => erased === true).length, 10)
  gate.unhide('zeta', 'del_2')
})

test('what is hidden while a statement runs is not in its answer', async () => {
  const reader = new TenantReader(engine, { tenantId: 'zeta', placement: 7 }, gate)
  const running = reader.rows((from) => sql`SELECT Body FROM ${from('otel_logs')}`)
  gate.hide('zeta', { id: 'del_3', signals, range: { startNs: null, endNs: null } })
  assert.deepEqual(await running, [])
  gate.unhide('zeta', 'del_3')
})

const hostile = [
  "' OR TenantId != '",
  "'); DROP TABLE otel_logs; --",
  '\\',
  "\\' OR 1=1 --",
  '{p0:String}',
  '`TenantId`',
  'zeta',
  '\u0000',
  '😀"\'`\n\t',
  ') UNION ALL SELECT * FROM otel_logs --',
]

test('hostile text in any parameter finds nothing and breaks nothing', async () => {
  for (const text of hostile) {
    const asks: [string, Query][] = [
      ['/telemetry/logs', { service: text }],
      ['/telemetry/logs', { text }],
      ['/telemetry/logs', { trace_id: text }],
      ['/telemetry/logs', { attribute: `${text.replaceAll('=', '')}=${text}` }],
      ['/telemetry/spans', { service: text }],
      ['/telemetry/spans', { name: text }],
      ['/telemetry/spans', { attribute: `k=${text}` }],
      ['/telemetry/series', { metric: text }],
      ['/telemetry/series', { metric: 'memory', service: text }],
      ['/telemetry/series', { metric: 'memory', attribute: `k=${text}` }],
      ['/telemetry/series', { metric: 'logs.rate', service: text }],
    ]
    for (const [path, query] of asks) {
      const { status, body, text: answer } = await ask(path, query)
      assert.equal(status, 200, `${path} ${JSON.stringify(query)} ${answer}`)
      assert.deepEqual(body.items ?? body.series, [], `${path} ${JSON.stringify(query)}`)
    }
    const grouped = await ok('/telemetry/series', { metric: 'memory', group_by: text, aggregation: 'count' })
    assert.deepEqual(
      grouped.series.map((series: Body) => [
        series.group,
        series.points.filter((one: Body) => one.value !== null)[0].value,
      ]),
      [['', 2]],
    )
    const encoded = Buffer.from(JSON.stringify([text, '0', '0', at(3600).toString()])).toString('base64url')
    assert.equal((await ask('/telemetry/services', { cursor: encoded })).status, 200)
    assert.equal((await ask('/telemetry/metrics', { cursor: encoded })).status, 200)
  }
  assert.equal((await ok('/telemetry/logs', { severity: 'error' })).items.length, 1)
})

test('a query that costs more than it may is refused by name, and the next one is answered', async () => {
  const rows = Array.from({ length: 100_000 }, (_, i) => ({ Timestamp: at(1), ServiceName: `service ${i}` }))
  await insert('heavy', 'otel_logs', rows)
  const narrow = open({ maxSeconds: 20, maxMemoryBytes: 2_000_000 })
  const asks: [string, Query][] = [
    ['/telemetry/services', {}],
    ['/telemetry/series', { metric: 'logs.rate', group_by: 'service' }],
  ]
  for (const [path, query] of asks) {
    const refused = await ask(path, query, 'heavy.owner', narrow)
    assert.deepEqual([refused.status, refused.body.code], [400, 'query_too_expensive'], path)
    assert.equal((await ask(path, query, 'heavy.owner')).status, 200, path)
  }
  await narrow.close()
})

test('every table is covered by the rows above', async () => {
  for (const { name } of tables) {
    const rows = await new TenantReader(engine, { tenantId: 'acme', placement: 7 }, gate).rows((from) =>
      from(name),
    )
    assert.ok(rows.length > 0, name)
  }
})
