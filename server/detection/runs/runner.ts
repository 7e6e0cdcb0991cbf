// Runs detectors: reads the new part of their series, evaluates each group from where the last run ended, and
// records the findings. Due detectors of one organisation are read as a batch; each is then evaluated and
// recorded separately. A run does not throw for errors of the engine or the definition: they become the
// status `error` with a note, because one detector that cannot be read must not prevent the others from
// running. Where a read was refused or ended because of other reads, or because its organisation erases
// meanwhile, nothing is recorded, because that says nothing about the detector: a run on request throws, and
// a due detector stays due. A run also throws where the control plane cannot be written.
//
// Between runs the anomalies and the status are stored, and what was learnt is kept in memory until something
// of the organisation is hidden (detector-course.ts). A run that missed its time is covered by the next: it
// judges the same window and more. A detector is run by one caller at a time.

import { setImmediate as nextRound } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import type { LoopTurns } from '../../core/turns/loop-turns.ts'
import { Pace } from '../../core/turns/pace.ts'
import { readSeriesBatch } from '../../series/batched-read.ts'
import { signalsOf } from '../../series/event-series.ts'
import { FirstWeeks } from '../../series/first-weeks.ts'
import { readSeries, type SeriesSet } from '../../series/series.ts'
import {
  isBecauseOfOthers,
  type ReadShare,
  type TelemetryEngine,
  type TenantPlace,
} from '../../telemetry/engine.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import { TenantReader } from '../../telemetry/tenant-reader.ts'
import type { RunFound, RunRecord } from '../anomalies/anomaly-rows.ts'
import { idsMax } from '../anomalies/id-list.ts'
import type { RunSummary } from '../anomalies/run-summary.ts'
import { transactionsOf } from '../anomalies/write-runs.ts'
import { methodChoiceOf, type StoredDetector } from '../detectors/detector.ts'
import type { DetectionStore } from '../detectors/store.ts'
import type { SeriesSource } from './course-run.ts'
import { DetectorCourses, type PreparedRun } from './detector-course.ts'
import { courseRunOf, evaluateRun, type Run, requestOf, unknownFor } from './evaluate-run.ts'
import { EvaluationError, type Evaluations, EvaluationsHere, tookTooLong } from './evaluation-pool.ts'
import { nextRunMs } from './run-plan.ts'

interface RunnerOptions {
  readonly store: DetectionStore
  readonly engine: TelemetryEngine
  readonly gate: TelemetryGate
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'warn'>
  /** Evaluates series; in this thread where absent. */
  readonly evaluations?: Evaluations
  /** When an organisation may use the event loop for a moment; absent: in each round of the loop. */
  readonly turns?: Pick<LoopTurns, 'turnOf'>
}

export class DetectorRunner {
  readonly #options: RunnerOptions
  readonly #courses: DetectorCourses
  /** By organisation and id: who asks for a detector of others neither sees nor stops its run. */
  readonly #running = new Set<string>()

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#courses = new DetectorCourses(options.evaluations ?? new EvaluationsHere())
    options.gate.onHide((tenantId) => this.#courses.forget(tenantId))
  }

  /**
   * Runs a detector now, whether or not it is enabled or due. Throws `not_found`, or `detector_running` while
   * another call runs it; `query_too_expensive` or `too_many_requests` where a read ended for others or found
   * no place, and `erasing` where telemetry was hidden again and again; then nothing is recorded. Where the
   * definition changes or what was read is erased during the run, nothing is recorded; both make the detector
   * due again.
   */
  async run(place: TenantPlace, detectorId: string): Promise<void> {
    const failures = await this.#runUnlessRunning(place, [detectorId], { kind: 'asked', signal: undefined })
    const failure = failures.get(detectorId)
    if (failure !== undefined) throw failure
  }

  /**
   * Runs several detectors of one organisation. Never throws: returns, by id, the errors that {@link run}
   * would throw. Detectors that were not run before the signal aborts stay due.
   */
  async runBatch(
    place: TenantPlace,
    detectorIds: readonly string[],
    signal?: AbortSignal,
  ): Promise<Map<string, unknown>> {
    return this.#runUnlessRunning(place, detectorIds, { kind: 'background', signal })
  }

