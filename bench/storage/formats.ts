// What one row costs from cells to committed, in three insert formats: JSONCompactEachRow through the
// driver's raw insert, and RowBinary and Native through a file that has no name (opened, unlinked, read
// back by the engine as /proc/self/fd/N, so nothing is left behind by a crash). Native is column by
// column: a header with column and row counts, then name, type and values of each column; strings carry a
// LEB128 length, arrays cumulative offsets. LowCardinality columns are sent as plain strings and
// converted by the engine. All three must yield the same table, which is checked by a hash before
// anything is timed. Linux only.
//
//   node bench/storage/formats.ts [--rows 20000] [--rounds 9] [--root /tmp]

import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { tables } from '../../server/telemetry/schema/tables.ts'
import { openBenchStore, provenance, quantile, tableText, timed } from './bench-store.ts'
import { gaugeLine, seededRandom } from './sample-rows.ts'

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '9' },
    root: { type: 'string', default: '/tmp' },
  },
})
const rowCount = Number(flags.rows)

/** Empty arrays stand for the exemplar columns. */
type GaugeCell = string | number | bigint | readonly never[]
type GaugeRow = readonly GaugeCell[]

const gauge = tables.find(({ name }) => name === 'otel_metrics_gauge')
if (gauge === undefined) throw new Error('There is no gauge table.')
const columns = [
  { name: 'Placement', type: 'UInt16' },
  { name: 'TenantId', type: 'String' },
  ...gauge.columns
    .filter(({ fallback }) => fallback === undefined)
    .map(({ name, type }) => ({ name, type: type.replaceAll('LowCardinality(String)', 'String') })),
]

const random = seededRandom(1)
const rows: GaugeRow[] = Array.from({ length: rowCount }, (_, i) => {
  const timeNs = 1_732_000_000_000_000_000n + BigInt(i)
  const cells = JSON.parse(gaugeLine(random, { organisation: 1, placement: 1, timeNs })) as GaugeCell[]
  // JSON.parse rounds 64-bit integers; the instants are put back exactly.
  return columns.map(({ name }, c) => {
    if (name === 'StartTimeUnix') return timeNs - 60_000_000_000n
    return name === 'TimeUnix' ? timeNs : (cells[c] ?? '')
  })
})

function jsonLines(): Buffer {
  const lines = rows.map(
    (row) =>
      `[${row.map((cell) => (typeof cell === 'bigint' ? cell.toString() : JSON.stringify(cell))).join(',')}]\n`,
  )
  return Buffer.from(lines.join(''), 'latin1')
}

/** Writes little-endian values one after another into one large buffer. */
class BinaryWriter {
  readonly #bytes = Buffer.allocUnsafe(64 << 20)
  #at = 0
  readonly #encoded = new Map<string, Buffer>()

