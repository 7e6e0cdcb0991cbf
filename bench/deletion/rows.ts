// Seeded, realistic telemetry of 64 organisations over 30 days, as SELECTs that the engine runs itself. A
// tick is one report of every series of an organisation: 10 gauges and 6 counters of 8 services, 1 histogram,
// 2 log records and 1 span. The same SELECT gives the same rows on every machine, and the points for other
// stores are the gauges and counters of the same SELECTs. Series repeat their attributes, gauges move
// smoothly with noise, counters grow, and logs and spans have random ids, so they compress like telemetry and
// not like a constant.

import { pairsOfMap } from '../../server/telemetry/schema/attribute-pairs.ts'

export const organisationCount = 64
export const historyDays = 30

/** A Monday, 2026-03-02, so that the 30 days touch five weeks. */
export const startMs = Date.UTC(2026, 2, 2)

const msPerDay = 86_400_000
const nsPerDay = 86_400_000_000_000n

/** Rows of an organisation per tick, by table. */
const rowsPerTick = {
  otel_metrics_gauge: 10,
  otel_metrics_sum: 6,
  otel_metrics_histogram: 1,
  otel_logs: 2,
  otel_traces: 1,
} as const

type FilledTable = keyof typeof rowsPerTick

/** Which tables are filled: all of them, or those with points that a store of plain metrics can have too. */
export const everyTable: readonly FilledTable[] = [
  'otel_metrics_gauge',
  'otel_metrics_sum',
  'otel_metrics_histogram',
  'otel_logs',
  'otel_traces',
]
export const pointTables = ['otel_metrics_gauge', 'otel_metrics_sum'] as const

export interface History {
  readonly seed: number
  readonly ticksPerDay: number
  readonly tables: readonly FilledTable[]
}

/** The history whose number of rows is nearest to `rows`. */
export function historyOf(rows: number, seed: number, tables: readonly FilledTable[]): History {
  const perTick = tables.reduce((sum, table) => sum + rowsPerTick[table], 0)
  const ticksPerDay = Math.max(1, Math.round(rows / organisationCount / historyDays / perTick))
  return { seed, ticksPerDay, tables }
}

export function rowsOf(history: History, tables: readonly FilledTable[] = history.tables): number {
  const perTick = tables.reduce((sum, table) => sum + rowsPerTick[table], 0)
  return perTick * history.ticksPerDay * historyDays * organisationCount
}

export const tenantOf = (organisation: number): string => `org-${organisation}`

/** The instant `days` after the start of the history. */
export const dayStart = (days: number): Date => new Date(startMs + days * msPerDay)

const list = (words: readonly string[]): string => `[${words.map((word) => `'${word}'`).join(',')}]`

const services = list(['checkout', 'cart', 'payment', 'frontend', 'search', 'auth', 'mail', 'ledger'])
const gauges = list([
  'process.cpu.utilization',
  'process.memory.usage',
  'queue.depth',
  'db.client.connections.usage',
  'system.load.1m',
])
const counters = list(['http.server.requests', 'http.server.errors', 'system.network.io'])

/** A metric that every organisation has, for queries. */
export const askedMetric = 'process.cpu.utilization'

export interface Slice {
  readonly organisation: number
  /** Days of the history; the end is exclusive. */
  readonly fromDay: number
  readonly toDay: number
}

/**
 * The rows of a slice before they get a table's columns: their series, their time, and a number for random
 * values.
 */
function ticksSql(history: History, table: FilledTable, { organisation, fromDay, toDay }: Slice): string {
  const perTick = rowsPerTick[table]
  const first = fromDay * history.ticksPerDay * perTick
  const count = (toDay - fromDay) * history.ticksPerDay * perTick
  const stepNs = nsPerDay / BigInt(history.ticksPerDay)
  const salt = `${organisation}, '${table}', ${history.seed}`
  return `
    SELECT number % ${perTick} AS series, intDiv(number, ${perTick}) AS tick,
      cityHash64(number, ${salt}) AS chance, cityHash64(series, ${salt}) AS own,
      toInt64(${BigInt(startMs) * 1_000_000n}) + tick * ${stepNs} + chance % ${stepNs < 50_000_000n ? stepNs : 50_000_000n} AS ns,
      ${services}[1 + (own + intDiv(series, 5)) % 8] AS service, concat(toString(own % 12), toString(series)) AS host
    FROM numbers(${first}, ${count})`
}

/** A gauge or counter and its value, as every store gets it. */
function pointsSql(history: History, table: FilledTable, slice: Slice): string {
  const wave = `sin(tick * ${(2 * Math.PI) / history.ticksPerDay} + own % 7)`
  const noise = '(chance % 10007) / 10007'
  const [metric, value] =
    table === 'otel_metrics_gauge'
      ? [
          `${gauges}[1 + series % 5]`,
          `multiIf(series % 5 = 0, 0.4 + 0.2 * ${wave} + 0.05 * ${noise},
            series % 5 = 1, 4096. * intDiv(toInt64(90000 + 20000 * ${wave} + 900 * ${noise}), 1),
            series % 5 = 4, round(1.5 + ${wave} + ${noise}, 2), floor(20 + 12 * ${wave} + 4 * ${noise}))`,
        ]
      : [`${counters}[1 + series % 3]`, `toFloat64(tick * (17 + own % 90) + chance % 17)`]
  return `SELECT *, ${metric} AS metric, ${value} AS value FROM (${ticksSql(history, table, slice)})`
}

