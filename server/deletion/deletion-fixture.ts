// Erasing on real stores, for tests: two organisations with identical rows, and a worker with the real store
// of requests, holds and engine. Every scene has placements of its own, so scenes can share stores.

import assert from 'node:assert/strict'
import { batchOf, type Stores, silent, tableSpec } from '../../tests/fixtures.ts'
import { derivedStores as derivedStoresOf } from '../app/derived-stores.ts'
import type { Control } from '../control/database.ts'
import { derivedTables } from '../control/derived-tables.ts'
import { erasedFlushOf } from '../control/erased-flush.ts'
import type { Actor } from '../core/actor.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import { storageFaultOf } from '../core/storage-fault.ts'
import { clearRunResults } from '../detection/anomalies/anomaly-erasure.ts'
import type { DerivedStore } from '../telemetry/derived-store.ts'
import { type TelemetryEngine, type TenantPlace, withGrowingTimeouts } from '../telemetry/engine.ts'
import { type Fences, ProcessFences } from '../telemetry/fences.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { type ErasureLocks, memoryLocks } from '../telemetry/placement-locks.ts'
import { encodeFixture } from '../telemetry/row-fixture.ts'
import { weighRows } from '../telemetry/row-weights.ts'
import { insertColumns } from '../telemetry/schema/create-schema.ts'
import { placeColumns, type TableName } from '../telemetry/schema/tables.ts'
import { raw, sql } from '../telemetry/sql.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { findRelated } from '../tenancy/lineage.ts'
import { CompletionMarks } from './attempt/completion-marks.ts'
import type { ErasingLimits } from './attempt/eraser.ts'
import { StepStore } from './attempt/step-store.ts'
import { DeletionWorker } from './attempt/worker.ts'
import { LegalHolds } from './governance/holds.ts'
import { nothingErased } from './governance/remaining.ts'
import { secondPersonCause, secondPersonRetest } from './governance/second-person.ts'
import type { DeletionDraft } from './requests/draft.ts'
import { RequestQueries } from './requests/queries.ts'
import type { RecordedErasure } from './requests/request.ts'
import { RequestStore } from './requests/store.ts'
import { Visibility } from './requests/visibility.ts'
import { retentionRetest } from './retention/store.ts'

export const hourNs = 3_600_000_000_000n
/** Monday 2026-01-05T00:00:00Z: weeks are the engine's partitions. */
export const monday = 1_767_571_200_000_000_000n
export const weekNs = 7n * 24n * hourNs
/** Two weeks of rows, one an hour. */
export const times = Array.from({ length: 2 * 7 * 24 }, (_, hour) => monday + BigInt(hour) * hourNs)

export const all: DeletionDraft = {
  scope: 'all',
  signals: ['metrics', 'logs', 'traces'],
  range: { startNs: null, endNs: null },
  reason: null,
  note: null,
  delayMinutes: 0,
  refuseLate: false,
}

export const between = (startNs: bigint | null, endNs: bigint): DeletionDraft => ({
  ...all,
  scope: 'range',
  range: { startNs, endNs },
})

/**
 * One table of each signal. The tables of a signal are erased one after the other, by the same statements.
 */
const usualTables: readonly TableName[] = ['otel_metrics_gauge', 'otel_logs', 'otel_traces']

/** Partitions are small, so `fewRows: 0` copies survivors before the lock, and the usual number under it. */
export interface SceneOptions extends ErasingLimits {
  /** The tables that have rows; one of each signal where absent. */
  readonly tables?: readonly TableName[]
  /** Both organisations in one placement. */
  readonly isShared?: boolean
  readonly clock?: Clock
  /** The service's own where absent. */
  readonly derivedStores?: readonly DerivedStore[]
  /** One at a time where absent, so that failpoints come in one order. */
  readonly attemptsAtOnce?: number
}

export type Scene = Awaited<ReturnType<typeof sceneOf>>

/** The objects that every start of the service creates. */
interface Started {
  readonly gate: TelemetryGate
  readonly fences: Fences
  readonly locks: ErasureLocks
  readonly visibility: Visibility
  readonly requestStore: RequestStore
}

