// OTLP/HTTP protobuf to committed rows against the engine's own insert of the same rows. For each signal and
// number of organisations: closed-loop clients in one process post bodies over loopback to the service in
// another; beside it, in the same run and before and after, the very rows that the bodies decode to are
// inserted into an empty engine from ready buffers, in partitions as large as the service can have them,
// which is the yardstick. Clients and service share the machine's cores, the yardstick has them to itself, so
// the ratio is on the low side. Either leaves parts behind that are still to be merged, the engine alone most
// of all: it takes rows faster than it merges them, until it has a thousand parts and slows down. So each is
// given the time to finish, and there are two rates and two ratios: of the load while it lasts, and
// sustained, which counts that time too and is what can be held. A second run at 80 % of the sustained rate,
// begun at rest, gives the latency that is promised. With --maps there is a second yardstick: the engine
// alone with the same rows and attributes as maps, as the Collector's exporter stores them and this service
// did until docs/decisions/0018. CPU and memory of the service are read from the kernel. Prints a line for
// each round; LETHE_FSYNC=off is for both sides, otherwise the engine alone syncs as it can, file by file.
//
// Run: node bench/ingest/http.ts [--signals metrics,logs,traces] [--organisations 1,16,64]
// [--rounds 1] [--seconds 40]
//   [--clients 64] [--seed 1] [--maps]

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import nodeFlags from '../../scripts/node-flags.json' with { type: 'json' }
import { readConfig } from '../../server/config.ts'
import { decodeExport } from '../../server/ingest/otlp/decode-export.ts'
import { type Signal, signals } from '../../server/telemetry/schema/tables.ts'
import { provenance, quantile } from '../storage/bench-store.ts'
import type { ClientOrders, ClientReport } from './client-child.ts'
import { ingestBodies, startNs } from './payloads.ts'
import { cpuSeconds, memoryMb } from './process-use.ts'
import { secondsUntilRest } from './rest.ts'
import type { YardstickOrders, YardstickReport } from './yardstick-child.ts'

const { values: flags } = parseArgs({
  options: {
    signals: { type: 'string', default: signals.join(',') },
    organisations: { type: 'string', default: '1,16,64' },
    rounds: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '40' },
    clients: { type: 'string', default: '64' },
    seed: { type: 'string', default: '1' },
    maps: { type: 'boolean', default: false },
  },
})
const seconds = Number(flags.seconds)
const clients = Number(flags.clients)
const isSynced = readConfig(process.env).commitSync !== 'off'

/** Distinct bodies; a multiple of the organisations. */
const bodyCount = 128

const root = mkdtempSync(join(tmpdir(), 'lethe-bench-'))
try {
  for (const signal of signals.filter((one) => flags.signals.split(',').includes(one))) {
    const bodies = writeBodies(signal)
    for (const organisations of flags.organisations.split(',').map(Number)) {
      let before = await yardstick(signal, organisations, bodies)
      for (let round = 0; round < Number(flags.rounds); round++) {
        const result = await measure({ signal, organisations, bodies, before })
        process.stdout.write(`${JSON.stringify({ ...result, ...provenance() })}\n`)
        before = result.engine.after
      }
    }
  }
} finally {
  rmSync(root, { recursive: true, force: true })
}

interface Body {
  readonly path: string
  readonly rows: number
  readonly bytes: number
}

function writeBodies(signal: Signal): Body[] {
  return ingestBodies(signal, bodyCount, Number(flags.seed)).map((body, at) => {
    const path = join(root, `${signal}-${at}`)
    writeFileSync(path, body)
    const place = { tenantId: 'org-0', placement: 0 }
    const { accepted } = decodeExport(signal, 'protobuf', body, { place, receivedNs: startNs })
    return { path, rows: accepted, bytes: body.length }
  })
}

interface Trial {
  readonly signal: Signal
  readonly organisations: number
  readonly bodies: readonly Body[]
  /** The yardstick just before. */
  readonly before: YardstickReport
}

