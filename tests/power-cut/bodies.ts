// The bodies of the power-cut test, and how their rows are recognised. Each row stores the numbers of its
// body and of itself as one integer in a column of its table, so that afterwards the engine itself counts the
// rows of each body. Some bodies have rows in two weeks, and each body of metrics in two tables, so that one
// body is several parts.

import { startMs } from '../../bench/deletion/rows.ts'
import { requestAttributes, resource } from '../../bench/ingest/payloads.ts'
import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import type { Signal, TableName } from '../../server/telemetry/schema/tables.ts'
import { encodeProto } from '../otlp/otlp-messages.ts'

/** "fresh" is sent while the power is cut; "history" was stored before, over twelve weeks. */
export type Spread = 'fresh' | 'history'

/** Where a table stores the integer that identifies body and row. */
export const identities: readonly {
  readonly table: TableName
  readonly signal: Signal
  readonly id: string
}[] = [
  { table: 'otel_metrics_gauge', signal: 'metrics', id: 'toUInt64(Value)' },
  { table: 'otel_metrics_histogram', signal: 'metrics', id: 'toUInt64(Sum)' },
  { table: 'otel_logs', signal: 'logs', id: `toUInt64(splitByChar(' ', Body)[1])` },
  { table: 'otel_traces', signal: 'traces', id: 'Duration' },
]

export const rowsPerBodyMax = 1000
const weekMs = 7 * 86_400_000
const historyWeeks = 12
const historyRows = 240

/** Cuts through a week at both ends, so that its erasure drops some partitions and swaps others. */
export const erasedRange = {
  startMs: startMs + 1.5 * weekMs,
  endMs: startMs + 10.5 * weekMs,
}

/** Number of rows of a body in each table of its signal. */
export function rowsOf(spread: Spread, body: number): number {
  return spread === 'history' ? historyRows : 1 + ((body * 7919) % 40)
}

function timeMs(spread: Spread, body: number, row: number): number {
  return spread === 'history'
    ? startMs + row * ((historyWeeks * weekMs) / historyRows)
    : startMs + (body % 4 === 0 ? (row % 2) * weekMs : 0) + row * 1000
}

/** Rows of a body of history that an erasure of {@link erasedRange} keeps, in each table. */
export function survivorsOf(body: number): number {
  return Array.from({ length: rowsOf('history', body) }, (_, row) => timeMs('history', body, row)).filter(
    (at) => at < erasedRange.startMs || at >= erasedRange.endMs,
  ).length
}

/** One body as protobuf, the same for the same arguments. */
export function bodyOf(signal: Signal, spread: Spread, body: number): Buffer {
  const random = seededUniform(body + 1)
  const rows = Array.from({ length: rowsOf(spread, body) }, (_, row) => ({
    id: body * rowsPerBodyMax + row,
    timeUnixNano: `${timeMs(spread, body, row)}000000`,
    attributes: requestAttributes(random),
  }))
  const from = { resource: resource(random, body), scope: { name: 'power-cut' } }
  if (signal === 'logs') {
    const logRecords = rows.map(({ id, ...row }) => ({
      ...row,
      severityNumber: 9,
      body: { stringValue: `${id} ${'order accepted for customer '.repeat(id % 12)}` },
    }))
    return encodeProto('logs', {
      resourceLogs: [{ resource: from.resource, scopeLogs: [{ scope: from.scope, logRecords }] }],
    })
  }
  if (signal === 'traces') {
    const spans = rows.map(({ id, timeUnixNano, attributes }) => ({
      traceId: body.toString(16).padStart(32, '1'),
      spanId: id.toString(16).padStart(16, '1'),
      name: 'GET /orders',
      kind: 2,
      startTimeUnixNano: timeUnixNano,
      endTimeUnixNano: String(BigInt(timeUnixNano) + BigInt(id)),
      attributes,
    }))
    return encodeProto('traces', {
      resourceSpans: [{ resource: from.resource, scopeSpans: [{ scope: from.scope, spans }] }],
    })
  }
  const gauge = { dataPoints: rows.map(({ id, ...row }) => ({ ...row, asDouble: id })) }
  const histogram = {
    aggregationTemporality: 2,
    dataPoints: rows.map(({ id, ...row }) => ({
      ...row,
      count: '6',
      sum: id,
      min: 0.1,
      max: 90,
      explicitBounds: [1, 10],
      bucketCounts: ['1', '2', '3'],
    })),
  }
  const metrics = [
    { name: 'queue.length', gauge },
    { name: 'request.duration', unit: 'ms', histogram },
  ]
  return encodeProto('metrics', {
    resourceMetrics: [{ resource: from.resource, scopeMetrics: [{ scope: from.scope, metrics }] }],
  })
}
