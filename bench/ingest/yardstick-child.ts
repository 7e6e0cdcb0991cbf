// The engine by itself, in a process of its own: inserts the rows of the bodies from ready buffers in the writer's own
// format, as often as the time allows, and prints rows per second and CPU per row. The rows are those that the service
// gets, each organisation's in its placement, and a buffer holds some ten thousand rows of one table: what the engine
// does at its best with these rows and this format.

import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { decodeExport } from '../../server/ingest/decode-export.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { rowCount, type TableRows } from '../../server/telemetry/rows.ts'
import { insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import { type Signal, tables } from '../../server/telemetry/schema/tables.ts'
import { startNs } from './payloads.ts'

export interface YardstickOrders {
  readonly folder: string
  readonly signal: Signal
  readonly organisations: number
  readonly bodies: readonly string[]
  readonly seconds: number
}

export interface YardstickReport {
  readonly rowsPerSecond: number
  readonly cpuUsPerRow: number
  readonly bytesPerRow: number
}

const rowsPerBuffer = 20_000
const orders: YardstickOrders = JSON.parse(await text(process.stdin))
const parts = orders.bodies.flatMap((path, at) => {
  const index = at % orders.organisations
  const place = { tenantId: `org-${index}`, placement: index % 64 }
  return decodeExport(orders.signal, 'protobuf', readFileSync(path), { place, receivedNs: startNs }).batch
})
const inserts = tables.flatMap((table) => {
  const own = parts
    .filter((part) => part.table === table.name)
    .toSorted((a, b) => a.place.placement - b.place.placement)
  return groups(own).map((group) => ({
    table: table.name,
    columns: insertColumns(table),
    rows: group.reduce((sum, part) => sum + rowCount(part), 0),
    buffers: group.map(({ bytes }) => bytes),
  }))
})

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

const engine = await openChdb({ folder: orders.folder, maxMemoryBytes: 2 ** 31 })
// The first pass warms up what is not warm for a running service either way.
for (const { table, columns, buffers } of inserts) await engine.insert(table, columns, buffers)
let rows = 0
const startCpu = process.cpuUsage()
const startMs = performance.now()
while (performance.now() - startMs < orders.seconds * 1000) {
  for (const insert of inserts) {
    await engine.insert(insert.table, insert.columns, insert.buffers)
    rows += insert.rows
  }
}
const seconds = (performance.now() - startMs) / 1000
const cpu = process.cpuUsage(startCpu)
const all = inserts.reduce((sum, insert) => sum + insert.rows, 0)
const report: YardstickReport = {
  rowsPerSecond: Math.round(rows / seconds),
  cpuUsPerRow: (cpu.user + cpu.system) / rows,
  bytesPerRow: parts.reduce((sum, { bytes }) => sum + bytes.length, 0) / all,
}
await engine.close()
process.stdout.write(`${JSON.stringify(report)}\n`)
