// The cost of reading as data grows: detector windows, dashboards, log search, a trace by its id, through the
// functions that serve HTTP requests and run detectors. Two organisations are queried: the largest, which has
// a fifth of all rows, and one in the middle. Windows end at random in the last ten days; the page cache is
// warm. Each size has its own folder, which is kept and used again where it is named, so that a change can be
// compared on the same rows. Reports p50, p99 and CPU of one read for each organisation, in milliseconds.
//
// npm run bench -- query/reads [--rows 1000000] [--folder PATH] [--seconds 2] [--only text]

import { parseArgs } from 'node:util'
import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import { listMetrics, listServices } from '../../server/query/catalogue.ts'
import { listLogs } from '../../server/query/logs.ts'
import { answerSeries } from '../../server/query/series-answer.ts'
import { listSpans, readTrace } from '../../server/query/traces.ts'
import { readSeries } from '../../server/series/series.ts'
import type { TelemetryEngine } from '../../server/telemetry/engine.ts'
import { TelemetryGate } from '../../server/telemetry/gate.ts'
import { raw } from '../../server/telemetry/sql.ts'
import { TenantReader } from '../../server/telemetry/tenant-reader.ts'
import { report } from '../report.ts'
import { quantile, rounded, timed } from '../samples.ts'
import { openFilled } from './filled-store.ts'
import {
  counterNames,
  endSeconds,
  gaugeNames,
  histogramNames,
  organisationOf,
  organisationRows,
  serviceNames,
  traceIdStatement,
} from './lifelike-rows.ts'

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    folder: { type: 'string' },
    seconds: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
  },
})
const rows = Number(options.rows)
const hour = 3600
const day = 24 * hour
/** Queried organisations: the largest, and one in the middle by size. */
const queried = { largest: 0, middle: 20 }

type Read = (reader: TenantReader, endNs: bigint, traceId: string) => Promise<unknown>

const ns = (seconds: number): bigint => BigInt(Math.round(seconds)) * 1_000_000_000n

interface Watched {
  readonly service?: string
  readonly groupBy?: string
  readonly attributes?: Record<string, string>
  /** Reads without knowledge from an earlier read. */
  readonly isFirst?: boolean
}

/** A detector's window: regular steps of five minutes. */
function window(spanDays: number, metricKey: string, { isFirst, ...what }: Watched): Read {
  return (reader, endNs) =>
    readSeries(isFirst === true ? new TenantReader(engine, reader.place, new TelemetryGate()) : reader, {
      ...{ metricKey, service: what.service, attributes: what.attributes, groupBy: what.groupBy },
      ...{ startNs: endNs - ns(spanDays * day), endNs, stepSeconds: 300, maxGroups: 50 },
    })
}

/** What the HTTP interface reads: `query` without its range, whose schema fills in the rest. */
function asked<Q>(
  read: (reader: TenantReader, query: Q, endNs: bigint) => Promise<unknown>,
  spanSeconds: number,
  query: object,
): Read {
  return (reader, endNs) => {
    const range = { range_start: endNs - ns(spanSeconds), range_end: endNs }
    return read(reader, { attribute: [], ...query, ...range } as Q, endNs)
  }
}

const chart = (spanDays: number, metric_key: string, group_by?: string): Read =>
  asked(answerSeries, spanDays * day, {
    ...{ metric_key, step_seconds: spanDays === 1 ? 120 : hour },
    ...(group_by !== undefined && { group_by: [group_by] }),
  })
const logs = (spanSeconds: number, query: object): Read =>
  asked(listLogs, spanSeconds, { limit: 100, ...query })
const spans = (query: object): Read => asked(listSpans, day, { min_duration_ms: 0, limit: 100, ...query })