let serial = 0

/** Creates two organisations with the same rows, and a started worker. */
export async function sceneOf(stores: Stores, options: SceneOptions = {}) {
  const { clock = systemClock, isShared = false, tables = usualTables, ...rest } = options
  const derivedStores = options.derivedStores ?? derivedStoresOf(stores.control)
  const { own, neighbour } = placesOf(++serial, isShared)
  const fill = () => fillAll(stores, tables, [own, neighbour])
  await fill()
  await new CompletionMarks(stores.engine).prepare()
  const requests = new RequestQueries(stores.control, async () => ({ all: [], fromBefore: () => [] }))
  const holds = new LegalHolds(stores.control, clock, findRelated)
  const faults = new Faults()
  const journal: RecordedErasure[] = []
  const founded: { hash: string | null } = { hash: 'first entry' }
  const newWorker = (start: Started, engine: TelemetryEngine) =>
    new DeletionWorker({
      attemptsAtOnce: 1,
      ...start,
      requests,
      steps: new StepStore(stores.control),
      completionMarks: new CompletionMarks(withGrowingTimeouts(engine)),
      engine,
      files: stores.files,
      clock: waitingFor(clock),
      trustedNowMs: async () => clock.nowMs(),
      logger: silent,
      findPlace: async (tenantId) => [own, neighbour].find((place) => place.tenantId === tenantId) ?? null,
      foundingHash: async () => founded.hash,
      weighRows: (place) => weighRows(stores.engine, place, isShared),
      activeHolds: (tenantId) => holds.active(tenantId),
      journal: async (request) => void journal.push({ ...request, foundingHash: founded.hash }),
      journalled: async () => journal,
      derivedStores,
      flushControl: (tenantId) => erasedFlushOf(stores.control).flush(derivedTables, tenantId),
      failpoint: (name) => faults.reach(name),
      faultBehind: async (error) => storageFaultOf(error),
      ...rest,
    })
  /** Creates the objects that every start of the service creates. */
  const started = (engine = stores.engine) => {
    const start = startOn(stores.control, clock)
    return { ...start, worker: newWorker(start, engine) }
  }
  const first = started()
  const { gate, requestStore, worker } = first
  return {
    ...first,
    own,
    neighbour,
    /** The tables that have rows. */
    tables,
    requests,
    holds,
    faults,
    journal,
    /** Hash of the first audit entry of the organisations. */
    founded,
    fill,
    count: (place: TenantPlace, table: TableName) => storedRows(stores, place, table),
    visible: (place: TenantPlace, table: TableName, through = gate) =>
      visibleRows(stores, place, table, through),
    /** Creates a worker with an empty gate, as the next start of the service does. */
    restarted: started,
    async request(draft: DeletionDraft, requester: Actor = tokenNamed('owner')) {
      const by = { requester, idempotencyKey: null }
      const { isNew, row } = await requestStore.create(own.tenantId, draft, by)
      return { isNew, request: await requests.wireForm(row) }
    },
    status: (requestId: string) => requests.get(own.tenantId, requestId),
    round: () => worker.round(new AbortController().signal),
  }
}

function startOn(control: Control, clock: Clock): Started {
  const gate = new TelemetryGate()
  const fences = new ProcessFences(gate)
  const visibility = new Visibility(fences, clock)
  return {
    gate,
    fences,
    locks: memoryLocks(),
    visibility,
    requestStore: storeShowing(visibility, control, clock),
  }
}

/** Creates a store of requests with a gate that no test reads. */
export function requestStoreOn(control: Control, clock: Clock): RequestStore {
  return startOn(control, clock).requestStore
}

/**
 * Creates a store that asks for a second person as the service does, except that no deletion counts as all
 * that is stored, unless another test is given.
 */
