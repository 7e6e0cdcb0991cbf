// What it costs to erase one organisation of 64, bytes and all. The product is driven over HTTP; beside it, in the same
// engine and process, stand the plain ALTER DELETE and the lightweight DELETE on tables partitioned by day that hold the
// same rows; then PostgreSQL, Prometheus, InfluxDB and VictoriaMetrics, where they are installed, with the gauges and
// counters of the same seeds, and the product again with exactly those points. Everybody's bytes are watched from outside
// in the same way (files.ts). Times depend on the machine, so read the ratios.
//
//   node bench/deletion/erase.ts [--rows 50000000] [--points 10000000] [--seed 1] [--only engine,postgresql]
//     [--limit-seconds 600] [--calm-seconds 0] [--root /tmp] [--out result.json]
//
// On a shared machine `--calm-seconds` lets each measurement wait, at most so long, until others leave it alone.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { provenance } from '../storage/bench-store.ts'
import { alterDelete, eraseInProduct, fillProduct, fillYardstick, lightweightAndMerge } from './engine.ts'
import { measureWay, type StoreResult, untilCalm, type Way, type WayResult } from './erasure.ts'
import { bytesOf, filesUnder } from './files.ts'
import { productClients } from './load.ts'
import { influxdb } from './peers/influxdb.ts'
import { isInstalled, type Peer } from './peers/peer.ts'
import { postgresql } from './peers/postgresql.ts'
import { prometheus } from './peers/prometheus.ts'
import { victoriaMetrics } from './peers/victoria-metrics.ts'
import { type Product, startProduct } from './product.ts'
import { dayStart, everyTable, type History, historyOf, pointTables, rowsOf } from './rows.ts'
import { tableOf } from './table.ts'

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '50000000' },
    points: { type: 'string', default: '10000000' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    'limit-seconds': { type: 'string', default: '600' },
    'calm-seconds': { type: 'string', default: '0' },
    root: { type: 'string', default: '/tmp' },
    out: { type: 'string', default: '' },
  },
})
const seed = Number(flags.seed)
const limitMs = Number(flags['limit-seconds']) * 1000

/** Nobody erases these two: one sends, the other is asked about. */
const [sender, asker] = [63, 62]
const from = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i)

/** Two whole weeks, and a range of the same length whose ends lie inside a week and inside a day. */
const wholeWeeks = { start: dayStart(7), end: dayStart(21) }
const withEdges = { start: dayStart(9.5), end: dayStart(23.5) }

function waysOfProduct(product: Product, history: History): Way[] {
  const way = (name: string, first: number, range: typeof wholeWeeks | null): Way => ({
    name,
    quiet: from(first, 5),
    loaded: from(first + 5, 5),
    erase: (organisation, limit) => eraseInProduct(product, history, { organisation, range, limitMs: limit }),
  })
  return [
    way('all', 0, null),
    way('two whole weeks', 10, wholeWeeks),
    way('two weeks with edges', 20, withEdges),
  ]
}

function waysOfYardstick(product: Product, history: History): Way[] {
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

async function inEngine(history: History, withYardstick: boolean): Promise<StoreResult[]> {
  const folder = mkdtempSync(join(flags.root, 'erase-bench-'))
  const product = await startProduct(folder)
  try {
    const [{ version = '' } = {}] = await product.rows<{ version: string }>('SELECT version() AS version')
    const measure = async (store: string, fill: () => Promise<void>, ways: readonly Way[]) => {
      const bytesBefore = bytesOf(filesUnder(product.folder))
      const startMs = performance.now()
      await fill()
      const loadSeconds = (performance.now() - startMs) / 1000
      const diskBytes = bytesOf(filesUnder(product.folder)) - bytesBefore
      const size = { store, version, rows: rowsOf(history), loadSeconds, diskBytes }
      return { ...size, run: () => measureWays(size, ways, productClients(product, sender, asker, seed)) }
    }
    const own = await measure('Lethe', () => fillProduct(product, history), waysOfProduct(product, history))
    if (!withYardstick) return [await own.run()]
    // Both are filled before either erases, so that the engine holds the same in all measurements.
    const daily = await measure(
      'ClickHouse by day',
      () => fillYardstick(product, history),
      waysOfYardstick(product, history),
    )
    return [await own.run(), await daily.run()]
  } finally {
    await product.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureWays(
  store: Omit<StoreResult, 'ways'>,
  ways: readonly Way[],
  clients: Parameters<typeof measureWay>[1],
): Promise<StoreResult> {
  const results: WayResult[] = []
  for (const way of ways) {
    await untilCalm(Number(flags['calm-seconds']) * 1000)
    const result = await measureWay(way, clients, limitMs)
    console.error(store.store, JSON.stringify(result))
    results.push(result)
  }
  return { ...store, ways: results }
}

async function inPeer(peer: Peer, history: History): Promise<StoreResult> {
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
    console.error(JSON.stringify(store))
    const ways = open.ways.map((way, i) => ({ ...way, quiet: [2 * i], loaded: i === 0 ? [1] : [] }))
    return await measureWays(store, ways, open.clients)
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
    [postgresql, prometheus, victoriaMetrics, influxdb].map((peer) => [
      peer.name.toLowerCase(),
      async () => {
        if (isInstalled(peer)) return [await inPeer(peer, points)]
        console.error(`${peer.name} is not installed and was not measured.`)
        return []
      },
    ]),
  ),
}
const chosen = flags.only === '' ? Object.keys(contests) : flags.only.split(',')
const stores: StoreResult[] = []
for (const name of chosen) {
  const contest = contests[name]
  if (contest === undefined) throw new Error(`There is ${Object.keys(contests).join()}, not ${name}.`)
  try {
    stores.push(...(await contest()))
  } catch (error) {
    console.error(`${name} could not be measured.`, error)
  }
  const result = { bench: 'deletion/erase', ...provenance(), seed, stores }
  if (flags.out !== '') writeFileSync(flags.out, `${JSON.stringify(result, null, 2)}\n`)
}
console.log(tableOf(stores))
