// Fixtures for the tests of this room: a real control plane and engine in a folder of their own, with two
// organisations because a test with one cannot detect a leak; spans with failures around one noon; and the
// findings of a run about them.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { SharedTestControl } from '../../tests/control-plane.ts'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { openChdb } from '../telemetry/chdb.ts'
import type { ErasedPart } from '../telemetry/derived-store.ts'
import type { TelemetryEngine, TenantPlace } from '../telemetry/engine.ts'
import type { HeldPart } from '../telemetry/held-part.ts'
import { insertFixture } from '../telemetry/row-fixture.ts'
import { eraseAnomaliesIn } from './anomalies/anomaly-erasure.ts'
import type { RunFound, RunRecord } from './anomalies/anomaly-rows.ts'
import type { Finding } from './anomalies/findings.ts'
import { type DetectorDefinition, readDraft, type StoredDetector } from './detectors/detector.ts'
import type { DetectionStore } from './detectors/store.ts'

export const acme: TenantPlace = { tenantId: 'acme', placement: 0 }
export const globex: TenantPlace = { tenantId: 'globex', placement: 1 }

/** Noon of 2026-09-11, around which everything happens. */
export const noonMs = Date.UTC(2026, 8, 11, 12)
const minuteMs = 60_000

/** Nanoseconds, some minutes after noon. */
export function atNs(minute: number, ms = 0): bigint {
  return BigInt(Math.round(noonMs + minute * minuteMs + ms)) * 1_000_000n
}

export interface ControlFixture extends SharedTestControl {
  /** A folder for other stores of a test, such as an engine. */
  readonly folder: string
}

/** Opens a migrated control plane with `acme` and `globex`. `close` removes the folder. */
export async function openControl(): Promise<ControlFixture> {
  const plane = await openSharedControlPlane()
  const folder = temporaryFolder()
  for (const { tenantId, placement } of [acme, globex]) {
    await plane.control
      .insertInto('organisations')
      .values({ tenant_id: tenantId, name: tenantId, placement, created_at_ms: 0 })
      .execute()
  }
  const close = async () => {
    await plane.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { ...plane, folder, close }
}

export interface StoresFixture extends ControlFixture {
  readonly engine: TelemetryEngine
}

/** The same with an empty engine. One at a time per process: that is the engine's rule. */
export async function openControlAndEngine(): Promise<StoresFixture> {
  const fixture = await openControl()
  const engine = await openChdb({ folder: join(fixture.folder, 'telemetry'), maxMemoryBytes: 2 ** 30 })
  const close = async () => {
    await engine.close()
    await fixture.close()
  }
  return { ...fixture, engine, close }
}

/** Removes every detector, and what belongs to detectors. Fails while a legal hold keeps an anomaly. */
export async function removeDetectors({ control }: ControlFixture): Promise<void> {
  for (const table of ['held_anomaly_versions', 'anomalies', 'detector_mutes', 'detectors'] as const) {
    await control.deleteFrom(table).execute()
  }
}

/**
 * Erases what an attempt would erase of anomalies while these parts are held. Returns how many were removed
 * and redacted.
 */
export function eraseAnomalies(
  { control }: ControlFixture,
  tenantId: string,
  part: ErasedPart,
  held: readonly HeldPart[] = [],
) {
  const readHolds = async () => held.map((hold, i) => ({ ...hold, holdId: `hld_${i}` }))
  return eraseAnomaliesIn(control, tenantId, part, { readHolds, alone: (work) => work() })
}

/** The definition of a draft that must be valid. */
export function definitionOf(draft: Readonly<Record<string, unknown>>): DetectorDefinition {
  const read = readDraft(draft)
  assert('value' in read, JSON.stringify(read))
  return read.value
}

/**
 * A detector of the error ratio of each service that runs every minute, with a baseline that is ready within
 * its window.
 */
export const errorsDraft = {
  name: 'Errors',
  metric_key: 'spans.error_ratio',
  method_key: 'robust_band',
  params: { warmup_points: 30, window_points: 60, min_abs_dev: 0.1, cooldown_minutes: 0 },
  scope: { group_by: 'service' },
  window_minutes: 120,
  schedule_minutes: 1,
}

export function createErrorsDetector(
  store: DetectionStore,
  { tenantId }: TenantPlace = acme,
  more: Readonly<Record<string, unknown>> = {},
): Promise<StoredDetector> {
  return store.createDetector(tenantId, definitionOf({ ...errorsDraft, ...more }), tokenNamed('me'))
}

/** An anomaly of checkout that began and was last seen at these times. */
export function findingOf(fromNs: bigint, toNs: bigint, more: Partial<Finding> = {}): Finding {
  return {
    groupKey: '{"service":"checkout"}',
    startedNs: fromNs,
    seenUntilNs: toNs,
    raisedNs: toNs,
    isOpen: false,
    peakNs: fromNs,
    value: 0.6,
    expected: 0.012345,
    lower: 0,
    upper: 0.1,
    score: 6,
    reason: 'spans.error_ratio of checkout 0.600, expected 0 to 0.0123',
    isMuted: false,
    edgeFactor: 1,
    alsoRead: [],
    ...more,
  }
}

/** The record of a run that read spans from an hour before noon to an hour after. */
export function runRecordOf(
  detector: StoredDetector,
  ranAtMs: number,
  findings: readonly Finding[],
  more: Partial<RunFound> = {},
): RunRecord {
  return {
    detector,
    ranAtMs,
    nextRunAtMs: ranAtMs + 60 * minuteMs,
    summary: { status: 'anomalous', note: null },
    tuning: null,
    found: {
      findings,
      window: { startNs: atNs(-60), windowStartNs: atNs(-60), judgedUntilNs: null, isTruncated: false },
      signals: ['traces'],
      read: [{ startNs: atNs(-60), endNs: atNs(60) }],
      isLearnt: true,
      isUnknown: () => false,
      ...more,
    },
  }
}

export interface FixtureSpan {
  readonly service: string
  readonly atNs: bigint
  readonly durationMs?: number
  readonly isError?: boolean
}

/** Ten spans in every `stepMinutes`th of the minutes `[from, to)` after noon, of which `errors` fail. */
export function traffic(
  from: number,
  to: number,
  errors = 0,
  service = 'checkout',
  stepMinutes = 1,
): FixtureSpan[] {
  const minutes = Array.from(
    { length: Math.ceil((to - from) / stepMinutes) },
    (_, i) => from + i * stepMinutes,
  )
  return minutes.flatMap((minute) =>
    Array.from({ length: 10 }, (_, n) => ({ service, atNs: atNs(minute, n * 5000), isError: n < errors })),
  )
}

/** Inserts server spans of one organisation. */
export async function insertSpans(
  engine: TelemetryEngine,
  place: TenantPlace,
  spans: readonly FixtureSpan[],
): Promise<void> {
  const rows = spans.map((span, i) => ({
    Timestamp: span.atNs,
    TraceId: String(i),
    SpanName: 'GET /',
    SpanKind: 'Server',
    ServiceName: span.service,
    Duration: String((span.durationMs ?? 5) * 1_000_000),
    StatusCode: span.isError === true ? 'Error' : 'Unset',
  }))
  await insertFixture(engine, place, 'otel_traces', rows)
}

/** Parameters with which each violation is an episode of its own. */
export const alarmAtOnce = { violate_n: 1, window_m: 1, clear_n: 1, cooldown_minutes: 0 } as const
