// What a log record, a span and a point cost on disk, and which columns take it: the bodies of the ingest
// benchmarks as they are sent, plain and gzipped, decoded by the service's own decoder into its own tables
// and merged to one part a partition, and the same rows in PostgreSQL, where it is installed, with attributes
// as jsonb, resources in a table of their own, and the indexes by time and by trace that finding them takes.
// Bytes are each store's own count of its files, without logs. Points are those of bench/ingest/peers.ts,
// which has the other stores.
//
//   node bench/storage/records.ts [--bodies 128] [--seed 1]

import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { decodeExport } from '../../server/ingest/otlp/decode-export.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { rowCount } from '../../server/telemetry/rows.ts'
import { insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import { exporterDatabase } from '../../server/telemetry/schema/exporter-views.ts'
import { type Signal, type TableName, tables } from '../../server/telemetry/schema/tables.ts'
import { raw } from '../../server/telemetry/sql.ts'
import { ingestBodies, startNs } from '../ingest/payloads.ts'
import { bodiesOf } from '../ingest/peers/bodies.ts'
import { openSession, postgresPrograms, postgresVersion, startPostgres } from '../peers/postgresql.ts'
import { isInstalled } from '../peers/server.ts'
import { provenance } from './bench-store.ts'

const { values: flags } = parseArgs({
  options: { bodies: { type: 'string', default: '128' }, seed: { type: 'string', default: '1' } },
})

/**
 * Records as PostgreSQL would hold them: its columns and indexes, and the expressions that give them here.
 */
const kinds = {
  logs: {
    table: 'otel_logs',
    columns: {
      time_ns: ['bigint', 'toUnixTimestamp64Nano(Timestamp)'],
      severity: ['smallint', 'SeverityNumber'],
      severity_text: ['text', 'SeverityText'],
      body: ['text', 'Body'],
      trace_id: ['bytea', "concat('\\\\x', TraceId)"],
      span_id: ['bytea', "concat('\\\\x', SpanId)"],
      flags: ['smallint', 'TraceFlags'],
      scope: ['text', "concat(ScopeName, ' ', ScopeVersion)"],
      attributes: ['jsonb', 'toJSONString(LogAttributes)'],
    },
    indexes: ['(resource_id, time_ns)', "(trace_id) WHERE trace_id <> ''"],
  },
  traces: {
    table: 'otel_traces',
    columns: {
      time_ns: ['bigint', 'toUnixTimestamp64Nano(Timestamp)'],
      duration_ns: ['bigint', 'Duration'],
      trace_id: ['bytea', "concat('\\\\x', TraceId)"],
      span_id: ['bytea', "concat('\\\\x', SpanId)"],
      parent_span_id: ['bytea', "concat('\\\\x', ParentSpanId)"],
      name: ['text', 'SpanName'],
      kind: ['text', 'SpanKind'],
      status: ['text', 'StatusCode'],
      status_message: ['text', 'StatusMessage'],
      scope: ['text', "concat(ScopeName, ' ', ScopeVersion)"],
      attributes: ['jsonb', 'toJSONString(SpanAttributes)'],
      events: [
        'jsonb',
        "if(empty(`Events.Name`), '', toJSONString(tuple(`Events.Timestamp`, `Events.Name`, `Events.Attributes`)))",
      ],
    },
    indexes: ['(resource_id, time_ns)', '(trace_id)'],
  },
} as const

type Kind = keyof typeof kinds

const resourceNumber = 'dense_rank() OVER (ORDER BY toString(ResourceAttributes))'

const root = mkdtempSync(join(tmpdir(), 'lethe-records-'))
// The server of PostgreSQL runs as somebody else and reads what our engine writes.
chmodSync(root, 0o755)
const shared = join(root, 'rows')
mkdirSync(shared)
const engine = await openChdb({ folder: join(root, 'engine'), maxMemoryBytes: 2 ** 31 })
try {
  const ours = {
    logs: await holdInLethe('logs', bodiesOfSignal('logs')),
    traces: await holdInLethe('traces', bodiesOfSignal('traces')),
    metrics: await holdInLethe('metrics', pointBodies()),
  }
  for (const kind of ['logs', 'traces'] as const) await writeRows(kind)
  const postgres = { name: 'PostgreSQL', programs: postgresPrograms }
  const theirs = isInstalled(postgres) ? await holdInPostgres() : null
  if (theirs === null) console.error('PostgreSQL is absent and was not measured.')
  console.log(
    JSON.stringify({ bench: 'storage/records', ...provenance(), lethe: ours, postgres: theirs }, null, 2),
  )
} finally {
  await engine.close()
  rmSync(root, { recursive: true, force: true })
}

function bodiesOfSignal(signal: Kind): Buffer[] {
  return ingestBodies(signal, Number(flags.bodies), Number(flags.seed))
}

/** Two senders of a thousand series, two hours long, in the order in which they would arrive. */
function* pointBodies(): Generator<Buffer> {
  const endMs = Number(startNs / 1_000_000n)
  const shape = { senders: 2, seriesPerSender: 1000, rounds: 120, seed: Number(flags.seed), endMs }
  const senders = [0, 1].map((sender) => bodiesOf('otlp', shape, sender))
  for (let round = 0; round < shape.rounds; round++)
    for (const sender of senders) {
      const { value } = sender.next()
      if (value !== undefined) yield value
    }
}

/** Bytes a record: as sent, gzipped body by body, and merged in the tables. */
async function holdInLethe(signal: Signal, bodies: Iterable<Buffer>) {
  const place = { tenantId: 'shop', placement: 0 }
  let [rows, plain, gzip, count] = [0, 0, 0, 0]
  const waiting = new Map<TableName, Buffer[]>()
  for (const body of bodies) {
    plain += body.length
    gzip += gzipSync(body).length
    const { batch } = decodeExport(signal, 'protobuf', body, { place, receivedNs: startNs })
    for (const part of batch) {
      rows += rowCount(part)
      waiting.set(part.table, [...(waiting.get(part.table) ?? []), part.bytes])
    }
    if (++count % 16 === 0) await insertAll(waiting)
  }
  await insertAll(waiting)
  const names = tables.filter((table) => table.signal === signal).map(({ name }) => name)
  for (const name of names) await engine.command(raw(`OPTIMIZE TABLE ${name} FINAL`))
  const each = (bytes: number) => rounded(bytes / rows)
  const bytes = await mergedBytes(names)
  return {
    rows,
    plain: each(plain),
    gzip: each(gzip),
    merged: each(bytes),
    columns: await dearest(names, rows),
  }
}

async function insertAll(waiting: Map<TableName, Buffer[]>): Promise<void> {
  for (const table of tables) {
    const parts = waiting.get(table.name)
    if (parts !== undefined) await engine.insert(table.name, insertColumns(table), parts)
  }
  waiting.clear()
}

function listed(names: readonly TableName[]): string {
  return names.map((name) => `'${name}'`).join(', ')
}

async function mergedBytes(names: readonly TableName[]): Promise<number> {
  const [size] = await engine.select<{ bytes: string | number }>(
    raw(`SELECT sum(bytes_on_disk) AS bytes FROM system.parts WHERE active AND table IN (${listed(names)})`),
  )
  return Number(size?.bytes)
}

/** The columns that take most of the bytes, each with its bytes a record. */
async function dearest(names: readonly TableName[], rows: number): Promise<Record<string, number>> {
  const found = await engine.select<{ name: string; bytes: string | number }>(
    raw(`SELECT name, sum(data_compressed_bytes) AS bytes FROM system.columns
      WHERE database = currentDatabase() AND table IN (${listed(names)})
      GROUP BY name ORDER BY sum(data_compressed_bytes) DESC LIMIT 6`),
  )
  return Object.fromEntries(found.map(({ name, bytes }) => [name, Number((Number(bytes) / rows).toFixed(2))]))
}

/** One file with the records and one with their resources, as COPY takes them. */
async function writeRows(kind: Kind): Promise<void> {
  const { table, columns } = kinds[kind]
  const cells = Object.values(columns).map(([, expression]) => expression)
  const write = (file: string, select: string) =>
    engine.command(raw(`INSERT INTO FUNCTION file('${join(shared, file)}', 'CSV') ${select}`))
  await write(
    `${kind}.csv`,
    `SELECT ${resourceNumber}, ${cells.join(', ')} FROM ${exporterDatabase}.${table}`,
  )
  await write(
    `${kind}-resources.csv`,
    `SELECT DISTINCT ${resourceNumber}, toJSONString(ResourceAttributes) FROM ${exporterDatabase}.${table}`,
  )
}

async function holdInPostgres() {
  const folder = join(root, 'postgres')
  mkdirSync(folder)
  const { server, psql } = await startPostgres({ folder, dataFolder: join(folder, 'data'), settings: {} })
  const admin = openSession(psql)
  const [command, ...args] = psql
  const ask = (text: string) => Number(execFileSync(command, [...args, '-XAtc', text], { encoding: 'utf8' }))
  const sizes: Record<string, object> = {}
  try {
    for (const [kind, { columns, indexes }] of Object.entries(kinds)) {
      const own = Object.entries(columns).map(([name, [type]]) => `${name} ${type}`)
      await admin.run(`
        CREATE TABLE ${kind}_resources (resource_id int PRIMARY KEY, attributes jsonb NOT NULL);
        CREATE TABLE ${kind} (resource_id int NOT NULL, ${own.join(', ')});
        \\copy ${kind}_resources FROM '${join(shared, `${kind}-resources.csv`)}' CSV
        \\copy ${kind} FROM '${join(shared, `${kind}.csv`)}' WITH (FORMAT csv, FORCE_NULL (${nullable(columns)}))
        ${indexes.map((index) => `CREATE INDEX ON ${kind} ${index};`).join('\n')}
        VACUUM ANALYZE ${kind};`)
      const rows = ask(`SELECT count(*) FROM ${kind}`)
      const each = (size: string) => rounded(ask(`SELECT ${size}`) / rows)
      sizes[kind] = {
        rows,
        table: each(`pg_table_size('${kind}') + pg_total_relation_size('${kind}_resources')`),
        withIndexes: each(`pg_total_relation_size('${kind}') + pg_total_relation_size('${kind}_resources')`),
      }
    }
    return { version: postgresVersion(), ...sizes }
  } finally {
    admin.close()
    await server.stop('SIGINT')
  }
}

/** Columns whose empty text is not a value. */
function nullable(columns: Readonly<Record<string, readonly [string, string]>>): string {
  return Object.keys(columns)
    .filter((name) => columns[name]?.[0] === 'jsonb')
    .join(', ')
}

function rounded(value: number): number {
  return Number(value.toFixed(1))
}
