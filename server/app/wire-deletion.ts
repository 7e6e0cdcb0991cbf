// Wires everything that an erasure reaches: the engine, derived stores, legal holds and policy, the journal
// and the register of backups. The rooms don't know each other.

import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { ErasureJournal, JournalEntry } from '../backup/journal.ts'
import { BackupRegister } from '../backup/register.ts'
import type { Config } from '../config.ts'
import type { Control } from '../control/database.ts'
import { derivedTables } from '../control/derived-tables.ts'
import { actorText, readActorText } from '../core/actor.ts'
import type { Clock } from '../core/clock.ts'
import { CompletionMarks } from '../deletion/attempt/completion-marks.ts'
import type { Failpoint } from '../deletion/attempt/eraser.ts'
import { readRemaining, remainingInTurns } from '../deletion/attempt/remaining-rows.ts'
import { StepStore } from '../deletion/attempt/step-store.ts'
import { DeletionWorker, type DeletionWorkerDeps } from '../deletion/attempt/worker.ts'
import { readHoldsSince } from '../deletion/governance/active-holds.ts'
import { Decisions } from '../deletion/governance/decisions.ts'
import { LegalHolds } from '../deletion/governance/holds.ts'
import { approvalRuleOf, DeletionPolicies } from '../deletion/governance/policy.ts'
import { addGovernanceRoutes } from '../deletion/governance/routes.ts'
import {
  type SecondPersonDeps,
  secondPersonRetest,
  secondPersonTest,
} from '../deletion/governance/second-person.ts'
import { Previews } from '../deletion/preview/preview.ts'
import { addPreviewRoute } from '../deletion/preview/routes.ts'
import { LateRowCounts } from '../deletion/requests/late-row-counts.ts'
import { RequestQueries } from '../deletion/requests/queries.ts'
import { queuesOf } from '../deletion/requests/queue.ts'
import type { RecordedErasure, StoredDeletion } from '../deletion/requests/request.ts'
import { workingStatuses } from '../deletion/requests/states.ts'
import { RequestStore } from '../deletion/requests/store.ts'
import { Visibility } from '../deletion/requests/visibility.ts'
import { addRetentionRoutes } from '../deletion/retention/routes.ts'
import { RetentionStore, retentionRetest } from '../deletion/retention/store.ts'
import { RetentionWorker } from '../deletion/retention/worker.ts'
import { addDeletionRoutes } from '../deletion/routes.ts'
import { clearRunResults } from '../detection/anomalies/anomaly-erasure.ts'
import { forgetReleasedVersions } from '../detection/anomalies/held-anomalies.ts'
import type { DiskWatch } from '../disk/disk-watch.ts'
import { type TelemetryEngine, withGrowingTimeouts } from '../telemetry/engine.ts'
import type { LocalEngineFiles } from '../telemetry/engine-files.ts'
import type { Fences } from '../telemetry/fences.ts'
import type { TelemetryGate } from '../telemetry/gate.ts'
import type { ErasureLocks } from '../telemetry/placement-locks.ts'
import { areRelated, findRelated } from '../tenancy/lineage.ts'
import type { TenancyStore } from '../tenancy/store.ts'
import { readingOf } from '../worker/clock-watch.ts'
import { derivedStores } from './derived-stores.ts'
import { flushErasedEverywhere } from './erased-flush-everywhere.ts'
import { weighingForAnswers, weighingOf } from './wire-row-weights.ts'

/** How erasures run; as usual where absent. */
export type ErasingOptions = Pick<DeletionWorkerDeps, 'attemptsAtOnce' | 'fewRows'>

interface DeletionNeeds {
  readonly config: Config
  readonly clock: Clock
  readonly trustedNowMs: () => Promise<number | null>
  readonly logger: FastifyBaseLogger
  readonly failpoint: Failpoint
  readonly erasing: ErasingOptions
  readonly disk: DiskWatch
  readonly engine: TelemetryEngine
  readonly files: LocalEngineFiles
  readonly control: Control
  readonly gate: TelemetryGate
  readonly fences: Fences
  readonly locks: ErasureLocks
  readonly tenancy: TenancyStore
  readonly journal: ErasureJournal
}