async function measure({ signal, organisations, bodies, before }: Trial) {
  const service = await startService(organisations)
  const idleMb = memoryMb(service.pid, 'VmRSS')
  const load = { signal, bodies, clients, service }
  await drive(load, { seconds: 1, perSecond: null })
  const full = await drive(load, { seconds, perSecond: null })
  const peakMb = memoryMb(service.pid, 'VmHWM')
  const restSeconds = await secondsUntilRest(() => cpuSeconds(service.pid))
  /** Of the rate while the load lasted. */
  const sustainedShare = full.seconds / (full.seconds + restSeconds)
  const sustainedRowsPerSecond = Math.round(full.rowsPerSecond * sustainedShare)
  const at80 = await drive(load, { seconds, perSecond: full.requestsPerSecond * sustainedShare * 0.8 })
  service.child.kill('SIGTERM')
  await once(service.child, 'exit')
  const after = await yardstick(signal, organisations, bodies)
  const engineRows = (before.rowsPerSecond + after.rowsPerSecond) / 2
  const engineSustained = (before.sustainedRowsPerSecond + after.sustainedRowsPerSecond) / 2
  const engineCpu = (before.cpuUsPerRow + after.cpuUsPerRow) / 2
  const withMaps = flags.maps ? await yardstick(signal, organisations, bodies, true) : null
  return {
    signal,
    organisations,
    clients,
    isSynced,
    rowsPerSecond: full.rowsPerSecond,
    ratio: round(full.rowsPerSecond / engineRows),
    sustainedRowsPerSecond,
    sustainedRatio: round(sustainedRowsPerSecond / engineSustained),
    cpuRatio: round(engineCpu / full.cpuUsPerRow),
    ratioToMaps: withMaps === null ? null : round(full.rowsPerSecond / withMaps.rowsPerSecond),
    full,
    at80,
    memoryMb: { idle: idleMb, peak: peakMb },
    engine: { before, after, withMaps },
  }
}

interface Load {
  readonly signal: Signal
  readonly bodies: readonly Body[]
  readonly clients: number
  readonly service: Awaited<ReturnType<typeof startService>>
}

async function drive(load: Load, pace: { readonly seconds: number; readonly perSecond: number | null }) {
  const orders: ClientOrders = {
    address: load.service.address,
    path: `/v1/${load.signal}`,
    secrets: load.service.secrets,
    clients: pace.perSecond === null ? load.clients : 256,
    bodies: load.bodies.map(({ path }) => path),
    ...pace,
  }
  const startCpu = cpuSeconds(load.service.pid)
  const report = await runChild<ClientReport>('client-child.ts', orders)
  const cpu = cpuSeconds(load.service.pid) - startCpu
  const sum = (of: (body: Body) => number) =>
    load.bodies.reduce((total, body, at) => total + of(body) * (report.accepted[at] ?? 0), 0)
  const rows = sum((body) => body.rows)
  return {
    seconds: report.seconds,
    rowsPerSecond: Math.round(rows / report.seconds),
    requestsPerSecond: round(report.latenciesMs.length / report.seconds),
    megabytesPerSecond: round(sum((body) => body.bytes) / 1e6 / report.seconds),
    cpuUsPerRow: round((cpu / rows) * 1e6),
    ackMs: { p50: round(quantile(report.latenciesMs, 0.5)), p99: round(quantile(report.latenciesMs, 0.99)) },
    refused: report.refused,
  }
}

function yardstick(
  signal: Signal,
  organisations: number,
  bodies: readonly Body[],
  withMaps = false,
): Promise<YardstickReport> {
  const orders: YardstickOrders = {
    folder: mkdtempSync(join(root, 'yardstick-')),
    signal,
    organisations,
    bodies: bodies.map(({ path }) => path),
    seconds,
    bodiesAtOnce: clients,
    isSynced,
    withMaps,
  }
  return runChild('yardstick-child.ts', orders)
}

function start(program: string, args: readonly string[]): ChildProcess & { stdin: NodeJS.WritableStream } {
  const path = fileURLToPath(new URL(program, import.meta.url))
  const child = spawn(process.execPath, [...nodeFlags, path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  return child
}

async function runChild<T>(program: string, orders: object): Promise<T> {
  const child = start(program, [])
  child.stdin.end(JSON.stringify(orders))
  if (child.stdout === null) throw new Error('The child has no output.')
  return JSON.parse(await text(child.stdout)) as T
}

async function startService(organisations: number) {
  const secrets = Array.from({ length: organisations }, (_, i) =>
    `bench-secret-of-organisation-${i}-x`.padEnd(40, 'x'),
  )
  const child = start('service-child.ts', [mkdtempSync(join(root, 'service-')), ...secrets])
  if (child.stdout === null) throw new Error('The child has no output.')
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const { address }: { address: string } = JSON.parse(String(line))
  if (child.pid === undefined) throw new Error('The service has no process.')
  return { child, pid: child.pid, address, secrets }
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
