// The engine alone, in its own process: inserts the rows of the bodies from prepared buffers in the writer's
// own format, as often as the time allows, and prints rows per second and CPU per row. Tables, rows,
// placements, syncing and the number of parallel inserts are those of the service. So is the maximum that one
// partition of an insert can have: the bodies that all clients together have in flight. An insert has some
// ten thousand rows of one table, with its partitions one after the other. This is the engine's best rate for
// these rows and this format.

import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { decodeExport } from '../../server/ingest/otlp/decode-export.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { rowCount, type TableRows } from '../../server/telemetry/rows.ts'
import { insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import { type ColumnSpec, type Signal, tables } from '../../server/telemetry/schema/tables.ts'
import { writers } from '../../server/telemetry/sessions/numbers.ts'
import { startNs } from './payloads.ts'
import { secondsUntilRest } from './rest.ts'

export interface BaselineOrders {
  readonly folder: string
  readonly signal: Signal
  readonly organisations: number
  readonly bodies: readonly string[]
  readonly seconds: number
  /** Bodies that the service gets at the same time. */
  readonly bodiesAtOnce: number
  readonly isSynced: boolean
}

export interface BaselineReport {
  readonly rowsPerSecond: number
  /** The rate over the time until the merges of the rows were done too. */
  readonly sustainedRowsPerSecond: number
  readonly cpuUsPerRow: number
}

interface Insert {
  readonly table: string
  readonly columns: readonly ColumnSpec[]
  readonly rows: number
  readonly buffers: readonly Buffer[]
}

const rowsPerBuffer = 20_000
const orders: BaselineOrders = JSON.parse(await text(process.stdin))
const parts = orders.bodies.map((path, at) => {
  const index = at % orders.organisations
  const place = { tenantId: `org-${index}`, placement: index % 64 }
  return decodeExport(orders.signal, 'protobuf', readFileSync(path), { place, receivedNs: startNs }).batch
})
const inserts: readonly Insert[] = Array.from(
  { length: Math.ceil(parts.length / orders.bodiesAtOnce) },
  (_, turn) => insertsOf(parts.slice(turn * orders.bodiesAtOnce, (turn + 1) * orders.bodiesAtOnce).flat()),
).flat()

function insertsOf(atOnce: readonly TableRows[]): Insert[] {
  return tables.flatMap((table) => {
    const own = atOnce
      .filter((part) => part.table === table.name)
      .toSorted((a, b) => a.place.placement - b.place.placement)
    return groups(own).map((group) => ({
      table: table.name,
      columns: insertColumns(table),
      rows: group.reduce((sum, part) => sum + rowCount(part), 0),
      buffers: group.map(({ bytes }) => bytes),
    }))
  })
}

function groups(own: readonly TableRows[]): TableRows[][] {
  const found: TableRows[][] = []
  let rows = rowsPerBuffer
  for (const part of own) {
    if (rows >= rowsPerBuffer) {
      found.push([])
      rows = 0
    }
    found.at(-1)?.push(part)
    rows += rowCount(part)
  }
  return found
}

const engine = await openChdb({
  folder: orders.folder,
  maxMemoryBytes: 2 ** 31,
  commitSync: orders.isSynced ? 'files' : 'off',
})

/**
 * Runs as many parallel inserts as the engine runs for the service, beginning with the first, until `isOver`
 * returns true. Returns the number of rows.
 */
async function insertUntil(isOver: (done: number) => boolean): Promise<number> {
  let [begun, rows] = [0, 0]
  const lane = async () => {
    while (!isOver(begun)) {
      const next = inserts[begun++ % inserts.length]
      if (next === undefined) throw new Error('There is nothing to insert.')
      await engine.insert(next.table, next.columns, next.buffers)
      rows += next.rows
    }
  }
  await Promise.all(Array.from({ length: writers }, lane))
  return rows
}

// The first pass warms up; a running service is warm too.
await insertUntil((begun) => begun >= inserts.length)
const startCpu = process.cpuUsage()
const startMs = performance.now()
const rows = await insertUntil(() => performance.now() - startMs >= orders.seconds * 1000)
const seconds = (performance.now() - startMs) / 1000
const cpu = process.cpuUsage(startCpu)
const restSeconds = await secondsUntilRest(() => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
})
const report: BaselineReport = {
  rowsPerSecond: Math.round(rows / seconds),
  sustainedRowsPerSecond: Math.round(rows / (seconds + restSeconds)),
  cpuUsPerRow: (cpu.user + cpu.system) / rows,
}
await engine.close()
process.stdout.write(`${JSON.stringify(report)}\n`)
