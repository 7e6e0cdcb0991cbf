// A person sends the first telemetry with the snippets of the console, and reads there why something was
// refused. Every snippet is run as the page shows it, by the client that it is for: curl, OpenTelemetry's
// SDK, Debian's Prometheus. There is no package of a Collector, so its snippet is parsed, and OpenTelemetry's
// own exporter sends what a Collector with these settings would send.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base'
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { Browser, Page } from 'playwright-core'
import { parse } from 'yaml'
import { z } from 'zod'
import { MetricEntry, Span } from '../../contract/telemetry/queries.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { temporaryFolders } from '../fixtures.ts'
import { startPrometheus, stopPrometheus } from '../prometheus/prometheus-process.ts'
import { type Service, startService } from '../scenario/service.ts'
import { waitFor } from '../wait-for.ts'
import { arrive, closeLeftOpen, flowLooks, hasChromium, openBrowser } from './browser.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))

/** A program with OpenTelemetry's SDK whose only settings are its environment. */
const sdkProgram = `import { trace } from '@opentelemetry/api'
import { NodeSDK } from '@opentelemetry/sdk-node'
const sdk = new NodeSDK()
sdk.start()
trace.getTracer('first run').startSpan('from the SDK').end()
await sdk.shutdown()`

/** The complete snippet of the Collector. */
const CollectorConfig = z.strictObject({
  exporters: z.strictObject({
    'otlphttp/lethe': z.strictObject({
      endpoint: z.url(),
      headers: z.strictObject({ Authorization: z.string() }),
    }),
  }),
})

describe('sending, as the console shows it', { skip: !hasChromium }, () => {
  let service: Service
  let browser: Browser
  const newFolder = temporaryFolders()
  before(async () => {
    service = await startService()
    browser = await openBrowser()
  })
  afterEach(() => closeLeftOpen(browser))
  after(async () => {
    await browser.close()
    await service.stop()
  })

  for (const { scheme, width } of flowLooks('dark')) {
    test(`the snippet of curl stores a record, and a refusal is explained, ${scheme} and ${width} wide`, async () => {
      const visitor = await arrive(browser, service, 'send', { role: 'admin', scheme, width })
      const { page } = visitor
      await page.getByText('waiting for data').waitFor()
      await page.getByRole('button', { name: 'Create an ingest token' }).click()
      await page.getByText('It is shown once').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('send-waiting')
      const snippet = await snippetOn(page)

      const wrong = await run('bash', ['-c', snippet.replace('/v1/logs', '/v1/logs/v1/logs')])
      assert.match(wrong.stdout, /404/)
      await page.getByRole('cell', { name: 'POST /v1/logs/v1/logs' }).first().waitFor()

      const { stdout } = await run('bash', ['-c', snippet])
      assert.match(stdout, /200/)
      await page.getByText('1 row since this page was opened').waitFor()
      await visitor.checkAccess()
      await visitor.shoot('send-arrived')
      await visitor.leave()
    })
  }

  const snippetOn = async (page: Page) =>
    (await page.getByRole('region', { name: 'Snippet' }).locator('code').textContent()) ?? ''

  /**
   * Runs the snippet of a sender with a token that was created on the page, and waits until the page shows
   * without a reload that telemetry has arrived.
   */
  async function firstRun(sender: string, runSnippet: (snippet: string) => Promise<void>): Promise<void> {
    const visitor = await arrive(browser, service, 'send')
    const { page } = visitor
    await page.getByText(sender, { exact: true }).click()
    await page.waitForURL(`**/send?sender=${encodeURIComponent(sender)}`)
    await page.getByRole('button', { name: 'Create an ingest token' }).click()
    await page.getByText('It is shown once').waitFor()
    await page.getByText('waiting for data').waitFor()
    const snippet = await snippetOn(page)
    assert.ok(snippet.includes(service.address))
    await runSnippet(snippet)
    await page.getByText(/^arrived$/).waitFor()
    await page.getByRole('link', { name: 'See what is stored' }).waitFor()
    await visitor.leave()
  }

  const storedSpans = async (name: string) => {
    const { items } = await service.read('/telemetry/spans?limit=50', pageOf(Span))
    return items.filter((span) => span.name === name).map((span) => span.service)
  }

  test('a program with the SDK sends with the environment of the snippet, and the page shows that it arrived', async () => {
    await firstRun('SDK', async (snippet) => {
      const { stderr } = await run(
        'bash',
        ['-ec', `${snippet}\n"$0" --input-type=module -e "$1"`, process.execPath, sdkProgram],
        { cwd: root },
      )
      assert.equal(stderr, '')
    })
    assert.deepEqual(await storedSpans('from the SDK'), ['my-service'])
  })

  test('what a Collector with the snippet would send arrives, and the page shows it', async () => {
    await firstRun('Collector', async (snippet) => {
      const { endpoint, headers } = CollectorConfig.parse(parse(snippet)).exporters['otlphttp/lethe']
      // The exporter `otlphttp` adds the path of the signal to its endpoint, and compresses.
      const url = `${endpoint}/v1/traces`
      const exporter = new OTLPTraceExporter({ url, headers, compression: CompressionAlgorithm.GZIP })
      const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
      provider.getTracer('first run').startSpan('from a Collector').end()
      await provider.shutdown()
    })
    assert.equal((await storedSpans('from a Collector')).length, 1)
  })

  test('Prometheus writes with the snippet in its configuration, and the page shows that it arrived', async () => {
    const scraped = `global:
  scrape_interval: 1s
scrape_configs:
  - job_name: first-run
    metrics_path: /metrics
    static_configs:
      - targets: ['${new URL(service.address).host}']
`
    let prometheus: Awaited<ReturnType<typeof startPrometheus>> | null = null
    try {
      await firstRun('Prometheus', async (snippet) => {
        prometheus = await startPrometheus(join(newFolder(), 'prometheus'), `${scraped}${snippet}\n`)
      })
    } finally {
      if (prometheus !== null) await stopPrometheus(prometheus)
    }
    await waitFor(
      () => service.read('/telemetry/metrics?limit=500', pageOf(MetricEntry)),
      ({ items }) => items.some(({ metric, services }) => metric === 'up' && services.includes('first-run')),
    )
  })

  test('a viewer sees what arrives, and which roles read refusals', async () => {
    const visitor = await arrive(browser, service, 'send', { role: 'viewer' })
    const { page } = visitor
    await page.getByText('Your role does not permit reading refusals').waitFor()
    await page.getByText('Creating a token is for owner or admin').waitFor()
    await visitor.shoot('send-viewer')
    await visitor.leave()
  })
})
