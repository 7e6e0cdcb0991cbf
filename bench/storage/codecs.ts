// What a row costs on disk, and what it would cost with other codecs, types and sort keys: the demo shop's
// telemetry as OTLP bodies, decoded by the service's own decoder, in tables like the real ones but for the
// thing compared, after all parts are merged into one per partition. Beside the bytes: the CPU of writing the
// rows once (encoding is not in it), and of reading what a detector, a chart and a log search read. Raw OTLP
// is the body as it was sent.
//
//   node bench/storage/codecs.ts [--days 14] [--only 'as it is|ids'] [--senders 0]
//
// With senders it is not the shop's telemetry but what they send in two hours in `bench/ingest/peers.ts`:
// gauges and counters of a thousand series each.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { historyPayloads } from '../../server/demo/payloads.ts'
import { openShop } from '../../server/demo/shop.ts'
import { decodeExport } from '../../server/ingest/otlp/decode-export.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { rowCount } from '../../server/telemetry/rows.ts'
import { createTableText, insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import {
  type ColumnSpec,
  type Signal,
  type TableName,
  type TableSpec,
  tables,
} from '../../server/telemetry/schema/tables.ts'
import { raw } from '../../server/telemetry/sql.ts'
import { bodiesOf } from '../ingest/peers/bodies.ts'
import { provenance, timed } from './bench-store.ts'

const { values: options } = parseArgs({
  options: {
    days: { type: 'string', default: '14' },
    only: { type: 'string', default: '' },
    senders: { type: 'string', default: '0' },
  },
})
const anchorNs = BigInt(Date.UTC(2026, 0, 20)) * 1_000_000n

interface Candidate {
  /** Null leaves it out. */
  readonly column?: (column: ColumnSpec) => ColumnSpec | null
  readonly orderBy?: (table: TableSpec) => readonly string[]
}

const coded = (pick: (column: ColumnSpec) => boolean, codec: string): Candidate => ({
  column: (column) => (pick(column) ? { ...column, codec } : column),
})
const isInstant = ({ type }: ColumnSpec) => type.startsWith('DateTime64')
const isShared = ({ map, type }: ColumnSpec) => map !== undefined && type.startsWith('LowCardinality')
const isOwnText = ({ map, type }: ColumnSpec) => map !== undefined && type === 'String'
const typed = (pick: (column: ColumnSpec) => boolean, type: string, codec: string): Candidate => ({
  column: (column) => (pick(column) ? { ...column, type, codec } : column),
})
const isFloat = ({ type }: ColumnSpec) => type === 'Float64'
const isCount = ({ type }: ColumnSpec) => type === 'UInt64'
const isId = ({ name }: ColumnSpec) => /^(?:Trace|Span|ParentSpan)Id$/.test(name)
const isMetric = ({ signal }: TableSpec) => signal === 'metrics'
const isSeries = ({ name }: ColumnSpec) => name === 'SeriesId'

const candidates: Readonly<Record<string, Candidate>> = {
  'as it is': {},
  'everything ZSTD(3)': {
    column: (column) => ({ ...column, codec: column.codec?.replace('(1)', '(3)') ?? 'ZSTD(3)' }),
  },
  'everything LZ4': {
    column: (column) => ({ ...column, codec: column.codec?.replace('ZSTD(1)', 'LZ4') ?? 'LZ4' }),
  },
  'dictionaries ZSTD(1)': coded(({ codec }) => codec === undefined, 'ZSTD(1)'),
  'instants DoubleDelta, ZSTD(1)': coded(isInstant, 'DoubleDelta, ZSTD(1)'),
  'instants DoubleDelta': coded(isInstant, 'DoubleDelta'),
  'floats Gorilla, ZSTD(1)': coded(isFloat, 'Gorilla, ZSTD(1)'),
  'counts T64, ZSTD(1)': coded(isCount, 'T64, ZSTD(1)'),
  'counts Delta, ZSTD(1)': coded(isCount, 'Delta(8), ZSTD(1)'),
  'ids LZ4': coded(isId, 'LZ4'),
  'ids ZSTD(3)': coded(isId, 'ZSTD(3)'),
  'attributes of logs and spans ZSTD(3)': coded(isOwnText, 'ZSTD(3)'),
  'attributes of logs and spans in dictionaries': typed(isOwnText, 'LowCardinality(String)', 'LZ4'),
  'all attributes as plain texts': typed(isShared, 'String', 'ZSTD(1)'),
  'metrics by series': {
    orderBy: (table) =>
      isMetric(table) ? ['MetricName', 'ServiceName', 'SeriesId', 'TimeUnix'] : table.orderBy,
  },
  'metrics by hour and series': {
    orderBy: (table) =>
      isMetric(table)
        ? ['MetricName', 'ServiceName', 'toStartOfHour(TimeUnix)', 'SeriesId', 'TimeUnix']
        : table.orderBy,
  },
  'metrics by time and series': {
    orderBy: (table) => (isMetric(table) ? [...table.orderBy, 'SeriesId'] : table.orderBy),
  },
  'without series': { column: (column) => (isSeries(column) ? null : column) },
  'series LZ4': coded(isSeries, 'LZ4'),
  'series ZSTD(3)': coded(isSeries, 'ZSTD(3)'),
  'series T64, ZSTD(1)': coded(isSeries, 'T64, ZSTD(1)'),
  'series Delta, ZSTD(1)': coded(isSeries, 'Delta(8), ZSTD(1)'),
  'logs and spans by time': {
    orderBy: (table) => (isMetric(table) ? table.orderBy : ['Timestamp']),
  },
  'spans by service and time': {
    orderBy: (table) => (table.signal === 'traces' ? ['ServiceName', 'Timestamp'] : table.orderBy),
  },
  'spans by service and name': {
    orderBy: (table) =>
      table.signal === 'traces' ? ['ServiceName', 'SpanName', 'Timestamp'] : table.orderBy,
  },
}

const candidateName = ({ name }: { readonly name: TableName }): string => `candidate_of_${name}`

/** What is read most, over the whole store, so that decoding is what costs. */
const scans: Readonly<Record<string, string>> = {
  window: `SELECT toStartOfFiveMinutes(TimeUnix) AS t, avg(Value) FROM candidate_of_otel_metrics_gauge GROUP BY t FORMAT Null`,
  counter: `SELECT SeriesId AS s, max(Value) FROM candidate_of_otel_metrics_sum GROUP BY s FORMAT Null`,
  logs: `SELECT count() FROM candidate_of_otel_logs WHERE positionCaseInsensitiveUTF8(Body, 'quota rebalanced') > 0 FORMAT Null`,
  'errors of a service, a day': `SELECT toStartOfFiveMinutes(Timestamp) AS t, countIf(StatusCode = 'Error') FROM candidate_of_otel_traces WHERE TenantId = 'shop' AND ServiceName = 'checkout' AND Timestamp >= toDateTime64('2026-01-18', 9, 'UTC') AND Timestamp < toDateTime64('2026-01-19', 9, 'UTC') GROUP BY t FORMAT Null`,
  'errors of all services, a day': `SELECT toStartOfFiveMinutes(Timestamp) AS t, countIf(StatusCode = 'Error') FROM candidate_of_otel_traces WHERE TenantId = 'shop' AND Timestamp >= toDateTime64('2026-01-18', 9, 'UTC') AND Timestamp < toDateTime64('2026-01-19', 9, 'UTC') GROUP BY t FORMAT Null`,
  'a trace': `SELECT * FROM candidate_of_otel_traces WHERE TenantId = 'shop' AND TraceId IN (SELECT any(TraceId) FROM otel_traces) FORMAT Null`,
  latency: `SELECT toStartOfFiveMinutes(Timestamp) AS t, quantile(0.95)(Duration) FROM candidate_of_otel_traces WHERE SpanKind IN ('Server', 'Consumer') GROUP BY t FORMAT Null`,
}

const arrival = { place: { tenantId: 'shop', placement: 0 }, receivedNs: anchorNs }

const root = mkdtempSync(join(tmpdir(), 'lethe-codecs-'))
const engine = await openChdb({ folder: root, maxMemoryBytes: 2 ** 31 })
try {
  const sent = await insertSent()
  const results: Record<string, unknown> = {}
  const asked = new Set(options.only.split('|'))
  for (const [name, candidate] of Object.entries(candidates)) {
    if (options.only !== '' && !asked.has(name)) continue
    results[name] = await measure(candidate)
    process.stderr.write(`| ${name} | ${JSON.stringify(results[name])} |\n`)
  }
  process.stdout.write(`${JSON.stringify({ ...provenance(), sent, results }, null, 2)}\n`)
} finally {
  await engine.close()
  rmSync(root, { recursive: true, force: true })
}

/** Bytes per record as sent, plain and gzipped, by signal. */
async function insertSent() {
  const sent: Record<string, { rows: number; plain: number; gzip: number }> = {}
  let waiting = new Map<TableName, Buffer[]>()
  for (const { signal, body } of payloads()) {
    const { batch } = decodeExport(signal, 'protobuf', Buffer.from(body), arrival)
    const total = sent[signal] ?? { rows: 0, plain: 0, gzip: 0 }
    sent[signal] = total
    total.plain += body.length
    total.gzip += gzipSync(body).length
    for (const part of batch) {
      total.rows += rowCount(part)
      waiting.set(part.table, [...(waiting.get(part.table) ?? []), part.bytes])
    }
    if ([...waiting.values()].some((parts) => sizeOf(parts) > 16_000_000)) {
      await insertAll(waiting)
      waiting = new Map()
    }
  }
  await insertAll(waiting)
  return Object.fromEntries(
    Object.entries(sent).map(([signal, { rows, plain, gzip }]) => [
      signal,
      { rows, plain: rounded(plain / rows), gzip: rounded(gzip / rows) },
    ]),
  )
}

function payloads(): Iterable<{ readonly signal: Signal; readonly body: Uint8Array }> {
  const senders = Number(options.senders)
  if (senders > 0) return senderPayloads(senders)
  return historyPayloads(openShop({ seed: 7, anchorNs, historyDays: Number(options.days) }), 2_000)
}

/** In the order in which they arrive: one body of each sender a minute. */
function* senderPayloads(senders: number) {
  const endMs = Number(anchorNs / 1_000_000n)
  const shape = { senders, seriesPerSender: 1000, rounds: 120, seed: 1, endMs }
  const bodies = Array.from({ length: senders }, (_, sender) => bodiesOf('otlp', shape, sender))
  for (let round = 0; round < shape.rounds; round++) {
    for (const own of bodies) {
      const { value } = own.next()
      if (value !== undefined) yield { signal: 'metrics' as const, body: value }
    }
  }
}

async function insertAll(waiting: ReadonlyMap<TableName, readonly Buffer[]>): Promise<void> {
  for (const table of tables) {
    const parts = waiting.get(table.name) ?? []
    if (parts.length > 0) await engine.insert(table.name, insertColumns(table), parts)
  }
}

function sizeOf(parts: readonly Buffer[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0)
}

async function measure({ column = (own) => own, orderBy = (table) => table.orderBy }: Candidate) {
  const bytes: Record<string, number> = {}
  let writeCpuS = 0
  for (const table of tables) {
    const columns = table.columns.flatMap((one) => column(one) ?? [])
    const own = { ...table, columns, orderBy: orderBy(table) }
    const names = insertColumns(own).map(({ name }) => `\`${name}\``)
    await engine.command(raw(createTableText(own).replace(table.name, candidateName(table))))
    const written = await timed(() =>
      engine.command(
        raw(`INSERT INTO ${candidateName(table)} (${names}) SELECT ${names} FROM ${table.name}`),
      ),
    )
    writeCpuS += written.cpuS
    await engine.command(raw(`OPTIMIZE TABLE ${candidateName(table)} FINAL`))
    const [size] = await engine.select<{ each: number }>(
      raw(
        `SELECT sum(bytes_on_disk) / sum(rows) AS each FROM system.parts WHERE active AND table = '${candidateName(table)}'`,
      ),
    )
    bytes[table.name.replace('otel_', '')] = Number((size?.each ?? 0).toFixed(2))
  }
  const readCpuMs: Record<string, number> = {}
  const hasSeries = tables.some(({ columns }) => columns.some((one) => isSeries(one) && column(one) !== null))
  for (const [name, text] of Object.entries(scans))
    if (hasSeries || !text.includes('SeriesId')) readCpuMs[name] = await cpuOf(text)
  for (const table of tables) await engine.command(raw(`DROP TABLE ${candidateName(table)} SYNC`))
  return { bytes, writeCpuS: rounded(writeCpuS), readCpuMs }
}

async function cpuOf(text: string): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < 5; i++) least = Math.min(least, (await timed(() => engine.command(raw(text)))).cpuS)
  return rounded(least * 1000)
}

function rounded(value: number): number {
  return Number(value.toFixed(1))
}
