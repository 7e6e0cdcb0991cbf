// The only module that wires the rooms together. Rooms don't import each other; where one needs another, it
// gets a function here. The order matters twice: what was hidden or fenced is restored before anything is
// served, and a stop lets requests and commits finish before the stores close.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { inTurn, onlyOnce, orClose } from './app/closing.ts'
import { createDeletionLoop } from './app/deletion-loop.ts'
import { foundOrganisation } from './app/found-organisation.ts'
import { assertSameFolder, endLeasesOfOlderVersion, readFolderSecret } from './app/instance.ts'
import { removeLeftCopy, wireBackups } from './app/wire-backups.ts'
import { wireCertificates } from './app/wire-certificates.ts'
import { type ErasingOptions, type WiredDeletion, wireDeletion } from './app/wire-deletion.ts'
import { startError, type WiredDisk, wireDisk } from './app/wire-disk.ts'
import { type WiredHttp, wireClients, wireHttp } from './app/wire-http.ts'
import { type WiredIngest, wireIngest } from './app/wire-ingest.ts'
import { wireRemoval } from './app/wire-removal.ts'
import { weighingForAnswers } from './app/wire-row-weights.ts'
import { addAuditRoutes } from './audit/routes.ts'
import { prepareSeal } from './audit/sealed-keys.ts'
import { SigningKeys } from './audit/signing.ts'
import { ErasureJournal } from './backup/journal.ts'
import { settleRestore } from './backup/restore.ts'
import type { Config } from './config.ts'
import { asking, ControlWatch } from './control/control-watch.ts'
import type { Control } from './control/database.ts'
import { failoverOf } from './control/dialect.ts'
import { openUsable } from './control/open.ts'
import type { Actor } from './core/actor.ts'
import type { Caller } from './core/caller.ts'
import { type Clock, elapsedMs } from './core/clock.ts'
import { instanceOf } from './core/process/instance.ts'
import { version } from './core/process/version.ts'
import { Headroom } from './core/turns/headroom.ts'
import { LoopTurns } from './core/turns/loop-turns.ts'
import type { Failpoint } from './deletion/attempt/eraser.ts'
import { addCertificateRoute } from './deletion/certificate/routes.ts'
import { readActiveHolds } from './deletion/governance/active-holds.ts'
import { dropLooserRule } from './deletion/governance/policy.ts'
import { readKept } from './deletion/retention/kept.ts'
import { DetectionStore } from './detection/detectors/store.ts'
import { addFeedbackRoutes } from './detection/feedback-routes.ts'
import { Incidents } from './detection/incidents/incidents.ts'
import { addIncidentRoutes } from './detection/incidents/routes.ts'
import { SurroundingsReader } from './detection/incidents/surroundings.ts'
import { readMetricNames } from './detection/metric-names.ts'
import { addDetectorPreviewRoutes } from './detection/preview-routes.ts'
import { addDetectionRoutes } from './detection/routes.ts'
import { EvaluationPool, type Evaluations } from './detection/runs/evaluation-pool.ts'
import { DetectorRunner } from './detection/runs/runner.ts'
import { createDetectionWorker } from './detection/runs/worker.ts'
import type { DiskWatch } from './disk/disk-watch.ts'
import type { ClientLimits } from './http/client-limits.ts'
import { ServiceMetrics } from './metrics.ts'
import { addQueryRoutes } from './query/routes.ts'
import { openChdb } from './telemetry/chdb.ts'
import type { ReadShare, TelemetryEngine, TenantPlace } from './telemetry/engine.ts'
import type { LocalEngine } from './telemetry/engine-files.ts'
import { type Fences, ProcessFences } from './telemetry/fences.ts'
import { TelemetryGate } from './telemetry/gate.ts'
import { memoryLocks } from './telemetry/placement-locks.ts'
import { TenantReader } from './telemetry/tenant-reader.ts'
import { addRemovalRoute, addTenancyRoutes } from './tenancy/routes.ts'
import { addSessionRoutes } from './tenancy/session-routes.ts'
import { SessionStore } from './tenancy/sessions.ts'
import { type NewOrganisation, TenancyStore } from './tenancy/store.ts'
import { RefusalCounts } from './usage/refusals.ts'
import { addIngestUsageRoute, addUsageRoutes } from './usage/routes.ts'
import { ClockWatch } from './worker/clock-watch.ts'
import { Leases } from './worker/lease.ts'

