// Fixtures for the tests of this room: a real control plane in its own folder, with two organisations because a test
// with one cannot detect a leak, and spans for a real engine.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { openSharedControlPlane, type SharedTestControl } from '../../tests/control-planes.ts'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import type { TelemetryEngine, TenantPlace } from '../telemetry/engine.ts'
import { insertFixture } from '../telemetry/row-fixture.ts'
import { tables } from '../telemetry/schema/tables.ts'
import { raw } from '../telemetry/sql.ts'
import type { Finding } from './anomalies/findings.ts'
import { type DetectorDefinition, readDraft, type StoredDetector } from './detectors/detector.ts'
import type { DetectionStore } from './detectors/store.ts'

export const acme: TenantPlace = { tenantId: 'acme', placement: 0 }
export const globex: TenantPlace = { tenantId: 'globex', placement: 1 }

/** Friday 2026-09-11. */
export const noonMs = Date.UTC(2026, 8, 11, 12)

export interface ControlFixture extends SharedTestControl {
  /** For whatever else a test opens, such as an engine. */
  readonly folder: string
  /** Removes every detector, with all that is stored of it, and every legal hold. */
  readonly clear: () => Promise<void>
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
  const clear = async () => {
    for (const table of derivedTables) await plane.control.deleteFrom(table).execute()
  }
  const close = async () => {
    await plane.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { ...plane, folder, clear, close }
}

/** Those that name another come before it. */
const derivedTables = [
  'legal_holds',
  'held_anomaly_versions',
  'anomalies',
  'detector_mutes',
  'detectors',
] as const

export interface DetectionFixture extends ControlFixture {
  readonly engine: TelemetryEngine
}

/** The control plane of {@link openControl} beside an engine; `clear` removes the telemetry too. */
export async function openControlAndEngine(): Promise<DetectionFixture> {
  const fixture = await openControl()
  const engine = await openChdb({ folder: join(fixture.folder, 'telemetry'), maxMemoryBytes: 2 ** 30 })
  const clear = async () => {
    for (const { name } of tables) await engine.command(raw(`TRUNCATE TABLE ${name}`))
    await fixture.clear()
  }
  const close = async () => {
    await engine.close()
    await fixture.close()
  }
  return { ...fixture, engine, clear, close }
}

/** The definition of a draft that must be valid. */
export function definitionOf(draft: Readonly<Record<string, unknown>>): DetectorDefinition {
  const read = readDraft(draft)
  assert('definition' in read, JSON.stringify(read))
  return read.definition
}

/** A minute detector of the errors of each service, whose baseline is ready after half an hour. */
export const minuteOfErrors = {
  name: 'Errors',
  metric_key: 'spans.error_ratio',
  method_key: 'robust_band',
  params: { warmup_points: 30, window_points: 60, min_abs_dev: 0.1, cooldown_minutes: 0 },
  scope: { group_by: 'service' },
  window_minutes: 120,
  schedule_minutes: 1,
} as const

/** A finding of the service `checkout` that has ended, raised when it was seen last. */
export function findingOf(startedNs: bigint, seenUntilNs: bigint, more: Partial<Finding>): Finding {
  return {
    groupKey: '{"service":"checkout"}',
    startedNs,
    seenUntilNs,
    raisedNs: seenUntilNs,
    isOpen: false,
    peakNs: startedNs,
    value: 120,
    expected: null,
    lower: null,
    upper: 100,
    score: 1.2,
    reason: 'queue.length 120, expected at most 100',
    isMuted: false,
    edgeFactor: 1,
    alsoRead: [],
    ...more,
  }
}

/** Creates a detector of the error ratio by service. */
export async function createErrorsDetector(
  store: DetectionStore,
  tenantId: string,
  isEnabled = true,
): Promise<StoredDetector> {
  const definition = definitionOf({
    name: 'Errors',
    metric_key: 'spans.error_ratio',
    method_key: 'robust_band',
    params: {},
    scope: { group_by: 'service' },
    window_minutes: 60,
    schedule_minutes: 60,
    enabled: isEnabled,
  })
  assert('value' in read)
  return store.createDetector(tenantId, read.value, tokenNamed('me'))
}

export interface FixtureSpan {
  readonly service: string
  readonly atNs: bigint
  readonly durationMs?: number
  readonly isError?: boolean
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
