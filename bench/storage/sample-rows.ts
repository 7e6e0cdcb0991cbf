// Seeded telemetry rows with the full column set and about six attributes a text, in two shapes: ready
// JSONCompactEachRow text for the ingest bench, and a SELECT for filling millions of rows inside the
// engine. Instants are bare integers of nanoseconds, the only JSON form that the engine reads exactly
// over its whole range. Lines are ASCII but for the two bytes between attributes, so they are bytes when
// they are encoded as Latin-1.

import { pairMiddle, pairStart, pairsOfMap } from '../../server/telemetry/schema/attribute-pairs.ts'

/** A small seeded generator (mulberry32): the same seed gives the same rows on every machine. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

const services = ['checkout', 'cart', 'payment', 'frontend', 'search', 'auth', 'mail', 'ledger'] as const
const metricNames = [
  'http.server.request.duration',
  'process.cpu.utilization',
  'process.memory.usage',
  'db.client.connections.usage',
  'queue.depth',
  'jvm.gc.pause',
  'system.network.io',
  'app.orders',
] as const

/** Whose row it is and when it happened. */
interface RowSource {
  readonly organisation: number
  readonly placement: number
  /** Event time, nanoseconds since 1970. */
  readonly timeNs: bigint
}

const integerBelow = (random: () => number, bound: number): number => Math.floor(random() * bound)

const pick = <T>(random: () => number, list: readonly [T, ...T[]]): T =>
  list[integerBelow(random, list.length)] ?? list[0]

function hexText(random: () => number, length: number): string {
  let text = ''
  while (text.length < length) text += integerBelow(random, 0x100000000).toString(16).padStart(8, '0')
  return text.slice(0, length)
}

const [start, middle] = [String.fromCharCode(pairStart), String.fromCharCode(pairMiddle)]

/** As a row holds them, a character for each byte. */
const pairsText = (attributes: Readonly<Record<string, string>>): string =>
  `${Object.entries(attributes)
    .map(([key, value]) => `${start}${key}${middle}${value}`)
    .join('')}${start}`

/** What such a text of {@link gaugeLine} says. */
export function attributesIn(text: string): Record<string, string> {
  const pairs = text.split(start).filter((pair) => pair !== '')
  return Object.fromEntries(pairs.map((pair) => pair.split(middle)))
}

const resourceText = (service: string, host: number): string =>
  pairsText({
    'service.name': service,
    'service.version': `1.${host % 7}.0`,
    'host.name': `host-${host}`,
    'k8s.pod.name': `${service}-${host}-abcde`,
    'deployment.environment.name': 'production',
    'telemetry.sdk.language': 'nodejs',
  })

/** One line of `otel_metrics_gauge`, about 560 bytes. */
export function gaugeLine(random: () => number, { organisation, placement, timeNs }: RowSource): string {
  const host = integerBelow(random, 12)
  const service = pick(random, services)
  const attributes = pairsText({
    'http.request.method': 'GET',
    'http.route': `/v1/orders/${integerBelow(random, 40)}`,
    'http.response.status_code': random() < 0.97 ? '200' : '500',
    'url.scheme': 'https',
    'server.address': `10.0.0.${host}`,
    'network.protocol.version': '1.1',
  })
  return (
    `[${placement},"org-${organisation}","${resourceText(service, host)}","https://opentelemetry.io/schemas/1.27.0",` +
    `"otel-js","1.0.0","",0,"","${service}","${pick(random, metricNames)}","A measured value","1","${attributes}",` +
    `${timeNs - 60_000_000_000n},${timeNs},${(random() * 1000).toFixed(6)},0,[],[],[],[],[]]\n`
  )
}

/** One line of `otel_logs`, about 750 bytes. */
export function logLine(random: () => number, { organisation, placement, timeNs }: RowSource): string {
  const host = integerBelow(random, 12)
  const service = pick(random, services)
  const failed = random() >= 0.95
  const attributes = pairsText({
    'http.request.method': 'POST',
    'http.route': '/v1/orders',
    'client.address': `10.1.${integerBelow(random, 255)}.9`,
    'user.id': `${integerBelow(random, 100_000)}`,
    'code.function.name': 'handle',
    'thread.id': `${host}`,
  })
  return (
    `[${placement},"org-${organisation}",${timeNs},"${hexText(random, 32)}","${hexText(random, 16)}",1,` +
    `"${failed ? 'ERROR' : 'INFO'}",${failed ? 17 : 9},"${service}","request ${hexText(random, 8)} finished in ` +
    `${integerBelow(random, 500)} ms with ${failed ? 'a failure of the upstream' : 'success'}","",` +
    `"${resourceText(service, host)}","","otel-js","1.0.0","","${attributes}",""]\n`
  )
}

interface GaugeRowsQuery {
  readonly organisation: number
  readonly placement: number
  readonly rows: number
  readonly startNs: bigint
  readonly stepNs: bigint
}

/** A SELECT that yields `rows` gauge rows, `stepNs` apart from `startNs` on; the same rows at every call. */
export function gaugeRowsSql({ organisation, placement, rows, startNs, stepNs }: GaugeRowsQuery): string {
  const list = (words: readonly string[]): string => `[${words.map((word) => `'${word}'`).join(',')}]`
  const mix = `cityHash64(number, ${organisation})`
  const service = `${list(services)}[1 + ${mix} % 8]`
  const time = `toInt64(${startNs} + number * ${stepNs})`
  const host = `toString(${mix} % 12)`
  const resource = `map('service.name', ${service}, 'service.version', '1.2.0', 'host.name', concat('host-', ${host}), 'k8s.pod.name', concat(${service}, '-', ${host}), 'deployment.environment.name', 'production', 'telemetry.sdk.language', 'nodejs')`
  const attributes = `map('http.request.method', 'GET', 'http.route', concat('/v1/orders/', toString(intDiv(${mix}, 64) % 40)), 'http.response.status_code', '200', 'url.scheme', 'https', 'server.address', concat('10.0.0.', ${host}), 'network.protocol.version', '1.1')`
  return (
    `SELECT ${placement} AS Placement, 'org-${organisation}' AS TenantId, ` +
    `${pairsOfMap(resource)} AS r, 'https://opentelemetry.io/schemas/1.27.0' AS u, 'otel-js' AS n, '1.0.0' AS v, ` +
    `'' AS a, 0 AS d, '' AS su, ${service} AS s, ${list(metricNames)}[1 + intDiv(${mix}, 8) % 8] AS m, ` +
    `'A measured value' AS md, '1' AS mu, ${pairsOfMap(attributes)} AS at, ` +
    `fromUnixTimestamp64Nano(${time} - 60000000000, 'UTC') AS st, fromUnixTimestamp64Nano(${time}, 'UTC') AS t, ` +
    `(${mix} % 1000000007) / 1000003 AS value, 0 AS f, [] AS e1, [] AS e2, [] AS e3, [] AS e4, [] AS e5 ` +
    `FROM numbers(${rows})`
  )
}
