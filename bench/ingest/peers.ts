// The same gauges and counters into Lethe and into the stores of Debian, by each store's own protocol: points
// a second, processor time a point, acknowledgement, memory, and what a point costs on disk. Closed-loop
// clients in one other process on the same machine send bodies that were ready before; processor time and
// memory of the server come from the kernel, children included, and points a second a core are what that time
// allows, so clients don't count. The first rounds warm up and are not measured. A store that is not
// installed is said to be absent. Prints a table in Markdown.
//
//   node bench/ingest/peers.ts [--only lethe,prometheus] [--senders 32] [--series 1000] [--rounds 120]
//     [--warm 12]
//     [--seed 1] [--root /tmp] [--perf folder] [--no-merge]
//
// With `--perf` the server is sampled while it is measured, and a file for `perf report` written into the
// folder; the figures of such a run are not to be used.

import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { processTree, usedBy } from '../deletion/files.ts'
import { isInstalled } from '../peers/server.ts'
import { provenance, quantile } from '../storage/bench-store.ts'
import { bodiesOf } from './peers/bodies.ts'
import { influxdb } from './peers/influxdb.ts'
import { lethe } from './peers/lethe.ts'
import type { LoadOrders, LoadReport, Span } from './peers/load-child.ts'
import type { Shape } from './peers/points.ts'
import { postgresql } from './peers/postgresql.ts'
import { prometheus } from './peers/prometheus.ts'
import { folderBytes, type IngestStore, type OpenStore, untilQuiet } from './peers/store.ts'
import { victoriaMetricsRemoteWrite, victoriaMetricsText } from './peers/victoria-metrics.ts'

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    senders: { type: 'string', default: '32' },
    series: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '120' },
    warm: { type: 'string', default: '12' },
    seed: { type: 'string', default: '1' },
    root: { type: 'string', default: '/tmp' },
    perf: { type: 'string', default: '' },
    'no-merge': { type: 'boolean', default: false },
  },
})

const hourMs = 3_600_000
const shape: Shape = {
  senders: Number(flags.senders),
  seriesPerSender: Number(flags.series),
  rounds: Number(flags.rounds),
  seed: Number(flags.seed),
  // A whole hour, so that blocks are cut alike whenever this runs.
  endMs: Math.floor(Date.now() / hourMs) * hourMs,
}
const warmRounds = Number(flags.warm)
const pointsOf = (rounds: number): number => rounds * shape.senders * shape.seriesPerSender

const stores: Readonly<Record<string, IngestStore>> = {
  lethe: lethe('Lethe, OTLP', 'otlp', 'on'),
  'lethe-unsynced': lethe('Lethe, OTLP, not synced', 'otlp', 'off'),
  'lethe-remote-write': lethe('Lethe, remote write 1.0', 'remote-write-1', 'on'),
  'lethe-remote-write-2': lethe('Lethe, remote write 2.0', 'remote-write-2', 'on'),
  prometheus,
  'victoria-metrics': victoriaMetricsRemoteWrite,
  'victoria-metrics-text': victoriaMetricsText,
  influxdb,
  postgresql,
}

/** Sums the memory of a process and its children twice a second; what they share counts once. */
function watchMemory(pid: number) {
  let peakBytes = 0
  const look = () => {
    const ids = processTree(pid)
    // With one process the kernel knows the peak itself.
    const [field, file] = ids.length === 1 ? ['VmHWM', 'status'] : ['Pss', 'smaps_rollup']
    const kilobytes = ids.map((id) => fieldOf(`/proc/${id}/${file}`, field))
    peakBytes = Math.max(peakBytes, 1024 * kilobytes.reduce((sum, each) => sum + each, 0))
  }
  const timer = setInterval(look, 500)
  return () => {
    clearInterval(timer)
    look()
    return peakBytes
  }
}

function fieldOf(path: string, field: string): number {
  try {
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(path, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0
  }
}

async function ask<T>(child: ChildProcess, message: LoadOrders | Span): Promise<T> {
  child.send(message)
  const answer = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => {
      throw new Error('The clients ended.')
    }),
  ])
  return answer[0] as T
}

function sample(key: string, pid: number): () => Promise<void> {
  if (flags.perf === '') return async () => {}
  const file = join(flags.perf, `${key}.perf.data`)
  const args = ['record', '-q', '-F', '199', '-g', '-p', String(pid), '-o', file]
  const perf = spawn('perf', args, { stdio: ['ignore', 'inherit', 'inherit'] })
  return async () => {
    const ended = once(perf, 'exit')
    perf.kill('SIGINT')
    await ended
  }
}

