// Telemetry of many organisations by INSERT ... SELECT FROM numbers(), the same at every run: tens of
// millions of rows in minutes, without the ingest path. What matters for reading and for storage is
// realistic: organisations of very different sizes (the i-th has 1/i of the first), metrics as real series
// (gauges with a daily pattern, cumulative counters and histograms that grow), traces whose spans are close
// together, log bodies of words and numbers, and six attributes with few distinct values.

import type { TelemetryEngine, TenantPlace } from '../../server/telemetry/engine.ts'
import { pairsOfMap } from '../../server/telemetry/schema/attribute-pairs.ts'
import type { TableName } from '../../server/telemetry/schema/tables.ts'
import { raw } from '../../server/telemetry/sql.ts'

const days = 30
const daySeconds = 86_400
/** 2026-01-12, a Monday. */
const startSeconds = Date.UTC(2026, 0, 12) / 1000
export const endSeconds = startSeconds + days * daySeconds

export const serviceNames = ['checkout', 'cart', 'payment', 'frontend', 'search', 'auth', 'mail', 'ledger']
/** The first has half of all series of its kind, the others share the rest. */
export const gaugeNames = ['process.cpu.utilization', ...numbered('app.gauge', 11)]
export const counterNames = ['http.server.request.count', ...numbered('app.counter', 11)]
export const histogramNames = ['http.server.request.duration', ...numbered('app.histogram', 11)]

function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${name}.${i + 1}`)
}

/** Share of an organisation's rows in each table. */
const shares = {
  otel_metrics_gauge: 0.25,
  otel_metrics_sum: 0.25,
  otel_metrics_histogram: 0.1,
  otel_logs: 0.2,
  otel_traces: 0.2,
} as const satisfies Partial<Record<TableName, number>>
type FilledTable = keyof typeof shares

/** Spans of one trace. */
const traceSpans = 8

/** Placements 0 to 63, the largest organisation first. */
export function organisationOf(index: number): TenantPlace {
  return { tenantId: `org-${index}`, placement: index % 64 }
}

/** Rows of each of 64 organisations, so that together they are about `rows`. */
export function organisationRows(rows: number): number[] {
  const weights = Array.from({ length: 64 }, (_, i) => 1 / (i + 1))
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return weights.map((weight) => Math.ceil((rows * weight) / sum))
}

/** Rows of one INSERT; the engine has them uncompressed in memory. */
const insertRows = 250_000

/** Fills the tables. Rows of one organisation and table are in the order of their time. */
export async function fill(engine: Pick<TelemetryEngine, 'command'>, rows: number): Promise<void> {
  for (const [index, own] of organisationRows(rows).entries())
    for (const table of Object.keys(shares) as FilledTable[]) {
      const total = Math.ceil(own * shares[table])
      for (let from = 0; from < total; from += insertRows) {
        const count = Math.min(insertRows, total - from)
        const { columns, select } = rowsOf(table, index, { total, from, count })
        await engine.command(
          raw(
            `INSERT INTO ${table} (Placement, TenantId, ${columns}) SELECT ${ownerColumnsOf(index)}, ${select}`,
          ),
        )
      }
    }
}

function ownerColumnsOf(index: number): string {
  const { placement, tenantId } = organisationOf(index)
  return `${placement}, '${tenantId}'`
}

interface Slice {
  /** All rows of this table and organisation. */
  readonly total: number
  readonly from: number
  readonly count: number
}

const list = (words: readonly string[]): string => `[${words.map((word) => `'${word}'`).join(',')}]`

const resource =
  pairsOfMap(`map('service.name', service, 'service.version', concat('1.', toString(host % 7), '.0'),
  'host.name', concat('host-', toString(host)), 'k8s.pod.name', concat(service, '-', toString(host), '-x7f2'),
  'deployment.environment.name', 'production', 'telemetry.sdk.language', 'nodejs')`)
const endpoint =
  pairsOfMap(`map('http.request.method', 'GET', 'http.route', concat('/v1/orders/', toString(route)), 'http.response.status_code', '200',
  'url.scheme', 'https', 'server.address', concat('10.0.0.', toString(host)), 'network.protocol.version', '1.1')`)

const logged =
  pairsOfMap(`map('http.request.method', 'POST', 'http.route', concat('/v1/orders/', toString(mix % 40)), 'client.address', concat('10.1.', toString(mix % 255), '.9'),
  'user.id', toString(mix % 100000), 'code.function.name', 'handle', 'thread.id', toString(host))`)

function rowsOf(table: FilledTable, organisation: number, slice: Slice): { columns: string; select: string } {
  if (table === 'otel_logs') return logRows(organisation, slice)
  if (table === 'otel_traces') return spanRows(organisation, slice)
  return pointRows(table, organisation, slice)
}

/** A point a minute for each series, or fewer where there are too few rows for 16 series. */
function pointRows(table: FilledTable, organisation: number, slice: Slice) {
  const series = Math.max(16, Math.round(slice.total / (days * 1440)))
  const everyNs = Math.floor((days * daySeconds * 1e9) / Math.ceil(slice.total / series))
  const { names, columns, values } = kinds[table as keyof typeof kinds]
  const select = `${resource}, 'https://opentelemetry.io/schemas/1.27.0', 'otel-js', '1.0.0', service, metric, 'Something measured', '1', ${endpoint},
  fromUnixTimestamp64Nano(toInt64(${startSeconds - 3600}000000000), 'UTC'), fromUnixTimestamp64Nano(t, 'UTC'), ${values}