const head = (organisation: number): string =>
  `${organisation} AS Placement, '${tenantOf(organisation)}' AS TenantId`
const resource =
  pairsOfMap(`map('service.name', service, 'service.version', '1.2.0', 'host.name', concat('host-', host),
  'k8s.pod.name', concat(service, '-', host), 'deployment.environment.name', 'production')`)
const pointAttributes = pairsOfMap(
  "map('http.route', concat('/v1/orders/', toString(own % 40)), 'url.scheme', 'https')",
)
const logAttributes = pairsOfMap(
  "map('http.request.method', 'POST', 'http.route', '/v1/orders', 'user.id', toString(chance % 100000), 'client.address', concat('10.1.', toString(chance % 255), '.9'))",
)
const spanAttributes = pairsOfMap(
  "map('http.request.method', 'POST', 'http.response.status_code', if(chance % 20 = 0, '500', '200'), 'user.id', toString(chance % 100000))",
)
const instant = (ns: string): string => `fromUnixTimestamp64Nano(${ns}, 'UTC')`
const hex = (salt: number, length: number): string =>
  `left(lower(concat(hex(cityHash64(chance, ${salt})), hex(cityHash64(chance, ${salt + 1})))), ${length})`

const metricHead = (metric: string): string => `
  ${resource} AS ResourceAttributesPairs, 'otel-js' AS ScopeName, '1.0.0' AS ScopeVersion, service AS ServiceName,
  ${metric} AS MetricName, '1' AS MetricUnit,
  ${pointAttributes} AS AttributesPairs,
  ${instant(`toInt64(${BigInt(startMs) * 1_000_000n})`)} AS StartTimeUnix, ${instant('ns')} AS TimeUnix`

const shapes: Readonly<Record<FilledTable, string>> = {
  otel_metrics_gauge: `${metricHead('metric')}, value AS Value`,
  otel_metrics_sum: `${metricHead('metric')}, value AS Value, 2 AS AggregationTemporality, true AS IsMonotonic`,
  otel_metrics_histogram: `${metricHead(`'http.server.request.duration'`)},
    tick * 40 AS Count, tick * 9.5 + chance % 10 AS Sum,
    [tick * 20, tick * 12, tick * 5, tick * 2, tick, chance % 3] AS BucketCounts,
    [0.005, 0.025, 0.1, 0.5, 2.5] AS ExplicitBounds, 2 AS AggregationTemporality`,
  otel_logs: `
    ${instant('ns')} AS Timestamp, ${hex(1, 32)} AS TraceId, ${hex(3, 16)} AS SpanId, 1 AS TraceFlags,
    if(chance % 20 = 0, 'ERROR', 'INFO') AS SeverityText, if(chance % 20 = 0, 17, 9) AS SeverityNumber,
    service AS ServiceName, concat('request ', ${hex(5, 8)}, ' finished in ', toString(chance % 500), ' ms with ',
      if(chance % 20 = 0, 'a failure of the upstream', 'success')) AS Body,
    ${resource} AS ResourceAttributesPairs, 'otel-js' AS ScopeName,
    ${logAttributes} AS LogAttributesPairs`,
  otel_traces: `
    ${instant('ns')} AS Timestamp, ${hex(1, 32)} AS TraceId, ${hex(3, 16)} AS SpanId, ${hex(5, 16)} AS ParentSpanId,
    'POST /v1/orders' AS SpanName, 'Server' AS SpanKind, service AS ServiceName, ${resource} AS ResourceAttributesPairs,
    'otel-js' AS ScopeName, ${spanAttributes} AS SpanAttributesPairs,
    toUInt64(1000000 + chance % 400000000) AS Duration, if(chance % 20 = 0, 'Error', 'Unset') AS StatusCode`,
}

/** Fills a slice of a table; columns that are not named get the table's defaults. */
export function insertSql(history: History, table: FilledTable, slice: Slice): string {
  const isPoint = table === 'otel_metrics_gauge' || table === 'otel_metrics_sum'
  const rows = isPoint ? pointsSql(history, table, slice) : ticksSql(history, table, slice)
  const shape = `${head(slice.organisation)}, ${shapes[table]}`
  const columns = [...shape.matchAll(/\bAS (\w+)\b/g)].map(([, name]) => name).join(', ')
  return `INSERT INTO default.${table} (${columns}) SELECT ${shape} FROM (${rows})
    SETTINGS max_threads = 2, max_insert_threads = 2, max_partitions_per_insert_block = 0,
      max_block_size = 131072, min_insert_block_size_rows = 262144, min_insert_block_size_bytes = 0`
}

/**
 * Gauges and counters of a slice for stores of plain points: `series_id` (0 to 1023, the same in every
 * slice), `tenant`, `metric`, `service`, `host`, `route`, `ns`, `value`.
 */
export function pointSelect(history: History, slice: Slice): string {
  const kinds = pointTables.map(
    (table, kind) => `
      SELECT toUInt32(${slice.organisation * 16 + kind * 10} + series) AS series_id,
        '${tenantOf(slice.organisation)}' AS tenant, metric, service, host, toString(own % 40) AS route, ns, value
      FROM (${pointsSql(history, table, slice)})`,
  )
  return kinds.join(' UNION ALL ')
}
