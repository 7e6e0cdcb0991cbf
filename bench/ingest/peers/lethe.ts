// Lethe itself, one organisation in a service of its own process, by each protocol that carries
// these points. Merged is what the engine makes of it when it is asked for one part a partition,
// once the service has ended.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import nodeFlags from '../../../scripts/node-flags.json' with { type: 'json' }
import { openChdb } from '../../../server/telemetry/chdb.ts'
import { tables } from '../../../server/telemetry/schema/tables.ts'
import { raw } from '../../../server/telemetry/sql.ts'
import type { Format } from './bodies.ts'
import type { IngestStore, OpenStore } from './store.ts'

const secret = 'bench-secret-of-organisation-0-x'.padEnd(40, 'x')

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
  const program = fileURLToPath(new URL('../service-child.ts', import.meta.url))
  const child = spawn(process.execPath, [...nodeFlags, program, folder, secret], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, LETHE_FSYNC: fsync },
  })
  const kill = () => child.kill('SIGKILL')
  process.on('exit', kill)
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const { address }: { address: string } = JSON.parse(String(line))
  const path = format === 'otlp' ? '/v1/metrics' : '/api/v1/write'
  const dataFolder = join(folder, 'telemetry')
  const stop = async () => {
    process.off('exit', kill)
    if (child.exitCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  let merged: Merged = { points: 0, bytes: 0 }
  return {
    version: 'this commit',
    pid: child.pid ?? 0,
    dataFolder,
    door: { url: `${address}${path}`, headers: { authorization: `Bearer ${secret}` } },
    restMs: 15_000,
    merge: async () => {
      await stop()
      merged = await mergeTables(dataFolder)
      return merged.bytes
    },
    countPoints: async () => merged.points,
    stop,
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
