// Clients that are not ours: exporters of the OpenTelemetry SDK send, and what people read over HTTP must be
// what was sent, to the nanosecond, in both encodings, compressed or not. Two organisations send the same, so
// each must see it exactly once, and an erasure of one must leave the other's.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { HrTime } from '@opentelemetry/api'
import type { z } from 'zod'
import { DeletionRequest } from '../../contract/deletion/requests.ts'
import { StorageUsage } from '../../contract/organisation/usage.ts'
import {
  LogRecord,
  MetricEntry,
  SeriesAnswer,
  ServiceEntry,
  Span,
  Trace,
} from '../../contract/telemetry/queries.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { systemClock } from '../../server/core/clock.ts'
import {
  childSpanId,
  type Encoding,
  rootSpanId,
  type SdkReport,
  type SdkRun,
  sendWithSdk,
} from './otel-sdk.ts'
import { type Service, startService, type Tenant, tenants, waitUntilCompleted } from './service.ts'

const at: HrTime = [Math.floor(systemClock.nowMs() / 1000) - 600, 123_456_789]
const atNs = nsOf(at)

interface Variant extends Pick<SdkRun, 'encoding' | 'isCompressed' | 'service' | 'traceId'> {}

/** The last digit of the trace id identifies the variant. */
const variants: readonly Variant[] = (['protobuf', 'json', 'grpc'] as const).flatMap((encoding, i) =>
  [false, true].map((isCompressed, j) => ({
    encoding,
    isCompressed,
    service: `shop-${encoding}${isCompressed ? '-gzip' : ''}`,
    traceId: `4bf92f3577b34da6a3ce929d0e0e473${2 * i + j + 1}`,
  })),
)

let service: Service
const reports = new Map<string, SdkReport>()

before(async () => {
  service = await startService()
  for (const tenant of tenants) {
    for (const variant of variants) {
      const secret = service.secretOf(`${tenant}/ingest`)
      const report = await sendWithSdk({ ...variant, address: addressOf(variant.encoding), secret, at })
      assert.deepEqual(report.failures, [])
      reports.set(`${tenant} ${variant.service}`, report)
    }
  }
})
after(() => service.stop())

function addressOf(encoding: Encoding): string {
  return encoding === 'grpc' ? (service.app.grpcAddress() ?? assert.fail('no gRPC')) : service.address
}

function nsOf([seconds, nanos]: HrTime): bigint {
  return BigInt(seconds) * 1_000_000_000n + BigInt(nanos)
}

function later(byNs: number): string {
  return formatInstant(atNs + BigInt(byNs))
}

const resource = (name: string) => ({ 'service.name': name, 'process.pid': '7' })

/** Time of an instrument's point in the first or second export of a variant. */
function sentAtNs(name: string, instrument: string, flush: 0 | 1): bigint {
  const scopes = reports.get(`acme ${name}`)?.metrics[flush]?.scopeMetrics ?? []
  const metric = scopes
    .flatMap((scope) => scope.metrics)
    .find(({ descriptor }) => descriptor.name === instrument)
  return nsOf(metric?.dataPoints[0]?.endTime ?? assert.fail(`${instrument} was not sent`))
}

/** The values of a metric in the seconds that have one, from before the first export to after the last. */
async function valuesOf(name: string, metric: string, more: string): Promise<(number | null)[]> {
  const firstNs = sentAtNs(name, metric, 0)
  const range = `start=${formatInstant(firstNs - 2_000_000_000n)}&end=${formatInstant(firstNs + 60_000_000_000n)}`
  const path = `/telemetry/series?metric=${metric}&service=${name}&step_seconds=1&${range}&${more}`
  const answer = await service.read(path, SeriesAnswer)
  return answer.series.flatMap(({ points }) =>
    points.map(({ value }) => value).filter((value) => value !== null),
  )
}

for (const { service: name, traceId } of variants) {
  test(`${name}: a log record is read as it was written`, async () => {
    const { items } = await service.read(`/telemetry/logs?service=${name}`, pageOf(LogRecord), 'acme/viewer')
    assert.deepEqual(items, [
      {
        time: formatInstant(atNs),
        service: name,
        severity: 'ERROR',
        severity_number: 17,
        body: '{"items":[1,2.5,null],"text":"card declined: ☂"}',
        trace_id: traceId,
        span_id: childSpanId({ traceId }),
        event_name: 'order.declined',
        attributes: { 'order.id': '12', raw: 'AP8=' },
        resource_attributes: resource(name),
      },
    ])
  })

  test(`${name}: a trace is read with parent, child, event and link`, async () => {
    const trace = await service.read(`/telemetry/traces/${traceId}`, Trace, 'acme/member')
    const head = { trace_id: traceId, service: name, resource_attributes: resource(name) }
    const root: z.infer<typeof Span> = {
      ...head,
      span_id: rootSpanId({ traceId }),
      parent_span_id: '',
      time: later(0),
      duration_ns: '2000003',
      name: 'POST /orders',
      kind: 'Server',
      status: 'Unset',
      status_message: '',
      attributes: {},
      events: [],
      links: [],
    }
    const child: z.infer<typeof Span> = {
      ...head,
      span_id: childSpanId({ traceId }),
      parent_span_id: root.span_id,
      time: later(1),
      duration_ns: '1000',
      name: 'charge card',
      kind: 'Client',
      status: 'Error',
      status_message: 'card declined',
      attributes: { amount: '12.5', tags: '["a","b"]', isTest: 'true' },
      events: [{ time: later(2), name: 'declined', attributes: { attempt: '1' } }],
      links: [{ trace_id: traceId, span_id: root.span_id, attributes: { why: 'retry' } }],
    }
    assert.deepEqual(trace, {
      trace_id: traceId,
      spans: [root, child],
      truncated: false,
      next_cursor: null,
      warnings: [],
    })
    const { items } = await service.read(`/telemetry/spans?service=${name}`, pageOf(Span), 'acme/member')
    assert.deepEqual(items, [child, root])
  })

  test(`${name}: every kind of metric is read with its values`, async () => {
    const read = (metric: string, more: string) => valuesOf(name, metric, more)
    assert.deepEqual(
      new Set(await read('temperature', 'attribute=room%3Dcold&attribute=shelf%3D5')),
      new Set([0.25]),
    )
    assert.deepEqual(await read('temperature', 'attribute=room%3Dwarm'), [])
    assert.deepEqual(new Set(await read('carts', '')), new Set([-1.5]))
    assert.equal((await read('orders', 'aggregation=last&attribute=route%3D%2Fa')).at(-1), 5)
    assert.equal((await read('explicit', 'aggregation=max')).at(-1), 50)
    assert.equal((await read('explicit', 'aggregation=min')).at(-1), 0.5)
    assert.equal((await read('exponential', 'aggregation=max')).at(-1), 1024)
    assert.equal((await read('exponential', 'aggregation=min')).at(-1), 0)
  })
}

