// Reads telemetry over HTTP with a real engine. Two organisations share a placement and have the same rows,
// so any leak shows as an additional row. All reads go through the routes, as a client's do.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import type { Role } from '../../contract/role.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { engineOfFile, watchedEngine } from '../../tests/fixtures.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import type { Caller } from '../core/caller.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { byAccessToken } from '../http/authentication.ts'
import { createHttp } from '../http/server.ts'
import type { StatementLimits, TelemetryEngine } from '../telemetry/engine.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import { signals, type TableName, tables } from '../telemetry/schema/tables.ts'
import { sql } from '../telemetry/sql.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { addQueryRoutes } from './routes.ts'

const engine = engineOfFile()
const gate = new TelemetryGate()
const clock = new ManualClock(1_763_715_600_000)
const http = open()
after(() => http.close())

/** A secret is `<tenant>.<role>`. */
async function findCaller(secret: string): Promise<Caller | null> {
  const [tenantId, role] = secret.split('.')
  if (tenantId === undefined || role === undefined) return null
  return {
    tenantId,
    placement: 7,
    organisationName: tenantId,
    role: role as Role,
    requester: tokenNamed(secret),
  }
}

function open(limits?: StatementLimits, from: TelemetryEngine = engine): FastifyInstance {
  const made = createHttp({
    clock,
    logger: pino({ level: 'silent' }),
    authenticate: byAccessToken(findCaller),
    isReady: () => true,
  })
  addQueryRoutes(made, (caller) => new TenantReader(from, caller, gate), clock, limits)
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

before(() =>
  insertForBoth('otel_logs', [
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
  ]),
)
before(() =>
  insertForBoth('otel_traces', [
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
  ]),
)
const point = (seconds: number, MetricName: string, more: FixtureRow = {}): FixtureRow => ({
  TimeUnix: at(seconds),
  MetricName,
  ServiceName: 'shop',
  MetricUnit: 'By',
  MetricDescription: 'Used',
  ...more,
})
before(() =>
  insertForBoth('otel_metrics_gauge', [
    point(5, 'memory', { Value: 5 }),
    point(6, 'memory', { Value: 7, ServiceName: 'db' }),
  ]),
)
before(() =>
  insertForBoth('otel_metrics_sum', [
    point(5, 'requests', { AggregationTemporality: 1, IsMonotonic: true, Value: 60 }),
  ]),
)
before(() => insertForBoth('otel_metrics_histogram', [point(5, 'size', { Count: 1 })]))
before(() => insertForBoth('otel_metrics_exponential_histogram', [point(5, 'size', { Count: 1 })]))
before(() => insertForBoth('otel_metrics_summary', [point(5, 'wait', { Count: 1 })]))

test('a log record is returned complete, its time exact to the nanosecond', async () => {
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

test('logs are listed oldest first where that is asked for, page by page, so that a view can follow them', async () => {
  const query = { service: 'shop', order: 'oldest', limit: 1 }
  const bodies = (await allPages('/telemetry/logs', query)).map(({ body }: Body) => body)
  assert.deepEqual(bodies, ['Payment of 100% FAILED für Ärger_\'"', 'fine'])
  const since = { ...query, range_start: formatInstant(at(11)), range_end: 'now' }
  assert.deepEqual(
    (await allPages('/telemetry/logs', since)).map(({ body }: Body) => body),
    ['fine'],
    'from the time of the last one on, including it',
  )
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

test('paging over a thousand records of one instant loses and repeats none, full duplicates included', async () => {
  for (const limit of [7, 100, 333, 500]) {
    const items = await allPages('/telemetry/logs', { service: 'burst', limit })
    const bodies = items.map(({ body }) => body).sort()
    assert.deepEqual(bodies, burst.map(({ Body }) => Body).sort(), `limit ${limit}`)
  }
})

test('more full duplicates than a page has room for are all shown, each once', async () => {
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

test('every range may be relative to now, and its pages keep the instants of the first', async () => {
  // The clock is at 3600 seconds.
  const bodies = async (query: Query) =>
    (await ok('/telemetry/logs', { service: 'shop', ...query })).items.map((item: Body) => item.body)
  assert.deepEqual(await bodies({ range_start: '-59m50s', range_end: 'now' }), [
    'fine',
    'Payment of 100% FAILED für Ärger_\'"',
  ])
  assert.deepEqual(await bodies({ range_start: '-59m49s' }), ['fine'])
  assert.deepEqual(await bodies({ range_start: '-1h', range_end: 'now-59m49s' }), [
    'Payment of 100% FAILED für Ärger_\'"',
  ])
  assert.deepEqual(await bodies({ range_start: '-1h', range_end: 'now-59m50s' }), [])
  assert.equal((await ok('/telemetry/spans', { range_start: '-59m39s', service: 'db' })).items.length, 1)
  assert.deepEqual(
    (await ok('/telemetry/services', { range_start: '-3h', range_end: '-2h' })).items.length,
    1,
  )
  const series = await ok('/telemetry/series', {
    metric_key: 'memory',
    range_start: '-1h',
    range_end: 'now-58m',
  })
  assert.deepEqual([series.range_start, series.range_end], [formatInstant(at(0)), formatInstant(at(120))])
  const query = { service: 'burst', range_start: '-51m', range_end: 'now', limit: 500 }
  const first = await ok('/telemetry/logs', query)
  await clock.advance(3_500_000)
  const second = await ok('/telemetry/logs', { ...query, cursor: first.next_cursor })
  await clock.advance(-3_500_000)
  assert.deepEqual([first.items.length, second.items.length, second.next_cursor], [500, 500, null])
  const refused = await ask('/telemetry/logs', { range_start: 'now+1h', range_end: '-1y' })
  assert.deepEqual(
    refused.body.detail.map(({ loc, type }: Body) => [...loc, type]),
    [
      ['query', 'range_start', 'datetime_parsing'],
      ['query', 'range_end', 'datetime_parsing'],
    ],
  )
  const empty = await ask('/telemetry/logs', { range_start: 'now', range_end: '-1h' })
  assert.deepEqual([empty.status, empty.body.detail[0].loc], [422, ['query', 'range_end']])
})

test('records that arrive between two pages do not move others', async () => {
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

test('a span is returned complete, with events and links, and a duration beyond the exact numbers', async () => {
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

test('a trace has its spans of every service by start time, and an unknown one is not found', async () => {
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

test('a trace of more than ten thousand spans is cut, and the response says so', async () => {
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

test('a series has a point for each step, null where there is no data', async () => {
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
    across: 'pooled',
    step_seconds: 60,
    range_start: formatInstant(at(0)),
    range_end: formatInstant(at(150)),
    start: formatInstant(at(0)),
    end: formatInstant(at(150)),
    series: [
      {
        group: null,
        labels: {},
        points: [
          { time: formatInstant(at(0)), value: 5 },
          { time: formatInstant(at(60)), value: null },
          { time: formatInstant(at(120)), seconds: 30, value: null },
        ],
      },
    ],
    truncated: false,
    warnings: [],
  })
})

/** Points every ten seconds for ten minutes, and the rows of each table for them. */
const ticks = Array.from({ length: 60 }, (_, i) => i * 10)
const regular = (seconds: number, more: FixtureRow) => point(seconds, 'ticks', more)
before(() =>
  insert(
    'exact',
    'otel_logs',
    ticks.map((t) => ({ Timestamp: at(t), ServiceName: 'shop' })),
  ),
)
before(() =>
  insert(
    'exact',
    'otel_metrics_gauge',
    ticks.map((t) => ({ ...regular(t, { Value: t }), MetricName: 'level' })),
  ),
)
const delta = { AggregationTemporality: 1, IsMonotonic: true, Value: 1 }
before(() =>
  insert('exact', 'otel_metrics_sum', [
    ...ticks.map((t) => ({ ...regular(t, delta), MetricName: 'deltas', StartTimeUnix: at(t - 10) })),
    ...ticks.map((t) => ({
      ...regular(t, { ...delta, AggregationTemporality: 2, Value: 100 + t / 10, StartTimeUnix: at(-86_400) }),
      MetricName: 'counter',
    })),
  ]),
)
const buckets = (n: number) => ({ Count: n, Sum: n, BucketCounts: [n, 0], ExplicitBounds: [10] })
before(() =>
  insert('exact', 'otel_metrics_histogram', [
    ...ticks.map((t) => ({
      ...regular(t, { ...buckets(100 + t / 10), AggregationTemporality: 2, StartTimeUnix: at(-86_400) }),
      MetricName: 'sizes',
    })),
  ]),
)

interface Chart {
  readonly start: string
  readonly end: string
  readonly points: readonly {
    readonly time: string
    readonly seconds?: number
    readonly value: number | null
  }[]
  readonly total: number
}

const chart = async (query: Query): Promise<Chart> => {
  const answer = await ok('/telemetry/series', query, 'exact.viewer')
  const points: Chart['points'] = answer.series[0]?.points ?? []
  return { ...answer, points, total: points.reduce((sum, { value }) => sum + (value ?? 0), 0) }
}

test('a range that cuts its first and last step counts what is in it, and gives the length of those steps', async () => {
  const range = { range_start: formatInstant(at(95)), range_end: formatInstant(at(215)), step_seconds: 60 }
  for (const metric of ['logs.rate', 'level', 'deltas']) {
    const { points, start, end } = await chart({ metric_key: metric, ...range, aggregation: 'count' })
    assert.deepEqual([start, end], [range.range_start, range.range_end])
    assert.deepEqual(
      points,
      [
        { time: formatInstant(at(95)), seconds: 25, value: 2 },
        { time: formatInstant(at(120)), value: 6 },
        { time: formatInstant(at(180)), seconds: 35, value: 4 },
      ],
      metric,
    )
  }
  const inside = {
    metric_key: 'level',
    ...range,
    range_start: formatInstant(at(125)),
    range_end: formatInstant(at(145)),
  }
  const { points } = await chart({ ...inside, aggregation: 'max' })
  assert.deepEqual(points, [{ time: inside.range_start, seconds: 20, value: 140 }])
})

test('rates of a cut step are over the rest of it, and increases are those inside the range', async () => {
  for (const [start, end] of [
    [95, 215],
    [60, 241],
    [301, 360],
    [121, 134],
  ] as const) {
    const range = {
      range_start: formatInstant(at(start)),
      range_end: formatInstant(at(end)),
      step_seconds: 60,
    }
    for (const [metric, added] of [
      ['counter', (end - start) / 10],
      ['deltas', ticks.filter((t) => t >= start && t < end).length],
    ] as const) {
      const { total } = await chart({ metric_key: metric, ...range, aggregation: 'sum' })
      assert.ok(Math.abs(total - added) < 1e-9, `${metric} ${start} to ${end}: ${total} for ${added}`)
      const { points } = await chart({ metric_key: metric, ...range, aggregation: 'rate' })
      // A delta covers ten seconds, also where less of its step remains.
      const least = metric === 'deltas' ? 10 : 0
      const again = points.reduce(
        (sum, { seconds = 60, value }) => sum + (value ?? 0) * Math.max(seconds, least),
        0,
      )
      assert.ok(Math.abs(again - added) < 1e-9, `rate of ${metric} ${start} to ${end}: ${again} for ${added}`)
    }
    const observed = await chart({ metric_key: 'sizes', ...range, aggregation: 'count' })
    assert.ok(Math.abs(observed.total - (end - start) / 10) < 1e-9)
    const logs = await chart({ metric_key: 'logs.rate', ...range })
    const counted = logs.points.reduce((sum, { seconds = 60, value }) => sum + (value ?? 0) * seconds, 0)
    assert.ok(Math.abs(counted - ticks.filter((t) => t >= start && t < end).length) < 1e-9)
  }
  const p50 = await chart({
    metric_key: 'sizes',
    aggregation: 'p50',
    range_start: formatInstant(at(95)),
    range_end: formatInstant(at(119)),
  })
  assert.deepEqual(p50.points, [{ time: formatInstant(at(95)), seconds: 24, value: 5 }])
})

test('a long range is cut like a short one', async () => {
  const long = {
    range_start: formatInstant(at(-86_400 * 3 + 5)),
    range_end: formatInstant(at(215)),
    step_seconds: 3_600,
  }
  for (const [metric, aggregation] of [
    ['counter', 'sum'],
    ['deltas', 'sum'],
    ['level', 'count'],
  ] as const) {
    const { points } = await chart({ metric_key: metric, ...long, aggregation })
    const wanted = metric === 'counter' ? 21.5 : 22
    assert.ok(
      Math.abs((points.at(-1)?.value ?? 0) - wanted) < 1e-6,
      `${metric} ${JSON.stringify(points.at(-1))}`,
    )
  }
})

test('without a requested start the hour begins with a whole step', async () => {
  const { start, end, points } = await chart({ metric_key: 'level', range_end: formatInstant(at(215)) })
  assert.deepEqual([start, end], [formatInstant(at(-3420)), formatInstant(at(215))])
  assert.equal(points[0]?.seconds, undefined)
})

test('time that was erased outside of the range marks none of its steps', async () => {
  const range = { startNs: at(90), endNs: at(95) }
  gate.hide('exact', { id: 'del_4', signals, range })
  const asked = { metric_key: 'level', range_start: formatInstant(at(95)), range_end: formatInstant(at(215)) }
  assert.equal((await chart(asked)).points.filter((one) => 'erased' in one).length, 0)
  const wider = await chart({ ...asked, range_start: formatInstant(at(94)) })
  assert.deepEqual(
    wider.points.map((one) => 'erased' in one),
    [true, false, false],
  )
  gate.unhide('exact', 'del_4')
})

test('the last values of several series are averaged, or combined as requested, and the response says how', async () => {
  const pod = (name: string, seconds: number, Value: number) => ({
    ...point(seconds, 'queue', { Value, Attributes: { pod: name } }),
    ServiceName: 'worker',
  })
  await insert('lasts', 'otel_metrics_gauge', [
    pod('a', 1, 100),
    pod('a', 50, 2),
    pod('b', 2, 10),
    pod('c', 40, 6),
    // Two values of one series and instant.
    pod('c', 55, 3),
    pod('c', 55, 7),
  ])
  const asked = {
    metric_key: 'queue',
    range_start: formatInstant(at(0)),
    range_end: formatInstant(at(60)),
    aggregation: 'last',
  }
  const last = async (query: Query) => {
    const { across, series } = await ok('/telemetry/series', { ...asked, ...query }, 'lasts.viewer')
    return [across, ...series.map((one: Body) => one.points[0].value)]
  }
  assert.deepEqual(await last({}), ['avg', 19 / 3])
  assert.deepEqual(await last({ across: 'sum' }), ['sum', 19])
  assert.deepEqual(await last({ across: 'min' }), ['min', 2])
  assert.deepEqual(await last({ across: 'max' }), ['max', 10])
  assert.deepEqual(await last({ attribute: 'pod=a' }), ['avg', 2], 'of one series it is the value itself')
  assert.deepEqual(await last({ group_by: 'pod', across: 'sum' }), ['sum', 7, 2, 10])
  const alone = await ask(
    '/telemetry/series',
    { ...asked, aggregation: 'avg', across: 'sum' },
    'lasts.viewer',
  )
  assert.deepEqual([alone.status, alone.body.detail[0].loc], [422, ['query', 'across']])
})

test('a series is split by several keys, and each group has the value of every key', async () => {
  const log = (ServiceName: string, route: string, n: number): FixtureRow[] =>
    Array.from({ length: n }, () => ({
      Timestamp: at(10),
      ServiceName,
      LogAttributes: { ...(route !== '' && { 'http.route': route }), http: '{"request":{"method":"GET"}}' },
    }))
  await insert('split', 'otel_logs', [...log('a', '/x, "y"', 3), ...log('a', '/z', 2), ...log('b', '', 1)])
  const counts = { metric_key: 'logs.rate', aggregation: 'count' }
  const groups = async (query: Query) =>
    (await ok('/telemetry/series', { ...counts, ...query }, 'split.viewer')).series.map(
      ({ group, labels, points }: Body) => [group, labels, points[0].value],
    )
  assert.deepEqual(
    await groups({ group_by: ['service', 'http.route', 'http.request.method'], range_start: '-1h' }),
    [
      ['a, /x, "y", GET', { service: 'a', 'http.route': '/x, "y"', 'http.request.method': 'GET' }, 3],
      ['a, /z, GET', { service: 'a', 'http.route': '/z', 'http.request.method': 'GET' }, 2],
      ['b, , GET', { service: 'b', 'http.route': '', 'http.request.method': 'GET' }, 1],
    ],
  )
  assert.deepEqual(
    await groups({ group_by: 'service', attribute: 'http.request.method=GET', range_start: '-1h' }),
    [
      ['a', { service: 'a' }, 5],
      ['b', { service: 'b' }, 1],
    ],
  )
  const nested = await ok(
    '/telemetry/logs',
    { attribute: ['http.request.method=GET', 'http.route=/z'] },
    'split.viewer',
  )
  assert.equal(nested.items.length, 2)
  const many = await ask('/telemetry/series', {
    ...counts,
    group_by: Array.from({ length: 11 }, (_, i) => `k${i}`),
  })
  assert.deepEqual([many.status, many.body.detail[0].loc], [422, ['query', 'group_by']])
})

test('names in a request that nothing has are named in the response', async () => {
  const warnings = async (query: Query, secret?: string) =>
    (await ok('/telemetry/series', { metric_key: 'memory', ...query }, secret)).warnings
  assert.deepEqual(await warnings({}), [])
  assert.deepEqual(await warnings({ metric_key: 'memroy' }), ['Nothing in this range is named "memroy".'])
  assert.deepEqual(await warnings({ range_end: '-59m58s' }), ['Nothing in this range is named "memory".'])
  assert.deepEqual(await warnings({ service: 'shpo' }), [
    'Nothing of "memory" in this range is of the service "shpo".',
  ])
  assert.deepEqual(await warnings({ attribute: ['pdo=1', 'service=shop'], group_by: 'hots' }), [
    'Nothing of "memory" in this range has an attribute "pdo".',
    'Nothing of "memory" in this range has an attribute "service".',
    'Nothing of "memory" in this range has an attribute "hots".',
  ])
  assert.deepEqual(await warnings({ group_by: ['service', 'hots'] }), [
    'Nothing of "memory" in this range has an attribute "hots".',
  ])
  assert.deepEqual(
    await warnings({ metric_key: 'logs.rate', group_by: 'nothing', attribute: 'zone=nowhere' }),
    ['Nothing of "logs.rate" in this range has an attribute "nothing".'],
  )
  assert.deepEqual(
    await warnings({ metric_key: 'logs.rate', attribute: 'zone=nowhere' }),
    [],
    'the key is known',
  )
  assert.deepEqual(await warnings({ attribute: 'job=other' }), [], 'what has a service has a job')
  assert.deepEqual(await warnings({}, 'stranger.viewer'), ['Nothing in this range is named "memory".'])
})

test('groups above the limit are left out and reported; future time has no value', async () => {
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

test('an empty range, too many steps and an unsuitable aggregation are refused with their location', async () => {
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

test('foreign cursors are refused', async () => {
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
  assert.equal((await ask('/telemetry/services', { cursor: encode(['a', 'x', '0', '1', '2']) })).status, 422)
  for (const texts of [
    ['a', '1', '0', '1', '2'],
    ['1', '-1', '0', '1', '2'],
    ['1', '1', "'", '1', '2'],
  ])
    assert.equal((await ask('/telemetry/deploys', { cursor: encode(texts) })).status, 422)
})

test('people and tokens of the organisation may read; ingest tokens and other callers may not', async () => {
  for (const path of ['series', 'logs', 'spans', `traces/${traceId(1)}`, 'services', 'metrics', 'deploys']) {
    const query = path === 'series' ? { metric: 'memory' } : {}
    for (const role of ['owner', 'admin', 'member', 'viewer']) {
      assert.equal((await ask(`/telemetry/${path}`, query, `acme.${role}`)).status, 200, `${path} ${role}`)
    }
    assert.equal((await ask(`/telemetry/${path}`, query, 'acme.ingest')).status, 403, path)
    assert.equal((await ask(`/telemetry/${path}`, query, 'nonsense')).status, 401, path)
  }
})

/** Every operation, with input that would find the rows of both organisations if that were possible. */
const everything: readonly (readonly [string, Query])[] = [
  ['/telemetry/logs', { limit: 500 }],
  ['/telemetry/logs', { service: 'shop', text: 'payment' }],
  ['/telemetry/spans', { limit: 500 }],
  [`/telemetry/traces/${traceId(1)}`, {}],
  ['/telemetry/services', {}],
  ['/telemetry/metrics', {}],
  ['/telemetry/deploys', {}],
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

test('an organisation without rows sees nothing of its neighbours, by any operation', async () => {
  for (const [path, query] of everything) {
    const { status, body } = await ask(path, query, 'stranger.owner')
    if (path.startsWith('/telemetry/traces/')) assert.equal(status, 404)
    else assert.deepEqual(body.items ?? body.series, [], `${path} ${JSON.stringify(query)}`)
  }
})

test('hidden rows disappear from every operation at once and reappear when they are shown again', async () => {
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

test('a hidden range hides exactly the rows inside it, and charts mark it as erased', async () => {
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

test('what is hidden while a statement runs is not in its result', async () => {
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
      ['/telemetry/deploys', { service: text }],
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
    const encoded = Buffer.from(JSON.stringify([text, '0', '0', '0', at(3600).toString()])).toString(
      'base64url',
    )
    assert.equal((await ask('/telemetry/services', { cursor: encoded })).status, 200)
    assert.equal((await ask('/telemetry/metrics', { cursor: encoded })).status, 200)
  }
  assert.equal((await ok('/telemetry/logs', { severity: 'error' })).items.length, 1)
})

test('more groups than can be counted are refused with the correction, and the next query is served', async () => {
  const rows = Array.from({ length: 100_000 }, (_, i) => ({ Timestamp: at(1), ServiceName: `service ${i}` }))
  await insert('heavy', 'otel_logs', rows)
  const narrow = open({ maxSeconds: 20, maxMemoryBytes: 2_000_000 })
  const query = { metric: 'logs.rate', group_by: 'service' }
  const refused = await ask('/telemetry/series', query, 'heavy.owner', narrow)
  assert.deepEqual([refused.status, refused.body.code], [400, 'query_too_expensive'])
  assert.match(refused.body.detail, /leave a key of group_by out/)
  assert.equal((await ask('/telemetry/series', query, 'heavy.owner')).status, 200)
  await narrow.close()
})

test('with more names than a statement may have, those of a newer part of the range are listed, page by page', async () => {
  const crowd = Array.from({ length: 50_000 }, (_, i) => ({ Timestamp: at(1), ServiceName: `service ${i}` }))
  const recent = ['a', 'b', 'c'].map((ServiceName) => ({ Timestamp: at(3_000), ServiceName }))
  await insert('crowd', 'otel_logs', [...crowd, ...recent])
  const narrow = open({ maxSeconds: 20, maxMemoryBytes: 5_000_000 })
  const query = { limit: 2, range_start: formatInstant(at(0)), range_end: formatInstant(at(3_600)) }
  const first = (await ask('/telemetry/services', query, 'crowd.owner', narrow)).body
  const second = (
    await ask('/telemetry/services', { ...query, cursor: first.next_cursor }, 'crowd.owner', narrow)
  ).body
  assert.deepEqual(
    [first, second].map(({ items }: Body) => items.map(({ service }: Body) => service)),
    [['a', 'b'], ['c']],
  )
  for (const { searched, warnings } of [first, second]) {
    assert.ok(searched.range_start > formatInstant(at(1)) && searched.range_start < formatInstant(at(3_000)))
    assert.match(warnings[0], /too many names/)
  }
  const whole = (await ask('/telemetry/services', query, 'crowd.owner')).body
  assert.deepEqual([whole.searched.range_start, whole.warnings], [formatInstant(at(0)), []])
  await narrow.close()
})

test('metrics and services with very long names are listed page by page, within a page of bytes', async () => {
  const names = Array.from({ length: 150 }, (_, i) => `${1000 + i} ${'n'.repeat(32_000)}`)
  const points = names.map((ServiceName) => ({ MetricName: 'long.names', TimeUnix: at(1), ServiceName }))
  await insert('wide', 'otel_metrics_gauge', points)
  const { body, text } = await ask('/telemetry/metrics', {}, 'wide.owner')
  assert.ok(text.length < 150_000, `${text.length} characters`)
  const [metric] = body.items
  assert.deepEqual([body.items.length, metric.services.length, body.warnings], [1, 100, []])
  assert.ok(metric.services.every((name: string) => name.length === 1_025 && name.endsWith('n…')))
  const filtered = await ask('/telemetry/logs', { service: metric.services[0] }, 'wide.owner')
  assert.equal(filtered.status, 422, 'a cut name is no filter')

  const services: string[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await ask('/telemetry/services', { limit: 500, ...(cursor && { cursor }) }, 'wide.owner')
    assert.ok(page.text.length < (4 << 20) + 1_000 && page.body.warnings.length === 0)
    services.push(...page.body.items.map(({ service }: Body) => service))
    cursor = page.body.next_cursor ?? undefined
    if (cursor === undefined) break
  }
  const shown = (name: string) => [name.slice(0, 4), name.length]
  assert.deepEqual(services.map(shown), names.map(shown))
})

test('deploys are listed newest first and page by page, of one service where named, and only for their organisation', async () => {
  const services = ['cart', 'checkout', 'search']
  const rows = services.flatMap((ServiceName, s) =>
    Array.from({ length: 50 }, (_, minute) => ({
      Timestamp: at(60 * minute),
      ServiceName,
      ResourceAttributes: { 'service.version': minute < 20 + 20 * Math.ceil(s / 2) ? '1.0' : '1.1' },
    })),
  )
  await insert('fleet', 'otel_traces', rows)
  await insert('rival', 'otel_traces', rows.slice(0, 20))
  const query = { range_start: formatInstant(at(0)), range_end: formatInstant(at(3_600)), limit: 1 }
  const items = await allPages('/telemetry/deploys', query, 'fleet.viewer')
  assert.deepEqual(
    items.map(({ at: time, previous_version, service, version }: Body) => [
      service,
      previous_version,
      version,
      time,
    ]),
    [
      ['search', '1.0', '1.1', formatInstant(at(2_400))],
      ['checkout', '1.0', '1.1', formatInstant(at(2_400))],
      ['cart', '1.0', '1.1', formatInstant(at(1_200))],
    ],
  )
  const own = await allPages('/telemetry/deploys', { ...query, service: 'cart' }, 'fleet.viewer')
  assert.deepEqual(own, items.slice(2))
  assert.deepEqual(await allPages('/telemetry/deploys', query, 'rival.viewer'), [])
  const { next_cursor: cursor } = await ok('/telemetry/deploys', query, 'fleet.viewer')
  gate.hide('fleet', { id: 'del_9', signals: ['traces'], range: { startNs: null, endNs: at(1_500) } })
  const { items: left } = await ok('/telemetry/deploys', { ...query, cursor }, 'fleet.viewer')
  assert.deepEqual(
    left.map(({ service }: Body) => service),
    ['checkout'],
    'a deploy goes with the telemetry that showed it',
  )
  assert.equal((await allPages('/telemetry/deploys', query, 'fleet.viewer')).length, 2)
  gate.unhide('fleet', 'del_9')
})

test('with more versions than a statement may have, the deploys of a newer part of the range are listed', async () => {
  const crowd = Array.from({ length: 30_000 }, (_, i) => ({
    Timestamp: at(i % 600),
    ServiceName: `service ${i % 100}`,
    ResourceAttributes: { 'service.version': `v${i}` },
  }))
  const steady = ['1.0', '1.1'].flatMap((version, v) =>
    Array.from({ length: 15 }, (_, i) => ({
      Timestamp: at(27_000 + (15 * v + i) * 60),
      ServiceName: 'shop',
      ResourceAttributes: { 'service.version': version },
    })),
  )
  await insert('busy', 'otel_logs', [...crowd, ...steady])
  const narrow = open({ maxSeconds: 20, maxMemoryBytes: 16_000_000 })
  const query = { range_start: formatInstant(at(0)), range_end: formatInstant(at(28_800)) }
  const page = (await ask('/telemetry/deploys', query, 'busy.owner', narrow)).body
  assert.deepEqual(
    page.items.map(({ version }: Body) => version),
    ['1.1'],
  )
  assert.match(page.warnings[0], /too much telemetry/)
  await narrow.close()
})

test('groups with long names are left out where their names fill a page, and reported', async () => {
  const logs = Array.from({ length: 40 }, (_, i) => ({
    Timestamp: at(10),
    LogAttributes: { key: `${i} ${'k'.repeat(30_000)}` },
  }))
  await insert('names', 'otel_logs', logs)
  const { text, body } = await ask(
    '/telemetry/series',
    { metric: 'logs.rate', group_by: 'key' },
    'names.viewer',
  )
  assert.ok(text.length < 3 << 20 && body.series.length > 10 && body.truncated)
})

test('every table is covered by the rows above', async () => {
  for (const { name } of tables) {
    const rows = await new TenantReader(engine, { tenantId: 'acme', placement: 7 }, gate).rows((from) =>
      from(name),
    )
    assert.ok(rows.length > 0, name)
  }
})

test('a series has no value that is hidden while its names are looked up', async () => {
  const point = { MetricName: 'in.flight', TimeUnix: at(30), Value: 4711 }
  await insertForBoth('otel_metrics_gauge', [point])
  const hide = { id: 'del_8', signals, range: { startNs: null, endNs: null } }
  let lookups = 0
  const watched = open(
    undefined,
    watchedEngine(engine, (statement) => {
      if (statement.includes('AS known') && ++lookups === 2) gate.hide('acme', hide)
    }),
  )
  const read = async (secret = 'acme.viewer') =>
    (await ask('/telemetry/series', { metric_key: 'in.flight', group_by: 'nobody' }, secret, watched)).text
  try {
    assert.match(await read(), /4711/)
    const during = await read()
    assert.ok(lookups > 2, 'it was read again')
    assert.doesNotMatch(during, /4711/)
    assert.match(during, /Nothing in this range is named/)
    assert.match(await read('zeta.viewer'), /4711/)
  } finally {
    gate.unhide('acme', 'del_8')
    await watched.close()
  }
})
