// Where the milliseconds of a small read go: what the engine says of its own phases (parsing, analysis, plan,
// optimising, pipeline), over the rows that `bench/query/reads.ts` has left in a folder. Below it the ladder
// that leads from nothing to the window of one gauge, each rung one piece more. Every read has another end,
// as those of detectors have, so nothing is served from what an equal statement left behind.
//
//   node bench/query/phases.ts --folder PATH [--reads 40] [--only text]

import { parseArgs } from 'node:util'
import { readSeries } from '../../server/series/series.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { TelemetryGate } from '../../server/telemetry/gate.ts'
import { allOf, instant, raw, type Sql, sql } from '../../server/telemetry/sql.ts'
import { TenantReader } from '../../server/telemetry/tenant-reader.ts'
import { provenance, quantile } from '../storage/bench-store.ts'
import {
  counterNames,
  endSeconds,
  gaugeNames,
  histogramNames,
  organisationOf,
  serviceNames,
} from './lifelike-rows.ts'

const { values: options } = parseArgs({
  options: {
    folder: { type: 'string' },
    reads: { type: 'string', default: '40' },
    only: { type: 'string', default: '' },
  },
})
if (options.folder === undefined) throw new Error('--folder says where the rows are kept')

const phases = {
  parse: 'QueryParseMicroseconds',
  analyse: 'QueryAnalysisMicroseconds',
  plan: 'QueryPlanBuildMicroseconds',
  optimise: 'QueryPlanOptimizeMicroseconds',
  pipeline: 'QueryPipelineBuildMicroseconds',
  whole: 'QueryTimeMicroseconds',
} as const

const dayNs = 86_400_000_000_000n
const stepNs = 300_000_000_000n
const lastNs = BigInt(endSeconds) * 1_000_000_000n - 3n * dayNs
const [service = ''] = serviceNames
const [, gauge = ''] = gaugeNames
const place = organisationOf(0)

const engine = await openChdb({ folder: options.folder, maxMemoryBytes: 2 ** 31 })
const reader = new TenantReader(engine, place, new TelemetryGate())

type Read = (startNs: bigint, endNs: bigint) => Promise<unknown>

const window =
  (metricKey: string): Read =>
  (startNs, endNs) =>
    readSeries(reader, { metricKey, service, startNs, endNs, stepSeconds: 300, maxGroups: 50 })

/** A rung of the ladder: what it selects, from where, by what. */
function rung(columns: string, more: (startNs: bigint, endNs: bigint) => readonly Sql[], tail = ''): Read {
  return (startNs, endNs) =>
    engine.select(
      sql`SELECT ${raw(columns)} FROM ${raw('otel_metrics_gauge')} WHERE ${allOf(more(startNs, endNs))}${raw(tail)}`,
    )
}

const tenant = sql`Placement = ${raw(String(place.placement))} AND TenantId = ${place.tenantId}`
const subject = sql`MetricName = ${gauge} AND ServiceName = ${service}`
const within = (startNs: bigint, endNs: bigint) =>
  sql`TimeUnix >= ${instant(startNs)} AND TimeUnix < ${instant(endNs)}`
const recorded = raw('bitAnd(Flags, 1) = 0')
const step = 'toUInt32(intDiv(toUnixTimestamp64Nano(TimeUnix), 300000000000)) AS step'

const reads: Readonly<Record<string, Read>> = {
  'select 1': () => engine.select(raw('SELECT 1 AS one')),
  'count all': rung('count() AS n', () => []),
  'count of a tenant': rung('count() AS n', () => [tenant]),
  'count of a subject': rung('count() AS n', () => [tenant, subject]),
  'count of a subject in a day': rung('count() AS n', (a, b) => [tenant, subject, within(a, b)]),
  'average of it': rung('avg(Value) AS v', (a, b) => [tenant, subject, within(a, b), recorded]),
  'averages by step': rung(
    `${step}, avg(Value) AS v, count() AS n`,
    (a, b) => [tenant, subject, within(a, b), recorded],
    ' GROUP BY step',
  ),
  'window of a gauge': window(gauge),
  'window of a counter': window(counterNames[1] ?? ''),
  'window of a histogram': window(histogramNames[1] ?? ''),
  'window of an error ratio': window('spans.error_ratio'),
}

try {
  const results: Record<string, unknown> = {}
  for (const [name, read] of Object.entries(reads).filter(([name]) => name.includes(options.only))) {
    const measured = await measure(read)
    results[name] = measured
    process.stderr.write(`| ${name} | ${Object.values(measured).join(' | ')} |\n`)
  }
  process.stdout.write(`${JSON.stringify({ ...provenance(), results }, null, 2)}\n`)
} finally {
  await engine.close()
}

/** Medians of wall and CPU, then means of the engine's phases, all in milliseconds a read. */
async function measure(read: Read): Promise<Record<string, number>> {
  const count = Number(options.reads)
  const [wall, cpu]: [number[], number[]] = [[], []]
  let before = new Map<string, number>()
  for (let i = -3; i < count; i++) {
    if (i === 0) before = await events()
    const endNs = lastNs - BigInt(i + 3) * stepNs
    const [startMs, startCpu] = [performance.now(), process.cpuUsage()]
    await read(endNs - dayNs, endNs)
    const { user, system } = process.cpuUsage(startCpu)
    if (i < 0) continue
    wall.push(performance.now() - startMs)
    cpu.push((user + system) / 1000)
  }
  const after = await events()
  const round = (ms: number) => Number(ms.toFixed(2))
  const spent = Object.entries(phases).map(([name, event]): [string, number] => [
    name,
    round(((after.get(event) ?? 0) - (before.get(event) ?? 0)) / 1000 / count),
  ])
  return {
    p50: round(quantile(wall, 0.5)),
    p99: round(quantile(wall, 0.99)),
    cpu: round(quantile(cpu, 0.5)),
    ...Object.fromEntries(spent),
  }
}

/** What the engine has counted since it was opened. */
async function events(): Promise<Map<string, number>> {
  const rows = await engine.select<{ event: string; value: string }>(
    raw('SELECT event, toString(value) AS value FROM system.events'),
  )
  return new Map(rows.map(({ event, value }) => [event, Number(value)]))
}
