// The bytes of a log record and a span on disk, and which columns take most of them: the bodies of the ingest
// benches, merged in the service's own tables, and the same records in PostgreSQL, where it is installed,
// with attributes as jsonb, resources in a separate table, and the indexes by time and by trace that queries
// need. Bytes are each store's own count of its files, without logs. Points are in bench/ingest/peers.ts.
//
// npm run bench -- storage/records [--bodies 128] [--seed 1]

import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { exporterDatabase } from '../../server/telemetry/schema/exporter-views.ts'
import { raw } from '../../server/telemetry/sql.ts'
import { ingestBodies, startNs } from '../ingest/payloads.ts'
import { openSession, postgresPrograms, postgresVersion, startPostgres } from '../peers/postgresql.ts'
import { isInstalled } from '../peers/server.ts'
import { report, reportAbsent } from '../report.ts'
import { rounded, shortVersion } from '../samples.ts'
import { insertBodies, mergeTables } from './merged-rows.ts'

const { values: flags } = parseArgs({
  options: { bodies: { type: 'string', default: '128' }, seed: { type: 'string', default: '1' } },
})

/**
 * Records as PostgreSQL would store them: its columns and indexes, and the expressions that compute them
 * here.
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

const words = { logs: 'log record', traces: 'span' } as const

const resourceNumber = 'dense_rank() OVER (ORDER BY toString(ResourceAttributes))'

const root = mkdtempSync(join(tmpdir(), 'lethe-records-'))
// The server of PostgreSQL runs as another user and reads files that our engine writes.
chmodSync(root, 0o755)
const shared = join(root, 'rows')
mkdirSync(shared)
const engine = await openChdb({ folder: join(root, 'engine'), maxMemoryBytes: 2 ** 31 })
try {
  for (const kind of ['logs', 'traces'] as const) {
    await storeInLethe(kind)
    await writeRows(kind)
  }
  if (isInstalled({ name: 'PostgreSQL', programs: postgresPrograms })) await storeInPostgres()
  else reportAbsent('PostgreSQL', 'it is not installed')
} finally {
  await engine.close()
  rmSync(root, { recursive: true, force: true })
}

async function storeInLethe(signal: Kind): Promise<void> {
  const bodies = ingestBodies(signal, Number(flags.bodies), Number(flags.seed)).map((body) => ({
    signal,
    body,
  }))
  const sent = await insertBodies(engine, bodies, startNs)
  const { gzip = 0, plain = 0, rows = 0 } = sent.get(signal) ?? {}
  const { table } = kinds[signal]
  const { bytes = 0 } = (await mergeTables(engine, [table])).get(table) ?? {}
  report('Bytes a record', {
    record: words[signal],
    store: 'Lethe',
    records: rows,
    'as OTLP': rounded(plain / rows, 1),
    gzipped: rounded(gzip / rows, 1),
    stored: rounded(bytes / rows, 1),
  })
  const dearest = await dearestColumns(table, rows)
  // Small parts have all columns in one file, so the engine has no size per column.
  if (dearest !== '') report('Columns that take most', { record: words[signal], 'bytes a record': dearest })
}

/** The columns that take most of the bytes, largest first, with their bytes per record. */
async function dearestColumns(table: string, rows: number): Promise<string> {
  const found = await engine.select<{ name: string; bytes: string | number }>(
    raw(`SELECT name, data_compressed_bytes AS bytes FROM system.columns
      WHERE database = currentDatabase() AND table = '${table}' ORDER BY data_compressed_bytes DESC LIMIT 6`),
  )
  const columns = found
    .filter(({ bytes }) => Number(bytes) > 0)
    .map(({ name, bytes }) => `${name} ${rounded(Number(bytes) / rows)}`)
  return columns.join(', ')
}

/** One file with the records and one with their resources, in the format of COPY. */
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

async function storeInPostgres() {
  const folder = join(root, 'postgres')
  mkdirSync(folder)
  const { server, psql } = await startPostgres({ folder, dataFolder: join(folder, 'data'), settings: {} })
  const admin = openSession(psql)
  const [command, ...args] = psql
  const ask = (text: string) => Number(execFileSync(command, [...args, '-XAtc', text], { encoding: 'utf8' }))
  try {
    for (const kind of ['logs', 'traces'] as const) {
      const { columns, indexes } = kinds[kind]
      const own = Object.entries(columns).map(([name, [type]]) => `${name} ${type}`)
      await admin.run(`
        CREATE TABLE ${kind}_resources (resource_id int PRIMARY KEY, attributes jsonb NOT NULL);
        CREATE TABLE ${kind} (resource_id int NOT NULL, ${own.join(', ')});
        \\copy ${kind}_resources FROM '${join(shared, `${kind}-resources.csv`)}' CSV
        \\copy ${kind} FROM '${join(shared, `${kind}.csv`)}' WITH (FORMAT csv, FORCE_NULL (${nullable(columns)}))
        ${indexes.map((index) => `CREATE INDEX ON ${kind} ${index};`).join('\n')}
        VACUUM ANALYZE ${kind};`)
      const rows = ask(`SELECT count(*) FROM ${kind}`)
      const each = (size: string) => rounded(ask(`SELECT ${size}`) / rows, 1)
      report('Bytes a record', {
        record: words[kind],
        store: `PostgreSQL ${shortVersion(postgresVersion())}`,
        records: rows,
        stored: each(`pg_table_size('${kind}') + pg_total_relation_size('${kind}_resources')`),
        'with its indexes': each(
          `pg_total_relation_size('${kind}') + pg_total_relation_size('${kind}_resources')`,
        ),
      })
    }
  } finally {
    admin.close()
    await server.stop('SIGINT')
  }
}

/** Columns in which an empty text means null. */
function nullable(columns: Readonly<Record<string, readonly [string, string]>>): string {
  return Object.keys(columns)
    .filter((name) => columns[name]?.[0] === 'jsonb')
    .join(', ')
}
