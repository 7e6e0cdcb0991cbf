// What a group commit costs when its rows belong to many organisations, for several table layouts and
// ways of grouping. Every variant runs in a process of its own, so that the CPU of the whole process is
// the CPU of that variant: inserts, merges and, for the hot table, the settling. Rows are ready buffers;
// encoding is not counted. The steady run offers a fixed rate and measures acknowledgement latency; the
// closed loop measures the ceiling.
//
//   node bench/storage/placement.ts [--orgs 1,16,64] [--only name,name] [--seconds 25] [--rate 20000]
//     [--requests 1] [--root /tmp]

import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import {
  type BenchStore,
  openBenchStore,
  promptRemoval,
  provenance,
  quantile,
  tableText,
  timed,
} from './bench-store.ts'
import { gaugeLine, logLine, seededRandom } from './sample-rows.ts'

interface Variant {
  /** Placements that the organisations are spread over. */
  readonly placements: number
  /** Time between two commits when there is something to commit. */
  readonly everyMs: number
  /** Partitions of one table that a commit may touch; the placements whose rows wait longest go first. */
  readonly placementsPerCommit: number
  /**
   * A placement is left to gather rows until its oldest row has waited this long or it has `fullRows` rows.
   */
  readonly gatherMs: number
  readonly fullRows: number
  /**
   * Rest that a commit earns for each partition it touched, measured from its start; bounds parts per second.
   */
  readonly paceMs: number
  /** Merge settings appended to the table settings. */
  readonly mergeSettings: string
  /**
   * Rows go to a hot table first and are settled into placements this often; 0 when there is no hot table.
   */
  readonly settleMs: number
  readonly connectionArgs: readonly string[]
}

const plain: Variant = {
  placements: 64,
  everyMs: 200,
  placementsPerCommit: 64,
  gatherMs: 0,
  fullRows: 5000,
  paceMs: 0,
  mergeSettings: '',
  settleMs: 0,
  connectionArgs: [],
}
/** Merges that wait for more parts before they start, so that a row is rewritten less often. */
const lazyMerges = 'merge_selector_base = 16, min_parts_to_merge_at_once = 10'

/** Starts again as soon as it is done, taking the few placements that wait longest. */
const selfClocked: Variant = { ...plain, everyMs: 0, gatherMs: 200, placementsPerCommit: 8 }

const variants: Readonly<Record<string, Variant>> = {
  'one partition': { ...plain, placements: 1 },
  'one partition, lazy merges': { ...plain, placements: 1, mergeSettings: lazyMerges },
  'a: 64 placements, all in each commit': plain,
  'a2: at most 8': selfClocked,
  'a2: at most 8, lazy merges': { ...selfClocked, mergeSettings: lazyMerges },
  'a2: at most 8, paced': { ...selfClocked, paceMs: 10 },
  'a2: at most 8, paced, lazy merges': { ...selfClocked, paceMs: 10, mergeSettings: lazyMerges },
  'b: 8 placements': { ...plain, placements: 8 },
  'b: 8 placements, lazy merges': { ...plain, placements: 8, mergeSettings: lazyMerges },
  'c: hot table, settled every 10 s': { ...plain, settleMs: 10_000 },
}

const tableKinds = ['gauge', 'logs'] as const
type TableKind = (typeof tableKinds)[number]
const realTable = { gauge: 'otel_metrics_gauge', logs: 'otel_logs' } as const
/** Seven rows of ten are metrics. */
const gaugeShare = 0.7
const gaugesOf = (rows: number): number => Math.round(rows * gaugeShare)
const loopCommitRows = 10_000
const nowNs = 1_732_000_000_000_000_000n

/** Ready buffers of one organisation, a few different ones for each number of rows, handed out in turn. */
interface RowPool {
  take(kind: TableKind, count: number): Buffer
}

