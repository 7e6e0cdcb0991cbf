// What a log record and a span cost on disk: the bodies of the ingest benchmarks as they are sent, plain and gzipped,
// decoded by the service's own decoder into its own tables and merged to one part a partition, and the same rows in
// PostgreSQL, where it is installed, with attributes as jsonb, resources in a table of their own, and the indexes by
// time and by trace that finding them takes. Bytes are each store's own count of its files, without logs.
//
//   node bench/storage/records.ts [--bodies 128] [--seed 1]

import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { decodeExport } from '../../server/ingest/decode-export.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { rowCount } from '../../server/telemetry/rows.ts'
import { insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import { tables } from '../../server/telemetry/schema/tables.ts'
import { raw } from '../../server/telemetry/sql.ts'
import { ingestBodies, startNs } from '../ingest/payloads.ts'
import { openSession, postgresPrograms, postgresVersion, startPostgres } from '../peers/postgresql.ts'
import { isInstalled } from '../peers/server.ts'
import { provenance } from './bench-store.ts'

const { values: flags } = parseArgs({
  options: { bodies: { type: 'string', default: '128' }, seed: { type: 'string', default: '1' } },
})

/** Records as PostgreSQL would hold them: its columns and indexes, and the expressions that give them here. */
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
  const ours = { logs: await holdInLethe('logs'), traces: await holdInLethe('traces') }
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

/** Bytes a record: as sent, gzipped body by body, and merged in the table. */
async function holdInLethe(kind: Kind) {
  const table = tables.find(({ name }) => name === kinds[kind].table)
  if (table === undefined) throw new Error('There is no such table.')
  const place = { tenantId: 'shop', placement: 0 }
  let [rows, plain, gzip] = [0, 0, 0]
  let waiting: Buffer[] = []
  const bodies = ingestBodies(kind, Number(flags.bodies), Number(flags.seed))
  for (const [at, body] of bodies.entries()) {
    plain += body.length
    gzip += gzipSync(body).length
    const { batch } = decodeExport(kind, 'protobuf', body, { place, receivedNs: startNs })
    for (const part of batch) {
      rows += rowCount(part)
      waiting.push(part.bytes)
    }
    if (at % 16 < 15 && at < bodies.length - 1) continue
    await engine.insert(table.name, insertColumns(table), waiting)
    waiting = []
  }
  await engine.command(raw(`OPTIMIZE TABLE ${table.name} FINAL`))
  const [size] = await engine.select<{ bytes: string | number }>(
    raw(`SELECT sum(bytes_on_disk) AS bytes FROM system.parts WHERE active AND table = '${table.name}'`),
  )
  const each = (bytes: number) => rounded(bytes / rows)
  return {
    rows,
    plain: each(plain),
    gzip: each(gzip),
    merged: each(Number(size?.bytes)),
    columns: await dearest(table.name, rows),
  }
}

/** The columns that take most of the bytes, each with its bytes a record. */
async function dearest(table: string, rows: number): Promise<Record<string, number>> {
  const found = await engine.select<{ name: string; bytes: string | number }>(
    raw(`SELECT name, data_compressed_bytes AS bytes FROM system.columns
      WHERE database = currentDatabase() AND table = '${table}' ORDER BY bytes DESC LIMIT 5`),
  )
  return Object.fromEntries(found.map(({ name, bytes }) => [name, rounded(Number(bytes) / rows)]))
}

/** One file with the records and one with their resources, as COPY takes them. */
async function writeRows(kind: Kind): Promise<void> {
  const { table, columns } = kinds[kind]
  const cells = Object.values(columns).map(([, expression]) => expression)
  const write = (file: string, select: string) =>
    engine.command(raw(`INSERT INTO FUNCTION file('${join(shared, file)}', 'CSV') ${select}`))
  await write(`${kind}.csv`, `SELECT ${resourceNumber}, ${cells.join(', ')} FROM ${table}`)
  await write(
    `${kind}-resources.csv`,
    `SELECT DISTINCT ${resourceNumber}, toJSONString(ResourceAttributes) FROM ${table}`,
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
