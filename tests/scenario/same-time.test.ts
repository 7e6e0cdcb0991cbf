// Two organisations with the same names and times and other values ask for the same things at the same time.
// Each gets what it gets alone: caches, threads and batches that both use mix nothing.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { formatInstant } from '../../contract/values/instant.ts'
import { systemClock } from '../../server/core/clock.ts'
import { waitFor } from '../wait-for.ts'
import { type Service, startService, type Tenant, tenants } from './service.ts'
import { minuteNs, mondayNs } from './telemetry.ts'

/** Minutes of telemetry since Monday, until now. */
const minutes = 1800
const nowNs = mondayNs + BigInt(minutes) * minuteNs
/** Minutes at the end in which requests fail and the queue is long. */
const failing = 10
const rounds = 4
/** Wall time passes this much slower, so that suggestions look at the same minutes during the whole test. */
const slowness = 20

/** What the numbers of an organisation are multiplied with. */
const factors: Readonly<Record<Tenant, number>> = { acme: 1, globex: 90 }

let service: Service
before(async () => {
  const startMs = systemClock.elapsedMs()
  const nowMs = () => Number(nowNs / 1_000_000n) + Math.floor((systemClock.elapsedMs() - startMs) / slowness)
  const clock = { ...systemClock, nowMs, nowNs: () => BigInt(nowMs()) * 1_000_000n }
  service = await startService({ clock })
  for (const tenant of tenants) await sendTelemetry(tenant)
})
after(() => service.stop())

const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }
const timeOf = (minute: number) => mondayNs + BigInt(minute) * minuteNs
const traceId = '0af7651916cd43dd8448eb211c80319c'

async function sendTelemetry(tenant: Tenant): Promise<void> {
  const factor = factors[tenant]
  const every = Array.from({ length: minutes }, (_, minute) => minute)
  const dataPoints = every.map((minute) => ({
    timeUnixNano: String(timeOf(minute)),
    asDouble: factor * (minute >= minutes - failing ? 300 : 100 + ((minute * 7919) % 13)),
  }))
  const logRecords = every.map((minute) => ({
    timeUnixNano: String(timeOf(minute)),
    severityNumber: minute >= minutes - failing ? 17 : 9,
    body: { stringValue: `${tenant} paid ${factor * minute}` },
  }))
  const spans = every.map((minute) => ({
    traceId: minute === 0 ? traceId : String(minute).padStart(32, 'a'),
    spanId: String(minute).padStart(16, 'b'),
    name: 'GET /cart',
    kind: 2,
    startTimeUnixNano: String(timeOf(minute)),
    endTimeUnixNano: String(timeOf(minute) + BigInt(factor * (1_000_000 + minute))),
    status: { code: minute >= minutes - failing ? 2 : 0 },
  }))
  const metrics = [{ name: 'queue.length', unit: '{item}', gauge: { dataPoints } }]
  const requests = {
    metrics: { resourceMetrics: [{ resource, scopeMetrics: [{ metrics }] }] },
    logs: { resourceLogs: [{ resource, scopeLogs: [{ logRecords }] }] },
    traces: { resourceSpans: [{ resource, scopeSpans: [{ spans }] }] },
  }
  for (const [signal, json] of Object.entries(requests)) {
    const answer = await service.send('POST', `/v1/${signal}`, { as: `${tenant}/ingest`, json })
    assert.deepEqual([answer.status, answer.text], [200, '{}'])
  }
}

const range = `range_start=${formatInstant(mondayNs)}&range_end=${formatInstant(nowNs)}`
const detector = {
  name: 'same',
  metric_key: 'queue.length',
  method_key: 'robust_band',
  params: {},
  window_minutes: 60,
  schedule_minutes: 15,
}

interface Asked {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly json?: object
}

const get = (path: string): Asked => ({ method: 'GET', path })
const previewOf = (more: object): Asked => ({
  method: 'POST',
  path: '/anomalies/detectors/preview',
  json: {
    ...{ ...detector, ...more },
    range_start: formatInstant(timeOf(minutes - 180)),
    range_end: formatInstant(nowNs),
  },
})