function rowPool(organisation: number, placement: number): RowPool {
  const random = seededRandom(organisation + 1)
  const variety = 4
  const ready = new Map<string, Buffer[]>()
  let turn = 0
  const build = (kind: TableKind, count: number): Buffer => {
    const line = kind === 'gauge' ? gaugeLine : logLine
    const lines = Array.from({ length: count }, (_, i) =>
      line(random, { organisation, placement, timeNs: nowNs + BigInt(i) * 50_000_000n }),
    )
    return Buffer.from(lines.join(''), 'latin1')
  }
  return {
    take: (kind, count) => {
      const key = `${kind} ${count}`
      const known = ready.get(key) ?? Array.from({ length: variety }, () => build(kind, count))
      ready.set(key, known)
      return known[turn++ % variety] ?? Buffer.alloc(0)
    },
  }
}

interface Waiting {
  rows: number
  oldestMs: number
  chunks: Record<TableKind, Buffer[]>
  arrivedMs: number[]
}
const nothingWaiting = (): Waiting => ({
  rows: 0,
  oldestMs: Number.POSITIVE_INFINITY,
  chunks: { gauge: [], logs: [] },
  arrivedMs: [],
})

/** Where rows are inserted at the moment, and the step that moves them on. */
interface Target {
  insert(kind: TableKind, values: Buffer): Promise<void>
  settle(): Promise<void>
}

async function openTarget(store: BenchStore, variant: Variant): Promise<Target> {
  const settings = [promptRemoval, variant.mergeSettings].filter((text) => text !== '').join(', ')
  const create = (as: string, kind: TableKind, partitionBy: string): Promise<void> =>
    store.run(tableText({ as, like: realTable[kind], partitionBy, settings }))
  for (const kind of tableKinds) {
    await create(kind, kind, '(Placement, toMonday(TIME))')
    if (variant.settleMs > 0)
      for (const side of ['a', 'b']) await create(`hot_${kind}_${side}`, kind, 'tuple()')
  }
  let side: 'a' | 'b' = 'a'
  const inFlight = new Set<Promise<unknown>>()
  return {
    insert: async (kind, values) => {
      const table = variant.settleMs > 0 ? `bench.hot_${kind}_${side}` : `bench.${kind}`
      const insert = store.session.insert({ table, values, format: 'JSONCompactEachRow' })
      inFlight.add(insert)
      await insert.finally(() => inFlight.delete(insert))
    },
    settle: async () => {
      const full = side
      side = full === 'a' ? 'b' : 'a'
      await Promise.all(inFlight)
      for (const kind of tableKinds) {
        await store.run(`INSERT INTO bench.${kind} SELECT * FROM bench.hot_${kind}_${full}`)
        await store.run(`TRUNCATE TABLE bench.hot_${kind}_${full}`)
      }
    },
  }
}

/** Takes the placements that are due, longest waiting first, at most the variant's bound. */
function takeDue(waiting: Map<number, Waiting>, variant: Variant, nowMs: number): Waiting[] {
  const due = [...waiting]
    .filter(([, w]) => w.rows > 0 && (nowMs - w.oldestMs >= variant.gatherMs || w.rows >= variant.fullRows))
    .sort(([, x], [, y]) => x.oldestMs - y.oldestMs)
    .slice(0, variant.placementsPerCommit)
  for (const [placement] of due) waiting.set(placement, nothingWaiting())
  return due.map(([, w]) => w)
}

async function commit(target: Target, taken: readonly Waiting[]): Promise<void> {
  await Promise.all(
    tableKinds.map(async (kind) => {
      const values = Buffer.concat(taken.flatMap((w) => w.chunks[kind]))
      if (values.length > 0) await target.insert(kind, values)
    }),
  )
}

async function activeParts(store: BenchStore): Promise<number> {
  const [found] = await store.rows<{ parts: number | string }>(
    `SELECT count() AS parts FROM system.parts WHERE database = 'bench' AND active`,
  )
  return Number(found?.parts ?? 0)
}

interface SteadyRun {
  readonly store: BenchStore
  readonly target: Target
  readonly variant: Variant
  readonly organisations: number
  readonly pools: readonly RowPool[]
  readonly seconds: number
  readonly rate: number
  /** Requests of each organisation in a second. */
  readonly requests: number
}