export interface WiredDeletion {
  readonly worker: DeletionWorker
  readonly requests: RequestQueries
  readonly holds: LegalHolds
  readonly backups: BackupRegister
  readonly lateRows: LateRowCounts
  /** Whether an erasure is due that would act in the next pass. */
  isDue(): Promise<boolean>
  /** One pass of everything that erases or prepares an erasure. */
  round(signal: AbortSignal): Promise<void>
  /** `nudge` wakes the loop. */
  addRoutes(http: FastifyInstance, nudge: () => void): void
}

export function wireDeletion(needs: DeletionNeeds): WiredDeletion {
  const { clock, control } = needs
  const secondPerson = secondPersonOf(needs)
  const backups = new BackupRegister(control, clock)
  const holds = new LegalHolds(control, clock, findRelated, forgetReleasedVersions)
  const visibility = new Visibility(needs.fences, clock)
  const requestStore = new RequestStore({
    control,
    clock,
    visibility,
    findRelated,
    secondPersonTest: (...asked) => secondPersonTest(secondPerson.forClients, ...asked),
    secondPersonRetest: (...asked) => secondPersonRetest(secondPerson.forAttempts, ...asked),
    retentionRetest: (request) => retentionRetest(needs.trustedNowMs, request),
    clearDerived: clearRunResults,
  })
  const requests = new RequestQueries(control, (requestIds) => backups.containing(requestIds))
  const worker = createWorker(needs, { holds, requests, requestStore, visibility })
  const lateRows = new LateRowCounts(requestStore)
  const retentionStore = new RetentionStore(control, clock, findRelated)
  // The loop is created later; until then nudges do nothing.
  let nudgeLoop = () => {}
  const rooms = {
    backups,
    holds,
    requests,
    requestStore,
    worker,
    retentionStore,
    activeHolds: holds.active.bind(holds),
    findPlace: secondPerson.forClients.findPlace,
    secondPerson: secondPerson.forClients,
    nudge: () => {
      worker.wake()
      nudgeLoop()
    },
  }
  const retention = new RetentionWorker({
    ...needs,
    ...rooms,
    store: retentionStore,
    holdsSince: (tenantId, sinceMs) => readHoldsSince(control, tenantId, sinceMs),
    ruleOf: (tenantId) => approvalRuleOf(control, tenantId, readingOf(clock)),
  })
  return {
    worker,
    requests,
    holds,
    backups,
    lateRows,
    async isDue() {
      const waiting = await requests.inStatus(['scheduled', ...workingStatuses])
      return queuesOf(waiting, clock.nowMs()).some((queue) => queue.length > 0)
    },
    async round(signal) {
      // Both only write to the control plane what a person's HTTP request may write at any moment too.
      await worker.round(signal, [() => retention.round(signal), () => lateRows.flush()])
    },
    addRoutes(http, nudge) {
      nudgeLoop = nudge
      addAllRoutes(http, needs, rooms)
    },
  }
}

/** What the rule of a second person needs: while a client waits, and before an attempt. */
function secondPersonOf({ control, engine, logger, tenancy }: DeletionNeeds) {
  const findPlace = tenancy.findOrganisation.bind(tenancy)
  const forClients: SecondPersonDeps = {
    ...{ control, findPlace, findRelated, logger },
    readRemaining: remainingInTurns(engine),
  }
  // Nobody waits for the result, and until it is known the request stays hidden.
  const patient = withGrowingTimeouts(engine, logger)
  const forAttempts: SecondPersonDeps = {
    ...forClients,
    readRemaining: (...asked) => readRemaining(patient, ...asked),
  }
  return { forClients, forAttempts }
}

interface Rooms {
  readonly backups: BackupRegister
  readonly holds: LegalHolds
  readonly requests: RequestQueries
  readonly requestStore: RequestStore
  readonly worker: DeletionWorker
  readonly retentionStore: RetentionStore
  readonly secondPerson: SecondPersonDeps
  readonly activeHolds: LegalHolds['active']
  readonly nudge: () => void
}