interface AppOptions {
  readonly config: Config
  readonly clock: Clock
  readonly logger: FastifyBaseLogger
  /** A point at which a test may end the process; does nothing otherwise. */
  readonly failpoint?: Failpoint
  /** How erasures run; as usual where absent. A test that stops one lets one run at once. */
  readonly erasing?: ErasingOptions
  /** Opens the telemetry engine; {@link openChdb} where absent. A test may keep one open. */
  readonly openEngine?: typeof openChdb
  /** Starts no background work; {@link App.round} runs one pass of it. */
  readonly isManual?: boolean
  /** The command that uses the data folder without being the service; null or absent for the service. */
  readonly command?: string | null
}

export interface App {
  readonly http: FastifyInstance
  readonly tenancy: TenancyStore
  /**
   * Creates an organisation with its first records in one transaction: its detectors and its owner's token.
   */
  createOrganisation(organisation: NewOrganisation, ownerSecret: string): Promise<TenantPlace>
  /**
   * Makes a one-time code that signs in to the console as the token with this secret. Throws where no valid
   * token has it.
   */
  createSignInCode(secret: string, actor: Actor): Promise<string>
  /** Builds the console before it is opened. Rejects where that fails; everything else works then. */
  prepareConsole(): Promise<void>
  /**
   * Listens, runs `beforeReady`, becomes ready and starts the background work; returns the address. So
   * records of the first start are created after the address is taken and before anyone can send requests.
   * Where it fails everything is closed.
   */
  start(beforeReady?: () => Promise<void>): Promise<string>
  /** The address of the admin listener; null before the start, and where there is none. */
  adminAddress(): string | null
  /**
   * The address of OTLP/gRPC, such as `127.0.0.1:4317`; null before the start, and where it is switched off.
   */
  grpcAddress(): string | null
  /** Takes the requested backups; only where the background work was not started. */
  takeBackups(): Promise<void>
  /** Runs one pass of the deletion loop; only where the background work was not started. */
  round(): Promise<void>
  /** Returns a reader with the view of the organisation's own people. */
  readerOf(place: TenantPlace): TenantReader
  /** Resolves when another server has taken over the control-plane database: the process must start again. */
  readonly failedOver: Promise<void>
  /** Refuses new work, finishes what was accepted, closes the stores. Idempotent. */
  close(): Promise<void>
}

/** How many days of metric names are listed for detectors: the longest window of a detector. */
const metricNamesDays = 90
const nsPerDay = 86_400_000_000_000n

/** Opens the stores and wires them together. Nothing is served before {@link App.start}. */
export async function createApp(options: AppOptions): Promise<App> {
  const { config, logger } = options
  const wired = wireDisk(options)
  try {
    return await openApp(options, wired)
  } catch (error) {
    logger.error({ err: error }, 'the service could not start')
    throw await startError(wired.disk, config, error)
  }
}

async function openApp(options: AppOptions, wired: WiredDisk): Promise<App> {
  const { config, logger } = options
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
  const engine = await (options.openEngine ?? openChdb)({
    folder: join(config.dataDir, 'telemetry'),
    maxMemoryBytes: config.engineMemoryBytes,
    backupFolder: config.backupDir,
    commitSync: config.commitSync,
    logger,
    command: options.command ?? null,
    beforeOpen: async () => {
      await wired.disk.prepareStart()
      await removeLeftCopy(config)
      await settleRestore(config)
    },
  })
  try {
    const control = await openUsable(config.control)
    return await orClose(
      () => control.destroy(),
      async () => {
        const folderSecret = readFolderSecret(config.dataDir)
        await assertSameFolder(control, folderSecret)
        await endLeasesOfOlderVersion(control, folderSecret)
        const keys = new SigningKeys(control, options.clock, await prepareSeal(control, config.keySource))
        return wireRooms(options, { engine, control, ...wired, keys })
      },
    )
  } catch (error) {
    await engine.close()
    throw error
  }
}

