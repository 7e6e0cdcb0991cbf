// Debian's Prometheus as the oracle of rates and quantiles: the same samples of a classic histogram are
// written to it and to the service, and the series must show what PromQL computes. Samples are at the edges
// of the steps, so that a range of Prometheus and a step of ours contain the same samples.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { z } from 'zod'
import { type Aggregation, MetricEntry, SeriesAnswer } from '../../contract/telemetry/queries.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { temporaryFolder } from '../fixtures.ts'
import { type PrometheusProcess, startPrometheus, stopPrometheus } from '../prometheus/prometheus-process.ts'
import {
  compress,
  contentTypes,
  encodeRequest,
  type TestSeries,
} from '../prometheus/remote-write-messages.ts'
import { waitFor } from '../wait-for.ts'
import { type Service, startService } from './service.ts'

const family = 'http_request_duration_seconds'
const stepSeconds = 300
const steps = 4
const intervalSeconds = 15
/** An edge of a step an hour ago. */
const start = Math.floor((Date.now() / 1000 - 3600) / stepSeconds) * stepSeconds
const end = start + steps * stepSeconds

interface Sender {
  readonly labels: Readonly<Record<string, string>>
  readonly bounds: readonly string[]
  /** Observations added to a bucket, without those of the buckets below it, between two samples. */
  readonly added: (bucket: number, nth: number) => number
  readonly fromSeconds: number
  readonly untilSeconds: number
  readonly restartsAt?: number
  /** Content of each bucket before the first sample. */
  readonly inherited?: number
}

const ever = { fromSeconds: -60, untilSeconds: steps * stepSeconds + 60 }
const uneven = (seed: number) => (bucket: number, nth: number) =>
  ((nth * 7919 + bucket * 104_729 + seed * 31) % 23) * (1 + (nth % (bucket + 2)))

const senders: readonly Sender[] = [
  {
    ...ever,
    labels: { instance: 'a:1', route: '/cart' },
    bounds: ['0.005', '0.1', '0.5', '1', '2.5', '+Inf'],
    added: uneven(1),
  },
  {
    ...ever,
    labels: { instance: 'b:1', route: '/cart' },
    bounds: ['0.005', '1e-1', '5e-1', '1.0', '2.5', '+Inf'],
    added: uneven(2),
    restartsAt: 50,
  },
  // Without a bucket that the others have.
  {
    ...ever,
    labels: { instance: 'c:1', route: '/pay' },
    bounds: ['0.005', '0.5', '1', '2.5', '+Inf'],
    added: uneven(3),
  },
  // Exists for five minutes across two steps. Near zero the rules of Prometheus before 2.51 differ from ours.
  {
    inherited: 100,
    fromSeconds: 135,
    untilSeconds: 435,
    labels: { instance: 'd:1', route: '/pay' },
    bounds: ['0.005', '0.1', '0.5', '1', '2.5', '+Inf'],
    added: (bucket) => 3 + bucket,
  },
]

/** The series of one sender with all their samples. */
function seriesOf(sender: Sender): TestSeries[] {
  const { added, bounds, fromSeconds, inherited = 0, labels, restartsAt, untilSeconds } = sender
  const buckets: { value: number; timestamp: number }[][] = bounds.map(() => [])
  const sums: { value: number; timestamp: number }[] = []
  let [counts, total]: [number[], number] = [bounds.map(() => inherited), inherited]
  for (let nth = 0, t = fromSeconds; t <= untilSeconds; nth++, t += intervalSeconds) {
    if (nth === restartsAt) [counts, total] = [bounds.map(() => 0), 0]
    counts = counts.map((count, i) => count + added(i, nth))
    total += added(7, nth) / 4
    const timestamp = (start + t) * 1000
    let below = 0
    counts.forEach((count, i) => {
      below += count
      buckets[i]?.push({ value: below, timestamp })
    })
    sums.push({ value: total, timestamp })
  }
  const named = (suffix: string, more: Readonly<Record<string, string>> = {}) => ({
    __name__: `${family}${suffix}`,
    job: 'shop',
    ...labels,
    ...more,
  })
  return [
    ...bounds.map((le, i) => ({ labels: named('_bucket', { le }), samples: buckets[i] ?? [] })),
    { labels: named('_count'), samples: buckets.at(-1) ?? [] },
    { labels: named('_sum'), samples: sums },
  ]
}

const QueryAnswer = z.object({
  data: z.object({ result: z.array(z.object({ value: z.tuple([z.number(), z.string()]) })) }),
})

