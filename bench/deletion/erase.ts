// The cost of erasing one organisation of 64, including its bytes on disk. The product is used over HTTP.
// Beside it, in the same engine and process, are the plain ALTER DELETE and the lightweight DELETE on tables
// partitioned by day with the same rows; then PostgreSQL, Prometheus, InfluxDB and VictoriaMetrics, where
// they are installed, with the gauges and counters of the same seeds, and the product again with exactly
// those points. The bytes of all are watched from outside in the same way (files.ts). Times depend on the
// machine, so compare the ratios.
//
// npm run bench -- deletion/erase [--rows 50000000] [--points 10000000] [--seed 1] [--only engine,postgresql]
// [--repeat 5] [--limit-seconds 600] [--calm-seconds 0] [--filled folder] [--root /tmp]
//
// On a shared machine `--calm-seconds` is how long each measurement waits at most until other processes are
// quiet. With `--filled` the filled engine folder is kept, and copied by the next run with the same rows and
// seed.

import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { ErasingStore } from '../peers/erasing-store.ts'
import { influxdbErasure } from '../peers/influxdb.ts'
import { postgresqlErasure } from '../peers/postgresql.ts'
import { prometheusErasure } from '../peers/prometheus.ts'
import { isInstalled } from '../peers/server.ts'
import { victoriaMetricsErasure } from '../peers/victoria-metrics.ts'
import { report, reportAbsent, say } from '../report.ts'
import { alterDelete, eraseInProduct, fillBaseline, fillProduct, lightweightAndMerge } from './engine.ts'
import { measureWay, type StoreResult, type Way, type WayResult, waitUntilIdle } from './erasure.ts'
import { figuresOf } from './figures.ts'
import { bytesOf, filesUnder } from './files.ts'
import { type Clients, productClients } from './load.ts'
import { type Product, startProduct } from './product.ts'
import { dayStart, everyTable, type History, historyOf, pointTables, rowsOf } from './rows.ts'

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '50000000' },
    points: { type: 'string', default: '10000000' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    /** Erasures per way of Lethe, without and with load; at most 5, because organisations are numbered. */
    repeat: { type: 'string', default: '5' },
    'limit-seconds': { type: 'string', default: '600' },
    'calm-seconds': { type: 'string', default: '0' },
    filled: { type: 'string', default: '' },
    root: { type: 'string', default: '/tmp' },
  },
})
const seed = Number(flags.seed)
const limitMs = Number(flags['limit-seconds']) * 1000

/** These two are never erased: one sends, the other is queried. */
const [sender, reader] = [63, 62]
const from = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i)

/** Two whole weeks, and a range of the same length whose ends are inside a week and inside a day. */
const wholeWeeks = { start: dayStart(7), end: dayStart(21) }
const withEdges = { start: dayStart(9.5), end: dayStart(23.5) }

function waysOfProduct(product: Product, history: History): Way[] {
  const way = (name: string, first: number, range: typeof wholeWeeks | null): Way => ({
    name,
    quiet: from(first, Number(flags.repeat)),
    loaded: from(first + 5, Number(flags.repeat)),
    erase: (organisation, limit) => eraseInProduct(product, history, { organisation, range, limitMs: limit }),
  })
  return [
    way('all', 0, null),
    way('two whole weeks', 10, wholeWeeks),
    way('two weeks with edges', 20, withEdges),
  ]
}

function waysOfBaseline(product: Product, history: History): Way[] {
  return [
    {
      name: 'ALTER DELETE, all',
      quiet: [1],
      loaded: [2],
      erase: (organisation, limit) =>
        alterDelete(product, history, { organisation, range: null, limitMs: limit }),
    },
    {
      name: 'ALTER DELETE, two weeks with edges',
      quiet: [3],
      loaded: [],
      erase: (organisation, limit) =>
        alterDelete(product, history, { organisation, range: withEdges, limitMs: limit }),
    },
    {
      name: 'lightweight DELETE and OPTIMIZE FINAL, all',
      quiet: [4],
      loaded: [],
      erase: (organisation, limit) =>
        lightweightAndMerge(product, history, { organisation, range: null, limitMs: limit }),
    },
  ]
}

