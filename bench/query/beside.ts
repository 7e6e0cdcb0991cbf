// Reads of two versions of the program in turn, one read by each and then the next, so that whatever else the
// machine does meanwhile does it to both: runs one after the other differ by more than most changes do. Each
// version has a process of its own and a folder that its own `bench/query/reads.ts` has filled with the same
// options, on a disk: in memory (tmpfs) files are read otherwise. Printed are medians of wall and CPU of a
// read, milliseconds, the other version first.
//
//   node bench/query/beside.ts --tree PATH --folders OTHER,OWN [--reads 50] [--only text]

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { provenance, quantile } from '../storage/bench-store.ts'
import { seededRandom } from '../storage/sample-rows.ts'
import { counterNames, endSeconds, gaugeNames, histogramNames } from './lifelike-rows.ts'

interface Read {
  readonly room: 'series' | 'logs' | 'spans'
  readonly seconds: number
  readonly query: Readonly<Record<string, unknown>>
  /** Of the organisations, 0 is the largest. */
  readonly organisation: number
}

interface Took {
  readonly ms: number
  readonly cpuMs: number
}

const { values: options } = parseArgs({
  options: {
    tree: { type: 'string', default: join(import.meta.dirname, '../..') },
    folders: { type: 'string', default: '' },
    reads: { type: 'string', default: '50' },
    only: { type: 'string', default: '' },
    /** Of a process that reads: its folder. */
    child: { type: 'string' },
  },
})
const day = 86_400
const service = 'checkout'
const route = { 'http.route': '/v1/orders/8' }
const host = { 'host.name': 'host-3' }
const [gauges, counters, histograms] = [gaugeNames, counterNames, histogramNames].map(
  ([busiest, , , other]) => ({
    busiest,
    other,
  }),
)

const series = (metricKey: string | undefined, query: Read['query'], seconds = day): Read => ({
  room: 'series',
  seconds,
  query: { metricKey, ...query },
  organisation: 0,
})
const page = (room: 'logs' | 'spans', query: Read['query'], seconds = day): Read => ({
  room,
  seconds,
  query,
  organisation: 0,
})
const ofMiddle = (read: Read): Read => ({ ...read, organisation: 20 })
const byRoute = { service, groupBy: 'http.route' }

const reads: Readonly<Record<string, Read>> = {
  'window of a gauge': series(gauges?.other, { service }),
  'window of the busiest gauge': series(gauges?.busiest, { service }),
  'window of a counter': series(counters?.other, { service }),
  'window of the busiest counter': series(counters?.busiest, { service }),
  'window of a histogram': series(histograms?.other, { service }),
  'window of the busiest histogram': series(histograms?.busiest, { service }),
  'window of the busiest gauge by route': series(gauges?.busiest, byRoute),
  'window of the busiest counter by route': series(counters?.busiest, byRoute),
  'window of the busiest histogram by route': series(histograms?.busiest, byRoute),
  'window of the busiest counter by host': series(counters?.busiest, { service, groupBy: 'host.name' }),
  'window of the busiest gauge, a route': series(gauges?.busiest, { attributes: route }),
  'window of the busiest counter, a route': series(counters?.busiest, { attributes: route }),
  'window of the busiest histogram, a route': series(histograms?.busiest, { attributes: route }),
  'window of a gauge, middle': ofMiddle(series(gauges?.other, { service })),
  'window of a counter, middle': ofMiddle(series(counters?.other, { service })),
  'window of a histogram, middle': ofMiddle(series(histograms?.other, { service })),
  'chart of the busiest counter by service': series(counters?.busiest, { groupBy: 'service' }),
  'chart of the busiest histogram': series(histograms?.busiest, {}),
  'chart 30 d of the busiest counter by service': series(
    counters?.busiest,
    { groupBy: 'service', aggregation: 'rate', stepSeconds: 7200 },
    30 * day,
  ),
  'events, error ratio': series('spans.error_ratio', { service }),
  'events, rate by route': series('spans.rate', { groupBy: 'http.route' }),
  'events, rate of a host': series('spans.rate', { attributes: host }),
  'events, error logs': series('logs.error_count', { service }),
  'logs 1 h, newest': page('logs', {}, 3600),
  'logs 24 h, a route': page('logs', { attribute: Object.entries(route) }),
  'logs 24 h, rare text': page('logs', { text: 'quota rebalanced' }),
  'spans 24 h, newest': page('spans', { min_duration_ms: 0 }),
  'spans 24 h, errors of a host': page('spans', {
    min_duration_ms: 0,
    status: 'error',
    attribute: Object.entries(host),
  }),
}

