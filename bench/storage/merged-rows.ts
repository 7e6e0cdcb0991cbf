// OTLP bodies as the service stores them: decoded by its own decoder, in its own tables, merged to one part
// per partition. Also the size of the bodies themselves, plain and gzipped one by one.

import { gzipSync } from 'node:zlib'
import { decodeExport } from '../../server/ingest/otlp/decode-export.ts'
import type { TelemetryEngine } from '../../server/telemetry/engine.ts'
import { rowCount } from '../../server/telemetry/rows.ts'
import { insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import { type Signal, type TableName, tables } from '../../server/telemetry/schema/tables.ts'
import { raw } from '../../server/telemetry/sql.ts'

interface SentBody {
  readonly signal: Signal
  readonly body: Uint8Array
}

/** Rows of a signal, and the bytes of their bodies. */
interface Sent {
  rows: number
  plain: number
  gzip: number
}

/** An insert begins at this many bytes of rows. */
const insertBytes = 16_000_000
const place = { tenantId: 'shop', placement: 0 }

/** Inserts all bodies in their order. */
export async function insertBodies(
  engine: TelemetryEngine,
  bodies: Iterable<SentBody>,
  receivedNs: bigint,
): Promise<ReadonlyMap<Signal, Sent>> {
  const sent = new Map<Signal, Sent>()
  const waiting = new Map<TableName, Buffer[]>()
  let waitingBytes = 0
  const insertWaiting = async () => {
    for (const table of tables) {
      const parts = waiting.get(table.name)
      if (parts !== undefined) await engine.insert(table.name, insertColumns(table), parts)
    }
    waiting.clear()
    waitingBytes = 0
  }
  for (const { signal, body } of bodies) {
    const { batch } = decodeExport(signal, 'protobuf', Buffer.from(body), { place, receivedNs })
    const total = sent.get(signal) ?? { rows: 0, plain: 0, gzip: 0 }
    sent.set(signal, total)
    total.plain += body.length
    total.gzip += gzipSync(body).length
    for (const part of batch) {
      total.rows += rowCount(part)
      waitingBytes += part.bytes.length
      waiting.set(part.table, [...(waiting.get(part.table) ?? []), part.bytes])
    }
    if (waitingBytes > insertBytes) await insertWaiting()
  }
  await insertWaiting()
  return sent
}

interface StoredTable {
  readonly rows: number
  readonly bytes: number
}

/** Merges the tables and returns their sizes. */
export async function mergeTables(
  engine: TelemetryEngine,
  names: readonly TableName[],
): Promise<ReadonlyMap<TableName, StoredTable>> {
  const stored = new Map<TableName, StoredTable>()
  for (const name of names) {
    await engine.command(raw(`OPTIMIZE TABLE ${name} FINAL`))
    const [size] = await engine.select<{ total: string | number; bytes: string | number }>(
      raw(`SELECT sum(rows) AS total, sum(bytes_on_disk) AS bytes FROM system.parts
        WHERE active AND database = currentDatabase() AND table = '${name}'`),
    )
    stored.set(name, { rows: Number(size?.total), bytes: Number(size?.bytes) })
  }
  return stored
}