/** Opens what the rooms share. A clock that is wrong from the start is noticed here, before it is used. */
async function openShared(
  { config, clock, logger, erasing = {}, failpoint = async () => {} }: AppOptions,
  { backupDisk, control, disk, engine, keys }: OpenStores,
) {
  const watch = new ClockWatch({ control, clock, logger })
  const trustedNowMs = () => watch.now()
  await trustedNowMs()
  const tenancy = new TenancyStore(control, clock)
  const sessions = new SessionStore(control, clock)
  const folderSecret = readFolderSecret(config.dataDir)
  const gate = new TelemetryGate()
  const clocks = { clock, watch, trustedNowMs }
  const fencing = { gate, fences: new ProcessFences(gate), locks: memoryLocks() }
  const controlWatch = new ControlWatch({ ask: asking(control), clock, elapsedMs })
  const instance = instanceOf(folderSecret)
  const journal = new ErasureJournal(config.backupDir, instance.journalSeal, backupDisk)
  const rooms = {
    disk,
    backupDisk,
    journal,
    engine,
    files: engine.files,
    control,
    controlWatch,
    keys,
    tenancy,
    sessions,
  }
  return {
    config,
    ...clocks,
    logger,
    erasing,
    failpoint,
    ...fencing,
    ...rooms,
    folderSecret,
    ...instance,
  }
}

interface OpenStores extends WiredDisk {
  readonly engine: LocalEngine
  readonly control: Control
  readonly keys: SigningKeys
}

async function wireRooms(options: AppOptions, opened: OpenStores): Promise<App> {
  const stores = await openShared(options, opened)
  const { clock, control, disk, gate, leaseHolder, logger, trustedNowMs } = stores
  const deletion = wireDeletion(stores)
  const issuing = { ...stores, register: deletion.backups, serviceVersion: version }
  const backups = wireBackups(issuing)
  await backups.settle()
  await deletion.worker.restore()
  let isReady = false
  const limits = wireClients(stores)
  const headroom = Headroom.ofProcess()
  const turns = new LoopTurns({ nowMs: elapsedMs, headroom })
  const refusals = new RefusalCounts(clock)
  const serving = { ...limits, turns, onRefusal: refusals.count.bind(refusals), isReady: () => isReady }
  const ingest = wireIngest({
    ...stores,
    ...serving,
    headroom,
    onLate: (late) => deletion.lateRows.add(late),
  })
  const detectors = new DetectionStore(control, clock, gate, readActiveHolds)
  const evaluations = new EvaluationPool()
  const runner = new DetectorRunner({ ...stores, turns, store: detectors, evaluations })
  const leases = new Leases(control, clock, leaseHolder)
  const { deletionLoop, round } = createDeletionLoop({ ...stores, leases, backups, deletion })
  const detectionLoop = createDetectionWorker({ store: detectors, runner, clock, leases, logger })

  const front = wireHttp({ ...stores, ...serving })
  gate.onHide((tenantId) => front.answers.endOutdated(tenantId))
  const rooms = { deletion, ingest, detectors, runner, evaluations, refusals }
  await addRoutes({ ...stores, ...rooms, ...serving, front })
  deletion.addRoutes(front.http, () => deletionLoop.nudge())
  addCertificateRoute(front.http, wireCertificates(issuing))

  let grpcAddress: string | null = null
  const stopping = new AbortController()
  const close = onlyOnce(async () => {
    isReady = false
    stopping.abort()
    await inTurn([
      () => Promise.all([front.close(), ingest.grpc?.close()]),
      () => Promise.all([deletionLoop.stop(), detectionLoop.stop(), disk.stop()]),
      () => evaluations.close(),
      () => backups.sealed(),
      () => ingest.close(),
      () => disk.withReserve(() => deletion.lateRows.flush()),
      () => opened.engine.close(),
      () => control.destroy(),
    ])
  })
  return {
    http: front.http,
    adminAddress: front.adminAddress,
    prepareConsole: front.prepareConsole,
    ...accessOf(stores),
    failedOver: failoverOf(control),
    grpcAddress: () => grpcAddress,
    async start(beforeReady) {
      const address = await orClose(close, async () => {
        await disk.look()
        const listening = await front.listen()
        grpcAddress = await ingest.listen()
        await beforeReady?.()
        await deletion.worker.eraseWhatCameBack(stopping.signal)
        return listening
      })
      isReady = !stopping.signal.aborted
      if (options.isManual) return address
      disk.start()
      deletionLoop.start()
      detectionLoop.start()
      return address
    },
    async takeBackups() {
      await trustedNowMs()
      await backups.takeAll(stopping.signal)
    },
    round: () => round(stopping.signal).then(() => backups.sealed()),
    readerOf: (place) => new TenantReader(opened.engine, place, gate),
    close,
  }
}

