// Debian's Prometheus as the client: it scrapes the service's own metrics page and writes to it, so the
// service must have every sample of a series that Prometheus has.

import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { z } from 'zod'
import { IngestUsage } from '../../contract/organisation/usage.ts'
import { MetricEntry } from '../../contract/telemetry/queries.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { mapOfPairs } from '../../server/telemetry/schema/attribute-pairs.ts'
import type { TableName } from '../../server/telemetry/schema/tables.ts'
import { raw, sql } from '../../server/telemetry/sql.ts'
import { temporaryFolder } from '../fixtures.ts'
import { type PrometheusProcess, startPrometheus, stopPrometheus } from '../prometheus/prometheus-process.ts'
import { waitFor } from '../wait-for.ts'
import { eraseCompletely, type Service, startService, type Tenant, waitUntilCompleted } from './service.ts'

/** A Prometheus per organisation, each scraping the same page. */
interface Writer extends PrometheusProcess {
  readonly tenant: Tenant
}

const QueryAnswer = z.object({
  data: z.object({
    result: z.array(
      z.object({
        metric: z.record(z.string(), z.string()),
        values: z.array(z.tuple([z.number(), z.string()])),
      }),
    ),
  }),
})

describe('Prometheus writes to the service', () => {
  let service: Service
  const folder = temporaryFolder()
  const writers = new Map<Tenant, Writer>()
  const writerOf = (tenant: Tenant) => writers.get(tenant) ?? assert.fail(`no Prometheus of ${tenant}`)

  before(async () => {
    service = await startService({ settings: { LETHE_COMMIT_DELAY_MS: '20' } })
    for (const tenant of ['acme', 'globex'] as const) {
      writers.set(tenant, await startWriter(service, tenant, join(folder, tenant)))
    }
  })
  after(async () => {
    for (const writer of writers.values()) await stopPrometheus(writer)
    await service.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('the service has each of its samples of a counter and a gauge, with labels, service and instance', async () => {
    const writer = writerOf('acme')
    for (const [metric, table] of [
      ['lethe_ingest_records_accepted_total', 'otel_metrics_sum'],
      ['up', 'otel_metrics_gauge'],
    ] as const) {
      const ours = await waitFor(
        () => samplesHere(service, 'acme', table, metric),
        (found) => new Set(found.map(({ time }) => time)).size >= 4,
      )
      const theirs = await samplesThere(writer, metric)
      assert.ok(ours.length >= 4)
      for (const sample of ours) {
        const same = theirs.filter(({ key }) => key === sample.key)
        assert.equal(same.length, 1, `${metric}: ${JSON.stringify(sample)} of ${JSON.stringify(theirs)}`)
      }
    }
  })

  test('a scrape arrives completely: every series has one row', async () => {
    const writer = writerOf('acme')
    const here = await waitFor(
      () => samplesHere(service, 'acme', 'otel_metrics_gauge', 'scrape_samples_scraped'),
      (found) => found.length >= 3,
    )
    const scrape = here[0] ?? assert.fail('no scrape')
    const place = { tenantId: 'acme', placement: 0 }
    const rows = await waitFor(
      async () => {
        const reader = service.app.readerOf(place)
        const counts = await Promise.all(
          (['otel_metrics_gauge', 'otel_metrics_sum'] as const).map((table) =>
            reader.rows<{ n: string }>(
              (from) =>
                sql`SELECT count() AS n FROM ${from(table)} WHERE toUnixTimestamp64Milli(TimeUnix) = toInt64(${String(scrape.time)})`,
            ),
          ),
        )
        return counts.flat().reduce((sum, { n }) => sum + Number(n), 0)
      },
      // Besides the scraped series, Prometheus writes five series of its own about the scrape.
      (found) => found >= Number(scrape.value) + 5,
    )
    assert.equal(rows, Number(scrape.value) + 5, writer.output)
  })

  test('types by suffix: counters are sums, everything else is a gauge', async () => {
    const { items } = await service.read('/telemetry/metrics?limit=500', pageOf(MetricEntry))
    const kinds = new Map(items.map((item) => [item.metric, item.kind]))
    assert.equal(kinds.get('lethe_ingest_commits_total'), 'sum')
    assert.equal(kinds.get('nodejs_gc_duration_seconds_bucket'), 'sum')
    assert.equal(kinds.get('process_resident_memory_bytes'), 'gauge')
    assert.equal(kinds.get('up'), 'gauge')
    assert.ok(items.every(({ services }) => services.join() === 'lethe'))
  })

  test('a series that ended is marked so, and nothing was rejected', async () => {
    const writer = writerOf('acme')
    const marked = (flags: number) =>
      service.app
        .readerOf({ tenantId: 'acme', placement: 0 })
        .rows<{ value: number | null }>(
          (from) =>
            sql`SELECT Value AS value FROM ${from('otel_metrics_gauge')} WHERE MetricName = 'up' AND Flags = ${String(flags)}`,
        )
    assert.ok((await marked(0)).length > 0, 'it existed before')
    assert.equal((await marked(1)).length, 0)
    writeFileSync(writer.configPath, configOf(service, writer.tenant, false))
    writer.process.kill('SIGHUP')
    await waitFor(
      () => marked(1),
      (rows) => rows.length > 0,
    )
    const usage = await service.read('/usage/ingest', IngestUsage)
    assert.deepEqual([usage.today.rows_rejected, usage.today.requests_refused], [0, 0])
    assert.ok(usage.today.rows_accepted > 100)
    assert.doesNotMatch(writer.output, /non-recoverable error|server returned HTTP status/)
  })

  test('an erasure of one organisation removes what its Prometheus wrote and keeps the other’s', async () => {
    const before = await samplesHere(service, 'globex', 'otel_metrics_gauge', 'up')
    assert.ok(before.length > 0)
    assert.ok((await samplesHere(service, 'acme', 'otel_metrics_gauge', 'up')).length > 0)
    await eraseCompletely(service, { scope: 'all', confirm: 'acme' })
    assert.deepEqual(await samplesHere(service, 'acme', 'otel_metrics_gauge', 'up'), [])
    const keys = (await samplesHere(service, 'globex', 'otel_metrics_gauge', 'up')).map(({ key }) => key)
    assert.ok(before.every(({ key }) => keys.includes(key)))
  })

  test('it retries what an erasure refuses for a moment, and loses none of it', async () => {
    const writer = writerOf('globex')
    const end = new Date().toISOString()
    const answer = await service.send('POST', '/usage/storage/deletions', {
      as: 'globex/owner',
      json: { scope: 'range', range_end: end, confirm: 'globex' },
    })
    assert.equal(answer.status, 202, answer.text)
    await waitUntilCompleted(service, JSON.parse(answer.text).request_id, 'globex/owner')
    const later = (await samplesThere(writer, 'up')).filter(({ time }) => time > Date.parse(end))
    const wanted = await waitFor(
      async () => (await samplesThere(writer, 'up')).filter(({ time }) => time > Date.parse(end)),
      (found) => found.length >= later.length + 3,
    )
    await waitFor(
      async () => (await samplesHere(service, 'globex', 'otel_metrics_gauge', 'up')).map(({ key }) => key),
      (keys) => wanted.every(({ key }) => keys.includes(key)),
    )
  })
})

interface FoundSample {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly value: string
  /** Labels, time and value as text. */
  readonly key: string
}

function keyOf(labels: Readonly<Record<string, string>>, time: number, value: string): string {
  return JSON.stringify([Object.entries(labels).sort(), time, Number(value)])
}

async function samplesHere(
  service: Service,
  tenant: Tenant,
  table: TableName,
  metric: string,
): Promise<FoundSample[]> {
  const place = (await service.app.tenancy.findOrganisation(tenant)) ?? assert.fail(tenant)
  const rows = await service.app
    .readerOf(place)
    .rows<{ time: string; value: string; labels: Record<string, string>; service: string; instance: string }>(
      (from) =>
        sql`SELECT * FROM (${from.select(table, {
          columns: raw(
            `toUnixTimestamp64Milli(TimeUnix) AS time, toString(Value) AS value, ${mapOfPairs('AttributesPairs')} AS labels, ServiceName AS service, ${mapOfPairs('ResourceAttributesPairs')}['service.instance.id'] AS instance`,
          ),
          conditions: [sql`MetricName = ${metric}`, raw('Flags = 0')],
        })}) ORDER BY time`,
    )
  return rows.map(({ time, value, labels, service: job, instance }) => {
    const ms = Number(time)
    return { time: ms, value, key: keyOf({ __name__: metric, job, instance, ...labels }, ms, value) }
  })
}

async function samplesThere({ api }: Writer, metric: string): Promise<FoundSample[]> {
  const response = await fetch(`${api}/api/v1/query?query=${encodeURIComponent(`${metric}[1h]`)}`)
  const { data } = QueryAnswer.parse(await response.json())
  return data.result.flatMap(({ metric: labels, values }) =>
    values.map(([seconds, value]) => {
      const time = Math.round(seconds * 1000)
      return { time, value, key: keyOf(labels, time, value) }
    }),
  )
}

function configOf(service: Service, tenant: Tenant, isScraping: boolean): string {
  const { host } = new URL(service.address)
  const scrape = {
    job_name: 'lethe',
    scrape_interval: '500ms',
    scrape_timeout: '500ms',
    static_configs: [{ targets: isScraping ? [host] : [] }],
  }
  // Prometheus reads YAML, and JSON is valid YAML.
  return JSON.stringify({
    // The job stays, because Prometheus marks the end of a series only for a target that disappears.
    scrape_configs: [scrape],
    remote_write: [
      {
        url: `${service.address}/api/v1/write`,
        authorization: { credentials: service.secretOf(`${tenant}/ingest`) },
        send_exemplars: true,
        send_native_histograms: true,
        metadata_config: { send_interval: '1s' },
        queue_config: { batch_send_deadline: '200ms', min_backoff: '30ms', max_backoff: '200ms' },
      },
    ],
  })
}

async function startWriter(service: Service, tenant: Tenant, folder: string): Promise<Writer> {
  const features = '--enable-feature=exemplar-storage,native-histograms'
  return Object.assign(await startPrometheus(folder, configOf(service, tenant, true), features), { tenant })
}
