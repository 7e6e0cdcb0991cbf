// OTLP/HTTP protobuf to committed rows, compared with the engine's own insert of the same rows. For each
// signal and number of organisations, closed-loop clients in one process post bodies over loopback to the
// service in another. The baseline runs before and after, in the same run: the rows that the bodies decode to
// are inserted into an empty engine from prepared buffers, in partitions as large as the service can have
// them. Clients and service share the machine's cores and the baseline uses all of them, so the real ratio is
// higher. Both leave parts that are still to be merged, the baseline most of all: it inserts rows faster than
// it merges them, until it has a thousand parts and slows down. So both get the time to finish, and there are
// two rates and two ratios: during the load, and sustained, which includes that time and can be kept up. A
// second run at 80 % of the sustained rate, started at rest, gives the latency. CPU and memory of the service
// are read from the kernel. LETHE_FSYNC=off applies to both; otherwise the baseline syncs as the engine can,
// file by file.
//
// npm run bench -- ingest/http [--signals metrics,logs,traces] [--organisations 1,16,64] [--seconds 40]
// [--clients 64] [--seed 1]

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import nodeFlags from '../../scripts/node-flags.json' with { type: 'json' }
import { readConfig } from '../../server/config.ts'
import { decodeExport } from '../../server/ingest/otlp/decode-export.ts'
import { type Signal, signals } from '../../server/telemetry/schema/tables.ts'
import { memoryMb, usedBy } from '../process-use.ts'
import { report } from '../report.ts'
import { quantile, rounded } from '../samples.ts'
import type { BaselineOrders, BaselineReport } from './baseline-child.ts'
import type { ClientOrders, ClientReport } from './client-child.ts'
import { ingestBodies, startNs } from './payloads.ts'
import { secondsUntilRest } from './rest.ts'
import { type Service, startService } from './service.ts'

const { values: flags } = parseArgs({
  options: {
    signals: { type: 'string', default: signals.join(',') },
    organisations: { type: 'string', default: '1,16,64' },
    seconds: { type: 'string', default: '40' },
    clients: { type: 'string', default: '64' },
    seed: { type: 'string', default: '1' },
  },
})
const seconds = Number(flags.seconds)
const clients = Number(flags.clients)
const isSynced = readConfig(process.env).commitSync !== 'off'

/** Number of distinct bodies; a multiple of the organisations. */
const bodyCount = 128

const root = mkdtempSync(join(tmpdir(), 'lethe-bench-'))
try {
  for (const signal of signals.filter((one) => flags.signals.split(',').includes(one))) {
    const bodies = writeBodies(signal)
    for (const organisations of flags.organisations.split(',').map(Number)) {
      const before = await baseline(signal, organisations, bodies)
      await measure({ signal, organisations, bodies, before })
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
  /** The baseline measured just before. */
  readonly before: BaselineReport
}

async function measure({ signal, organisations, bodies, before }: Trial): Promise<void> {
  const service = await startService(mkdtempSync(join(root, 'service-')), organisations)
  const idleMb = memoryMb(service.pid, 'VmRSS')
  const load = { signal, bodies, clients, service }
  await drive(load, { seconds: 1, perSecond: null })
  const full = await drive(load, { seconds, perSecond: null })
  const peakMb = memoryMb(service.pid, 'VmHWM')
  const restSeconds = await secondsUntilRest(() => usedBy(service.pid).cpuSeconds)
  /** Share of the rate during the load. */
  const sustainedShare = full.seconds / (full.seconds + restSeconds)
  const sustainedRowsPerSecond = Math.round(full.rowsPerSecond * sustainedShare)
  const at80 = await drive(load, { seconds, perSecond: full.requestsPerSecond * sustainedShare * 0.8 })
  await service.stop()
  const after = await baseline(signal, organisations, bodies)
  const mean = (of: (report: BaselineReport) => number) => (of(before) + of(after)) / 2
  const engine = {
    rowsPerSecond: mean((one) => one.rowsPerSecond),
    sustainedRowsPerSecond: mean((one) => one.sustainedRowsPerSecond),
    cpuUsPerRow: mean((one) => one.cpuUsPerRow),
  }
  report('Rows a second', {
    signal,
    organisations,
    'rows/s': full.rowsPerSecond,
    'of the engine alone': rounded(full.rowsPerSecond / engine.rowsPerSecond),
    'rows/s sustained': sustainedRowsPerSecond,
    'of the engine alone, sustained': rounded(sustainedRowsPerSecond / engine.sustainedRowsPerSecond),
    'ack p99 ms at 80 %': at80.ackMs.p99,
    'peak MB': peakMb,
  })
  report('The same runs, in detail', {
    signal,
    organisations,
    'MB/s on the wire': full.megabytesPerSecond,
    'CPU us a row': full.cpuUsPerRow,
    'of the engine alone, by CPU': rounded(engine.cpuUsPerRow / full.cpuUsPerRow),
    'ack p50 / p99 ms at full load': `${full.ackMs.p50} / ${full.ackMs.p99}`,
    'at 80 %': `${at80.ackMs.p50} / ${at80.ackMs.p99}`,
    refused: full.refused + at80.refused,
    'idle MB': idleMb,
    'engine alone rows/s, before, after': `${before.rowsPerSecond}, ${after.rowsPerSecond}`,
    'synced commits': isSynced,
  })
}

interface Load {
  readonly signal: Signal
  readonly bodies: readonly Body[]
  readonly clients: number
  readonly service: Service
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
  const startCpu = usedBy(load.service.pid).cpuSeconds
  const sent = await runChild<ClientReport>('client-child.ts', orders)
  const cpu = usedBy(load.service.pid).cpuSeconds - startCpu
  const sum = (of: (body: Body) => number) =>
    load.bodies.reduce((total, body, at) => total + of(body) * (sent.accepted[at] ?? 0), 0)
  const rows = sum((body) => body.rows)
  return {
    seconds: sent.seconds,
    rowsPerSecond: Math.round(rows / sent.seconds),
    requestsPerSecond: rounded(sent.latenciesMs.length / sent.seconds),
    megabytesPerSecond: rounded(sum((body) => body.bytes) / 1e6 / sent.seconds),
    cpuUsPerRow: rounded((cpu / rows) * 1e6),
    ackMs: {
      p50: rounded(quantile(sent.latenciesMs, 0.5)),
      p99: rounded(quantile(sent.latenciesMs, 0.99)),
    },
    refused: sent.refused,
  }
}

function baseline(signal: Signal, organisations: number, bodies: readonly Body[]): Promise<BaselineReport> {
  const orders: BaselineOrders = {
    folder: mkdtempSync(join(root, 'baseline-')),
    signal,
    organisations,
    bodies: bodies.map(({ path }) => path),
    seconds,
    bodiesAtOnce: clients,
    isSynced,
  }
  return runChild('baseline-child.ts', orders)
}

async function runChild<T>(program: string, orders: object): Promise<T> {
  const path = fileURLToPath(new URL(program, import.meta.url))
  const child = spawn(process.execPath, [...nodeFlags, path], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(JSON.stringify(orders))
  return JSON.parse(await text(child.stdout)) as T
}
