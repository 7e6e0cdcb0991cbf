// Lethe itself, one organisation on a service in its own process, by each protocol that carries these points.
// Merged means that the engine, after the service has ended, has merged each partition to one part.

import { join } from 'node:path'
import { openChdb } from '../../../server/telemetry/chdb.ts'
import { tables } from '../../../server/telemetry/schema/tables.ts'
import { raw } from '../../../server/telemetry/sql.ts'
import type { IngestStore, OpenStore } from '../../peers/ingest-store.ts'
import { startService } from '../service.ts'
import type { Format } from './bodies.ts'

export function lethe(name: string, format: Format, fsync: 'on' | 'off'): IngestStore {
  return {
    name,
    format,
    programs: [process.execPath],
    durability: fsync === 'on' ? 'synced at each commit' : 'in the system’s cache',
    open: ({ folder }) => openLethe(folder, format, fsync),
  }
}

async function openLethe(folder: string, format: Format, fsync: string): Promise<OpenStore> {
  const service = await startService(folder, 1, { LETHE_FSYNC: fsync })
  const path = format === 'otlp' ? '/v1/metrics' : '/api/v1/write'
  const dataFolder = join(folder, 'telemetry')
  let merged: Merged = { points: 0, bytes: 0 }
  return {
    version: 'this commit',
    pid: service.pid,
    dataFolder,
    target: {
      url: `${service.address}${path}`,
      headers: { authorization: `Bearer ${service.secrets[0]}` },
    },
    restMs: 15_000,
    merge: async () => {
      await service.stop()
      merged = await mergeTables(dataFolder)
      return merged.bytes
    },
    countPoints: async () => merged.points,
    stop: service.stop,
  }
}

interface Merged {
  readonly points: number
  readonly bytes: number
}

async function mergeTables(folder: string): Promise<Merged> {
  const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 31 })
  try {
    for (const { name } of tables.filter(({ signal }) => signal === 'metrics'))
      await engine.command(raw(`OPTIMIZE TABLE ${name} FINAL`))
    const text = `SELECT sum(rows) AS points, sum(bytes_on_disk) AS bytes FROM system.parts
      WHERE active AND database = currentDatabase() AND startsWith(table, 'otel_metrics_')`
    const [row] = await engine.select<{ points: string | number; bytes: string | number }>(raw(text))
    return { points: Number(row?.points), bytes: Number(row?.bytes) }
  } finally {
    await engine.close()
  }
}