  async #runUnlessRunning(
    place: TenantPlace,
    detectorIds: readonly string[],
    options: Pick<Batch, 'kind' | 'signal'>,
  ): Promise<Map<string, unknown>> {
    const failures = new Map<string, unknown>()
    const keyOf = (id: string) => `${place.tenantId} ${id}`
    const own = detectorIds.filter((id) => !this.#running.has(keyOf(id)))
    for (const id of detectorIds) if (!own.includes(id)) failures.set(id, new AppError('detector_running'))
    for (const id of own) this.#running.add(keyOf(id))
    try {
      await this.#runAll(place, own, { ...options, failures })
    } finally {
      for (const id of own) this.#running.delete(keyOf(id))
    }
    return failures
  }

  async #runAll(place: TenantPlace, ids: readonly string[], batch: Batch): Promise<void> {
    const { clock, engine, gate, store, turns } = this.#options
    const { placement, tenantId } = place
    const turn = () => turns?.turnOf(tenantId) ?? nextRound()
    const reader = new TenantReader(engine, { tenantId, placement }, gate, { kind: batch.kind, turn })
    const ranAtMs = clock.nowMs()
    this.#courses.forgetUnused(ranAtMs)
    const pace = new Pace(reader.share.turn)
    const detectors: StoredDetector[] = []
    for (const some of chunksOf(ids)) {
      if (batch.signal?.aborted) break
      if (pace.isOver()) await pace.turn()
      detectors.push(...(await this.#findSome(tenantId, some, batch)))
    }
    // After all of the detectors: what changes later also changes the revision that a record compares.
    const tunings = await store.feedback.tuningsOf(detectors, pace)
    const runs = new Map<StoredDetector, ReadyRun>()
    const firstWeeks = new FirstWeeks(engine, reader)
    for (const [i, detector] of detectors.entries()) {
      if (batch.signal?.aborted) break
      const choice = methodChoiceOf(detector.definition)
      if (choice === null) continue
      const run = { detector, choice, tuning: tunings[i] ?? null, isUnknown: unknownFor(reader) }
      runs.set(detector, await this.#prepare(run, { firstWeeks, nowMs: ranAtMs, reader }))
    }
    await this.#readAhead(reader, [...runs.values()])
    // Those that begin take long, so the ones that continue come first.
    const goesOn = (detector: StoredDetector) => runs.get(detector)?.prepared?.goesOn !== false
    for (const some of chunksOf(detectors.filter(goesOn))) {
      await this.#runSome(some, { ...batch, runs, ranAtMs, turn })
    }
    const begin = detectors.filter((one) => !goesOn(one))
    await inParallel(begin, (detector) => this.#runSome([detector], { ...batch, runs, ranAtMs, turn }))
  }

  async #prepare(run: Run, { firstWeeks, nowMs, reader }: PrepareOptions): Promise<ReadyRun> {
    const { gate } = this.#options
    const { tenantId } = reader.place
    const source: SeriesSource = {
      read: (read) => readSeries(reader, requestOf(run.detector.definition, read)),
      earliestNs: () => firstWeeks.of(signalsOf(run.detector.definition.metric_key)),
      hidings: () => gate.hidings(tenantId),
      unknownTime: (signal, range) => gate.unknownTime(tenantId, signal, range),
    }
    const courseRun = courseRunOf(run, { nowMs, source, share: reader.share, mayBeLate: true })
    try {
      return { run, prepared: await this.#courses.prepare(courseRun), set: undefined, error: null }
    } catch (error) {
      return { run, prepared: null, set: undefined, error }
    }
  }

  /**
   * The detectors with these ids, in the same order. Where reading them together fails, each is read
   * separately, so that an invalid row affects only its own detector.
   */
  async #findSome(tenantId: string, ids: readonly string[], batch: Batch): Promise<StoredDetector[]> {
    const { store } = this.#options
    let found = new Map<string, StoredDetector>()
    try {
      found = await store.findDetectors(tenantId, ids)
    } catch {
      await forEachSeparately(ids, { failures: batch.failures }, async (id) => {
        const detector = await store.findDetector(tenantId, id)
        if (detector !== null) found.set(id, detector)
      })
    }
    return ids.flatMap((id) => {
      const detector = found.get(id)
      if (detector === undefined && !batch.failures.has(id)) {
        batch.failures.set(id, new AppError('not_found'))
      }
      return detector ?? []
    })
  }

  /**
   * Evaluates detectors and records the results in one transaction, or in several where they have many
   * findings. Where one fails, each of its runs is recorded separately, so that an error affects only its own
   * detector.
   */
  async #runSome(detectors: readonly StoredDetector[], batch: ReadBatch): Promise<void> {
    const { store } = this.#options
    const records: RunRecord[] = []
    await inParallel(detectors, async (detector) => {
      if (batch.signal?.aborted) return
      const ready = batch.runs.get(detector)
      const result =
        ready === undefined
          ? failed('The method no longer accepts these params; set them again.')
          : await this.#evaluate(ready, batch.turn)
      if (result instanceof AppError) {
        batch.failures.set(detector.id, result)
        return
      }
      const { found, restMs = 0, summary } = result
      const scheduledMs = nextRunMs(detector.definition.schedule_minutes, batch.ranAtMs)
      const nextRunAtMs = Math.max(scheduledMs, batch.ranAtMs + restMs)
      const tuning = ready?.run.tuning ?? null
      records.push({ detector, ranAtMs: batch.ranAtMs, nextRunAtMs, summary, found, tuning })
    })
    for (const some of transactionsOf(records)) {
      try {
        await store.recordRuns(some, batch.turn)
      } catch {
        const byId = new Map(some.map((record) => [record.detector.id, record]))
        await forEachSeparately(byId.keys(), { failures: batch.failures }, async (id) => {
          const record = byId.get(id)
          if (record !== undefined) await store.recordRun(record, batch.turn)
        })
      }
    }
  }

  /**
   * Reads the series of all detectors without `group_by`, in few statements. Detectors with groups are read
   * one by one later, so that not all of their series are in memory at once. Where a statement fails, its
   * detectors are read separately, so that only the one that cannot be read has an error.
   */
  async #readAhead(reader: TenantReader, runs: readonly ReadyRun[]): Promise<void> {
    const single = runs.filter(
      ({ prepared, run }) =>
        prepared?.goesOn === true && run.detector.definition.scope.group_by === undefined,
    )
    if (single.length < 2) return
    try {
      const requests = single.flatMap(({ prepared, run }) =>
        prepared === null ? [] : [requestOf(run.detector.definition, prepared.first)],
      )
      const sets = await readSeriesBatch(reader, requests)
      for (const [i, ready] of single.entries()) ready.set = sets[i]
    } catch (err) {
      this.#options.logger.warn({ err }, 'detectors could not be read in a batch; each is read separately')
    }
  }

  /** Returns the refusal where nothing was learnt about the detector. */
  async #evaluate(
    { error, prepared, run, set }: ReadyRun,
    turn: ReadBatch['turn'],
  ): Promise<RunResult | AppError> {
    try {
      if (prepared === null) throw error
      return await evaluateRun(run, await this.#courses.judge(prepared, set), new Pace(turn))
    } catch (err) {
      if (isNoFault(err)) return err
      this.#options.logger.warn({ err, detectorId: run.detector.id }, 'a detector could not be evaluated')
      const isKnown = err instanceof AppError && err.code !== 'internal'
      if (isKnown && tookTooLong(err)) return { ...failed(err.message), restMs: restAfterLongMs }
      if (isKnown) return failed(err.message)
      const what =
        err instanceof EvaluationError
          ? 'Its series could not be evaluated'
          : 'Its telemetry could not be read'
      return failed(`${what}; the next run tries again.`)
    }
  }
}

