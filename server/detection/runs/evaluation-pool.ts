// Judges series in threads of their own, so that the one thread that everybody shares is free meanwhile: to score a window
// takes up to a second. Threads are started when they are first needed, take one task at a time, by turns between
// organisations, and keep nothing. One that crashes or doesn't end is an error of the run whose task it had; the next
// task starts another. The evaluations are those of `judge`, which is what the thread calls.

import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { AppError } from '../../core/app-error.ts'
import { type Clock, elapsedMs, systemClock } from '../../core/clock.ts'
import { FairPool, type WorkKind } from '../../telemetry/fair-pool.ts'
import type { Evaluation } from '../alarms/alarm.ts'
import { type EvaluationTask, judge } from './evaluate.ts'
import type { ThreadAnswer } from './evaluation-thread.ts'

/** On whose behalf series are judged. */
export interface EvaluationShare {
  readonly tenantId: string
  readonly kind: WorkKind
  readonly signal?: AbortSignal | undefined
}

/** Judges the series of one task; the evaluations are in their order. */
export type Evaluate = (task: EvaluationTask, share: EvaluationShare) => Promise<readonly Evaluation[]>

/** In the caller's own thread: for tests and measurements, which share it with nobody. */
export const evaluateHere: Evaluate = async (task) => judge(task)

/** A thread ended without an answer. */
export class EvaluationError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EvaluationError'
  }
}

interface EvaluationPoolOptions {
  /** Time as it passes for a thread; the system's where absent, whatever the service takes the time to be. */
  readonly clock?: Pick<Clock, 'sleep'>
  /** One less than the machine has cores where absent, at least one and at most four: the engine needs the others. */
  readonly threads?: number
  /** How long one task may take. */
  readonly limitMs?: number
  /** What a thread runs. */
  readonly entry?: URL
}

/** The dearest window of the dearest method takes about a second on an idle core. */
const usualLimitMs = 60_000

/** A window with all it is scored by takes some megabytes; past this a thread ends instead of the process. */
const threadMemoryMb = 512

/** A task holds its series until it begins; callers hand over one after another. */
const waitingByOwner = 64

/** Holds one thread, or none yet. */
class Seat {
  worker: Worker | null = null
}

export class EvaluationPool {
  readonly #options: EvaluationPoolOptions
  readonly #seats: readonly Seat[]
  readonly #turns: FairPool<Seat>
  #closed = false

  constructor(options: EvaluationPoolOptions = {}) {
    this.#options = options
    const threads = options.threads ?? Math.min(4, Math.max(1, availableParallelism() - 1))
    this.#seats = Array.from({ length: threads }, () => new Seat())
    const shared = { atOnceByOwner: threads, atOnce: threads }
    this.#turns = new FairPool(this.#seats, {
      kinds: {
        asked: { ...shared, weight: 4, waitingByOwner },
        background: { ...shared, weight: 1, waitingByOwner: Number.POSITIVE_INFINITY },
      },
      waiting: Number.POSITIVE_INFINITY,
      nowMs: elapsedMs,
    })
  }

  /**
   * Throws EvaluationError where the thread ended or what it ran threw, and `query_too_expensive` where a task took
   * longer than it may.
   */
  readonly evaluate: Evaluate = ({ choice, series, widenings }, { kind, signal, tenantId }) =>
    this.#turns.lend({ owner: tenantId, kind, signal }, async (seat) => {
      // Only what a task is made of is sent, whatever else its objects have come to hold.
      const answer = await this.#ask(seat, { choice, series, widenings })
      if ('error' in answer) throw new EvaluationError(answer.error)
      return answer.evaluations
    })

  /** Ends the threads; what they were judging fails. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#seats.map(({ worker }) => worker?.terminate()))
  }

  async #ask(seat: Seat, task: EvaluationTask): Promise<ThreadAnswer> {
    if (this.#closed) throw new AppError('not_ready')
    const worker = seat.worker ?? this.#start(seat)
    const answered = new AbortController()
    worker.ref()
    try {
      return await Promise.race([
        answerOf(worker, task, answered.signal),
        this.#endLate(seat, answered.signal),
      ])
    } finally {
      answered.abort()
      // An idle thread doesn't keep the process from ending.
      worker.unref()
    }
  }

  #start(seat: Seat): Worker {
    const entry = this.#options.entry ?? new URL('./evaluation-thread.ts', import.meta.url)
    const worker = new Worker(entry, { resourceLimits: { maxOldGenerationSizeMb: threadMemoryMb } })
    seat.worker = worker
    // Whoever waits for an answer is told; an error without a listener would end the process.
    worker.on('error', () => undefined)
    worker.once('exit', () => {
      if (seat.worker === worker) seat.worker = null
    })
    return worker
  }

  /** Ends the thread where the task takes too long, and throws `query_too_expensive` then. */
  async #endLate(seat: Seat, answered: AbortSignal): Promise<never> {
    const { clock = systemClock, limitMs = usualLimitMs } = this.#options
    await clock.sleep(limitMs, answered)
    if (answered.aborted) throw new EvaluationError('The task had its answer')
    const { worker } = seat
    seat.worker = null
    worker?.terminate().catch(() => undefined)
    throw new AppError('query_too_expensive', {
      sentence: 'To judge this series takes longer than it may; make the window shorter.',
    })
  }
}

/** Until the signal aborts, listens for one answer; rejects with EvaluationError where the thread ends first. */
function answerOf(worker: Worker, task: EvaluationTask, signal: AbortSignal): Promise<ThreadAnswer> {
  return new Promise((resolve, reject) => {
    const onMessage = (answer: ThreadAnswer) => resolve(answer)
    const onError = (cause: unknown) =>
      reject(new EvaluationError('The thread that judged it failed', { cause }))
    const onExit = () => reject(new EvaluationError('The thread that judged it ended'))
    worker.on('message', onMessage).on('error', onError).on('exit', onExit)
    signal.addEventListener(
      'abort',
      () => void worker.off('message', onMessage).off('error', onError).off('exit', onExit),
      { once: true },
    )
    worker.postMessage(task)
  })
}
