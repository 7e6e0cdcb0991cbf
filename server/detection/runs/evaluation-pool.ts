// Evaluates series in separate threads, so that the main thread stays free: scoring weeks of a series takes
// seconds. Threads start when they are first needed, take one task at a time, in turns of organisations, and
// keep the courses of series between tasks (evaluation-store.ts). So all tasks of a detector go to the same
// thread. A thread that crashes or does not end is an error of the run whose task it had; the next task
// starts another thread, whose series begin again. This costs all whose series it kept, so from then on the
// organisation of that task is evaluated in a thread apart: it can end the thread of the others only once.

import assert from 'node:assert/strict'
import { Worker } from 'node:worker_threads'
import { AppError } from '../../core/app-error.ts'
import { type Clock, elapsedMs, systemClock } from '../../core/clock.ts'
import { coresButOne } from '../../core/turns/core-use.ts'
import { FairPool, type WorkKind } from '../../core/turns/fair-pool.ts'
import { type EvaluationResult, EvaluationStore, type EvaluationTask } from './evaluation-store.ts'
import type { ThreadRequest, ThreadResult } from './evaluation-thread.ts'

/** The organisation that evaluation is done for, and how urgent it is. */
export interface EvaluationShare {
  readonly tenantId: string
  readonly kind: WorkKind
  readonly signal?: AbortSignal | undefined
  /** Returns whether the telemetry that was read may still be used; called when the task begins. */
  readonly isCurrent?: (() => boolean) | undefined
}

/** Keeps the courses of series and evaluates their next buckets. */
export interface Evaluations {
  /**
   * Evaluates a task. Null where a course is missing, or where `isCurrent` is false once it is the task's
   * turn; the caller reads the past again.
   */
  evaluate(task: EvaluationTask, share: EvaluationShare): Promise<EvaluationResult>
  /** Drops all courses of an organisation, because telemetry that they have learnt from is erased. */
  forget(tenantId: string): void
  /** Drops the series of one course. */
  end(course: string): void
}

/** Evaluates in the caller's thread, for tests, benchmarks and the command line. */
export class EvaluationsHere implements Evaluations {
  readonly #store = new EvaluationStore()

  /** How many series it keeps. */
  get size(): number {
    return this.#store.size
  }

  async evaluate(
    task: EvaluationTask,
    { isCurrent }: Partial<EvaluationShare> = {},
  ): Promise<EvaluationResult> {
    return isCurrent?.() === false ? null : this.#store.evaluate(task)
  }

  forget(tenantId: string): void {
    this.#store.forget(tenantId)
  }

  end(course: string): void {
    this.#store.end(course)
  }
}

/** A thread ended without a result. */
export class EvaluationError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EvaluationError'
  }
}

/** A task took too long, and its thread was ended. */
class TaskTooLong extends EvaluationError {}

/** Whether an evaluation was ended because one of its tasks took too long. */
export function tookTooLong(error: unknown): boolean {
  return error instanceof AppError && error.cause instanceof TaskTooLong
}

interface EvaluationPoolOptions {
  /** Measures the time limit of a task. Default: the system clock, whatever clock the service uses. */
  readonly clock?: Pick<Clock, 'sleep'>
  /** Default: one less than the machine has cores, from one to four, because the engine needs the others. */
  readonly threads?: number
  /** Longest duration of a task. */
  readonly limitMs?: number
  /** The program of a thread. */
  readonly entry?: URL
}

/** The most expensive task of the most expensive method takes about half a second on an idle core. */
const usualLimitMs = 60_000

/** A window and its scores take some megabytes. Beyond this limit the thread ends instead of the process. */
const threadMemoryMb = 512

/**
 * Waiting tasks per organisation. A waiting task keeps its series in memory; callers submit
 * tasks one after another.
 */
const waitingByOwner = 64

/** A slot for one thread, which is started when the slot is first used, and the turns in which it is used. */
class ThreadSlot {
  worker: Worker | null = null
  readonly turns: FairPool<ThreadSlot>

  constructor() {
    const one = { atOnceByOwner: 1, atOnce: 1 }
    this.turns = new FairPool<ThreadSlot>([this], {
      kinds: {
        asked: { ...one, weight: 4, waitingByOwner },
        background: { ...one, weight: 1, waitingByOwner: Number.POSITIVE_INFINITY },
      },
      waiting: Number.POSITIVE_INFINITY,
      nowMs: elapsedMs,
    })
  }
}

export class EvaluationPool implements Evaluations {
  readonly #options: EvaluationPoolOptions
  readonly #slots: readonly ThreadSlot[]
  /** For organisations with a task that ended its thread. */
  readonly #slotApart = new ThreadSlot()
  readonly #tenantsApart = new Set<string>()
  #closed = false

