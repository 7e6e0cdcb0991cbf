// Which statement takes an organisation's rows out of a table: dropping its partitions, or rewriting an edge
// week in two ways, with a placement of its own and with one that eight share. All variants run interleaved
// over the same seeded rows in one process, so read the ratios. A step ends when the folder holds no part of
// the old state. What a whole erasure costs, against other layouts and stores, is measured by
// bench/deletion/erase.ts.
//
//   node bench/storage/erase.ts [--rows 5000000] [--rounds 5] [--root /tmp]

import { parseArgs } from 'node:util'
import {
  type BenchStore,
  openBenchStore,
  partBytes,
  partFolders,
  promptRemoval,
  provenance,
  quantile,
  tableText,
  timed,
  untilGone,
} from './bench-store.ts'
import { gaugeRowsSql } from './sample-rows.ts'

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '5000000' },
    rounds: { type: 'string', default: '5' },
    root: { type: 'string', default: '/tmp' },
  },
})
const rowCount = Number(flags.rows)
const rounds = Number(flags.rounds)
const organisations = 64
const weeks = ['2024-10-28', '2024-11-04', '2024-11-11', '2024-11-18'] as const
const weekNs = 604_800_000_000_000n
const firstWeekNs = 1_730_073_600_000_000_000n

interface Layout {
  readonly table: string
  readonly partitionBy: string
  placementOf(organisation: number): number
}
const own: Layout = { table: 'own', partitionBy: '(Placement, toMonday(TIME))', placementOf: (o) => o }
const shared: Layout = {
  table: 'shared',
  partitionBy: '(Placement, toMonday(TIME))',
  placementOf: (o) => o % 8,
}

interface Sample {
  /** Until the statement, or the pair of statements, returned. */
  readonly statementMs: number
  /** Until the folder holds nothing of the old state, statement included. */
  readonly removedMs: number
  readonly cpuS: number
  /** Size of the parts written by the step. */
  readonly rewrittenBytes: number
}

const partitionId = (layout: Layout, organisation: number, week: string): string =>
  `${layout.placementOf(organisation)}-${week.replaceAll('-', '')}`

async function fill(store: BenchStore, layout: Layout): Promise<void> {
  await store.run(
    tableText({
      as: layout.table,
      like: 'otel_metrics_gauge',
      partitionBy: layout.partitionBy,
      settings: promptRemoval,
    }),
  )
  const perWeek = Math.floor(rowCount / organisations / weeks.length)
  const step = BigInt(Math.floor(Number(weekNs) / perWeek))
  const groups = new Map<number, number[]>()
  for (let o = 0; o < organisations; o++) {
    const placement = layout.placementOf(o)
    groups.set(placement, [...(groups.get(placement) ?? []), o])
  }
  for (const members of groups.values())
    for (const [w] of weeks.entries()) {
      const select = members
        .map((o) =>
          gaugeRowsSql({
            organisation: o,
            placement: layout.placementOf(o),
            rows: perWeek,
            startNs: firstWeekNs + BigInt(w) * weekNs,
            stepNs: step,
          }),
        )
        .join(' UNION ALL ')
      await store.run(
        `INSERT INTO bench.${layout.table} ${select} SETTINGS max_threads = 1, min_insert_block_size_rows = 4000000, min_insert_block_size_bytes = 1000000000, max_insert_block_size = 4000000`,
      )
    }
  await store.run(`OPTIMIZE TABLE bench.${layout.table} FINAL`)
}

/** Runs a step and waits until every part named in `stale` left the folder. */
async function erase(
  store: BenchStore,
  table: string,
  stale: ReadonlySet<string>,
  step: () => Promise<void>,
): Promise<Sample> {
  const before = new Set(partFolders(store, table))
  const whole = await timed(async () => {
    const statement = await timed(step)
    const goneMs = await untilGone(store, table, (name) => stale.has(name))
    return { statementMs: statement.ms, goneMs }
  })
  const partitions = new Set([...stale].map((name) => name.split('_')[0]))
  const rewrittenBytes = partFolders(store, table)
    .filter((name) => !before.has(name) && partitions.has(name.split('_')[0]))
    .reduce((sum, name) => sum + partBytes(store, table, name), 0)
  return { statementMs: whole.value.statementMs, removedMs: whole.ms, cpuS: whole.cpuS, rewrittenBytes }
}

