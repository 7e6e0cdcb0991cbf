// The bodies of the demo, decoded by code that shares nothing with their writer: they are valid OTLP and the
// same at every run, live slices continue the history, and the values that detectors compute show the
// incidents and no change of density.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { before, describe, test } from 'node:test'
import { decodeHere } from '../../tests/otlp/decode-here.ts'
import { flows, serviceNames } from './call-graph.ts'
import type { Payload } from './otlp-batch.ts'
import type { ReadLog, ReadPoint, ReadSpan } from './otlp-reference.ts'
import { readLogs, readPoints, readSpans } from './otlp-reference.ts'
import { estimateHistoryRows, historyPayloads, openLiveSlicer } from './payloads.ts'
import { openShop } from './shop.ts'
import { tracesOf } from './traces.ts'

const anchorNs = 1_763_522_220_000_000_000n
const minuteNs = 60_000_000_000n
const shop = openShop({ seed: 20, anchorNs, historyDays: 1 })

interface Read {
  readonly spans: readonly ReadSpan[]
  readonly logs: readonly ReadLog[]
  readonly points: readonly ReadPoint[]
}

function readAll(payloads: Iterable<Payload>): Read {
  const spans: ReadSpan[] = []
  const logs: ReadLog[] = []
  const points: ReadPoint[] = []
  for (const { signal, rows, body } of payloads) {
    const before = spans.length + logs.length + points.length
    if (signal === 'traces') spans.push(...readSpans(body))
    else if (signal === 'logs') logs.push(...readLogs(body))
    else points.push(...readPoints(body))
    assert.equal(spans.length + logs.length + points.length - before, rows, `rows of a ${signal} body`)
  }
  return { spans, logs, points }
}

const minuteOf = (timeNs: bigint): number => Number(timeNs / minuteNs)

