// What it costs the engine to merge a row once, and which columns of it: parts of some thousand rows, decoded by the
// service's own decoder from the bodies of the ingest benches, are copied into tables like the real ones but for the
// thing compared, and put together into one part. CPU microseconds a row of three merges each, and bytes a row
// afterwards. Nothing else runs meanwhile; that of merging several times is not in it.
//
// Run: node bench/storage/merge-cost.ts [--table otel_metrics_sum] [--parts 10] [--only 'as it is|texts']

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { decodeExport } from '../../server/ingest/decode-export.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { rowCount } from '../../server/telemetry/rows.ts'
import { createTableText, insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import { type ColumnSpec, type TableSpec, tables } from '../../server/telemetry/schema/tables.ts'
import { raw } from '../../server/telemetry/sql.ts'
import { ingestBodies, startNs } from '../ingest/payloads.ts'
import { provenance } from './bench-store.ts'

const { values: flags } = parseArgs({
  options: {
    table: { type: 'string', default: 'otel_metrics_sum' },
    parts: { type: 'string', default: '10' },
    only: { type: 'string', default: '' },
  },
})

/** Answers what stands for a column, or null where the table does without it. */
type Candidate = (column: ColumnSpec) => ColumnSpec | null

const isMap = ({ type }: ColumnSpec) => type.startsWith('Map(')
const isShared = ({ name }: ColumnSpec) => /^(?:Resource|Scope)/.test(name)
const typed = (column: ColumnSpec, type: string): ColumnSpec => ({ name: column.name, type })

const candidates: Readonly<Record<string, Candidate>> = {
  'as it is': (column) => column,
  'without maps': (column) => (isMap(column) ? null : column),
  'keys of maps as plain strings': (column) =>
    isMap(column) ? { ...column, type: 'Map(String, String)' } : column,
  'values of maps in dictionaries': (column) =>
    isMap(column) ? { ...column, type: 'Map(LowCardinality(String), LowCardinality(String))' } : column,
  'maps of resource and scope as texts in dictionaries': (column) =>
    isMap(column) && isShared(column) ? typed(column, 'LowCardinality(String)') : column,
  'all maps as texts in dictionaries': (column) =>
    isMap(column) ? typed(column, 'LowCardinality(String)') : column,
  'the same, those of the row as plain texts': (column) =>
    !isMap(column)
      ? column
      : isShared(column)
        ? typed(column, 'LowCardinality(String)')
        : { ...column, type: 'String' },
  'without codecs': ({ name, type }) => ({ name, type, codec: 'NONE' }),
}

const rowsOfPart = 5_000
const table = specOf(flags.table)
const folder = mkdtempSync(join(tmpdir(), 'lethe-merge-cost-'))
const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 31 })
const command = (text: string) => engine.command(raw(text))

try {
  await command('SYSTEM STOP MERGES')
  const rows = await fill()
  const names = Object.keys(candidates).filter(
    (name) => flags.only === '' || flags.only.split('|').includes(name),
  )
  for (const name of names) {
    const result = await measure(candidates[name] ?? ((column) => column), rows)
    process.stdout.write(`${JSON.stringify({ table: table.name, candidate: name, rows, ...result })}\n`)
  }
  process.stdout.write(`${JSON.stringify(provenance())}\n`)
} finally {
  await engine.close()
  rmSync(folder, { recursive: true })
}

function specOf(name: string): TableSpec {
  const found = tables.find((one) => one.name === name)
  if (found === undefined) throw new Error(`There is no table ${name}.`)
  return found
}

/** The real table, with as many parts as were asked for; answers its rows. */
async function fill(): Promise<number> {
  const place = { tenantId: 'org-0', placement: 0 }
  let [all, parts, rows] = [0, 0, 0]
  let buffers: Buffer[] = []
  for (let seed = 1; parts < Number(flags.parts); seed++) {
    for (const body of ingestBodies(table.signal, 16, seed)) {
      const { batch } = decodeExport(table.signal, 'protobuf', body, { place, receivedNs: startNs })
      const own = batch.filter((part) => part.table === table.name)
      buffers.push(...own.map(({ bytes }) => bytes))
      rows += own.reduce((sum, part) => sum + rowCount(part), 0)
      if (rows < rowsOfPart || parts === Number(flags.parts)) continue
      await engine.insert(table.name, insertColumns(table), buffers)
      all += rows
      parts++
      buffers = []
      rows = 0
    }
  }
  return all
}

async function measure(candidate: Candidate, rows: number) {
  const merges: number[] = []
  for (let round = 0; round < 3; round++) {
    const columns = await copyAs(candidate)
    const start = process.cpuUsage()
    await command('OPTIMIZE TABLE candidate FINAL')
    const { user, system } = process.cpuUsage(start)
    merges.push(Number(((user + system) / rows).toFixed(2)))
    if (round === 2)
      return { columns, mergeUs: merges, bytes: Number(((await bytesOnDisk()) / rows).toFixed(1)) }
  }
  throw new Error('Three rounds are made.')
}

/** A new table of the same parts, a statement each. */
async function copyAs(candidate: Candidate): Promise<number> {
  const pairs = table.columns.flatMap((column) => {
    const other = candidate(column)
    return other === null ? [] : [[column, other] as const]
  })
  await command('DROP TABLE IF EXISTS candidate SYNC')
  const like = { ...table, columns: pairs.map(([, other]) => other) }
  await command(createTableText(like).replace(table.name, 'candidate'))
  const into = ['Placement', 'TenantId', ...pairs.map(([, { name }]) => `\`${name}\``)].join(', ')
  const from = ['Placement', 'TenantId', ...pairs.map(([was, now]) => selectOf(was, now))].join(', ')
  await command('SYSTEM STOP MERGES candidate')
  for (const part of await partsOf(table.name)) {
    await command(`INSERT INTO candidate (${into}) SELECT ${from} FROM ${table.name} WHERE _part = '${part}'`)
  }
  await command('SYSTEM START MERGES candidate')
  return like.columns.length
}

function selectOf(was: ColumnSpec, now: ColumnSpec): string {
  return isMap(was) && !isMap(now) ? `toJSONString(\`${was.name}\`)` : `\`${was.name}\``
}

async function partsOf(name: string): Promise<string[]> {
  const parts = await engine.select<{ name: string }>(
    raw(`SELECT name FROM system.parts WHERE active AND table = '${name}' ORDER BY name`),
  )
  return parts.map((part) => part.name)
}

async function bytesOnDisk(): Promise<number> {
  const [sum] = await engine.select<{ bytes: string }>(
    raw("SELECT sum(bytes_on_disk) AS bytes FROM system.parts WHERE active AND table = 'candidate'"),
  )
  return Number(sum?.bytes)
}