/** Whether an error says nothing about the detector: others read, or its organisation erases meanwhile. */
function isNoFault(error: unknown): error is AppError {
  return isBecauseOfOthers(error) || (error instanceof AppError && error.code === 'erasing')
}

/**
 * A detector with a task that took too long is not run again on schedule for this long, unless it is changed:
 * the task would keep a core busy, and end a thread, each time.
 */
const restAfterLongMs = 3_600_000

interface RunResult {
  readonly summary: RunSummary
  readonly found: RunFound | null
  /** How long the detector is at least not run again, from the beginning of this run. Default: 0. */
  readonly restMs?: number
}

/** A run whose width of buckets is known, or why it is not. */
interface ReadyRun {
  readonly run: Run
  readonly prepared: PreparedRun | null
  /** Where it was read ahead. */
  set: SeriesSet | undefined
  readonly error: unknown
}

function chunksOf<T>(all: readonly T[]): T[][] {
  const count = Math.ceil(all.length / idsMax)
  return Array.from({ length: count }, (_, i) => all.slice(i * idsMax, (i + 1) * idsMax))
}

/**
 * Detectors of an organisation that are evaluated at the same time. Threads take tasks in turns of
 * organisations by the time that tasks took. A detector has one task after the other, so an organisation
 * with one detector at a time would wait for a long task of another before each of its short ones. More at
 * once would need more memory: each has the series of a read.
 */
const detectorsAtOnce = 4

/** Calls `work` for all, a few at a time and in order. Rejects with the first error, once all have ended. */
async function inParallel<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const waiting = all.values()
  const next = async (): Promise<void> => {
    for (const one of waiting) await work(one)
  }
  const ended = await Promise.allSettled(Array.from({ length: detectorsAtOnce }, next))
  for (const result of ended) if (result.status === 'rejected') throw result.reason
}

interface PrepareOptions {
  readonly reader: TenantReader
  /** Of the whole batch. */
  readonly firstWeeks: FirstWeeks
  readonly nowMs: number
}

/** Options and failures of a batch of detectors. */
interface Batch {
  /** Whether a person waits for the result. */
  readonly kind: ReadShare['kind']
  readonly failures: Map<string, unknown>
  readonly signal: AbortSignal | undefined
}

interface ReadBatch extends Batch {
  readonly runs: ReadonlyMap<StoredDetector, ReadyRun>
  readonly ranAtMs: number
  /** Resolves when its organisation may use the event loop for a moment. */
  readonly turn: () => Promise<unknown>
}

/** Calls `work` for each id. A failure is stored and does not affect the others. */
async function forEachSeparately(
  ids: Iterable<string>,
  { failures }: Pick<Batch, 'failures'>,
  work: (id: string) => Promise<void>,
): Promise<void> {
  for (const id of ids) {
    try {
      await work(id)
    } catch (error) {
      failures.set(id, error)
    }
  }
}

function failed(note: string): RunResult {
  return { summary: { status: 'error', note }, found: null }
}