describe('a day of history', () => {
  let read: Read
  let payloads: readonly Payload[]
  before(() => {
    payloads = [...historyPayloads(shop, 5_000)]
    read = readAll(payloads)
  })

  test('is the same, byte for byte, each time', () => {
    const digest = (all: Iterable<Payload>): string => {
      const hash = createHash('sha256')
      for (const { body } of all) hash.update(body)
      return hash.digest('hex')
    }
    assert.equal(
      digest(historyPayloads(openShop({ seed: 20, anchorNs, historyDays: 1 }), 5_000)),
      digest(payloads),
    )
  })

  test('comes in bodies of about the configured size, oldest first', () => {
    for (const signal of ['metrics', 'logs', 'traces']) {
      const bodies = payloads.filter((payload) => payload.signal === signal)
      assert.ok(bodies.slice(0, -1).every(({ rows }) => rows >= 5_000 && rows < 5_500))
    }
    const starts = payloads
      .filter(({ signal }) => signal === 'metrics')
      .map(({ body }) => Math.min(...readPoints(body).map(({ timeNs }) => minuteOf(timeNs))))
    assert.deepEqual(
      starts,
      starts.toSorted((a, b) => a - b),
    )
  })

  test('is accepted completely by the decoder of the service', () => {
    for (const { signal, rows, body } of payloads) {
      const decoded = decodeHere(signal, 'protobuf', Buffer.from(body), anchorNs)
      assert.equal(decoded.rejected, 0, decoded.reasons)
      assert.equal(decoded.accepted, rows)
    }
  })

  test('has about the estimated number of rows', () => {
    const rows = payloads.reduce((sum, payload) => sum + payload.rows, 0)
    const estimate = estimateHistoryRows(shop)
    assert.ok(Math.abs(estimate / rows - 1) < 0.1, `${estimate} estimated, ${rows} there`)
  })

  test('lies within the history', () => {
    const open = BigInt(shop.openMinute) * minuteNs
    const isInside = (timeNs: bigint): boolean => timeNs >= open && timeNs <= anchorNs + 20_000_000_000n
    assert.ok(
      read.spans.every(({ startNs, endNs }) => isInside(startNs) && endNs > startNs && isInside(endNs)),
    )
    assert.ok(read.logs.every(({ timeNs }) => isInside(timeNs)))
    assert.ok(read.points.every(({ timeNs }) => timeNs > open && timeNs <= anchorNs))
  })

  test('has every span once, with its parent in the same trace, and each caller around its callee', () => {
    const byId = new Map(read.spans.map((span) => [`${span.traceId} ${span.spanId}`, span]))
    assert.equal(byId.size, read.spans.length)
    for (const span of read.spans) {
      if (span.parentSpanId === '') continue
      const parent = byId.get(`${span.traceId} ${span.parentSpanId}`)
      assert.ok(parent, `parent of ${span.name}`)
      assert.ok(parent.startNs <= span.startNs && parent.endNs >= span.endNs, span.name)
    }
  })

  test('has each kind of span, and consumers linked to a producer that exists', () => {
    assert.deepEqual([...new Set(read.spans.map(({ kind }) => kind))].sort(), [1, 2, 3, 4, 5])
    const producers = new Set(read.spans.filter(({ kind }) => kind === 4).map(({ spanId }) => spanId))
    const consumers = read.spans.filter(({ kind }) => kind === 5)
    assert.ok(consumers.length > 100)
    assert.ok(consumers.every(({ links }) => links.length === 1 && producers.has(links[0]?.spanId ?? '')))
  })

  test('marks a failure with an exception at its origin and with an error in every caller above', () => {
    const byId = new Map(read.spans.map((span) => [span.spanId, span]))
    const origins = read.spans.filter(({ events }) => events.some(({ name }) => name === 'exception'))
    assert.ok(origins.length > 20)
    for (const origin of origins) {
      for (let span: ReadSpan | undefined = origin; span !== undefined; span = byId.get(span.parentSpanId)) {
        assert.equal(span.statusCode, 2, `${span.service} ${span.name}`)
        assert.ok(span.attributes['error.type'])
        const code = span.attributes['http.response.status_code']
        assert.ok(code === undefined || Number(code) >= 500)
      }
    }
    const failed = read.spans.filter(({ statusCode }) => statusCode === 2)
    const blaming = new Set(failed.map(({ parentSpanId }) => parentSpanId))
    assert.deepEqual(
      failed.filter(({ spanId }) => !blaming.has(spanId)),
      origins,
    )
  })

  test('samples consistently: each trace id is above the rejection threshold of its tracestate', () => {
    for (const { traceId, traceState } of read.spans) {
      const threshold = BigInt(`0x${traceState.replace('ot=th:', '').padEnd(14, '0')}`)
      assert.ok(BigInt(`0x${traceId.slice(18)}`) >= threshold, `${traceId} ${traceState}`)
    }
  })

  test('names service, version, instance and environment in every resource', () => {
    for (const { resource } of read.spans) {
      assert.equal(resource['deployment.environment.name'], 'production')
      assert.match(String(resource['service.version']), /^\d+\.\d+\.0$/)
      assert.match(
        String(resource['service.instance.id']),
        /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/,
      )
    }
  })

  test('links the log lines of traced requests to spans of the same service', () => {
    const services = new Map(read.spans.map((span) => [`${span.traceId} ${span.spanId}`, span.service]))
    const sampled = read.logs.filter(({ flags }) => (flags & 1) === 1)
    assert.ok(sampled.length > 1_000)
    for (const log of sampled) assert.equal(services.get(`${log.traceId} ${log.spanId}`), log.service)
    const untraced = read.logs.filter(({ flags, traceId }) => traceId !== '' && (flags & 1) === 0)
    assert.ok(untraced.every((log) => !services.has(`${log.traceId} ${log.spanId}`)))
  })

  test('has log lines of several severities from every service', () => {
    assert.deepEqual(new Set(read.logs.map(({ service }) => service)), new Set(serviceNames))
    assert.deepEqual(
      new Set(read.logs.map(({ severityText }) => severityText)),
      new Set(['DEBUG', 'INFO', 'WARN', 'ERROR']),
    )
    assert.ok(read.logs.some(({ eventName }) => eventName === 'shop.order.placed'))
  })

  test('has all five kinds of metric, and sums of both temporalities', () => {
    const kinds = new Set(read.points.map(({ kind }) => kind))
    assert.deepEqual(kinds, new Set(['gauge', 'sum', 'histogram', 'exponential_histogram', 'summary']))
    const sums = new Set(
      read.points
        .filter(({ kind }) => kind === 'sum')
        .map(({ temporality, isMonotonic }) => `${temporality} ${isMonotonic}`),
    )
    assert.deepEqual(sums, new Set(['1 true', '2 true', '2 false']))
  })

  test('counts every request of a histogram in exactly one of its buckets', () => {
    for (const { kind, count, sum, bucketCounts, bounds } of read.points) {
      if (kind !== 'histogram' && kind !== 'exponential_histogram') continue
      assert.equal(
        bucketCounts.reduce((total, bucket) => total + bucket, 0),
        count,
      )
      assert.ok(count > 0 && sum > 0)
      if (kind === 'histogram') assert.equal(bucketCounts.length, bounds.length + 1)
    }
  })

  test('has no cumulative counter that falls while its process runs', () => {
    const last = new Map<string, { value: number; startNs: bigint }>()
    for (const point of read.points) {
      if (point.metric !== 'http.server.request.count') continue
      const key = `${point.service} ${JSON.stringify(point.attributes)}`
      const known = last.get(key)
      assert.ok(known === undefined || known.startNs !== point.startNs || known.value <= point.value, key)
      last.set(key, point)
    }
    assert.ok(last.size > 15)
  })

  test('counts as many orders in delta sums as the model has', () => {
    const orders = read.points.filter(({ metric }) => metric === 'shop.orders.placed')
    const counted = orders.reduce((sum, { value }) => sum + value, 0)
    let placed = 0
    for (let minute = shop.openMinute; minute < shop.anchorMinute; minute++) {
      const { arrivals, ownFailures } = shop.at(minute)
      placed += Math.max(
        0,
        (arrivals[3] ?? 0) - ownFailures.reduce((sum, byFlow) => sum + (byFlow[3] ?? 0), 0),
      )
    }
    assert.equal(counted, placed)
    const sorted = orders.toSorted((a, b) => Number(a.timeNs - b.timeNs))
    sorted.slice(1).forEach(({ startNs }, index) => {
      assert.equal(startNs, sorted[index]?.timeNs, 'each interval begins where the previous one ended')
    })
  })

  test('has exemplars that refer to stored traces', () => {
    const traces = new Set(read.spans.map(({ traceId }) => traceId))
    const exemplars = read.points.flatMap(({ exemplarTraceIds }) => exemplarTraceIds)
    assert.ok(exemplars.length > 100)
    assert.ok(exemplars.every((traceId) => traces.has(traceId)))
  })

  test('shows the payments incident in the error ratio, the 95th percentile and the error count of five-minute buckets', () => {
    const incident = shop.incidents.find(({ key }) => key === 'payments_slow_and_failing')
    assert.ok(incident)
    const spans = read.spans.filter(({ service }) => service === 'payments')
    const errors = read.logs.filter(
      ({ service, severityNumber }) => service === 'payments' && severityNumber >= 17,
    )
    interface Bucket {
      readonly ratio: number
      readonly p95Ms: number
      readonly errorLogs: number
    }
    const during: Bucket[] = []
    const calm: Bucket[] = []
    for (let start = shop.openMinute; start + 5 <= shop.anchorMinute; start += 5) {
      const isHere = (timeNs: bigint): boolean => minuteOf(timeNs) >= start && minuteOf(timeNs) < start + 5
      const here = spans.filter(({ startNs }) => isHere(startNs))
      if (here.length === 0) continue
      const durations = here.map((span) => Number(span.endNs - span.startNs) / 1e6).sort((a, b) => a - b)
      const bucket = {
        ratio: here.filter(({ statusCode }) => statusCode === 2).length / here.length,
        p95Ms: durations[Math.floor(0.95 * (durations.length - 1))] ?? 0,
        errorLogs: errors.filter(({ timeNs }) => isHere(timeNs)).length,
      }
      if (start >= incident.startMinute && start + 5 <= incident.endMinute) during.push(bucket)
      else if (start + 5 <= incident.startMinute || start >= incident.endMinute) calm.push(bucket)
    }
    // With a handful of traced payments in five minutes, by chance none may fail; most buckets must show it.
    assert.ok(during.length >= 7)
    assert.ok(during.filter(({ ratio }) => ratio > 0.1).length >= 0.7 * during.length)
    assert.ok(calm.filter(({ ratio }) => ratio > 0.1).length <= 0.05 * calm.length)
    const least = (key: keyof Bucket): number => Math.min(...during.map((bucket) => bucket[key]))
    const most = (key: keyof Bucket): number => Math.max(...calm.map((bucket) => bucket[key]))
    assert.ok(least('p95Ms') > 1.2 * most('p95Ms'), `${least('p95Ms')} ms against ${most('p95Ms')} ms`)
    assert.ok(
      least('errorLogs') > 4 * most('errorLogs'),
      `${least('errorLogs')} against ${most('errorLogs')}`,
    )
  })
})