async function load(key: string, store: IngestStore, open: OpenStore) {
  const program = fileURLToPath(new URL('peers/load-child.ts', import.meta.url))
  const child = fork(program, { execArgv: ['--disable-warning=ExperimentalWarning'] })
  try {
    await ask(child, { shape, format: store.format, door: open.door })
    const emptyBytes = folderBytes(open.dataFolder)
    await ask<LoadReport>(child, { from: 0, to: warmRounds })
    const endSampling = sample(key, open.pid)
    const readPeak = watchMemory(open.pid)
    const before = usedBy(open.pid).cpuSeconds
    const report = await ask<LoadReport>(child, { from: warmRounds, to: shape.rounds })
    const after = usedBy(open.pid).cpuSeconds
    const peakBytes = readPeak()
    await endSampling()
    await untilQuiet(open.dataFolder, open.restMs)
    return {
      report,
      cpuSeconds: after - before,
      restCpuSeconds: usedBy(open.pid).cpuSeconds - after,
      peakBytes,
      emptyBytes,
    }
  } finally {
    child.kill('SIGTERM')
  }
}

async function measure(key: string, store: IngestStore) {
  const folder = mkdtempSync(join(flags.root, 'ingest-peers-'))
  const open = await store.open({ folder, shape })
  try {
    const loaded = await load(key, store, open)
    const points = pointsOf(shape.rounds - warmRounds)
    const { report } = loaded
    const each = (bytes: number) => rounded(bytes / pointsOf(shape.rounds))
    const quietBytes = folderBytes(open.dataFolder) - loaded.emptyBytes
    const merged = flags['no-merge'] ? null : await open.merge()
    const stored = flags['no-merge'] ? null : await open.countPoints()
    if (stored !== null && stored !== pointsOf(shape.rounds))
      throw new Error(`${store.name} has ${stored} points of ${pointsOf(shape.rounds)}.`)
    const cpuUs = (loaded.cpuSeconds / points) * 1e6
    const result = {
      store: store.name,
      version: open.version,
      durability: store.durability,
      points: pointsOf(shape.rounds),
      pointsPerSecond: Math.round(points / report.seconds),
      cpuUsPerPoint: rounded(cpuUs),
      laterCpuUsPerPoint: rounded((loaded.restCpuSeconds / pointsOf(shape.rounds)) * 1e6),
      pointsPerSecondAndCore: Math.round(1e6 / cpuUs),
      peakMb: Math.round(loaded.peakBytes / 1e6),
      ackMs: [0.5, 0.99].map((q) => Math.round(quantile(report.latenciesMs, q))),
      refused: report.refused,
      wireBytesPerPoint: rounded(report.bytes / points),
      quietBytesPerPoint: each(quietBytes),
      mergedBytesPerPoint: merged === null ? null : each(merged),
    }
    console.error(JSON.stringify(result))
    return result
  } finally {
    await open.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Bytes a point of the OTLP bodies of one sender, as they are and gzipped. */
function rawSizes() {
  let [plain, gzip] = [0, 0]
  let rounds = 0
  for (const body of bodiesOf('otlp', { ...shape, rounds: 20 }, 0)) {
    plain += body.length
    gzip += gzipSync(body).length
    rounds++
  }
  const points = rounds * shape.seriesPerSender
  return { plain: rounded(plain / points), gzip: rounded(gzip / points) }
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}

const chosen = flags.only === '' ? Object.keys(stores) : flags.only.split(',')
const unknown = chosen.find((key) => stores[key] === undefined)
if (unknown !== undefined) throw new Error(`There is ${Object.keys(stores).join()}, not ${unknown}.`)
const results: Awaited<ReturnType<typeof measure>>[] = []
for (const key of chosen) {
  const store = stores[key]
  if (store === undefined) continue
  if (isInstalled(store)) results.push(await measure(key, store))
  else console.error(`${store.name} is absent and was not measured.`)
}
const heads = [
  'store',
  'durability of an acknowledged point',
  'points/s',
  'CPU us a point',
  'later',
  '**points/s a core**',
  'peak MB',
  'ack p50 / p99 ms',
  'wire B',
  'at rest B',
  'merged B',
]
const lines = results.map((one) => [
  one.store,
  one.durability,
  one.pointsPerSecond,
  one.cpuUsPerPoint,
  one.laterCpuUsPerPoint,
  `**${one.pointsPerSecondAndCore}**`,
  one.peakMb,
  one.ackMs.join(' / '),
  one.wireBytesPerPoint,
  one.quietBytesPerPoint,
  one.mergedBytesPerPoint ?? '',
])
const table = [heads, heads.map(() => '---'), ...lines].map((line) => `| ${line.join(' | ')} |`).join('\n')
console.log(JSON.stringify({ bench: 'ingest/peers', ...provenance(), shape, otlpBytesPerPoint: rawSizes() }))
console.log(table)
