// The same gauges and counters into Lethe and into the stores of Debian, by each store's own protocol: points
// a second, processor time per point, latency of the acknowledgement, memory, and bytes of a point on disk.
// Closed-loop clients in one other process on the same machine send prepared bodies. Processor time and
// memory of the server come from the kernel, including children; points a second per core are computed from
// that time, so clients don't count. The first rounds warm up and are not measured. A store that is not
// installed is reported as absent.
//
// npm run bench -- ingest/peers [--only lethe,prometheus] [--senders 32] [--series 1000] [--rounds 120]
// [--warm 12] [--seed 1] [--root /tmp]

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { influxdbIngest } from '../peers/influxdb.ts'
import { type IngestStore, type OpenStore, untilQuiet } from '../peers/ingest-store.ts'
import { postgresqlIngest } from '../peers/postgresql.ts'
import { prometheusIngest } from '../peers/prometheus.ts'
import { isInstalled } from '../peers/server.ts'
import { victoriaMetricsRemoteWrite, victoriaMetricsText } from '../peers/victoria-metrics.ts'
import { usedBy, watchMemory } from '../process-use.ts'
import { report, reportAbsent } from '../report.ts'
import { quantile, rounded, shortVersion } from '../samples.ts'
import { lethe } from './peers/lethe.ts'
import type { LoadOrders, LoadReport, Span } from './peers/load-child.ts'
import type { Shape } from './peers/points.ts'

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    senders: { type: 'string', default: '32' },
    series: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '120' },
    warm: { type: 'string', default: '12' },
    seed: { type: 'string', default: '1' },
    root: { type: 'string', default: '/tmp' },
  },
})

const hourMs = 3_600_000
const shape: Shape = {
  senders: Number(flags.senders),
  seriesPerSender: Number(flags.series),
  rounds: Number(flags.rounds),
  seed: Number(flags.seed),
  // A whole hour, so that block boundaries are the same whenever this runs.
  endMs: Math.floor(Date.now() / hourMs) * hourMs,
}
const warmRounds = Number(flags.warm)
const pointsOf = (rounds: number): number => rounds * shape.senders * shape.seriesPerSender

const stores: Readonly<Record<string, IngestStore>> = {
  lethe: lethe('Lethe, OTLP', 'otlp'),
  'lethe-remote-write': lethe('Lethe, remote write 1.0', 'remote-write-1'),
  prometheus: prometheusIngest,
  'victoria-metrics': victoriaMetricsRemoteWrite,
  'victoria-metrics-text': victoriaMetricsText,
  influxdb: influxdbIngest,
  postgresql: postgresqlIngest,
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

async function load(store: IngestStore, open: OpenStore) {
  const program = fileURLToPath(new URL('peers/load-child.ts', import.meta.url))
  const child = fork(program, { execArgv: ['--disable-warning=ExperimentalWarning'] })
  try {
    await ask(child, { shape, format: store.format, target: open.target })
    await ask<LoadReport>(child, { from: 0, to: warmRounds })
    const readPeak = watchMemory(open.pid)
    const before = usedBy(open.pid).cpuSeconds
    const sent = await ask<LoadReport>(child, { from: warmRounds, to: shape.rounds })
    const cpuSeconds = usedBy(open.pid).cpuSeconds - before
    const peakBytes = readPeak()
    await untilQuiet(open.dataFolder, open.restMs)
    return { sent, cpuSeconds, peakBytes }
  } finally {
    child.kill('SIGTERM')
  }
}

async function measure(store: IngestStore) {
  const folder = mkdtempSync(join(flags.root, 'ingest-peers-'))
  const open = await store.open({ folder, shape })
  try {
    const loaded = await load(store, open)
    const points = pointsOf(shape.rounds - warmRounds)
    const { sent } = loaded
    const mergedBytes = await open.merge()
    const stored = await open.countPoints()
    if (stored !== pointsOf(shape.rounds))
      throw new Error(`${store.name} has ${stored} points of ${pointsOf(shape.rounds)}.`)
    const cpuUs = (loaded.cpuSeconds / points) * 1e6
    return {
      store: store.name,
      version: shortVersion(open.version),
      'durability of an acknowledged point': store.durability,
      'points/s': Math.round(points / sent.seconds),
      'points/s a core': Math.round(1e6 / cpuUs),
      'CPU us a point': rounded(cpuUs),
      'peak MB': Math.round(loaded.peakBytes / 1e6),
      'ack p50 ms': Math.round(quantile(sent.latenciesMs, 0.5)),
      'ack p99 ms': Math.round(quantile(sent.latenciesMs, 0.99)),
      refused: sent.refused,
      'bytes a point merged': rounded(mergedBytes / pointsOf(shape.rounds)),
    }
  } finally {
    await open.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const chosen = flags.only === '' ? Object.keys(stores) : flags.only.split(',')
const unknown = chosen.find((key) => stores[key] === undefined)
if (unknown !== undefined) throw new Error(`There is ${Object.keys(stores).join()}, not ${unknown}.`)
for (const key of chosen) {
  const store = stores[key]
  if (store === undefined) continue
  if (isInstalled(store)) report('The same points into each store', await measure(store))
  else reportAbsent(store.name, 'it is not installed')
}