test('the catalogue has every instrument with its kind, unit, services and last time', async () => {
  const { items } = await service.read('/telemetry/metrics', pageOf(MetricEntry))
  const services = variants.map((variant) => variant.service).sort()
  const entry = (metric: string, kind: string, unit: string, description = '') => {
    const lastNs = variants
      .map((variant) => sentAtNs(variant.service, metric, 1))
      .sort()
      .at(-1)
    const last_seen = formatInstant(lastNs ?? 0n)
    return { metric_key: metric, metric, kind, unit, description, services, last_seen }
  }
  assert.deepEqual(
    items.map((item) => ({ ...item, services: item.services.toSorted() })),
    [
      entry('carts', 'sum', ''),
      entry('explicit', 'histogram', 'ms'),
      entry('exponential', 'exponential_histogram', ''),
      entry('orders', 'sum', '{order}', 'O'),
      entry('temperature', 'gauge', 'Cel'),
    ],
  )
})

/** Log records and spans that an organisation reads, and its number of stored rows per signal. */
async function viewOf(tenant: Tenant) {
  const as = `${tenant}/viewer` as const
  const [logs, spans, services, storage] = await Promise.all([
    service.read('/telemetry/logs?limit=500', pageOf(LogRecord), as),
    service.read('/telemetry/spans?limit=500', pageOf(Span), as),
    service.read('/telemetry/services', pageOf(ServiceEntry), as),
    service.read('/usage/storage', StorageUsage, as),
  ])
  const rows = Object.fromEntries(storage.signals.map(({ signal, rows: count }) => [signal, count]))
  return { logs: logs.items, spans: spans.items, services: services.items.map((one) => one.service), rows }
}

test('two organisations that send the same see it once each', async () => {
  const [acme, globex] = await Promise.all([viewOf('acme'), viewOf('globex')])
  assert.deepEqual([acme.logs.length, acme.spans.length], [variants.length, 2 * variants.length])
  // Five instruments, collected twice.
  assert.deepEqual(acme.rows, {
    metrics: 10 * variants.length,
    logs: variants.length,
    traces: 2 * variants.length,
  })
  assert.deepEqual(globex, acme)
})

test('an exporter with a wrong token gets an error for every signal, and nothing is stored', async () => {
  const before = await viewOf('acme')
  for (const encoding of ['protobuf', 'json', 'grpc'] as const) {
    for (const secret of ['not-a-token-of-anybody', service.secretOf('acme/viewer')]) {
      const run = { encoding, isCompressed: false, service: 'intruder', traceId: 'f'.repeat(32), at }
      const { failures } = await sendWithSdk({ ...run, address: addressOf(encoding), secret })
      // Metrics are flushed twice.
      const isKnown = secret.startsWith('lethe_viewer_')
      const [forbidden, unauthenticated] = encoding === 'grpc' ? [7, 16] : [403, 401]
      assert.deepEqual(
        failures.map((error) => Reflect.get(error, 'code')),
        Array(4).fill(isKnown ? forbidden : unauthenticated),
      )
    }
  }
  assert.deepEqual(await viewOf('acme'), before)
})

test('a full erasure hides at its 202 everything that one organisation sent, and nothing of the other’s', async () => {
  const before = await viewOf('globex')
  const json = { scope: 'all', confirm: 'acme' }
  const answer = await service.send('POST', '/usage/storage/deletions', { as: 'acme/admin', json })
  assert.equal(answer.status, 202, answer.text)
  const hidden = await viewOf('acme')
  assert.deepEqual([hidden.logs, hidden.spans, hidden.services], [[], [], []])
  for (const { traceId } of variants) {
    assert.equal((await service.send('GET', `/telemetry/traces/${traceId}`)).status, 404)
  }
  const { request_id } = DeletionRequest.parse(JSON.parse(answer.text))
  const completed = await waitUntilCompleted(service, request_id, 'acme/admin')
  assert.equal(completed.detail.rows_erased, 13 * variants.length)
  assert.deepEqual((await viewOf('acme')).rows, { metrics: 0, logs: 0, traces: 0 })
  assert.deepEqual(await viewOf('globex'), before)
})