test('the share of traced requests is the same at all hours of the two weeks', () => {
  const whole = openShop({ seed: 4, anchorNs })
  flows.forEach((flow, index) => {
    // Poisson thinning: for each sixth of a day, the number of traced requests is arrivals / tracedOneIn plus
    // noise.
    let squares = 0
    let pieces = 0
    for (let start = whole.openMinute; start < whole.anchorMinute; start += 240 * 7) {
      let expected = 0
      let traced = 0
      for (let minute = start; minute < Math.min(start + 240, whole.anchorMinute); minute++) {
        const moment = whole.at(minute)
        expected += (moment.arrivals[index] ?? 0) / flow.tracedOneIn
        traced += tracesOf(whole, moment).filter(
          (trace) => trace.flow === flow && trace.link === undefined,
        ).length
      }
      squares += (traced - expected) ** 2 / expected
      pieces++
      assert.ok(
        Math.abs(traced - expected) < 5 * Math.sqrt(expected),
        `${flow.name}: ${traced} of ${expected}`,
      )
    }
    assert.ok(
      squares / pieces < 2.2 && squares / pieces > 0.2,
      `${flow.name}: dispersion ${squares / pieces}`,
    )
  })
})

describe('live slices', () => {
  const anchorMs = shop.anchorMinute * 60_000

  test('of ten seconds have together exactly the content of one slice of the whole time', () => {
    const fine = openLiveSlicer(shop, anchorMs)
    const pieces: Payload[] = []
    for (let fromMs = anchorMs; fromMs < anchorMs + 180_000; fromMs += 10_000) {
      pieces.push(...fine.slice(fromMs, fromMs + 10_000))
    }
    const inPieces = readAll(pieces)
    const atOnce = readAll(openLiveSlicer(shop, anchorMs).slice(anchorMs, anchorMs + 180_000))
    const sorted = <T>(items: readonly T[]): readonly string[] =>
      items
        .map((item) => JSON.stringify(item, (_, value) => (typeof value === 'bigint' ? `${value}` : value)))
        .sort()
    assert.ok(inPieces.spans.length > 50 && inPieces.points.length > 100)
    assert.deepEqual(sorted(inPieces.spans), sorted(atOnce.spans))
    assert.deepEqual(sorted(inPieces.logs), sorted(atOnce.logs))
    assert.deepEqual(sorted(inPieces.points), sorted(atOnce.points))
  })

  test('continue the counters of the history', () => {
    const history = readAll([...historyPayloads(shop)].filter(({ signal }) => signal === 'metrics')).points
    const live = readAll(openLiveSlicer(shop, anchorMs).slice(anchorMs, anchorMs + 60_000)).points
    const lastOf = (points: readonly ReadPoint[]): Map<string, ReadPoint> =>
      new Map(
        points
          .filter(({ metric }) => metric === 'http.server.request.duration')
          .map((point) => [`${point.service} ${JSON.stringify(point.attributes)}`, point]),
      )
    const before = lastOf(history)
    const after = lastOf(live)
    assert.ok(after.size >= before.size && before.size > 15)
    for (const [key, point] of before) {
      const next = after.get(key)
      assert.ok(next, key)
      assert.equal(next.startNs, point.startNs)
      assert.equal(next.timeNs, point.timeNs + minuteNs)
      assert.ok(next.count >= point.count && next.count < point.count + 3_000, key)
    }
  })

  test('that start late report only their own minute in delta metrics', () => {
    const fromMs = anchorMs + 30 * 60_000
    const { points } = readAll(openLiveSlicer(shop, fromMs).slice(fromMs, fromMs + 60_000))
    const deltas = points.filter(({ temporality }) => temporality === 1)
    assert.ok(deltas.length > 5)
    assert.ok(deltas.every(({ startNs, timeNs }) => timeNs - startNs === minuteNs))
  })
})