const [service = ''] = serviceNames
/** Attributes of the point itself, and of its resource. */
const route = { 'http.route': '/v1/orders/8' }
const host = { 'host.name': 'host-3' }
const [gauge = '', , , otherGauge = ''] = gaugeNames
const [counter = '', , , otherCounter = ''] = counterNames
const [histogram = '', , , otherHistogram = ''] = histogramNames
const reads: Readonly<Record<string, Read>> = {
  'window 1 d, gauge of a service': window(1, otherGauge, { service }),
  'window 1 d, busiest gauge of a service': window(1, gauge, { service }),
  'window 1 d, counter of a service': window(1, otherCounter, { service }),
  'window 1 d, busiest counter of a service': window(1, counter, { service }),
  'window 1 d, histogram p95 of a service': window(1, otherHistogram, { service }),
  'window 1 d, busiest histogram p95 of a service': window(1, histogram, { service }),
  'window 1 d, busiest counter, first read': window(1, counter, { service, isFirst: true }),
  'window 1 d, busiest histogram p95, first read': window(1, histogram, { service, isFirst: true }),
  'window 1 d, busiest gauge of a route': window(1, gauge, { attributes: route }),
  'window 1 d, busiest counter of a route': window(1, counter, { attributes: route }),
  'window 1 d, busiest histogram p95 of a route': window(1, histogram, { attributes: route }),
  'window 1 d, busiest gauge of a host': window(1, gauge, { attributes: host }),
  'window 1 d, busiest gauge of a service by route': window(1, gauge, { service, groupBy: 'http.route' }),
  'window 1 d, busiest counter of a service by route': window(1, counter, { service, groupBy: 'http.route' }),
  'window 1 d, busiest counter of a service by host': window(1, counter, { service, groupBy: 'host.name' }),
  'window 1 d, busiest histogram p95 of a service by route': window(1, histogram, {
    service,
    groupBy: 'http.route',
  }),
  'window 1 d, error ratio of a service': window(1, 'spans.error_ratio', { service }),
  'window 5 d, error ratio by service': window(5, 'spans.error_ratio', { groupBy: 'service' }),
  'window 5 d, latency p95 by service': window(5, 'spans.latency_p95', { groupBy: 'service' }),
  'window 1 d, request rate by route': window(1, 'spans.rate', { groupBy: 'http.route' }),
  'window 1 d, request rate of a host': window(1, 'spans.rate', { attributes: host }),
  'window 5 d, error logs by service': window(5, 'logs.error_count', { groupBy: 'service' }),
  'chart 24 h, busiest gauge by service': chart(1, gauge, 'service'),
  'chart 24 h, busiest counter by service': chart(1, counter, 'service'),
  'chart 24 h, busiest histogram p95': chart(1, histogram),
  'chart 24 h, request rate by service': chart(1, 'spans.rate', 'service'),
  'chart 30 d, busiest gauge by service': chart(30, gauge, 'service'),
  'chart 30 d, busiest counter by service': chart(30, counter, 'service'),
  'chart 30 d, busiest histogram p95': chart(30, histogram),
  'chart 30 d, request rate by service': chart(30, 'spans.rate', 'service'),
  'logs 1 h, newest 100': logs(hour, {}),
  'logs 24 h, errors of a service': logs(day, { service, severity: 'error' }),
  'logs 24 h, rare text': logs(day, { text: 'quota rebalanced' }),
  'logs 24 h, of a route': logs(day, { attribute: Object.entries(route) }),
  'logs 24 h, of a user': logs(day, { attribute: [['user.id', '4711']] }),
  'logs 30 d, rare text': logs(30 * day, { text: 'quota rebalanced' }),
  'spans 24 h, newest 100': spans({}),
  'spans 24 h, errors of a host': spans({ status: 'error', attribute: Object.entries(host) }),
  'trace by id': (reader, _endNs, traceId) => readTrace(reader, traceId, { limit: 10_000 }),
  'services of 24 h': asked(listServices, day, { limit: 100 }),
  'metrics of 24 h': asked(listMetrics, day, { limit: 100 }),
}

const { engine, close } = await openFilled(rows, options.folder)
try {
  for (const [read, run] of Object.entries(reads).filter(([name]) => name.includes(options.only))) {
    const figures = []
    for (const [size, index] of Object.entries(queried))
      figures.push(
        ...Object.entries(await measure(engine, index, run)).map(([name, ms]) => [`${size}: ${name}`, ms]),
      )
    report(`Reads of ${rows.toLocaleString('en')} rows`, { read, ...Object.fromEntries(figures) })
  }
  report('Stored rows', ...(await storeFacts(engine)))
} finally {
  await close()
}

/** Repeats a read for a while, at least five times after one warm-up. */
async function measure(engine: TelemetryEngine, index: number, read: Read) {
  const reader = new TenantReader(engine, organisationOf(index), new TelemetryGate())
  const random = seededUniform(index + 1)
  const own = organisationRows(rows)[index] ?? 0
  const times: number[] = []
  let cpuMs = 0
  const untilMs = performance.now() + Number(options.seconds) * 1000
  for (let i = 0; i < 6 || (performance.now() < untilMs && i < 200); i++) {
    const endNs = ns(endSeconds - random() * 10 * day)
    const [trace] = await engine.select<{ id: string }>(
      raw(traceIdStatement(index, own, Math.floor(random() * 900))),
    )
    const { ms, cpuS } = await timed(() => read(reader, endNs, trace?.id ?? ''))
    if (i === 0) continue
    times.push(ms)
    cpuMs += cpuS * 1000
  }
  return {
    'p50 ms': rounded(quantile(times, 0.5), 1),
    'p99 ms': rounded(quantile(times, 0.99), 1),
    'CPU ms': rounded(cpuMs / times.length, 1),
  }
}

async function storeFacts(engine: TelemetryEngine) {
  const found = await engine.select<{ table: string; parts: number; total: string | number; each: number }>(
    raw(`SELECT table, toUInt32(count()) AS parts, sum(rows) AS total, round(sum(bytes_on_disk) / sum(rows), 1) AS each
FROM system.parts WHERE active AND database = currentDatabase() AND startsWith(table, 'otel_') GROUP BY table ORDER BY table`),
  )
  return found.map(({ each, parts, table, total }) => ({
    stored: table,
    rows: Number(total),
    parts,
    'bytes a row': each,
  }))
}