export function storeShowing(
  visibility: Visibility,
  control: Control,
  clock: Clock,
  secondPersonTest: ConstructorParameters<typeof RequestStore>[0]['secondPersonTest'] = async (
    asker,
    selection,
    at,
  ) =>
    (trx) =>
      secondPersonCause(trx, findRelated, asker, selection, at, nothingErased),
): RequestStore {
  const needs = {
    ...{ control, findRelated, logger: silent },
    findPlace: async (tenantId: string) => ({ tenantId, placement: 0 }),
    readRemaining: async () => nothingErased,
  }
  return new RequestStore({
    ...{ control, clock, visibility, findRelated, secondPersonTest },
    secondPersonRetest: (...asked) => secondPersonRetest(needs, ...asked),
    retentionRetest: (request) => retentionRetest(async () => clock.nowMs(), request),
    clearDerived: clearRunResults,
  })
}

async function fillAll(
  { engine }: Stores,
  tables: readonly TableName[],
  places: readonly TenantPlace[],
): Promise<void> {
  for (const place of places) {
    for (const name of tables) {
      const columns = insertColumns(tableSpec(name))
      const placed = encodeFixture(columns.slice(0, placeColumns.length), place, [{}])
      await engine.insert(name, columns, [Buffer.concat(unplacedRows(name).flatMap((row) => [placed, row]))])
    }
  }
}

const encoded = new Map<TableName, readonly Buffer[]>()

/** The rows of a scene without their first columns, the only ones in which scenes differ. */
function unplacedRows(name: TableName): readonly Buffer[] {
  const known = encoded.get(name)
  if (known !== undefined) return known
  const columns = insertColumns(tableSpec(name)).slice(placeColumns.length)
  // Encoded for no place, because no column of it is asked for.
  const nowhere = { tenantId: '', placement: 0 }
  const rows = batchOf(name, times).rows.map((row) => encodeFixture(columns, nowhere, [row]))
  encoded.set(name, rows)
  return rows
}

function placesOf(number: number, isShared: boolean): { own: TenantPlace; neighbour: TenantPlace } {
  const placement = 2 * number
  return {
    own: { tenantId: `own-${number}`, placement },
    neighbour: { tenantId: `neighbour-${number}`, placement: placement + (isShared ? 0 : 1) },
  }
}

/** A clock whose waits are real, whatever time a test sets: the engine removes parts in real time. */
function waitingFor(clock: Clock): Clock {
  return {
    nowMs: () => clock.nowMs(),
    nowNs: () => clock.nowNs(),
    steady: () => clock.steady(),
    elapsedMs: () => clock.elapsedMs(),
    sleep: systemClock.sleep,
  }
}

/** The actions at the failpoints of a scene. */
class Faults {
  /** Failpoints that were reached, in order. */
  readonly points: string[] = []
  #failAt: string | null = null
  #hookAt: string | null = null
  #hook: () => void | Promise<void> = () => {}

  failOnceAt(name: string): void {
    this.#failAt = name
  }

  runAt(name: string, work: () => void | Promise<void>): void {
    this.#hookAt = name
    this.#hook = work
  }

  async reach(name: string): Promise<void> {
    this.points.push(name)
    if (name === this.#hookAt) await this.#hook()
    if (name !== this.#failAt) return
    this.#failAt = null
    throw new Error(`ended at ${name}`)
  }
}

async function storedRows({ engine }: Stores, { tenantId }: TenantPlace, table: TableName): Promise<number> {
  const [row] = await engine.select<{ n: string }>(
    sql`select count() as n from ${raw(table)} where TenantId = ${tenantId}`,
  )
  return Number(row?.n)
}

async function visibleRows(
  { engine }: Stores,
  place: TenantPlace,
  table: TableName,
  gate: TelemetryGate,
): Promise<number> {
  const reader = new TenantReader(engine, place, gate)
  const [row] = await reader.rows<{ n: string }>((from) => sql`select count() as n from ${from(table)}`)
  return Number(row?.n)
}

/** Asserts how many rows each table of the organisation has, and that its neighbour has all of its own. */
export async function assertRows(scene: Scene, left: number): Promise<void> {
  for (const name of scene.tables) {
    assert.equal(await scene.count(scene.own, name), left, `${name} of the organisation that erased`)
    assert.equal(await scene.count(scene.neighbour, name), times.length, `${name} of the neighbour`)
  }
}