/** Offers `rate` rows a second, an equal share from each organisation, and commits as the variant says. */
async function steady(run: SteadyRun) {
  const { target, variant, organisations, pools, seconds } = run
  const { perSecond: requestsPerSecond, rows: rowsPerRequest } = steadyRequest(run)
  const waiting = new Map<number, Waiting>()
  const latencies: number[] = []
  const commitMs: number[] = []
  const start = performance.now()
  let sent = 0
  let commits = 0
  let touched = 0
  let nextSettle = start + variant.settleMs
  let settling: Promise<void> = Promise.resolve()
  const arrive = (): void => {
    const dueRequests = Math.min(
      ((performance.now() - start) / 1000) * requestsPerSecond,
      seconds * requestsPerSecond,
    )
    for (; sent < dueRequests; sent++) {
      const organisation = sent % organisations
      const placement = organisation % variant.placements
      const entry = waiting.get(placement) ?? nothingWaiting()
      const arrivedMs = start + (sent / requestsPerSecond) * 1000
      const gauges = gaugesOf(rowsPerRequest)
      const pool = pools[organisation]
      if (pool === undefined) continue
      entry.chunks.gauge.push(pool.take('gauge', gauges))
      entry.chunks.logs.push(pool.take('logs', rowsPerRequest - gauges))
      entry.rows += rowsPerRequest
      entry.oldestMs = Math.min(entry.oldestMs, arrivedMs)
      entry.arrivedMs.push(arrivedMs)
      waiting.set(placement, entry)
    }
  }
  const end = start + seconds * 1000
  while (performance.now() < end || [...waiting.values()].some((w) => w.rows > 0)) {
    const began = performance.now()
    if (began > end + 20_000) break
    arrive()
    const taken = takeDue(waiting, began > end ? { ...variant, gatherMs: 0 } : variant, began)
    if (taken.length > 0) {
      await commit(target, taken)
      const doneMs = performance.now()
      commits++
      touched += taken.length
      commitMs.push(doneMs - began)
      for (const w of taken) for (const arrivedMs of w.arrivedMs) latencies.push(doneMs - arrivedMs)
    }
    if (variant.settleMs > 0 && performance.now() > nextSettle) {
      nextSettle += variant.settleMs
      settling = settling.then(() => target.settle())
    }
    const restMs = Math.max(variant.everyMs, taken.length * tableKinds.length * variant.paceMs)
    const left = restMs - (performance.now() - began)
    if (left > 0) await sleep(left)
    else await sleep(1)
  }
  await settling
  if (variant.settleMs > 0) await target.settle()
  const wallS = (performance.now() - start) / 1000
  return {
    rows: sent * rowsPerRequest,
    wallS,
    commits,
    placementsPerCommit: touched / Math.max(1, commits),
    commitMsMedian: quantile(commitMs, 0.5),
    ackMsMedian: quantile(latencies, 0.5),
    ackMsP99: quantile(latencies, 0.99),
  }
}

/** Commits 10,000 rows at a time, back to back, spread over as many placements as the variant allows. */
async function closedLoop(run: SteadyRun) {
  const { target, variant, organisations, pools, seconds } = run
  const start = performance.now()
  let rows = 0
  let turn = 0
  const perCommit = Math.min(organisations, variant.placementsPerCommit)
  let nextSettle = start + Math.min(variant.settleMs, seconds * 500)
  while (performance.now() - start < seconds * 1000) {
    const taken: Waiting[] = []
    for (let i = 0; i < perCommit; i++) {
      const pool = pools[turn++ % organisations]
      if (pool === undefined) continue
      const each = loopRows(run)
      const gauges = gaugesOf(each)
      const chunks = { gauge: [pool.take('gauge', gauges)], logs: [pool.take('logs', each - gauges)] }
      taken.push({ rows: each, oldestMs: 0, arrivedMs: [], chunks })
      rows += each
    }
    await commit(target, taken)
    if (variant.settleMs > 0 && performance.now() > nextSettle) {
      nextSettle += variant.settleMs
      await target.settle()
    }
  }
  if (variant.settleMs > 0) await target.settle()
  return { rows, wallS: (performance.now() - start) / 1000 }
}