  constructor(options: EvaluationPoolOptions = {}) {
    this.#options = options
    const threads = options.threads ?? coresButOne(4)
    this.#slots = Array.from({ length: threads }, () => new ThreadSlot())
  }

  /**
   * Throws EvaluationError where the thread ended or the evaluation threw, and `query_too_expensive`
   * where a task took too long.
   */
  evaluate(
    task: EvaluationTask,
    { isCurrent, kind, signal, tenantId }: EvaluationShare,
  ): Promise<EvaluationResult> {
    return this.#slotOf(task).turns.lend({ owner: tenantId, kind, signal }, async (slot) => {
      if (isCurrent?.() === false || this.#slotOf(task) !== slot) return null
      const result = await this.#runTask(slot, task)
      if ('error' in result) throw new EvaluationError(result.error)
      return result.result
    })
  }

  /** The result of a task that was sent before is dropped too, because a thread works in order. */
  forget(tenantId: string): void {
    for (const slot of [...this.#slots, this.#slotApart]) this.#post(slot, { forget: tenantId })
  }

  end(course: string): void {
    for (const slot of [this.#usualSlotOf(course), this.#slotApart]) this.#post(slot, { end: course })
  }

  #post({ worker }: ThreadSlot, request: ThreadRequest): void {
    worker?.postMessage(request)
  }

  #slotOf({ course, tenantId }: EvaluationTask): ThreadSlot {
    return this.#tenantsApart.has(tenantId) ? this.#slotApart : this.#usualSlotOf(course)
  }

  /** From now on its tasks go to the thread apart, where its series begin again. */
  #setApart(tenantId: string): void {
    this.#tenantsApart.add(tenantId)
    for (const slot of this.#slots) this.#post(slot, { forget: tenantId })
  }

  #usualSlotOf(course: string): ThreadSlot {
    let hash = 0
    for (let i = 0; i < course.length; i++) hash = (Math.imul(hash, 31) + course.charCodeAt(i)) >>> 0
    const slot = this.#slots[hash % this.#slots.length]
    assert(slot !== undefined)
    return slot
  }

  /** Ends the threads; running tasks fail. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#slots, this.#slotApart].map(({ worker }) => worker?.terminate()))
  }

  async #runTask(slot: ThreadSlot, task: EvaluationTask): Promise<ThreadResult> {
    if (this.#closed) throw new AppError('not_ready')
    const worker = slot.worker ?? this.#start(slot)
    const ended = new AbortController()
    worker.ref()
    try {
      return await Promise.race([resultOf(worker, task, ended.signal), this.#stopLate(slot, ended.signal)])
    } catch (error) {
      if (!this.#closed) this.#setApart(task.tenantId)
      throw error
    } finally {
      ended.abort()
      // An idle thread must not keep the process running.
      worker.unref()
    }
  }

  #start(slot: ThreadSlot): Worker {
    const entry = this.#options.entry ?? new URL('./evaluation-thread.ts', import.meta.url)
    const worker = new Worker(entry, { resourceLimits: { maxOldGenerationSizeMb: threadMemoryMb } })
    slot.worker = worker
    // The caller that waits gets the error. Without this listener the error would end the process.
    worker.on('error', () => undefined)
    worker.once('exit', () => {
      if (slot.worker === worker) slot.worker = null
    })
    return worker
  }

  /** Stops the thread if the task takes too long, and throws `query_too_expensive`. */
  async #stopLate(slot: ThreadSlot, ended: AbortSignal): Promise<never> {
    const { clock = systemClock, limitMs = usualLimitMs } = this.#options
    await clock.sleep(limitMs, ended)
    if (ended.aborted) throw new EvaluationError('The task has ended')
    const { worker } = slot
    slot.worker = null
    worker?.terminate().catch(() => undefined)
    throw new AppError('query_too_expensive', {
      cause: new TaskTooLong('The task was stopped'),
      sentence:
        'Evaluating this series takes longer than is allowed; use smaller parameters or a shorter window.',
    })
  }
}

/**
 * Waits for one message of the thread until the signal aborts. Rejects with EvaluationError
 * where the thread ends first.
 */
function resultOf(worker: Worker, task: EvaluationTask, signal: AbortSignal): Promise<ThreadResult> {
  return new Promise((resolve, reject) => {
    const onMessage = (result: ThreadResult) => resolve(result)
    const onError = (cause: unknown) => reject(new EvaluationError('The evaluation thread failed', { cause }))
    const onExit = () => reject(new EvaluationError('The evaluation thread ended'))
    worker.on('message', onMessage).on('error', onError).on('exit', onExit)
    signal.addEventListener(
      'abort',
      () => void worker.off('message', onMessage).off('error', onError).off('exit', onExit),
      { once: true },
    )
    worker.postMessage({ task } satisfies ThreadRequest)
  })
}
