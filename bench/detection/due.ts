// A round of detectors that are all due, over a store of many organisations: the first after a start of the
// service, in which every detector reads its past of weeks; then rounds that continue, read together,
// compared with each on its own, in the same process on the same rows. The detectors are spread evenly over
// the twenty largest organisations and watch a day each: gauges, counters, histograms and error ratios of
// single services, and one detector by service. The time is that of a whole round of the worker: definitions,
// reading, judging, recording.
//
//   npm run bench -- detection/due [--folder PATH] [--rows 10000000] [--detectors 1000]

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { migrate } from '../../server/control/migrate.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { ManualClock } from '../../server/core/manual-clock.ts'
import { readActiveHolds } from '../../server/deletion/governance/active-holds.ts'
import { definitionOf } from '../../server/detection/detection-fixture.ts'
import { DetectionStore } from '../../server/detection/detectors/store.ts'
import { EvaluationPool } from '../../server/detection/runs/evaluation-pool.ts'
import { DetectorRunner } from '../../server/detection/runs/runner.ts'
import { runDueDetectors } from '../../server/detection/runs/worker.ts'
import { readSeries } from '../../server/series/series.ts'
import { TelemetryGate } from '../../server/telemetry/gate.ts'
import { TenantReader } from '../../server/telemetry/tenant-reader.ts'
import { openSecondHandle } from '../../tests/control-planes.ts'
import { openFilled } from '../query/filled-store.ts'
import {
  counterNames,
  endSeconds,
  gaugeNames,
  histogramNames,
  organisationOf,
  serviceNames,
} from '../query/lifelike-rows.ts'
import { report, say } from '../report.ts'
import { rounded, timed } from '../samples.ts'

const { values: options } = parseArgs({
  options: {
    folder: { type: 'string' },
    rows: { type: 'string', default: '10000000' },
    detectors: { type: 'string', default: '1000' },
  },
})
const organisations = 20
const log = (facts: unknown) => say(JSON.stringify(facts))
const logger = { warn: log, error: log }

const rows = Number(options.rows)
const { engine, folder, close } = await openFilled(rows, options.folder)
const evaluations = new EvaluationPool()
const controlPath = join(folder, 'bench-control.sqlite')
rmSync(controlPath, { force: true })
const control = openSecondHandle(controlPath)
const clock = new ManualClock(endSeconds * 1000 - 86_400_000)
try {
  await migrate(control)
  const gate = new TelemetryGate()
  const store = new DetectionStore(control, clock, gate, readActiveHolds)
  await createDetectors(store)
  const runner = new DetectorRunner({ store, engine, gate, clock, logger, evaluations })
  const alone: Pick<DetectorRunner, 'runBatch'> = {
    runBatch: async (place, ids) => {
      for (const id of ids) await runner.run(place, id)
      return new Map()
    },
  }
  const reader = new TenantReader(engine, organisationOf(0), gate)
  await readSeries(reader, {
    metricKey: 'spans.rate',
    startNs: clock.nowNs() - 3_600_000_000_000n,
    endNs: clock.nowNs(),
    stepSeconds: 60,
    maxGroups: 1,
  })
  for (const [way, one] of Object.entries({
    'all from their past': runner,
    together: runner,
    'together again': runner,
    'each on its own': alone,
  })) {
    await clock.advance(300_000)
    const { value, ms, cpuS } = await timed(() =>
      runDueDetectors({ store, runner: one, clock, logger }, new AbortController().signal),
    )
    const counts = Object.entries(await statuses()).map(([status, count]) => `${count} ${status}`)
    report(`A round of detectors over ${rows.toLocaleString('en')} rows`, {
      read: way,
      detectors: value,
      seconds: rounded(ms / 1000),
      'CPU seconds': rounded(cpuS),
      statuses: counts.join(', '),
    })
  }
} finally {
  await evaluations.close()
  await control.destroy()
  rmSync(controlPath, { force: true })
  await close()
}

async function createDetectors(store: DetectionStore): Promise<void> {
  for (let i = 0; i < organisations; i++) {
    const { tenantId, placement } = organisationOf(i)
    await control
      .insertInto('organisations')
      .values({ tenant_id: tenantId, name: tenantId, placement, created_at_ms: 0 })
      .execute()
  }
  const watched = subjects()
  for (let i = 0; i < Number(options.detectors); i++) {
    // A stride that shares no factor with their number visits all of them in a mixed order.
    const subject = watched[(Math.floor(i / organisations) * 29) % watched.length]
    const definition = definitionOf({
      name: `detector ${i}`,
      metric_key: subject?.metric,
      method_key: 'robust_band',
      params: {},
      scope: subject?.service === undefined ? { group_by: 'service' } : { service: subject.service },
      window_minutes: 1440,
      schedule_minutes: 5,
      enabled: true,
    })
    await store.createDetector(organisationOf(i % organisations).tenantId, definition, operatorActor('bench'))
  }
}

/** Every one of these organisations has: 16 series of each kind of metric, spans and logs. */
function subjects(): { metric: string; service?: string | undefined }[] {
  const [first] = serviceNames
  const ofMetrics = [gaugeNames, counterNames, histogramNames].flatMap(([busiest = '', ...others]) => [
    ...serviceNames.map((service) => ({ metric: busiest, service })),
    ...others.slice(0, 8).map((metric) => ({ metric, service: first })),
  ])
  const ofEvents = ['spans.error_ratio', 'spans.latency_p95', 'logs.error_count'].flatMap((metric) => [
    ...serviceNames.map((service) => ({ metric, service })),
    { metric },
  ])
  return [...ofMetrics, ...ofEvents]
}

async function statuses(): Promise<Record<string, number>> {
  const found = await control
    .selectFrom('detectors')
    .select(['last_status', (count) => count.fn.countAll<number>().as('n')])
    .groupBy('last_status')
    .execute()
  return Object.fromEntries(found.map(({ last_status, n }) => [last_status ?? 'never', n]))
}
