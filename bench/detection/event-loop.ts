// Measures how long the event loop is blocked while a preview of a detector over twenty series is computed,
// which is how long every other request waits: judged in this thread and in separate threads, in one process
// on the same rows.
//
//   npm run bench -- detection/event-loop [--method auto] [--days 3]

import { rmSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate as nextRound } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { DetectorPreview } from '../../contract/detection/preview.ts'
import { nsPerMinute } from '../../contract/values/instant.ts'
import { systemClock } from '../../server/core/clock.ts'
import { previewWithDeploys } from '../../server/detection/anomaly-deploys.ts'
import { acme, definitionOf, insertSpans } from '../../server/detection/detection-fixture.ts'
import { backtest } from '../../server/detection/runs/backtest.ts'
import {
  EvaluationPool,
  type Evaluations,
  EvaluationsHere,
} from '../../server/detection/runs/evaluation-pool.ts'
import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import { responseWriter } from '../../server/http/response-text.ts'
import { TelemetryGate } from '../../server/telemetry/gate.ts'
import { TenantReader } from '../../server/telemetry/tenant-reader.ts'
import { openStores } from '../../tests/fixtures.ts'
import { report } from '../report.ts'
import { rounded } from '../samples.ts'

const { values: options } = parseArgs({
  options: { method: { type: 'string', default: 'auto' }, days: { type: 'string', default: '3' } },
})
const stepMinutes = 5
const historyDays = 10
const services = 20
const random = seededUniform(1)

const stores = await openStores()
const pool = new EvaluationPool()
try {
  const endNs = (systemClock.nowNs() / (60n * nsPerMinute)) * 60n * nsPerMinute
  for (let service = 0; service < services; service++) {
    await insertSpans(
      stores.engine,
      acme,
      Array.from({ length: (historyDays * 1440) / stepMinutes }, (_, i) => ({
        service: `service-${service}`,
        atNs: endNs - BigInt(i * stepMinutes) * nsPerMinute - nsPerMinute,
        durationMs: 5 + Math.round(random() * 20 + 10 * Math.sin(i / 46)),
      })),
    )
  }
  const reader = new TenantReader(stores.engine, acme, new TelemetryGate(), { kind: 'background' })
  const definition = definitionOf({
    name: 'preview',
    metric_key: 'spans.latency_p95',
    method_key: options.method,
    params: {},
    scope: { group_by: 'service' },
    window_minutes: 7 * 1440,
    schedule_minutes: 360,
    enabled: true,
  })
  const range = { startNs: endNs - BigInt(Number(options.days) * 1440) * nsPerMinute, endNs }
  const ways: Record<string, Evaluations> = {
    'this thread': new EvaluationsHere(),
    'separate threads': pool,
  }
  for (const [name, evaluations] of Object.entries(ways)) {
    let preview: Awaited<ReturnType<typeof previewWithDeploys>> | undefined
    const computing = await watched(async () => {
      const judged = await backtest(reader, definition, range, { clock: systemClock, evaluations })
      preview = await previewWithDeploys(reader, definition, judged)
    })
    const write = responseWriter(DetectorPreview)
    const answering = await watched(async () => void (await write(preview, nextRound)))
    report(
      'The event loop during a preview',
      { work: 'the preview', 'judged in': name, ...computing },
      { work: 'writing its answer', 'judged in': name, ...answering },
    )
  }
} finally {
  await pool.close()
  await stores.close()
  rmSync(stores.folder, { recursive: true, force: true })
}

async function watched(work: () => Promise<void>) {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  await new Promise((resolve) => setTimeout(resolve, 20))
  const startedMs = performance.now()
  await work()
  const tookMs = performance.now() - startedMs
  await new Promise((resolve) => setTimeout(resolve, 20))
  delay.disable()
  return {
    'longest delay ms': rounded(delay.max / 1e6, 1),
    'p99 delay ms': rounded(delay.percentile(99) / 1e6, 1),
    'took ms': Math.round(tookMs),
  }
}