FROM (SELECT number % ${series} AS k, intDiv(number, ${series}) AS tick, intDiv(k, 2) AS half, cityHash64(number, ${organisation}) AS mix,
  ${list(names)}[if(k % 2 = 0, 1, 2 + half % 11)] AS metric,
  ${list(serviceNames)}[1 + if(k % 2 = 0, half, intDiv(half, 11)) % 8] AS service,
  intDiv(half, 8) % 12 AS host, half % 40 AS route,
  toInt64(${startSeconds}000000000) + toInt64(tick * ${everyNs}) + toInt64(cityHash64(k) % ${everyNs}) AS t
  FROM numbers(${slice.from}, ${slice.count}))`
  return {
    columns: `ResourceAttributesPairs, ResourceSchemaUrl, ScopeName, ScopeVersion, ServiceName, MetricName, MetricDescription, MetricUnit, AttributesPairs, StartTimeUnix, TimeUnix, ${columns}`,
    select,
  }
}

const latencyBounds = '[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]'
const kinds = {
  otel_metrics_gauge: {
    names: gaugeNames,
    columns: 'Value',
    values: `round(0.4 + 0.2 * sin(t / 1e9 * 2 * pi() / ${daySeconds}) + 0.1 * (mix % 1000) / 1000, 4)`,
  },
  otel_metrics_sum: {
    names: counterNames,
    columns: 'Value, AggregationTemporality, IsMonotonic',
    values: 'toFloat64(tick * (20 + k % 30) + mix % 20), 2, true',
  },
  otel_metrics_histogram: {
    names: histogramNames,
    columns: 'Count, Sum, BucketCounts, ExplicitBounds, AggregationTemporality',
    values: `arraySum(arrayMap(i -> tick * bitShiftRight(4096, abs(i - 5) * 2) + mix % 3, range(15)) AS counts), tick * 123.4 + (mix % 1000) / 1000, counts, ${latencyBounds}, 2`,
  },
}

const scattered = (slice: Slice): string =>
  `toInt64(${startSeconds}000000000) + toInt64(floor((number + (mix % 1000) / 1000) * ${Math.floor((days * daySeconds * 1e9) / slice.total)}))`

function logRows(organisation: number, slice: Slice) {
  return {
    columns:
      'Timestamp, TraceId, SpanId, TraceFlags, SeverityText, SeverityNumber, ServiceName, Body, ResourceAttributesPairs, ScopeName, ScopeVersion, LogAttributesPairs',
    select: `fromUnixTimestamp64Nano(t, 'UTC'), if(mix % 3 = 0, '', lower(hex(sipHash128(mix)))), if(mix % 3 = 0, '', lower(hex(mix))), 1,
  if(failed, 'ERROR', 'INFO'), if(failed, 17, 9), service,
  if(mix % 5000 = 7, concat('tenant quota rebalanced for shard ', toString(mix % 97)),
    concat(if(failed, 'failed to handle request ', 'handled request '), lower(hex(bitAnd(mix, 0xffffffff))), ' for user ', toString(mix % 100000),
    ' in ', toString(mix % 500), ' ms', if(failed, ': upstream connect error or disconnect before headers', ''))),
  ${resource}, 'otel-js', '1.0.0',
  ${logged}
FROM (SELECT cityHash64(number, ${organisation}) AS mix, mix % 20 = 3 AS failed, ${list(serviceNames)}[1 + bitShiftRight(mix, 20) % 8] AS service,
  bitShiftRight(mix, 30) % 12 AS host, ${scattered(slice)} AS t FROM numbers(${slice.from}, ${slice.count}))`,
  }
}

/** The id of the n-th trace of an organisation, as an expression over `trace`. */
const traceIdOf = (organisation: number): string => `lower(hex(sipHash128(trace, ${organisation})))`

/** Returns a statement for the `id` of a trace at about that many thousandths of the time from the start. */
export function traceIdStatement(organisation: number, rows: number, perMille: number): string {
  const total = Math.ceil(rows * shares.otel_traces)
  return `SELECT ${traceIdOf(organisation)} AS id FROM (SELECT toUInt64(${Math.floor((total / traceSpans) * (perMille / 1000))}) AS trace)`
}

function spanRows(organisation: number, slice: Slice) {
  const traceNs = Math.floor((days * daySeconds * 1e9) / Math.ceil(slice.total / traceSpans))
  return {
    columns:
      'Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, ResourceAttributesPairs, ScopeName, ScopeVersion, SpanAttributesPairs, Duration, StatusCode',
    select: `fromUnixTimestamp64Nano(t, 'UTC'), ${traceIdOf(organisation)}, lower(hex(mix)), if(place = 0, '', lower(hex(cityHash64(number - 1, ${organisation})))),
  concat(if(place % 2 = 0, 'GET /v1/orders/', 'SELECT orders.'), toString(route)), if(place % 2 = 0, 'Server', 'Client'), service, ${resource}, 'otel-js', '1.0.0', ${endpoint},
  toUInt64(exp(15 + 3 * (mix % 1000) / 1000)), if(mix % 50 = 3, 'Error', 'Unset')
FROM (SELECT number, toUInt64(intDiv(number, ${traceSpans})) AS trace, number % ${traceSpans} AS place, cityHash64(number, ${organisation}) AS mix, cityHash64(trace, ${organisation}) AS own,
  ${list(serviceNames)}[1 + (own + intDiv(place, 2)) % 8] AS service, bitShiftRight(own, 30) % 12 AS host, bitShiftRight(own, 40) % 40 AS route,
  toInt64(${startSeconds}000000000) + toInt64(trace * ${traceNs}) + toInt64(own % ${traceNs}) + toInt64(place * 3000000 + mix % 1000000) AS t
  FROM numbers(${slice.from}, ${slice.count}))`,
  }
}