function addAllRoutes(http: FastifyInstance, needs: DeletionNeeds, rooms: Rooms): void {
  const { clock, control, locks } = needs
  const { backups, holds, worker } = rooms
  const previews = new Previews({
    ...needs,
    ...rooms,
    weighRows: weighingForAnswers(needs),
    derivedStores: derivedStores(control),
    knownBackups: async () => (await backups.containing()).all,
    approvalCause: async (asker, selection) =>
      (await secondPersonTest(rooms.secondPerson, asker, selection, readingOf(clock), asker.signal))(control),
  })
  const decisions = new Decisions({
    ...rooms,
    clock,
    verifyAgain: worker.verifyAgain.bind(worker),
    areRelated: (tenantId, first, second) => areRelated(control, tenantId, first, second),
  })
  addDeletionRoutes(http, { ...rooms, decisions, clock, checkPreview: previews.check.bind(previews) })
  addPreviewRoute(http, previews)
  addGovernanceRoutes(http, {
    ...rooms,
    policies: new DeletionPolicies(control, clock),
    // Nothing is erased from the placement meanwhile, so no step acts that has not read the hold.
    placeHold: ({ tenantId, placement, requester }, body) =>
      locks.writes.exclusively([placement], () => holds.place(tenantId, body, requester)),
  })
  addRetentionRoutes(http, { ...rooms, retention: rooms.retentionStore })
}

function createWorker(
  {
    clock,
    config,
    control,
    disk,
    engine,
    erasing,
    failpoint,
    fences,
    files,
    gate,
    journal,
    locks,
    logger,
    tenancy,
    trustedNowMs,
  }: DeletionNeeds,
  rooms: {
    readonly holds: LegalHolds
    readonly requests: RequestQueries
    readonly requestStore: RequestStore
    readonly visibility: Visibility
  },
): DeletionWorker {
  return new DeletionWorker({
    ...rooms,
    steps: new StepStore(control),
    completionMarks: new CompletionMarks(withGrowingTimeouts(engine, logger)),
    engine,
    files,
    gate,
    fences,
    locks,
    clock,
    trustedNowMs,
    logger,
    failpoint,
    ...erasing,
    faultBehind: (error) => disk.faultBehind(error),
    findPlace: (tenantId) => tenancy.findPlace(tenantId),
    weighRows: weighingOf({ engine, tenancy }),
    activeHolds: (tenantId) => rooms.holds.active(tenantId),
    journal: async (request, { placement }) =>
      journal.append(entryOf(request, placement, await tenancy.foundingHash(request.tenantId))),
    journalled: async () => (await journal.read()).map(erasureOf),
    derivedStores: derivedStores(control),
    foundingHash: (tenantId) => tenancy.foundingHash(tenantId),
    flushControl: (tenantId) => flushErasedEverywhere({ config, control }, derivedTables, tenantId),
  })
}

/** Returns the journal's entry of a request. */
function entryOf(request: StoredDeletion, placement: number, foundingHash: string | null): JournalEntry {
  return {
    request_id: request.requestId,
    tenant_id: request.tenantId,
    placement,
    scope: request.scope,
    signals: [...request.signals],
    range_start_ns: request.range.startNs?.toString() ?? null,
    range_end_ns: request.range.endNs?.toString() ?? null,
    requested_by: actorText(request.requestedBy),
    created_at_ms: request.createdAtMs,
    refuse_late: request.refuseLate,
    reason: request.reason,
    ...approvalFields(request),
    ...(foundingHash !== null && { founding_hash: foundingHash }),
  }
}

function approvalFields({ approval }: StoredDeletion): Partial<JournalEntry> {
  if (approval === null) return {}
  const { atMs, by } = approval
  return { approved_by: actorText(by), ...(atMs !== null && { approved_at_ms: atMs }) }
}

function erasureOf(entry: JournalEntry): RecordedErasure {
  return {
    requestId: entry.request_id,
    tenantId: entry.tenant_id,
    scope: entry.scope,
    signals: entry.signals,
    range: { startNs: nsOf(entry.range_start_ns), endNs: nsOf(entry.range_end_ns) },
    requestedBy: readActorText(entry.requested_by),
    createdAtMs: entry.created_at_ms,
    refuseLate: entry.refuse_late,
    reason: entry.reason,
    approval:
      entry.approved_by === undefined
        ? null
        : { by: readActorText(entry.approved_by), atMs: entry.approved_at_ms ?? null },
    foundingHash: entry.founding_hash ?? null,
  }
}

function nsOf(text: string | null): bigint | null {
  return text === null ? null : BigInt(text)
}