const steadyRequest = ({ organisations, rate, requests }: SteadyRun): { perSecond: number; rows: number } => {
  const perSecond = Math.max(organisations * requests, 20)
  return { perSecond, rows: Math.round(rate / perSecond) }
}
const loopRows = ({ organisations, variant }: SteadyRun): number =>
  Math.round(loopCommitRows / Math.min(organisations, variant.placementsPerCommit))

/** Fills the pools before any clock runs. */
function prebuild(run: SteadyRun): void {
  for (const pool of run.pools)
    for (const rows of [steadyRequest(run).rows, loopRows(run)]) {
      pool.take('gauge', gaugesOf(rows))
      pool.take('logs', rows - gaugesOf(rows))
    }
}

interface Flags {
  readonly orgs: string
  readonly only: string
  readonly seconds: string
  readonly rate: string
  readonly requests: string
  readonly root: string
  readonly variant: string
}

/** One variant with one number of organisations, in this process. */
async function measure(name: string, flags: Flags): Promise<Record<string, unknown>> {
  const variant = variants[name]
  if (variant === undefined) throw new Error(`No variant ${name}.`)
  const organisations = Number(flags.orgs)
  const seconds = Number(flags.seconds)
  const pools = Array.from({ length: organisations }, (_, o) => rowPool(o, o % variant.placements))
  const store = openBenchStore(flags.root, variant.connectionArgs)
  const target = await openTarget(store, variant)
  const run = {
    store,
    target,
    variant,
    organisations,
    pools,
    seconds,
    rate: Number(flags.rate),
    requests: Number(flags.requests),
  }
  prebuild(run)
  const open = await timed(() => steady(run))
  const parts = await activeParts(store)
  await sleep(1500)
  const loop = await timed(() => closedLoop({ ...run, seconds: Math.min(seconds, 12) }))
  const result = {
    variant: name,
    organisations,
    cpuSPer100k: round((open.cpuS / open.value.rows) * 1e5),
    coresUsed: round(open.cpuS / open.value.wallS),
    keptUp: open.value.wallS < seconds * 1.1 + 3,
    ackMsMedian: Math.round(open.value.ackMsMedian),
    ackMsP99: Math.round(open.value.ackMsP99),
    commitMsMedian: Math.round(open.value.commitMsMedian),
    commits: open.value.commits,
    placementsPerCommit: round(open.value.placementsPerCommit),
    activeParts: parts,
    closedRowsPerS: Math.round(loop.value.rows / loop.value.wallS),
    closedCpuSPer100k: round((loop.cpuS / loop.value.rows) * 1e5),
    rssMib: process.memoryUsage.rss() >> 20,
  }
  store.close()
  return result
}

const round = (value: number): number => Math.round(value * 1000) / 1000

const { values: flags } = parseArgs({
  options: {
    orgs: { type: 'string', default: '1,16,64' },
    only: { type: 'string', default: '' },
    seconds: { type: 'string', default: '25' },
    rate: { type: 'string', default: '20000' },
    requests: { type: 'string', default: '1' },
    root: { type: 'string', default: '/tmp' },
    variant: { type: 'string', default: '' },
  },
})

if (flags.variant !== '') {
  console.log(JSON.stringify(await measure(flags.variant, flags)))
} else {
  const results: unknown[] = []
  for (const organisations of flags.orgs.split(','))
    for (const name of Object.keys(variants)) {
      if (flags.only !== '' && !flags.only.split(',').some((part) => name.includes(part))) continue
      const args = [fileURLToPath(import.meta.url), '--variant', name, '--orgs', organisations]
      const passed = [
        '--seconds',
        flags.seconds,
        '--rate',
        flags.rate,
        '--requests',
        flags.requests,
        '--root',
        flags.root,
      ]
      const line = execFileSync(process.execPath, [...args, ...passed], { encoding: 'utf8' }).trim()
      console.error(line)
      results.push(JSON.parse(line.split('\n').at(-1) ?? '{}'))
    }
  console.log(JSON.stringify({ bench: 'storage/placement', ...provenance(), results }, null, 2))
}