describe('series of a classic histogram show what PromQL computes', () => {
  let service: Service
  let prometheus: PrometheusProcess
  const folder = temporaryFolder()

  before(async () => {
    service = await startService({ settings: { LETHE_COMMIT_DELAY_MS: '20' } })
    prometheus = await startPrometheus(join(folder, 'own'), '{}', '--web.enable-remote-write-receiver')
    await waitFor(
      () =>
        fetch(`${prometheus.api}/-/ready`).then(
          ({ ok }) => ok,
          () => false,
        ),
      (isReady) => isReady,
    )
    const headers = {
      'content-type': contentTypes['1.0'],
      'content-encoding': 'snappy',
      'x-prometheus-remote-write-version': '0.1.0',
    }
    const body = compress(encodeRequest('1.0', senders.flatMap(seriesOf)))
    const there = await fetch(`${prometheus.api}/api/v1/write`, { method: 'POST', headers, body })
    assert.equal(there.status, 204, await there.text())
    const here = await service.send('POST', '/api/v1/write', { as: 'acme/ingest', headers, body })
    assert.equal(here.status, 204, here.text)
  })
  after(async () => {
    await stopPrometheus(prometheus)
    await service.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** What Prometheus returns at the end of each step. */
  async function there(query: string): Promise<(number | null)[]> {
    const edges = Array.from({ length: steps }, (_, i) => start + (i + 1) * stepSeconds)
    return Promise.all(
      edges.map(async (time) => {
        const response = await fetch(
          `${prometheus.api}/api/v1/query?time=${time}&query=${encodeURIComponent(query)}`,
        )
        const { data } = QueryAnswer.parse(await response.json())
        const text = data.result[0]?.value[1]
        return text === undefined || text === 'NaN' ? null : Number(text)
      }),
    )
  }

  async function here(metric: string, aggregation: Aggregation, more = ''): Promise<(number | null)[]> {
    const range = `start=${new Date(start * 1000).toISOString()}&end=${new Date(end * 1000).toISOString()}`
    const path = `/telemetry/series?metric=${metric}&aggregation=${aggregation}&${range}&step_seconds=${stepSeconds}${more}`
    const answer = await service.read(path, SeriesAnswer)
    return (answer.series[0]?.points ?? []).map(({ value }) => value)
  }

  function assertEqual(ours: readonly (number | null)[], theirs: readonly (number | null)[], what: string) {
    const text = (values: readonly (number | null)[]) =>
      values.map((value) => value?.toPrecision(10) ?? '-').join(' ')
    assert.equal(text(ours), text(theirs), what)
    assert.equal(theirs.filter((value) => value !== null).length, steps, `${what} has no value there`)
  }

  test('every quantile of all, of a route and of an instance, by either name', async () => {
    const quantiles = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 } as const
    const filters = [
      ['', ''],
      ['{route="/pay"}', '&attribute=route%3D%2Fpay'],
      ['{route="/cart"}', '&attribute=route%3D%2Fcart'],
      ['{instance="b:1"}', '&attribute=service.instance.id%3Db%3A1'],
    ] as const
    for (const [aggregation, quantile] of Object.entries(quantiles)) {
      for (const [theirs, ours] of filters) {
        const expected = await there(
          `histogram_quantile(${quantile}, sum by (le) (rate(${family}_bucket${theirs}[${stepSeconds}s])))`,
        )
        for (const metric of [family, `${family}_bucket`]) {
          const found = await here(metric, aggregation as Aggregation, ours)
          assertEqual(found, expected, `${aggregation} of ${metric}${theirs}`)
        }
      }
    }
  })

  test('rate, increase and mean of the histogram, and of each counter alone', async () => {
    const range = `[${stepSeconds}s]`
    const rate = await there(`sum(rate(${family}_count${range}))`)
    const increase = await there(`sum(increase(${family}_count${range}))`)
    assertEqual(await here(family, 'rate'), rate, 'rate')
    assertEqual(await here(`${family}_count`, 'rate'), rate, 'rate of the count')
    assertEqual(await here(family, 'increase'), increase, 'increase')
    assertEqual(await here(family, 'count'), increase, 'count')
    assertEqual(await here(family, 'sum'), await there(`sum(increase(${family}_sum${range}))`), 'sum')
    assertEqual(
      await here(family, 'avg'),
      await there(`sum(increase(${family}_sum${range})) / sum(increase(${family}_count${range}))`),
      'mean',
    )
    assertEqual(
      await here(`${family}_bucket`, 'rate', '&attribute=le%3D1'),
      await there(`sum(rate(${family}_bucket{le="1"}${range}))`),
      'rate of a bucket',
    )
  })

  test('an unsupported aggregation is refused with the reason, and it is listed as a histogram', async () => {
    const answer = await service.send('GET', `/telemetry/series?metric=${family}&aggregation=max&start=-`)
    assert.equal(answer.status, 422)
    const range = `start=${new Date(start * 1000).toISOString()}&end=${new Date(end * 1000).toISOString()}`
    const refused = await service.send('GET', `/telemetry/series?metric=${family}&aggregation=max&${range}`)
    assert.equal(refused.status, 422)
    assert.match(refused.text, /can't be read as max; leave it out for p95/)
    const { items } = await service.read(`/telemetry/metrics?${range}`, pageOf(MetricEntry))
    assert.deepEqual(
      items.map(({ metric, kind }) => [metric, kind]),
      [
        [family, 'histogram'],
        [`${family}_bucket`, 'sum'],
        [`${family}_count`, 'sum'],
        [`${family}_sum`, 'sum'],
      ],
    )
  })
})
