// Many small organisations: each has an exporter that sends one small batch a second (ten points, five log
// records or four spans, as OTLP/JSON), all to the real service in a separate process. Measured over the
// second half of the time, when merges have begun: acknowledged requests and their latency, parts on disk,
// CPU and memory of the service, and how long one organisation waits for a chart and for its newest logs. The
// comparison is the same traffic from few organisations, which have more exporters each, in the same program.
// Senders and service share the machine.
//
// An exporter has one connection and sends its batches one after another, so the service has as many
// connections as there are exporters, also where it responds late. From one address it accepts 1,024.
//
// npm run bench -- ingest/many-organisations [--organisations 16,500] [--rate 500] [--minutes 3] [--root
// /tmp]

import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { report, say } from '../report.ts'
import { quantile, rounded } from '../samples.ts'
import { cpuSeconds, memoryMb } from './process-use.ts'
import { type Service, startService } from './service.ts'

const { values: options } = parseArgs({
  options: {
    organisations: { type: 'string', default: '16,500' },
    rate: { type: 'string', default: '500' },
    minutes: { type: 'string', default: '3' },
    root: { type: 'string', default: tmpdir() },
  },
})
const rate = Number(options.rate)
const seconds = Number(options.minutes) * 60
/** One connection each. Exporter `i` is of organisation `i` modulo their number. */
const exporters = Array.from({ length: rate }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
const browser = new Agent({ keepAlive: true })

for (const organisations of options.organisations.split(',').map(Number))
  report('Many small organisations', await run(organisations))

/** Latencies of responses since the measurement began; milliseconds. */
interface Answers {
  readonly sent: number[]
  readonly charts: number[]
  readonly logs: number[]
  refused: number
}
/** Responses count in the half of the time in which they arrive. */
interface Watch {
  seen: Answers
}

function nothingYet(): Answers {
  return { sent: [], charts: [], logs: [], refused: 0 }
}

async function run(organisations: number) {
  const dataDir = mkdtempSync(join(options.root, 'lethe-many-'))
  const service = await startService(dataDir, organisations)
  try {
    const watch: Watch = { seen: nothingYet() }
    await drive(service, watch, 0, seconds / 2)
    say(`${organisations} organisations: half of the time is over, the rest is measured`)
    watch.seen = nothingYet()
    const [startMs, startCpuS] = [performance.now(), cpuSeconds(service.pid)]
    await drive(service, watch, seconds / 2, seconds)
    const measuredS = (performance.now() - startMs) / 1000
    const { charts, logs, refused, sent } = watch.seen
    return {
      organisations,
      'requests a second': rate,
      'acknowledged a second': rounded(sent.length / measuredS, 1),
      refused,
      'ack p50 ms': Math.round(quantile(sent, 0.5)),
      'ack p99 ms': Math.round(quantile(sent, 0.99)),
      'chart p50 ms': Math.round(quantile(charts, 0.5)),
      'newest logs p50 ms': Math.round(quantile(logs, 0.5)),
      parts: partsIn(dataDir),
      'CPU cores': rounded((cpuSeconds(service.pid) - startCpuS) / measuredS),
      'peak MB': memoryMb(service.pid, 'VmHWM'),
    }
  } finally {
    await service.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Sends at the rate and reads once a second, and waits for the responses. */
async function drive(service: Service, watch: Watch, fromS: number, untilS: number): Promise<void> {
  const { address, secrets } = service
  const pending = new Set<Promise<void>>()
  const wait = (doing: Promise<void>) => {
    pending.add(doing)
    return doing.finally(() => pending.delete(doing))
  }
  const startMs = performance.now()
  let isLooking = false
  let sent = Math.round(fromS * rate)
  for (let tick = 0; tick < (untilS - fromS) * 10; tick++) {
    for (; sent < (fromS + (tick + 1) / 10) * rate; sent++) void wait(send(service, sent, watch))
    if (tick % 10 === 0 && !isLooking) {
      isLooking = true
      const reader = secrets[(tick / 10) % secrets.length] ?? ''
      void wait(look(address, reader, watch)).finally(() => {
        isLooking = false
      })
    }
    await sleep(Math.max(0, startMs + (tick + 1) * 100 - performance.now()))
  }
  await Promise.all(pending)
}

async function send({ address, secrets }: Service, number: number, watch: Watch): Promise<void> {
  const startMs = performance.now()
  const exporter = number % rate
  const [signal, body] = bodyOf(number)
  const sender = {
    agent: exporters[exporter] ?? browser,
    secret: secrets[exporter % secrets.length] ?? '',
  }
  const status = await call(`${address}/v1/${signal}`, sender, body)
  if (status === 200) watch.seen.sent.push(performance.now() - startMs)
  else watch.seen.refused++
}

/** The requests of a person who looks at the service: a chart of an hour and the newest logs. */
async function look(address: string, secret: string, watch: Watch): Promise<void> {
  const chartMs = performance.now()
  const sender = { agent: browser, secret }
  const chart = call(`${address}/telemetry/series?metric_key=app.gauge.1&group_by=service`, sender)
  if ((await chart) === 200) watch.seen.charts.push(performance.now() - chartMs)
  const logsMs = performance.now()
  if ((await call(`${address}/telemetry/logs?limit=50`, sender)) === 200)
    watch.seen.logs.push(performance.now() - logsMs)
}

interface Sender {
  readonly agent: Agent
  readonly secret: string
}

/**
 * Returns the status. A service may close an idle connection at the moment of its next use; then the request
 * is sent once more, as exporters do.
 */
async function call(url: string, sender: Sender, body?: string): Promise<number> {
  const { agent, secret } = sender
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const asking = request(url, { agent, method: body === undefined ? 'GET' : 'POST', headers })
  asking.end(body)
  try {
    const [answer] = await once(asking, 'response')
    answer.resume()
    await once(answer, 'end')
    return answer.statusCode
  } catch (error) {
    const isReset = error instanceof Error && 'code' in error && error.code === 'ECONNRESET'
    if (isReset && asking.reusedSocket) return call(url, sender, body)
    throw error
  }
}

/** Of ten bodies, six are metrics, two logs and two traces. */
function bodyOf(number: number): [signal: string, body: string] {
  const nowNs = BigInt(Date.now()) * 1_000_000n
  const kind = Math.floor(number / 7) % 10
  const service = `service-${number % 3}`
  const resource = `{"attributes":[${text('service.name', service)},${text('host.name', `host-${number % 5}`)},${text('deployment.environment.name', 'production')}]}`
  const at = (i: number) => `"${nowNs - BigInt(i) * 1_000_000n}"`
  if (kind < 6) {
    const points = Array.from(
      { length: 10 },
      (_, i) =>
        `{"name":"app.gauge.${i % 5}","unit":"1","gauge":{"dataPoints":[{"attributes":[${text('http.route', `/v1/${i}`)}],"timeUnixNano":${at(i)},"asDouble":${(number * 7 + i) % 100}}]}}`,
    )
    return [
      'metrics',
      `{"resourceMetrics":[{"resource":${resource},"scopeMetrics":[{"scope":{"name":"bench"},"metrics":[${points.join(',')}]}]}]}`,
    ]
  }
  if (kind < 8) {
    const records = Array.from(
      { length: 5 },
      (_, i) =>
        `{"timeUnixNano":${at(i)},"severityNumber":9,"severityText":"INFO","body":{"stringValue":"handled request ${number} in ${i} ms"}}`,
    )
    return [
      'logs',
      `{"resourceLogs":[{"resource":${resource},"scopeLogs":[{"scope":{"name":"bench"},"logRecords":[${records.join(',')}]}]}]}`,
    ]
  }
  const id = (n: number, length: number) => n.toString(16).padStart(length, '0')
  const spans = Array.from(
    { length: 4 },
    (_, i) =>
      `{"traceId":"${id(number + 1, 32)}","spanId":"${id(number * 4 + i + 1, 16)}","name":"GET /v1","kind":2,"startTimeUnixNano":${at(i + 5)},"endTimeUnixNano":${at(i)}}`,
  )
  return [
    'traces',
    `{"resourceSpans":[{"resource":${resource},"scopeSpans":[{"scope":{"name":"bench"},"spans":[${spans.join(',')}]}]}]}`,
  ]
}

function text(key: string, value: string): string {
  return `{"key":"${key}","value":{"stringValue":"${value}"}}`
}

/** Part folders of all tables; replaced ones are removed within seconds. */
function partsIn(dataDir: string): number {
  const store = join(dataDir, 'telemetry', 'engine', 'store')
  const tables = readdirSync(store).flatMap((start) =>
    readdirSync(join(store, start)).map((id) => join(store, start, id)),
  )
  const entries = tables.flatMap((folder) => readdirSync(folder))
  return entries.filter((name) => /^\d+-\d{8}_\d+_\d+_\d+(?:_\d+)?$/.test(name)).length
}
