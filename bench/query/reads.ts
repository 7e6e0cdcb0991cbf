// The cost of reading as data grows: detector windows, dashboards, log search, a trace by its id, through the
// functions that serve HTTP requests and run detectors. Two organisations are queried: the largest, which has
// a fifth of all rows, and one in the middle. Windows end at random in the last ten days; the page cache is
// warm. Each size has its own folder, which is kept and used again where it is named, so that a change can be
// compared on the same rows. Reports p50, p99 and CPU of one read for each organisation, in milliseconds.
//
// npm run bench -- query/reads [--rows 1000000] [--largest 0] [--folder PATH] [--seconds 2] [--only text]
//
// With `--largest` there are metrics alone, and the largest organisation has as many as it would have among
// that many rows.

import { parseArgs } from 'node:util'
import type { SeriesQuery } from '../../contract/telemetry/queries.ts'
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
    largest: { type: 'string', default: '0' },
    folder: { type: 'string' },
    seconds: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
  },
})
const rows = Number(options.rows)
const hour = 3600
const day = 24 * hour
/** Queried organisations: the largest, and one in the middle by size. */
const asked = { largest: 0, middle: 20 }

type Read = (reader: TenantReader, endNs: bigint, traceId: string) => Promise<unknown>
type Query = Parameters<typeof answerSeries>[1]

const ns = (seconds: number): bigint => BigInt(Math.round(seconds)) * 1_000_000_000n

/**
 * A detector's window: regular steps of five minutes. `isFirst` is a read without knowledge from an earlier
 * read.
 */
function window(
  spanSeconds: number,
  what: {
    metric: string
    service?: string
    groupBy?: string
    attributes?: Record<string, string>
    isFirst?: boolean
  },
): Read {
  return (reader, endNs) =>
    readSeries(what.isFirst === true ? new TenantReader(engine, reader.place, new TelemetryGate()) : reader, {
      metricKey: what.metric,
      service: what.service,
      attributes: what.attributes,
      groupBy: what.groupBy,
      startNs: endNs - ns(spanSeconds),
      endNs,
      stepSeconds: 300,
      maxGroups: 50,
    })
}

function chart(spanSeconds: number, stepSeconds: number, query: Partial<typeof SeriesQuery._output>): Read {
  return (reader, endNs) =>
    answerSeries(
      reader,
      {
        attribute: [],
        ...query,
        range_start: endNs - ns(spanSeconds),
        range_end: endNs,
        step_seconds: stepSeconds,
      } as Query,
      endNs,
    )
}

interface LogSearch {
  readonly text?: string
  readonly service?: string
  readonly severity?: 'error'
  readonly attribute?: readonly (readonly [key: string, value: string])[]
}

function logs(spanSeconds: number, query: LogSearch): Read {
  return (reader, endNs) =>
    listLogs(
      reader,
      {
        attribute: [],
        limit: 100,
        ...query,
        range_start: endNs - ns(spanSeconds),
        range_end: endNs,
      } as never,
      endNs,
    )
}

function spans(
  spanSeconds: number,
  query: { status?: 'error'; attribute?: readonly (readonly [key: string, value: string])[] },
): Read {
  return (reader, endNs) =>
    listSpans(
      reader,
      {
        attribute: [],
        min_duration_ms: 0,
        limit: 100,
        ...query,
        range_start: endNs - ns(spanSeconds),
        range_end: endNs,
      } as never,
      endNs,
    )
}

