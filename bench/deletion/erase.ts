// The cost of erasing one organisation of 64, including its bytes on disk. The product is used over HTTP.
// Beside it, in the same engine and process, are the plain ALTER DELETE and the lightweight DELETE on tables
// partitioned by day with the same rows; then PostgreSQL, Prometheus, InfluxDB and VictoriaMetrics, where
// they are installed, with the gauges and counters of the same seeds, and the product again with exactly
// those points. The bytes of all are watched from outside in the same way (files.ts). Times depend on the
// machine, so compare the ratios.
//
// npm run bench -- deletion/erase [--rows 50000000] [--points 10000000] [--seed 1] [--only engine,postgresql]
// [--repeat 5] [--limit-seconds 600] [--root /tmp]

import { mkdtempSync, rmSync } from 'node:fs'
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
import { measureWay, type StoreResult, type Way, type WayResult } from './erasure.ts'
import { figuresOf } from './figures.ts'
import { bytesOf, filesUnder } from './files.ts'
import { type Clients, productClients } from './load.ts'
import { type Product, type Range, startProduct } from './product.ts'
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
  const way = (name: string, first: number, range: Range | null): Way => ({
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

/** In the order of {@link waysOfProduct}; one erasure each, because they take minutes. */
function waysOfBaseline(product: Product, history: History): Way[] {
  const way = (name: string, erase: typeof alterDelete, own: number[], range: Range | null): Way => ({
    name,
    quiet: own.slice(0, 1),
    loaded: own.slice(1),
    erase: (organisation, limit) => erase(product, history, { organisation, range, limitMs: limit }),
  })
  return [
    way('ALTER DELETE, all', alterDelete, [1, 2], null),
    way('ALTER DELETE, two weeks with edges', alterDelete, [3], withEdges),
    way('lightweight DELETE and OPTIMIZE FINAL, all', lightweightAndMerge, [4], null),
  ]
}

/** The product and, if wanted, the baseline; their ways take turns. */
async function inEngine(history: History, withBaseline: boolean): Promise<StoreResult[]> {
  const folder = mkdtempSync(join(flags.root, 'erase-bench-'))
  try {
    const fills = await fill(folder, history, withBaseline)
    const product = await startProduct(folder)
    try {
      const [{ version = '' } = {}] = await product.rows<{ version: string }>('SELECT version() AS version')
      const ways = [waysOfProduct(product, history), withBaseline ? waysOfBaseline(product, history) : []]
      const clients = productClients(product, sender, reader, seed)
      const results: WayResult[][] = fills.map(() => [])
      for (const turn of from(0, 3))
        for (const [i, { store }] of fills.entries()) {
          const way = ways[i]?.[turn]
          if (way !== undefined) results[i]?.push(await measured(store, way, clients))
        }
      return fills.map((each, i) => ({ ...each, version, rows: rowsOf(history), ways: results[i] ?? [] }))
    } finally {
      await product.stop()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

type Fill = Pick<StoreResult, 'store' | 'diskBytes'>

async function fill(folder: string, history: History, withBaseline: boolean): Promise<Fill[]> {
  const product = await startProduct(folder)
  const fills: Fill[] = []
  const filled = async (store: string, work: () => Promise<void>) => {
    const bytesBefore = bytesOf(filesUnder(product.folder))
    await work()
    fills.push({ store, diskBytes: bytesOf(filesUnder(product.folder)) - bytesBefore })
  }
  try {
    // Both before the first erasure, so that the engine has the same rows in all measurements.
    await filled('Lethe', () => fillProduct(product, history))
    if (withBaseline) await filled('ClickHouse by day', () => fillBaseline(product, history))
  } finally {
    await product.stop()
  }
  return fills
}

async function measured(store: string, way: Way, clients: Clients): Promise<WayResult> {
  const result = await measureWay(way, clients, limitMs)
  say(`${store}: ${way.name} is measured`)
  return result
}

async function inPeer(peer: ErasingStore, history: History): Promise<StoreResult> {
  const folder = mkdtempSync(join(flags.root, 'erase-bench-'))
  const open = await peer.open({ folder, history })
  try {
    const store = {
      store: peer.name,
      version: open.version,
      rows: rowsOf(history),
      diskBytes: bytesOf(filesUnder(open.dataFolder)),
    }
    say(`${peer.name}: ${store.rows} points are loaded`)
    const ways = open.ways.map((way, i) => ({ ...way, quiet: [2 * i], loaded: i === 0 ? [1] : [] }))
    const results: WayResult[] = []
    for (const way of ways) results.push(await measured(peer.name, way, open.clients))
    return { ...store, ways: results }
  } finally {
    await open.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const history = historyOf(Number(flags.rows), seed, everyTable)
const points = historyOf(Number(flags.points), seed, pointTables)
const contests: Readonly<Record<string, () => Promise<StoreResult[]>>> = {
  engine: () => inEngine(history, true),
  points: () => inEngine(points, false),
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
