// OTLP/HTTP to committed rows against the engine's own insert of the same rows. The demo shop's telemetry of some
// days is encoded as protobuf bodies and posted by closed-loop clients over loopback, to one organisation and to
// sixteen; beside it, in the same run, the very rows that the bodies decode to are inserted into an empty engine
// from ready buffers, which is the yardstick. Clients and service share the machine's cores, the yardstick has
// them to itself, so the ratio is on the low side. Memory of the service is read from the kernel.
//
// Run: node bench/ingest/http.ts [days of telemetry, 3 by default]

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Payload } from '../../server/demo/otlp-batch.ts'
import { historyPayloads } from '../../server/demo/payloads.ts'
import { openShop } from '../../server/demo/shop.ts'
import { decodeExport } from '../../server/ingest/decode-export.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import { type TableName, tables } from '../../server/telemetry/schema/tables.ts'
import { provenance, quantile } from '../storage/bench-store.ts'

const days = Number(process.argv[2] ?? 3)
const anchorNs = BigInt(Date.UTC(2026, 0, 20)) * 1_000_000n
const payloads = [...historyPayloads(openShop({ seed: 7, anchorNs, historyDays: days }), 2_000)]
const rows = payloads.reduce((sum, payload) => sum + payload.rows, 0)
const megabytes = payloads.reduce((sum, payload) => sum + payload.body.length, 0) / 1e6

const root = mkdtempSync(join(tmpdir(), 'lethe-bench-'))
try {
  const over = [await overHttp(1, 8), await overHttp(16, 16)]
  const yardstick = await fromReadyBuffers()
  const results = over.map((result) => ({ ...result, ratio: result.rowsPerSecond / yardstick.rowsPerSecond }))
  process.stdout.write(
    `${JSON.stringify({ ...provenance(), rows, megabytes, requests: payloads.length, yardstick, results }, null, 2)}\n`,
  )
} finally {
  rmSync(root, { recursive: true, force: true })
}

async function overHttp(organisations: number, clients: number) {
  const secrets = Array.from({ length: organisations }, (_, i) =>
    `bench-secret-of-organisation-${i}-x`.padEnd(40, 'x'),
  )
  const { child, address } = await startService(join(root, `http-${organisations}`), secrets)
  const idleMb = memoryMb(child, 'VmRSS')
  const latenciesMs: number[] = []
  let next = 0
  const startMs = performance.now()
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let payload = payloads[next++]; payload !== undefined; payload = payloads[next++]) {
        latenciesMs.push(await post(address, secrets[client % organisations] ?? '', payload))
      }
    }),
  )
  const seconds = (performance.now() - startMs) / 1000
  const loadedMb = memoryMb(child, 'VmHWM')
  child.kill('SIGTERM')
  await once(child, 'exit')
  return {
    organisations,
    clients,
    rowsPerSecond: Math.round(rows / seconds),
    megabytesPerSecond: megabytes / seconds,
    acknowledgedMs: { p50: quantile(latenciesMs, 0.5), p99: quantile(latenciesMs, 0.99) },
    memoryMb: { idle: idleMb, peak: loadedMb },
  }
}

async function startService(dataDir: string, secrets: readonly string[]) {
  const program = fileURLToPath(new URL('service-child.ts', import.meta.url))
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', program, dataDir, ...secrets],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const { address }: { address: string } = JSON.parse(String(line))
  return { child, address }
}

async function post(address: string, secret: string, payload: Payload): Promise<number> {
  const startMs = performance.now()
  const answer = await fetch(`${address}/v1/${payload.signal}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/x-protobuf' },
    body: payload.body,
  })
  if (answer.status !== 200)
    throw new Error(`${payload.signal} answered ${answer.status}: ${await answer.text()}`)
  await answer.arrayBuffer()
  return performance.now() - startMs
}

/** Megabytes from /proc: `VmRSS` now, `VmHWM` the most so far. */
function memoryMb(child: ChildProcess, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]
  return Math.round(Number(kilobytes) / 1000)
}

async function fromReadyBuffers() {
  const engine = await openChdb({ folder: join(root, 'yardstick'), maxMemoryBytes: 2 ** 31 })
  const buffers = readyBuffers()
  const startMs = performance.now()
  for (const { table, buffer } of buffers) await engine.insert(table.name, insertColumns(table), buffer)
  const seconds = (performance.now() - startMs) / 1000
  await engine.close()
  return { rowsPerSecond: Math.round(rows / seconds), inserts: buffers.length }
}

/** The rows of the bodies as ready lines, 20,000 to a buffer: what the engine takes at its best in this format. */
function readyBuffers() {
  const linesOf = new Map<TableName, string[]>()
  for (const payload of payloads) {
    const { batch } = decodeExport(payload.signal, 'protobuf', Buffer.from(payload.body), anchorNs)
    for (const part of batch) {
      const lines = linesOf.get(part.table) ?? []
      linesOf.set(part.table, lines)
      for (const row of part.rows) lines.push(JSON.stringify([0, 'org-0', ...row]))
    }
  }
  return tables.flatMap((table) => {
    const lines = linesOf.get(table.name) ?? []
    const count = Math.ceil(lines.length / 20_000)
    return Array.from({ length: count }, (_, i) => ({
      table,
      buffer: Buffer.from(lines.slice(i * 20_000, (i + 1) * 20_000).join('\n')),
    }))
  })
}