const [service = ''] = serviceNames
/** Attributes of the point itself, and of its resource. */
const route = { 'http.route': '/v1/orders/8' }
const host = { 'host.name': 'host-3' }
const at = (names: readonly string[], i: number): string => names[i] ?? ''
const reads: Readonly<Record<string, Read>> = {
  'window 1 d, gauge of a service': window(day, { metric: at(gaugeNames, 3), service }),
  'window 1 d, busiest gauge of a service': window(day, { metric: at(gaugeNames, 0), service }),
  'window 1 d, counter of a service': window(day, { metric: at(counterNames, 3), service }),
  'window 1 d, busiest counter of a service': window(day, { metric: at(counterNames, 0), service }),
  'window 1 d, histogram p95 of a service': window(day, { metric: at(histogramNames, 3), service }),
  'window 1 d, busiest histogram p95 of a service': window(day, { metric: at(histogramNames, 0), service }),
  'window 1 d, busiest counter, first read': window(day, {
    metric: at(counterNames, 0),
    service,
    isFirst: true,
  }),
  'window 1 d, busiest histogram p95, first read': window(day, {
    metric: at(histogramNames, 0),
    service,
    isFirst: true,
  }),
  'window 1 d, busiest gauge of a route': window(day, { metric: at(gaugeNames, 0), attributes: route }),
  'window 1 d, busiest counter of a route': window(day, { metric: at(counterNames, 0), attributes: route }),
  'window 1 d, busiest histogram p95 of a route': window(day, {
    metric: at(histogramNames, 0),
    attributes: route,
  }),
  'window 1 d, busiest gauge of a host': window(day, { metric: at(gaugeNames, 0), attributes: host }),
  'window 1 d, busiest gauge of a service by route': window(day, {
    metric: at(gaugeNames, 0),
    service,
    groupBy: 'http.route',
  }),
  'window 1 d, busiest counter of a service by route': window(day, {
    metric: at(counterNames, 0),
    service,
    groupBy: 'http.route',
  }),
  'window 1 d, busiest counter of a service by host': window(day, {
    metric: at(counterNames, 0),
    service,
    groupBy: 'host.name',
  }),
  'window 1 d, busiest histogram p95 of a service by route': window(day, {
    metric: at(histogramNames, 0),
    service,
    groupBy: 'http.route',
  }),
  'window 1 d, error ratio of a service': window(day, { metric: 'spans.error_ratio', service }),
  'window 5 d, error ratio by service': window(5 * day, { metric: 'spans.error_ratio', groupBy: 'service' }),
  'window 5 d, latency p95 by service': window(5 * day, { metric: 'spans.latency_p95', groupBy: 'service' }),
  'window 1 d, request rate by route': window(day, { metric: 'spans.rate', groupBy: 'http.route' }),
  'window 1 d, request rate of a host': window(day, { metric: 'spans.rate', attributes: host }),
  'window 5 d, error logs by service': window(5 * day, { metric: 'logs.error_count', groupBy: 'service' }),
  'chart 24 h, busiest gauge by service': chart(day, 120, {
    metric_key: at(gaugeNames, 0),
    group_by: ['service'],
  }),
  'chart 24 h, busiest counter by service': chart(day, 120, {
    metric_key: at(counterNames, 0),
    group_by: ['service'],
  }),
  'chart 24 h, busiest histogram p95': chart(day, 120, { metric_key: at(histogramNames, 0) }),
  'chart 24 h, request rate by service': chart(day, 120, { metric_key: 'spans.rate', group_by: ['service'] }),
  'chart 30 d, busiest gauge by service': chart(30 * day, hour, {
    metric_key: at(gaugeNames, 0),
    group_by: ['service'],
  }),
  'chart 30 d, busiest counter by service': chart(30 * day, hour, {
    metric_key: at(counterNames, 0),
    group_by: ['service'],
  }),
  'chart 30 d, busiest histogram p95': chart(30 * day, hour, { metric_key: at(histogramNames, 0) }),
  'chart 30 d, request rate by service': chart(30 * day, hour, {
    metric_key: 'spans.rate',
    group_by: ['service'],
  }),
  'logs 1 h, newest 100': logs(hour, {}),
  'logs 24 h, errors of a service': logs(day, { service, severity: 'error' }),
  'logs 24 h, rare text': logs(day, { text: 'quota rebalanced' }),
  'logs 24 h, of a route': logs(day, { attribute: Object.entries(route) }),
  'logs 24 h, of a user': logs(day, { attribute: [['user.id', '4711']] }),
  'logs 30 d, rare text': logs(30 * day, { text: 'quota rebalanced' }),
  'spans 24 h, newest 100': spans(day, {}),
  'spans 24 h, errors of a host': spans(day, { status: 'error', attribute: Object.entries(host) }),
  'trace by id': (reader, _endNs, traceId) => readTrace(reader, traceId, { limit: 10_000 }),
  'services of 24 h': (reader, endNs) =>
    listServices(reader, { start: endNs - ns(day), end: endNs, limit: 100 } as never, endNs),
  'metrics of 24 h': (reader, endNs) =>
    listMetrics(reader, { start: endNs - ns(day), end: endNs, limit: 100 } as never, endNs),
}

const { engine, close } = await openFilled({ rows, largest: Number(options.largest), folder: options.folder })
try {
  for (const [read, run] of Object.entries(reads).filter(([name]) => name.includes(options.only))) {
    const figures = []
    for (const [size, index] of Object.entries(asked))
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
  const own = organisationRows(rows, 64)[index] ?? 0
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