/** Creating organisations and sign-in codes. */
type Access = Pick<App, 'tenancy' | 'createOrganisation' | 'createSignInCode'>

function accessOf({ sessions, tenancy }: Pick<RouteNeeds, 'sessions' | 'tenancy'>): Access {
  return {
    tenancy,
    createOrganisation: (organisation, ownerSecret) =>
      tenancy.createOrganisation(organisation, (trx, nowMs) =>
        foundOrganisation(trx, organisation, ownerSecret, nowMs),
      ),
    async createSignInCode(secret, actor) {
      const caller = await tenancy.findCaller(secret)
      if (caller === null) throw new Error('No access token has this secret.')
      return sessions.createCode(caller, actor)
    },
  }
}

interface RouteNeeds {
  readonly front: WiredHttp
  readonly clients: ClientLimits
  readonly config: Config
  readonly clock: Clock
  readonly watch: ClockWatch
  readonly logger: FastifyBaseLogger
  readonly disk: DiskWatch
  readonly engine: TelemetryEngine
  readonly control: Control
  readonly controlWatch: ControlWatch
  readonly keys: SigningKeys
  readonly gate: TelemetryGate
  readonly fences: Fences
  readonly tenancy: TenancyStore
  readonly sessions: SessionStore
  readonly deletion: WiredDeletion
  readonly ingest: WiredIngest
  readonly detectors: DetectionStore
  readonly runner: DetectorRunner
  readonly evaluations: Evaluations
  readonly refusals: RefusalCounts
  readonly isReady: () => boolean
}

/** Adds all routes except those of erasures, which {@link wireDeletion} adds itself. */
async function addRoutes(needs: RouteNeeds): Promise<void> {
  const { clock, control, deletion, engine, front, gate, ingest } = needs
  const { http } = front
  const isClockInDoubt = () => needs.watch.doubt !== null
  const metrics = new ServiceMetrics({
    ...needs,
    ...ingest,
    requests: deletion.requests,
    connections: front.connections,
    answers: front.answers,
    isClockInDoubt,
  })
  const readerAs =
    (kind: ReadShare['kind']) =>
    ({ placement, signal, tenantId }: Caller) =>
      new TenantReader(engine, { tenantId, placement }, gate, {
        kind,
        signal,
        turn: () => http.turns.turnOf(tenantId),
      })
  const readerOf = readerAs('asked')
  front.addPublicRoutes(metrics, { ...needs, isClockInDoubt })
  addTenancyRoutes(http, needs.tenancy, clock, dropLooserRule)
  addSessionRoutes(http, needs.sessions)
  addRemovalRoute(http, wireRemoval(needs))
  addAuditRoutes(http, { control, clock, keys: needs.keys })
  const keptFor = (tenantId: string, nowMs: number) => readKept(control, tenantId, nowMs)
  addUsageRoutes(http, { ...needs, readerOf, weighRows: weighingForAnswers(needs), keptFor })
  addIngestUsageRoute(http, ingest.quotas)
  addQueryRoutes(http, readerOf, clock)
  addDetectorPreviewRoutes(http, { ...needs, readerOf: readerAs('background') })
  addFeedbackRoutes(http, needs.detectors, readerOf)
  const incidents = new Incidents(needs.detectors, new SurroundingsReader(gate))
  addDetectionRoutes(http, {
    store: needs.detectors,
    incidents,
    runner: needs.runner,
    readerOf,
    clock,
    metricKeysOf: (caller) =>
      readMetricNames(readerOf(caller), clock.nowNs() - BigInt(metricNamesDays) * nsPerDay),
  })
  addIncidentRoutes(http, { incidents, readerOf, clock })
  await ingest.addRoutes(http, (...counts) => metrics.countExport(...counts))
}
