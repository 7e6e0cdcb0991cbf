// Lethe itself, one organisation on a service in its own process, by each protocol that carries these points.
// Merged means that the engine, after the service has ended, has merged each partition to one part.

import { join } from 'node:path'
import { openChdb } from '../../../server/telemetry/chdb.ts'
import { tables } from '../../../server/telemetry/schema/tables.ts'
import type { IngestStore, OpenStore } from '../../peers/ingest-store.ts'
import { mergeTables } from '../../storage/merged-rows.ts'
import { startService } from '../service.ts'
import type { Format } from './bodies.ts'

export function lethe(name: string, format: Format): IngestStore {
  return {
    name,
    format,
    programs: [process.execPath],
    durability: 'synced at each commit',
    open: ({ folder }) => openLethe(folder, format),
  }
}

async function openLethe(folder: string, format: Format): Promise<OpenStore> {
  const service = await startService(folder, 1, { LETHE_FSYNC: 'on' })
  const path = format === 'otlp' ? '/v1/metrics' : '/api/v1/write'
  const dataFolder = join(folder, 'telemetry')
  let points = 0
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
      const stored = await mergedTables(dataFolder)
      const sum = (of: 'bytes' | 'rows') => stored.reduce((total, table) => total + table[of], 0)
      points = sum('rows')
      return sum('bytes')
    },
    countPoints: async () => points,
    stop: service.stop,
  }
}

async function mergedTables(folder: string) {
  const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 31 })
  try {
    const names = tables.filter(({ signal }) => signal === 'metrics').map(({ name }) => name)
    return [...(await mergeTables(engine, names)).values()]
  } finally {
    await engine.close()
  }
}
