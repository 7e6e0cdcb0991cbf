// Many small organisations: each sends one small batch a second (ten points, five log records or four spans,
// as OTLP/JSON), all through the real service in a process of its own. Watched every interval: what was
// acknowledged and how fast, parts on disk, CPU and memory of the service, and how long one organisation
// waits for a chart and for its newest logs meanwhile. The comparison is the same traffic from few
// organisations, in the same program. Clients and service share the machine.
//
//   node bench/ingest/many-organisations.ts [--organisations 16,500] [--rate 500] [--minutes 3] [--root /tmp]

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import nodeFlags from '../../scripts/node-flags.json' with { type: 'json' }
import { provenance, quantile } from '../storage/bench-store.ts'

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
const intervalSeconds = 30
/** Each organisation has connections of its own, as its exporters would. */
const agent = new Agent({ keepAlive: true })

const results = []
for (const organisations of options.organisations.split(',').map(Number))
  results.push(await run(organisations))
process.stdout.write(`${JSON.stringify({ ...provenance(), rate, seconds, results }, null, 2)}\n`)

/** What happened since the last look. */
interface Interval {
  readonly sent: number[]
  readonly charts: number[]
  readonly logs: number[]
  refused: number
}
/** Answers count in the interval in which they come. */
interface Watch {
  seen: Interval
}

function nothingYet(): Interval {
  return { sent: [], charts: [], logs: [], refused: 0 }
}

async function run(organisations: number) {
  const dataDir = mkdtempSync(join(options.root, 'lethe-many-'))
  const secrets = Array.from({ length: organisations }, (_, i) => `bench-secret-${i}-`.padEnd(40, 'x'))
  const { child, address } = await startService(dataDir, secrets)
  const intervals: Record<string, number>[] = []
  try {
    const watch: Watch = { seen: nothingYet() }
    let cpuS = cpuSecondsOf(child)
    const startMs = performance.now()
    const pending = new Set<Promise<void>>()
    let isLooking = false
    for (let second = 0, sent = 0; second < seconds; second++) {
      for (let tick = 0; tick < 10; tick++) {
        for (; sent < (second + (tick + 1) / 10) * rate; sent++) {
          const sending = send(address, secrets[sent % organisations] ?? '', sent, watch)
          pending.add(sending)
          void sending.finally(() => pending.delete(sending))
        }
        const nextMs = startMs + (second * 10 + tick + 1) * 100
        await sleep(Math.max(0, nextMs - performance.now()))
      }
      if (!isLooking) {
        isLooking = true
        const looking = look(address, secrets[second % organisations] ?? '', watch)
        pending.add(looking)
        void looking.finally(() => {
          pending.delete(looking)
          isLooking = false
        })
      }
      if ((second + 1) % intervalSeconds !== 0) continue
      const nowCpuS = cpuSecondsOf(child)
      const interval = summary(watch.seen, { dataDir, child, cpuS: nowCpuS - cpuS })
      process.stderr.write(`${organisations} organisations, ${second + 1} s: ${JSON.stringify(interval)}\n`)
      intervals.push(interval)
      cpuS = nowCpuS
      watch.seen = nothingYet()
    }
    await Promise.all(pending)
  } finally {
    child.kill('SIGTERM')
    await once(child, 'exit')
    rmSync(dataDir, { recursive: true, force: true })
  }
  return { organisations, intervals }
}

function summary(
  seen: Interval,
  { dataDir, child, cpuS }: { dataDir: string; child: ChildProcess; cpuS: number },
) {
  const round = (value: number) => Math.round(value)
  return {
    acknowledged: seen.sent.length,
    refused: seen.refused,
    ackP50Ms: round(quantile(seen.sent, 0.5)),
    ackP99Ms: round(quantile(seen.sent, 0.99)),
    chartP50Ms: round(quantile(seen.charts, 0.5)),
    logsP50Ms: round(quantile(seen.logs, 0.5)),
    parts: partsIn(dataDir),
    cpuSeconds: Number(cpuS.toFixed(1)),
    memoryMb: memoryMb(child),
  }
}

async function startService(dataDir: string, secrets: readonly string[]) {
  const program = fileURLToPath(new URL('service-child.ts', import.meta.url))
  const args = [...nodeFlags, program, dataDir, ...secrets]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const { address }: { address: string } = JSON.parse(String(line))
  return { child, address }
}

async function send(address: string, secret: string, number: number, watch: Watch): Promise<void> {
  const startMs = performance.now()
  const [signal, body] = bodyOf(number)
  const status = await call(`${address}/v1/${signal}`, secret, body)
  if (status === 200) watch.seen.sent.push(performance.now() - startMs)
  else watch.seen.refused++
}

/** What a person does who looks at the service: a chart of an hour and the newest logs. */
async function look(address: string, secret: string, watch: Watch): Promise<void> {
  const chartMs = performance.now()
  const chart = call(`${address}/telemetry/series?metric_key=app.gauge.1&group_by=service`, secret)
  if ((await chart) === 200) watch.seen.charts.push(performance.now() - chartMs)
  const logsMs = performance.now()
  if ((await call(`${address}/telemetry/logs?limit=50`, secret)) === 200)
    watch.seen.logs.push(performance.now() - logsMs)
}

async function call(url: string, secret: string, body?: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const asking = request(url, { agent, method: body === undefined ? 'GET' : 'POST', headers })
  asking.end(body)
  const [answer] = await once(asking, 'response')
  answer.resume()
  await once(answer, 'end')
  return answer.statusCode
}

/** Six of ten bodies are metrics, two logs, two traces. */
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

/** Part folders of all tables; replaced ones are gone within seconds. */
function partsIn(dataDir: string): number {
  const store = join(dataDir, 'telemetry', 'engine', 'store')
  const tables = readdirSync(store).flatMap((start) =>
    readdirSync(join(store, start)).map((id) => join(store, start, id)),
  )
  const entries = tables.flatMap((folder) => readdirSync(folder))
  return entries.filter((name) => /^\d+-\d{8}_\d+_\d+_\d+(?:_\d+)?$/.test(name)).length
}

/** Processor time so far, user and system; the kernel counts hundredths of a second. */
function cpuSecondsOf(child: ChildProcess): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

function memoryMb(child: ChildProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  return Math.round(Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1000)
}