/** The product and, if wanted, the baseline; their ways take turns. */
async function inEngine(name: string, history: History, withBaseline: boolean): Promise<StoreResult[]> {
  const folder = mkdtempSync(join(flags.root, 'erase-bench-'))
  try {
    const fills = await fillOrCopy(name, folder, history, withBaseline)
    const product = await startProduct(folder)
    try {
      const [{ version = '' } = {}] = await product.rows<{ version: string }>('SELECT version() AS version')
      const ways = [waysOfProduct(product, history), withBaseline ? waysOfBaseline(product, history) : []]
      const clients = productClients(product, sender, reader, seed)
      const results: WayResult[][] = fills.map(() => [])
      for (const turn of from(0, 3))
        for (const [i, fill] of fills.entries()) {
          const way = ways[i]?.[turn]
          if (way !== undefined) results[i]?.push(await measureCalmly(fill.store, way, clients))
        }
      return fills.map((fill, i) => ({ ...fill, version, rows: rowsOf(history), ways: results[i] ?? [] }))
    } finally {
      await product.stop()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

type Fill = Pick<StoreResult, 'store' | 'loadSeconds' | 'diskBytes'>

/** Fills a folder, or copies the folder of an earlier run with the same rows and seed. */
async function fillOrCopy(
  name: string,
  folder: string,
  history: History,
  withBaseline: boolean,
): Promise<Fill[]> {
  const kept = join(flags.filled, `${name}-${rowsOf(history)}-${seed}`)
  const sizesAt = join(kept, 'sizes.json')
  if (flags.filled !== '' && existsSync(sizesAt)) {
    cpSync(kept, folder, { recursive: true, verbatimSymlinks: true })
    return JSON.parse(readFileSync(sizesAt, 'utf8'))
  }
  const product = await startProduct(folder)
  const fills: Fill[] = []
  const filled = async (store: string, fill: () => Promise<void>) => {
    const bytesBefore = bytesOf(filesUnder(product.folder))
    const startMs = performance.now()
    await fill()
    const loadSeconds = (performance.now() - startMs) / 1000
    fills.push({ store, loadSeconds, diskBytes: bytesOf(filesUnder(product.folder)) - bytesBefore })
  }
  try {
    // Both before the first erasure, so that the engine has the same rows in all measurements.
    await filled('Lethe', () => fillProduct(product, history))
    if (withBaseline) await filled('ClickHouse by day', () => fillBaseline(product, history))
  } finally {
    await product.stop()
  }
  if (flags.filled !== '') {
    cpSync(folder, kept, { recursive: true, verbatimSymlinks: true })
    writeFileSync(sizesAt, JSON.stringify(fills))
  }
  return fills
}

async function measureCalmly(store: string, way: Way, clients: Clients): Promise<WayResult> {
  await waitUntilIdle(Number(flags['calm-seconds']) * 1000)
  const result = await measureWay(way, clients, limitMs)
  say(`${store}: ${way.name} is measured`)
  return result
}

async function inPeer(peer: ErasingStore, history: History): Promise<StoreResult> {
  const folder = mkdtempSync(join(flags.root, 'erase-bench-'))
  const startMs = performance.now()
  const open = await peer.open({ folder, history })
  try {
    const store = {
      store: peer.name,
      version: open.version,
      rows: rowsOf(history),
      loadSeconds: (performance.now() - startMs) / 1000,
      diskBytes: bytesOf(filesUnder(open.dataFolder)),
    }
    say(`${peer.name}: ${store.rows} points are loaded`)
    const ways = open.ways.map((way, i) => ({ ...way, quiet: [2 * i], loaded: i === 0 ? [1] : [] }))
    const results: WayResult[] = []
    for (const way of ways) results.push(await measureCalmly(peer.name, way, open.clients))
    return { ...store, ways: results }
  } finally {
    await open.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const history = historyOf(Number(flags.rows), seed, everyTable)
const points = historyOf(Number(flags.points), seed, pointTables)
const contests: Readonly<Record<string, () => Promise<StoreResult[]>>> = {
  engine: () => inEngine('engine', history, true),
  points: () => inEngine('points', points, false),
  ...Object.fromEntries(
    [postgresqlErasure, prometheusErasure, victoriaMetricsErasure, influxdbErasure].map((peer) => [
      peer.name.toLowerCase(),
      async () => {
        if (isInstalled(peer)) return [await inPeer(peer, points)]
        reportAbsent(peer.name, 'it is not installed')
        return []
      },
    ]),
  ),
}
const chosen = flags.only === '' ? Object.keys(contests) : flags.only.split(',')
const unknown = chosen.find((name) => contests[name] === undefined)
if (unknown !== undefined) throw new Error(`There is ${Object.keys(contests).join()}, not ${unknown}.`)
for (const name of chosen) {
  try {
    for (const { ways, ...store } of (await contests[name]?.()) ?? [])
      for (const way of ways) report('Erasing one organisation of 64', figuresOf(store, way))
  } catch (error) {
    // The other stores are measured nevertheless.
    process.exitCode = 1
    reportAbsent(name, error instanceof Error ? error.message : String(error))
  }
}
