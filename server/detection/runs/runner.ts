// Runs detectors: read a series, evaluate each group, write down what was found. Detectors of one organisation that
// are due together are read together; each is then judged and recorded on its own. A run never throws for what
// the engine or the definition does: that becomes the status `error` with a sentence, because one detector that
// can't be read must not keep the others from being run. It does throw when the control plane can't be written;
// the detector is then still due.
//
// Nothing is kept between runs but the anomalies and the status, so a missed run is made up for by the next, which
// judges the same window and more. A detector is run by one caller at a time.

import type { FastifyBaseLogger } from 'fastify'
import { AppError } from '../../core/app-error.ts'
import type { Clock } from '../../core/clock.ts'
import { readSeriesBatch } from '../../series/batched-read.ts'
import { readSeries, type SeriesSet } from '../../series/series.ts'
import type { ReadShare, TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import { TenantReader } from '../../telemetry/tenant-reader.ts'
import type { RunFound, RunRecord } from '../anomalies/anomaly-rows.ts'
import { idsMax } from '../anomalies/id-list.ts'
import type { RunSummary } from '../anomalies/run-summary.ts'
import { methodChoiceOf, type StoredDetector } from '../detectors/detector.ts'
import type { DetectionStore } from '../detectors/store.ts'
import { evaluateRun, type Run, requestOf } from './evaluate-run.ts'
import { type Evaluate, EvaluationError, evaluateHere } from './evaluation-pool.ts'
import { nextRunMs, planRun } from './run-plan.ts'

interface RunnerOptions {
  readonly store: DetectionStore
  readonly engine: TelemetryEngine
  readonly gate: TelemetryGate
  readonly clock: Clock
  readonly logger: Pick<FastifyBaseLogger, 'warn'>
  /** Where series are judged; in this thread where absent. */
  readonly evaluate?: Evaluate
}

export class DetectorRunner {
  readonly #options: RunnerOptions
  readonly #running = new Set<string>()

  constructor(options: RunnerOptions) {
    this.#options = options
  }

  /**
   * Runs a detector now, whether or not it is enabled or due. Throws `not_found`, or `detector_running` while
   * another call runs it. Where the definition changes meanwhile, or what was read is erased, nothing is recorded:
   * either made it due.
   */
  async run(place: TenantPlace, detectorId: string): Promise<void> {
    const failures = await this.#runUnlessRunning(place, [detectorId], { kind: 'asked', signal: undefined })
    const failure = failures.get(detectorId)
    if (failure !== undefined) throw failure
  }

  /**
   * Runs several detectors of one organisation; answers, by id, what {@link run} would have thrown. Never throws.
   * Those that it has not come to when the signal aborts are still due.
   */
  async runTogether(
    place: TenantPlace,
    detectorIds: readonly string[],
    signal?: AbortSignal,
  ): Promise<Map<string, unknown>> {
    return this.#runUnlessRunning(place, detectorIds, { kind: 'background', signal })
  }

  async #runUnlessRunning(
    place: TenantPlace,
    detectorIds: readonly string[],
    how: Pick<Round, 'kind' | 'signal'>,
  ): Promise<Map<string, unknown>> {
    const failures = new Map<string, unknown>()
    const own = detectorIds.filter((id) => !this.#running.has(id))
    for (const id of detectorIds) if (!own.includes(id)) failures.set(id, new AppError('detector_running'))
    for (const id of own) this.#running.add(id)
    try {
      await this.#runAll(place, own, { ...how, failures })
    } finally {
      for (const id of own) this.#running.delete(id)
    }
    return failures
  }

  async #runAll(place: TenantPlace, ids: readonly string[], round: Round): Promise<void> {
    const { clock, engine, evaluate = evaluateHere, gate, store } = this.#options
    const { placement, tenantId } = place
    const reader = new TenantReader(engine, { tenantId, placement }, gate, { kind: round.kind })
    const ranAtMs = clock.nowMs()
    const detectors: StoredDetector[] = []
    const runs: Run[] = []
    for (const some of chunksOf(ids)) {
      if (round.signal?.aborted) break
      const found = await this.#findSome(tenantId, some, round)
      const tunings = await store.feedback.tuningsOf(found)
      for (const [i, detector] of found.entries()) {
        detectors.push(detector)
        const choice = methodChoiceOf(detector.definition)
        if (choice === null) continue
        const [plan, tuning] = [planRun(detector.definition, ranAtMs), tunings[i] ?? null]
        runs.push({ detector, choice, reader, plan, evaluate, tuning })
      }
    }
    const read = await this.#readAhead(reader, runs)
    for (const some of chunksOf(detectors)) await this.#runSome(some, { ...round, runs, read, ranAtMs })
  }

  /** In order of their ids; where that fails, each on its own, so that one's fault is one's own. */
  async #findSome(tenantId: string, ids: readonly string[], round: Round): Promise<StoredDetector[]> {
    const { store } = this.#options
    let found = new Map<string, StoredDetector>()
    try {
      found = await store.findDetectors(tenantId, ids)
    } catch {
      await eachOnItsOwn(ids, { failures: round.failures }, async (id) => {
        const detector = await store.findDetector(tenantId, id)
        if (detector !== null) found.set(id, detector)
      })
    }
    return ids.flatMap((id) => {
      const detector = found.get(id)
      if (detector === undefined && !round.failures.has(id)) {
        round.failures.set(id, new AppError('not_found'))
      }
      return detector ?? []
    })
  }

  /** Judges, then records in one transaction; where that fails, each in its own, so that one's fault is one's own. */
  async #runSome(detectors: readonly StoredDetector[], round: ReadRound): Promise<void> {
    const { store } = this.#options
    const records = new Map<string, RunRecord>()
    for (const detector of detectors) {
      if (round.signal?.aborted) break
      const run = round.runs.find((one) => one.detector === detector)
      const { summary, found } =
        run === undefined
          ? failed('The method no longer accepts these params; set them again.')
          : await this.#evaluate(run, round.read.get(run))
      const nextRunAtMs = nextRunMs(detector.definition.schedule_minutes, round.ranAtMs)
      const tuning = run?.tuning ?? null
      records.set(detector.id, { detector, ranAtMs: round.ranAtMs, nextRunAtMs, summary, found, tuning })
    }
    try {
      await store.recordRuns([...records.values()])
    } catch {
      await eachOnItsOwn(records.keys(), { failures: round.failures }, async (id) => {
        const record = records.get(id)
        if (record !== undefined) await store.recordRun(record)
      })
    }
  }

  /**
   * What detectors of one series each read, in few statements. Those by groups are read when it is their turn, so
   * that their answers are not all in memory at once. Where a statement fails, nobody knows whose fault it was: then
   * each is read on its own, and only the one that can't be read is an error.
   */
  async #readAhead(reader: TenantReader, runs: readonly Run[]): Promise<Map<Run, SeriesSet>> {
    const single = runs.filter(({ detector }) => detector.definition.scope.group_by === undefined)
    if (single.length < 2) return new Map()
    try {
      const sets = await readSeriesBatch(reader, single.map(requestOf))
      return new Map(single.flatMap((run, i) => (sets[i] === undefined ? [] : [[run, sets[i]]])))
    } catch (err) {
      this.#options.logger.warn({ err }, 'detectors could not be read together; each is read on its own')
      return new Map()
    }
  }

  async #evaluate(
    run: Run,
    readAhead: SeriesSet | undefined,
  ): Promise<{ summary: RunSummary; found: RunFound | null }> {
    try {
      return await evaluateRun(run, readAhead ?? (await readSeries(run.reader, requestOf(run))))
    } catch (err) {
      this.#options.logger.warn({ err, detectorId: run.detector.id }, 'a detector could not be evaluated')
      const isKnown = err instanceof AppError && err.code !== 'internal'
      if (isKnown) return failed(err.message)
      const what =
        err instanceof EvaluationError ? 'Its series could not be judged' : 'Its telemetry could not be read'
      return failed(`${what}; the next run tries again.`)
    }
  }
}

function chunksOf<T>(all: readonly T[]): T[][] {
  const count = Math.ceil(all.length / idsMax)
  return Array.from({ length: count }, (_, i) => all.slice(i * idsMax, (i + 1) * idsMax))
}

/** What befell those that were run together. */
interface Round {
  /** Whether somebody waits for it. */
  readonly kind: ReadShare['kind']
  readonly failures: Map<string, unknown>
  readonly signal: AbortSignal | undefined
}

interface ReadRound extends Round {
  readonly runs: readonly Run[]
  /** What was read ahead. */
  readonly read: ReadonlyMap<Run, SeriesSet>
  readonly ranAtMs: number
}

/** One's failure is noted and leaves the others alone. */
async function eachOnItsOwn(
  ids: Iterable<string>,
  { failures }: Pick<Round, 'failures'>,
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

function failed(note: string): { summary: RunSummary; found: null } {
  return { summary: { status: 'error', note }, found: null }
}