if (options.child === undefined) await compare(options.folders.split(','))
else await serve(options.tree, options.child)

async function compare(folders: readonly string[]): Promise<void> {
  const [other, own] = await Promise.all([
    start(options.tree, folders[0] ?? ''),
    start(join(import.meta.dirname, '../..'), folders[1] ?? ''),
  ])
  const random = seededRandom(1)
  const results: Record<string, unknown> = {}
  for (const [name, read] of Object.entries(reads).filter(([name]) => name.includes(options.only))) {
    const [others, owns]: [Took[], Took[]] = [[], []]
    // The first ten warm up.
    for (let i = -10; i < Number(options.reads); i++) {
      const asked = { ...read, end: Math.floor(endSeconds - day - random() * 9 * day) }
      const turns = [[other, others] as const, [own, owns] as const]
      for (const [process, took] of i % 2 === 0 ? turns : turns.reverse()) {
        const one = await ask(process, asked)
        if (i >= 0) took.push(one)
      }
    }
    const medians = [...wallAndCpu(others), ...wallAndCpu(owns)]
    results[name] = medians
    process.stderr.write(`| ${name} | ${medians.join(' | ')} |\n`)
  }
  for (const process of [other, own]) process.send('end')
  process.stdout.write(`${JSON.stringify({ ...provenance(), results }, null, 2)}\n`)
}

function wallAndCpu(took: readonly Took[]): number[] {
  return [took.map(({ ms }) => ms), took.map(({ cpuMs }) => cpuMs)].map((times) =>
    Number(quantile(times, 0.5).toFixed(1)),
  )
}

async function start(tree: string, folder: string): Promise<ChildProcess> {
  const process = fork(import.meta.filename, ['--child', folder, '--tree', tree])
  await once(process, 'message')
  return process
}

async function ask(process: ChildProcess, read: object): Promise<Took> {
  process.send(read)
  const [took] = await once(process, 'message')
  return took
}

/** Answers reads with the modules of a tree. */
async function serve(tree: string, folder: string): Promise<void> {
  const load = (path: string) => import(join(tree, 'server', path))
  const [{ openChdb }, { TelemetryGate }, { TenantReader }, { readSeries }, { listLogs }, { listSpans }] =
    await Promise.all([
      load('telemetry/chdb.ts'),
      load('telemetry/gate.ts'),
      load('telemetry/tenant-reader.ts'),
      load('series/series.ts'),
      load('query/logs.ts'),
      load('query/traces.ts'),
    ])
  const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 31 })
  const readers = new Map<number, unknown>()
  const pages = { logs: listLogs, spans: listSpans }
  const readOf = ({ room, seconds, query, organisation, end }: Read & { end: number }) => {
    const place = { tenantId: `org-${organisation}`, placement: organisation }
    const reader = readers.get(organisation) ?? new TenantReader(engine, place, new TelemetryGate())
    readers.set(organisation, reader)
    const [startNs, endNs] = [end - seconds, end].map((at) => BigInt(at) * 1_000_000_000n)
    return room === 'series'
      ? readSeries(reader, { stepSeconds: 300, maxGroups: 50, startNs, endNs, ...query })
      : pages[room](reader, { attribute: [], limit: 100, start: startNs, end: endNs, ...query }, endNs)
  }
  process.on('message', async (read: 'end' | (Read & { end: number })) => {
    if (read === 'end') {
      await engine.close()
      process.exit()
    }
    const [startMs, cpu] = [performance.now(), process.cpuUsage()]
    await readOf(read)
    const { user, system } = process.cpuUsage(cpu)
    process.send?.({ ms: performance.now() - startMs, cpuMs: (user + system) / 1000 })
  })
  process.send?.('ready')
}