const partsOf = (store: BenchStore, table: string, ids: readonly string[]): Set<string> =>
  new Set(partFolders(store, table).filter((name) => ids.some((id) => name.startsWith(`${id}_`))))

/** The first half of the second week, as an edge of a range deletion leaves it. */
const edge = `TimeUnix >= toDateTime64('2024-11-04 00:00:00', 9, 'UTC') AND TimeUnix < toDateTime64('2024-11-07 12:00:00', 9, 'UTC')`

async function dropAll(store: BenchStore, layout: Layout, o: number): Promise<Sample> {
  const ids = weeks.map((week) => partitionId(layout, o, week))
  return erase(store, layout.table, partsOf(store, layout.table, ids), () =>
    store.run(`ALTER TABLE bench.${layout.table} ${ids.map((id) => `DROP PARTITION ID '${id}'`).join(', ')}`),
  )
}

async function mutateEdge(store: BenchStore, layout: Layout, o: number): Promise<Sample> {
  const id = partitionId(layout, o, weeks[1])
  return erase(store, layout.table, partsOf(store, layout.table, [id]), () =>
    store.run(
      `ALTER TABLE bench.${layout.table} DELETE IN PARTITION ID '${id}' WHERE TenantId = 'org-${o}' AND ${edge} SETTINGS mutations_sync = 2`,
    ),
  )
}

async function replaceEdge(store: BenchStore, layout: Layout, o: number): Promise<Sample> {
  const id = partitionId(layout, o, weeks[1])
  const side = `side_${layout.table}`
  const sample = await erase(store, layout.table, partsOf(store, layout.table, [id]), async () => {
    await store.run(`CREATE TABLE bench.${side} AS bench.${layout.table}`)
    await store.run(
      `INSERT INTO bench.${side} SELECT * FROM bench.${layout.table} WHERE _partition_id = '${id}' AND NOT (TenantId = 'org-${o}' AND ${edge})`,
    )
    await store.run(`ALTER TABLE bench.${layout.table} REPLACE PARTITION ID '${id}' FROM bench.${side}`)
    await store.run(`DROP TABLE bench.${side} SYNC`)
  })
  return sample
}

const store = openBenchStore(flags.root)
const filled: Record<string, unknown> = {}
for (const layout of [own, shared]) {
  const took = await timed(() => fill(store, layout))
  const [size] = await store.rows(
    `SELECT count() AS parts, sum(rows) AS rows, sum(bytes_on_disk) AS bytes FROM system.parts WHERE database = 'bench' AND table = '${layout.table}' AND active`,
  )
  filled[layout.table] = { ...(size as object), fillMs: Math.round(took.ms) }
}
console.error(JSON.stringify(filled))

const samples: Record<string, Sample[]> = {}
const record = (name: string, sample: Sample): void => {
  samples[name] = [...(samples[name] ?? []), sample]
  console.error(name, JSON.stringify(sample))
}
for (let round = 0; round < rounds; round++) {
  record('replace edge, own placement', await replaceEdge(store, own, round))
  record('mutate edge, own placement', await mutateEdge(store, own, round + 10))
  record('replace edge, 8 share a placement', await replaceEdge(store, shared, round))
  record('mutate edge, 8 share a placement', await mutateEdge(store, shared, round + 10))
  record('drop all, own placement', await dropAll(store, own, round + 20))
}
store.close()

const summary = Object.fromEntries(
  Object.entries(samples).map(([name, list]) => {
    const median = (pick: (sample: Sample) => number): number =>
      Math.round(quantile(list.map(pick), 0.5) * 100) / 100
    return [
      name,
      {
        statementMs: median((s) => s.statementMs),
        removedMs: median((s) => s.removedMs),
        cpuS: median((s) => s.cpuS),
        rewrittenBytes: median((s) => s.rewrittenBytes),
      },
    ]
  }),
)
console.log(
  JSON.stringify(
    { bench: 'storage/erase', ...provenance(), rows: rowCount, rounds, filled, summary },
    null,
    2,
  ),
)
