// What it costs the engine to merge a row once, and which columns of it: parts of some thousand rows, decoded
// by the service's own decoder from the bodies of the ingest benches, are copied into tables like the real
// ones but for the thing compared, and put together into one part. CPU microseconds a row of three merges
// each, and bytes a row afterwards. Nothing else runs meanwhile; that of merging several times is not in it.
// With `--unique` each row's own attributes are of it alone, as where each has an id.
//
// Run: node bench/storage/merge-cost.ts [--table otel_metrics_sum] [--parts 10] [--unique] [--only
// 'as it is|without codecs']

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { decodeExport } from '../../server/ingest/otlp/decode-export.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { rowCount } from '../../server/telemetry/rows.ts'
import {
  mapColumnExpression,
  mapColumnType,
  pairMiddle,
  pairStart,
} from '../../server/telemetry/schema/attribute-pairs.ts'
import { createTableText, insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import { type ColumnSpec, type TableSpec, tables } from '../../server/telemetry/schema/tables.ts'
import { raw } from '../../server/telemetry/sql.ts'
import { ingestBodies, startNs } from '../ingest/payloads.ts'
import { provenance } from './bench-store.ts'

const { values: flags } = parseArgs({
  options: {
    table: { type: 'string', default: 'otel_metrics_sum' },
    parts: { type: 'string', default: '10' },
    unique: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
})

/** Answers what stands for a column, or null where the table does without it. */
type Candidate = (column: ColumnSpec) => ColumnSpec | null

const isAttributes = ({ map }: ColumnSpec) => map !== undefined
/** Of the record itself, and not a list. */
const isOwn = ({ map }: ColumnSpec) =>
  map !== undefined && !map.isList && !/^(?:Resource|Scope)/.test(map.name)
const isText = ({ map }: ColumnSpec) => map?.isList === false
const inDictionary = ({ name }: ColumnSpec): ColumnSpec => ({ name, type: 'LowCardinality(String)' })
const asPlainText = ({ name }: ColumnSpec): ColumnSpec => ({ name, type: 'String', codec: 'ZSTD(1)' })

/** The exporter's column, as it was stored before (docs/decisions/0006). */
const asMap = (column: ColumnSpec): ColumnSpec => {
  const { map } = column
  if (map === undefined) return column
  return { name: map.name, type: mapColumnType(map), codec: map.isList ? 'ZSTD(1)' : 'ZSTD(3)' }
}

const candidates: Readonly<Record<string, Candidate>> = {
  'as it is': (column) => column,
  'maps as the exporter has them': asMap,
  'all texts in dictionaries': (column) => (isText(column) ? inDictionary(column) : column),
  'own texts plain': (column) => (isOwn(column) ? asPlainText(column) : column),
  'all texts plain': (column) => (isText(column) ? asPlainText(column) : column),
  'without attributes': (column) => (isAttributes(column) ? null : column),
  'without codecs': (column) => ({ ...column, codec: 'NONE' }),
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
  // Once for nothing: the first merges of a process take more than those after them.
  await measure((column) => column, rows)
  for (const name of names) {
    const result = await measure(candidates[name] ?? ((column) => column), rows)
    process.stdout.write(
      `${JSON.stringify({ table: table.name, isUnique: flags.unique, candidate: name, rows, ...result })}\n`,
    )
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

/**
 * A new table of the same parts, a statement each. What the engine fills or computes by itself is only
 * copied.
 */
async function copyAs(candidate: Candidate): Promise<number> {
  const pairs = table.columns.flatMap((column) => {
    const other = candidate(column)
    return other === null ? [] : [[column, stored(other)] as const]
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

function stored({ name, type, codec }: ColumnSpec): ColumnSpec {
  return codec === undefined ? { name, type } : { name, type, codec }
}

function selectOf(was: ColumnSpec, now: ColumnSpec): string {
  const { map } = was
  if (map === undefined) return `\`${was.name}\``
  const pairs = isOwn(was) && flags.unique ? withId(was.name) : `\`${was.name}\``
  return now.name === was.name ? pairs : mapColumnExpression(map, pairs)
}

/** One attribute more, whose value no other row has. */
function withId(pairs: string): string {
  const [start, middle] = [`char(${pairStart})`, `char(${pairMiddle})`]
  const id = 'lower(hex(sipHash64(_part, _part_offset)))'
  return `concat(if(empty(${pairs}), ${start}, ${pairs}), 'request.id', ${middle}, ${id}, ${start})`
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
