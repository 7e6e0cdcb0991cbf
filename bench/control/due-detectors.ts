// A round of detectors that are all due, on each control plane in turn, in this process and over an engine
// without telemetry: what is compared is reading their definitions and recording their runs.

import { readConfig } from '../../server/config.ts'
import { openControlAt } from '../../server/control/control-address.ts'
import type { Control } from '../../server/control/database.ts'
import { figuresOf } from '../../server/control/dialect.ts'
import { migrate } from '../../server/control/migrate.ts'
import { operatorActor } from '../../server/core/actor.ts'
import { ManualClock } from '../../server/core/manual-clock.ts'
import { readActiveHolds } from '../../server/deletion/governance/active-holds.ts'
import { definitionOf } from '../../server/detection/detection-fixture.ts'
import { DetectionStore } from '../../server/detection/detectors/store.ts'
import { EvaluationPool } from '../../server/detection/runs/evaluation-pool.ts'
import { DetectorRunner } from '../../server/detection/runs/runner.ts'
import { runDueDetectors } from '../../server/detection/runs/worker.ts'
import { openChdb } from '../../server/telemetry/chdb.ts'
import { TelemetryGate } from '../../server/telemetry/gate.ts'
import { report, say } from '../report.ts'
import { rounded, timed } from '../samples.ts'

interface DueOptions {
  readonly folder: string
  /** `address` is a LETHE_CONTROL_URL. */
  readonly planes: readonly { readonly name: string; readonly address: string }[]
  readonly detectors: number
  readonly rounds: number
}

const organisations = 4
const scheduleMs = 300_000
const log = (facts: unknown) => say(JSON.stringify(facts))
const logger = { warn: log, error: log }

export async function measureDetectors({ detectors, folder, planes, rounds }: DueOptions): Promise<void> {
  const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 30 })
  const evaluations = new EvaluationPool()
  const controls: Control[] = []
  const clock = new ManualClock(Date.parse('2026-01-05T00:00:00Z'))
  try {
    const opened = []
    for (const { address, name } of planes) {
      const control = openControlAt(readConfig({ LETHE_CONTROL_URL: address }).control)
      controls.push(control)
      await migrate(control)
      const gate = new TelemetryGate()
      const store = new DetectionStore(control, clock, gate, readActiveHolds)
      await createDetectors(control, store, detectors)
      const runner = new DetectorRunner({ store, engine, gate, clock, logger, evaluations })
      opened.push({ name, control, store, runner, ms: 0, statements: 0, runs: 0 })
    }
    for (let round = 0; round <= rounds; round++) {
      await clock.advance(scheduleMs)
      for (const plane of opened) {
        const before = figuresOf(plane.control).statements
        const work = { ...plane, clock, logger }
        const { value, ms } = await timed(() => runDueDetectors(work, new AbortController().signal))
        // The first round is for warming up.
        if (round === 0) continue
        plane.ms += ms
        plane.runs += value
        plane.statements += figuresOf(plane.control).statements - before
      }
    }
    const [first] = opened
    report(
      `Rounds of ${detectors} due detectors, without telemetry`,
      ...opened.map((plane) => ({
        'control plane': plane.name,
        'runs a second': Math.round((plane.runs / plane.ms) * 1000),
        'SQLite = 1': rounded(plane.runs / plane.ms / ((first?.runs ?? 0) / (first?.ms ?? 1))),
        'statements a run': rounded(plane.statements / plane.runs),
      })),
    )
  } finally {
    await evaluations.close()
    for (const control of controls) await control.destroy()
    await engine.close()
  }
}

async function createDetectors(control: Control, store: DetectionStore, count: number): Promise<void> {
  for (let placement = 0; placement < organisations; placement++) {
    const tenant_id = `org-${placement}`
    await control
      .insertInto('organisations')
      .values({ tenant_id, name: tenant_id, placement, created_at_ms: 0 })
      .execute()
  }
  for (let at = 0; at < count; at++) {
    const definition = definitionOf({
      name: `detector ${at}`,
      metric_key: `metric_${at}`,
      method_key: 'robust_band',
      params: {},
      scope: {},
      window_minutes: 1440,
      schedule_minutes: scheduleMs / 60_000,
      enabled: true,
    })
    await store.createDetector(`org-${at % organisations}`, definition, operatorActor('bench'))
  }
}
