// Fixtures for the tests of this room: a real control plane in its own folder, with two organisations because
// a test with one cannot detect a leak, and spans for a real engine.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { openSharedControlPlane, type SharedTestControl } from '../../tests/control-planes.ts'
import { temporaryFolder } from '../../tests/fixtures.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import type { TelemetryEngine, TenantPlace } from '../telemetry/engine.ts'
import { insertFixture } from '../telemetry/row-fixture.ts'
import { readDraft, type StoredDetector } from './detectors/detector.ts'
import type { DetectionStore } from './detectors/store.ts'

export const acme: TenantPlace = { tenantId: 'acme', placement: 0 }
export const globex: TenantPlace = { tenantId: 'globex', placement: 1 }

export interface ControlFixture extends SharedTestControl {
  /** For whatever else a test opens, such as an engine. */
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

/** Creates a detector of the error ratio by service. */
export async function createErrorsDetector(
  store: DetectionStore,
  tenantId: string,
  isEnabled = true,
): Promise<StoredDetector> {
  const read = readDraft({
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