const reads: readonly Asked[] = [
  get(`/telemetry/series?metric_key=queue.length&${range}&step_seconds=600`),
  get(`/telemetry/series?metric_key=spans.latency_p95&group_by=service&${range}&step_seconds=600`),
  get(`/telemetry/logs?text=paid&limit=50&${range}`),
  get(`/telemetry/logs/counts?${range}`),
  get(`/telemetry/spans?limit=50&${range}`),
  get(`/telemetry/traces/${traceId}`),
  get(`/telemetry/services?${range}`),
  get(`/telemetry/metrics?${range}`),
  get(`/telemetry/attributes?signal=logs&${range}`),
  get('/anomalies/suggest?metric_key=queue.length'),
  get('/anomalies/metrics'),
  get('/usage/storage'),
  previewOf({}),
  { method: 'POST', path: '/usage/storage/deletions/preview', json: { scope: 'all' } },
]

/** What differs from one request to the next, such as durations and ids of previews. */
const ofTheRequest = new Set([
  'cost',
  'preview_id',
  'preview_token',
  'expires_at',
  'created_at',
  'stored_bytes',
])

async function ask(tenant: Tenant, { json, method, path }: Asked): Promise<unknown> {
  const sent = { as: `${tenant}/owner`, ...(json && { json }) } as const
  // One of its own previews may be under way; then it is asked for again.
  const answer = await waitFor(
    () => service.send(method, path, sent),
    ({ status }) => status !== 429,
  )
  assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`)
  const body = JSON.parse(answer.text, (key, value) => (ofTheRequest.has(key) ? undefined : value))
  return path.endsWith('/deletions/preview') ? { ...body, id: undefined, expires_at: undefined } : body
}

test('two organisations that ask at the same time get what each gets alone', async () => {
  const alone = new Map<Asked, Map<Tenant, unknown>>()
  for (const asked of reads) {
    const [mine, theirs] = [await ask('acme', asked), await ask('globex', asked)]
    alone.set(
      asked,
      new Map([
        ['acme', mine],
        ['globex', theirs],
      ] as const),
    )
  }
  const differing = [...alone].filter(([, answers]) => {
    const [mine, theirs] = tenants.map((tenant) => JSON.stringify(answers.get(tenant)))
    return mine !== theirs
  })
  assert.ok(differing.length >= 7, `only ${differing.length} show whose answer it is`)
  for (let round = 0; round < rounds; round++) {
    const all = reads.flatMap((asked) => tenants.map((tenant) => ({ asked, tenant })))
    await Promise.all(
      all.map(async ({ asked, tenant }) =>
        assert.deepEqual(await ask(tenant, asked), alone.get(asked)?.get(tenant), `${tenant}: ${asked.path}`),
      ),
    )
  }
})

test('detectors of two organisations that run at the same time find the anomalies of their own', async () => {
  const values = await Promise.all(
    tenants.map(async (tenant) => {
      const as = `${tenant}/owner` as const
      const created = await service.send('POST', '/anomalies/detectors', { as, json: detector })
      assert.equal(created.status, 201, created.text)
      const path = `/anomalies/detectors/${JSON.parse(created.text).id}/run`
      await waitFor(
        () => service.send('POST', path, { as }),
        ({ status }) => status === 200,
      )
      const { items } = JSON.parse((await service.send('GET', '/anomalies', { as })).text)
      return items.filter(({ detector_id }: { detector_id: string }) => path.includes(detector_id))
    }),
  )
  for (const [i, tenant] of tenants.entries()) {
    const [anomaly] = values[i] ?? []
    assert.equal(anomaly?.value, 300 * factors[tenant], tenant)
    assert.ok(Math.abs(anomaly.expected / factors[tenant] - 106) < 6, `${tenant}: ${anomaly.expected}`)
  }
})
