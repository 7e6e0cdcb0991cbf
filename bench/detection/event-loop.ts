// How long the event loop stands still while detectors work, which is how long everybody else waits: a
// preview of a week and a run over fifty series, judged in this thread and in threads of their own, in one
// process on the same rows. Printed is the longest delay of the loop, its 99th percentile and what the
// work took, in milliseconds.
//
//   node bench/detection/event-loop.ts [--method auto] [--days 3]

import { rmSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { DetectorPreview } from '../../contract/detection-preview.ts'
import { nsPerMinute } from '../../contract/instant.ts'
import { systemClock } from '../../server/core/clock.ts'
import { acme, insertSpans } from '../../server/detection/detection-fixture.ts'
import { readDraft } from '../../server/detection/detectors/detector.ts'
import { backtest } from '../../server/detection/runs/backtest.ts'
import { type Evaluate, EvaluationPool, evaluateHere } from '../../server/detection/runs/evaluation-pool.ts'
import { answerWriter } from '../../server/http/answer-text.ts'
import { TelemetryGate } from '../../server/telemetry/gate.ts'
import { TenantReader } from '../../server/telemetry/tenant-reader.ts'
import { openStores } from '../../tests/fixtures.ts'
import { provenance } from '../storage/bench-store.ts'
import { seededRandom } from '../storage/sample-rows.ts'

const { values: options } = parseArgs({
  options: { method: { type: 'string', default: 'auto' }, days: { type: 'string', default: '3' } },
})
const stepMinutes = 5
const historyDays = 10
const services = 20
const random = seededRandom(1)

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
  const read = readDraft({
    name: 'preview',
    metric_key: 'spans.latency_p95',
    method_key: options.method,
    params: {},
    scope: { group_by: 'service' },
    window_minutes: 7 * 1440,
    schedule_minutes: 360,
    enabled: true,
  })
  if (!('value' in read)) throw new Error(JSON.stringify(read))
  const range = { startNs: endNs - BigInt(Number(options.days) * 1440) * nsPerMinute, endNs }
  const results: Record<string, unknown> = {}
  const ways: Record<string, Evaluate> = {
    'this thread': evaluateHere,
    'threads of their own': pool.evaluate,
  }
  for (const [name, evaluate] of Object.entries(ways)) {
    let preview: Awaited<ReturnType<typeof backtest>> | undefined
    results[`preview, ${name}`] = await watched(async () => {
      preview = await backtest(reader, read.value, range, { clock: systemClock, evaluate })
    })
    const write = answerWriter(DetectorPreview)
    const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
    results[`its answer, ${name}`] = await watched(async () => void (await write(preview, turn)))
  }
  process.stdout.write(`${JSON.stringify({ ...provenance(), results }, null, 2)}\n`)
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
  const ms = (ns: number) => Math.round(ns / 1e5) / 10
  return { longest: ms(delay.max), p99: ms(delay.percentile(99)), took: Math.round(tookMs) }
}