  start(): void {
    this.#at = 0
  }
  written(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }
  varint(value: number): void {
    let rest = value
    for (; rest > 127; rest >>>= 7) this.#bytes[this.#at++] = (rest & 127) | 128
    this.#bytes[this.#at++] = rest
  }
  /** Repeated words are encoded once: most strings of telemetry are few and repeat. */
  text(value: string): void {
    let encoded = this.#encoded.get(value)
    if (encoded === undefined) {
      encoded = Buffer.from(value, 'latin1')
      if (this.#encoded.size < 20_000) this.#encoded.set(value, encoded)
    }
    this.varint(encoded.length)
    this.#bytes.set(encoded, this.#at)
    this.#at += encoded.length
  }
  number(type: string, value: GaugeCell | undefined): void {
    if (typeof value === 'bigint') this.#at = this.#bytes.writeBigInt64LE(value, this.#at)
    else if (type === 'UInt16') this.#at = this.#bytes.writeUInt16LE(Number(value), this.#at)
    else if (type === 'UInt32') this.#at = this.#bytes.writeUInt32LE(Number(value), this.#at)
    else this.#at = this.#bytes.writeDoubleLE(Number(value), this.#at)
  }
  offset(value: number): void {
    this.#at = this.#bytes.writeUInt32LE(value, this.#at)
    this.#at = this.#bytes.writeUInt32LE(0, this.#at)
  }
}
const writer = new BinaryWriter()

function rowBinary(): Buffer {
  writer.start()
  for (const row of rows)
    for (const [c, { type }] of columns.entries()) {
      const cell = row[c]
      if (typeof cell === 'string') writer.text(cell)
      else if (Array.isArray(cell)) writer.varint(0)
      else writer.number(type, cell)
    }
  return writer.written()
}

function native(): Buffer {
  writer.start()
  writer.varint(columns.length)
  writer.varint(rows.length)
  for (const [c, { name, type }] of columns.entries()) {
    writer.text(name)
    writer.text(type)
    if (type.startsWith('Array(')) for (const _ of rows) writer.offset(0)
    else if (type === 'String') for (const row of rows) writer.text(String(row[c]))
    else for (const row of rows) writer.number(type, row[c])
  }
  return writer.written()
}

const store = openBenchStore(flags.root)
await store.run(
  tableText({
    as: 'g',
    like: 'otel_metrics_gauge',
    partitionBy: '(Placement, toMonday(TIME))',
    settings: '',
  }),
)

/** Lets the engine read `bytes` as a file that has no name. */
async function insertFile(bytes: Buffer, format: string): Promise<void> {
  const path = `${flags.root}/bench-rows-${process.pid}`
  const fd = openSync(path, 'wx+', 0o600)
  try {
    unlinkSync(path)
    writeSync(fd, bytes)
    await store.run(
      `INSERT INTO bench.g SELECT * FROM file('/proc/self/fd/${fd}', '${format}', '${structure}')`,
    )
  } finally {
    closeSync(fd)
  }
}
const structure = columns.map(({ name, type }) => `\`${name}\` ${type.replaceAll("'", "\\'")}`).join(', ')

const formats: Readonly<Record<string, { encode(): Buffer; insert(bytes: Buffer): Promise<unknown> }>> = {
  JSONCompactEachRow: {
    encode: jsonLines,
    insert: (values) => store.session.insert({ table: 'bench.g', values, format: 'JSONCompactEachRow' }),
  },
  RowBinary: { encode: rowBinary, insert: (bytes) => insertFile(bytes, 'RowBinary') },
  Native: { encode: native, insert: (bytes) => insertFile(bytes, 'Native') },
}

const hashes = new Set<string>()
for (const { encode, insert } of Object.values(formats)) {
  await insert(encode())
  const [found] = await store.rows<{ hash: string }>(
    'SELECT toString(cityHash64(groupArray(tuple(*)))) AS hash FROM (SELECT * FROM bench.g ORDER BY TimeUnix)',
  )
  hashes.add(found?.hash ?? '')
  await store.run('TRUNCATE TABLE bench.g')
}
if (hashes.size !== 1) throw new Error('The formats did not yield the same table.')

const samples: Record<string, { encodeS: number; insertS: number; ms: number }[]> = {}
for (let round = 0; round < Number(flags.rounds); round++)
  for (const [name, { encode, insert }] of Object.entries(formats)) {
    const encoded = await timed(async () => encode())
    const inserted = await timed(() => insert(encoded.value))
    const sample = { encodeS: encoded.cpuS, insertS: inserted.cpuS, ms: encoded.ms + inserted.ms }
    samples[name] = [...(samples[name] ?? []), sample]
    await store.run('TRUNCATE TABLE bench.g')
  }
store.close()

const usPerRow = (list: readonly number[]): number => Math.round((quantile(list, 0.5) / rowCount) * 1e8) / 100
const summary = Object.fromEntries(
  Object.entries(samples).map(([name, list]) => [
    name,
    {
      encodeCpuUsPerRow: usPerRow(list.map((s) => s.encodeS)),
      insertCpuUsPerRow: usPerRow(list.map((s) => s.insertS)),
      rowsPerS: Math.round(
        rowCount /
          (quantile(
            list.map((s) => s.ms),
            0.5,
          ) /
            1000),
      ),
    },
  ]),
)
console.log(JSON.stringify({ bench: 'storage/formats', ...provenance(), rows: rowCount, summary }, null, 2))
