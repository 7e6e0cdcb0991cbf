// Decides the order in which due requests are carried out: several organisations at once, one request of
// each, but few that have just begun. The organisation that had the fewest attempts in this round is next.
// One attempt at a time per placement, because side tables are named by placement. Requests that arrive
// during a long attempt start beside it, and so do requests that continue after the release of a hold, and
// work that needs no attempt to end, such as retention. Work on partitions goes through partition-queue.ts,
// so a long rewrite of one organisation delays the first partition of another by no more than one partition.

import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../../core/clock.ts'
import type { StoredDeletion } from '../requests/request.ts'

interface SchedulerDeps {
  /** Returns what may be attempted now, a queue per organisation; may move requests before. */
  readonly queues: () => Promise<readonly (readonly StoredDeletion[])[]>
  /** Returns null for an unknown organisation. */
  readonly placementOf: (tenantId: string) => Promise<number | null>
  /** Runs an attempt. Returns whether its organisation may continue with its next request at once. */
  readonly workOff: (request: StoredDeletion) => Promise<boolean>
  /**
   * Work beside attempts. Each is started at the first look and at those during attempts, unless it is still
   * in progress; a failure is logged.
   */
  readonly beside: readonly (() => Promise<void>)[]
  /** Resolves when a request was created or moved. */
  readonly woken: () => Promise<void>
  readonly clock: Pick<Clock, 'elapsedMs' | 'sleep'>
  readonly logger: Pick<FastifyBaseLogger, 'error'>
  readonly places: AttemptPlaces
}

/** How many attempts run at once. */
interface AttemptPlaces {
  readonly all: number
  /** How many of them may have begun within the last {@link newForMs}. */
  readonly new: number
}

/**
 * Few short attempts at once: they share cores and the session of rewrites, so a request would begin at once
 * and then wait at each of its partitions for those of all others. Here it waits for the end of one. More
 * beside long attempts, which mostly wait for their turns, though their fences are up: a request begins soon
 * also where seven organisations have large partitions.
 */
export const usualPlaces: AttemptPlaces = { all: 8, new: 2 }

/** How long an attempt is new, milliseconds: twice what one takes that has few partitions. */
export const newForMs = 2000

/**
 * So many attempts of an organisation come before one of another organisation's retention, which is less
 * urgent: at midnight that of all organisations may be due.
 */
const attemptsBeforeRetention = 3

/**
 * How often due requests are looked up, work beside attempts is started and new attempts are counted, while
 * attempts run.
 */
const lookEveryMs = 1000

/**
 * How many requests of an organisation are carried out in a round. So a round ends although requests never
 * stop arriving, and then backups are taken.
 */
const attemptsInRound = 100

/**
 * Carries out what is due until nothing is. After `signal` aborts it starts nothing new and waits for what is
 * in progress. Throws where a look-up fails while nothing is in progress. Otherwise it logs that and looks
 * again a second later, because a long attempt would keep everybody else waiting.
 */
export async function carryOutDue(deps: SchedulerDeps, signal: AbortSignal): Promise<void> {
  const round = new Round(deps, signal)
  try {
    await round.look()
    for (;;) {
      if (!signal.aborted) await round.unlessFailing(() => round.begin())
      if (round.isIdle) return
      if (await round.wait()) await round.unlessFailing(() => round.look())
    }
  } finally {
    await round.end()
  }
}

interface Running {
  readonly requestId: string
  /** By the clock that never goes back. */
  readonly begunMs: number
  readonly ended: Promise<void>
}

class Round {
  readonly #deps: SchedulerDeps
  readonly #signal: AbortSignal
  /** Requests that the last look may show as due although their attempt has begun. */
  #tried: Set<string> = new Set()
  /** Attempts per organisation that have ended; infinite for one that must not continue in this round. */
  readonly #had = new Map<string, number>()
  /**
   * Organisations whose attempt is to be repeated later. The last look may show their requests as due; the
   * next one knows when they are.
   */
  #paused: Set<string> = new Set()
  /** Attempts in progress by placement; null for organisations without one. */
  readonly #running = new Map<number | null, Running>()
  readonly #beside = new Map<() => Promise<void>, Promise<void>>()
  #queues: readonly (readonly StoredDeletion[])[] = []
  /** Resolves when something changed since the last look. */
  #woken: Promise<boolean> = Promise.resolve(true)
  /** Resolves when it is time for the next look, however many attempts end before. */
  #isTime: Promise<boolean> = Promise.resolve(true)
  /** Ends the wait for that time. */
  #timer = new AbortController()
  #looks = 0
  /**
   * Whether the attempt in progress must run alone, because the process ended during an earlier one of the
   * same request.
   */
  #isAlone = false

  constructor(deps: SchedulerDeps, signal: AbortSignal) {
    this.#deps = deps
    this.#signal = signal
  }

  get isIdle(): boolean {
    return this.#running.size === 0 && this.#beside.size === 0
  }

  /** Does nothing after a stop, because a look-up may move requests. */
  async look(): Promise<void> {
    // Both first: a promise that has resolved would end each later wait at once.
    this.#woken = this.#deps.woken().then(() => true)
    this.#timer.abort()
    this.#timer = new AbortController()
    this.#isTime = this.#deps.clock.sleep(lookEveryMs, this.#timer.signal).then(() => true)
    if (this.#signal.aborted) return
    this.#startBeside()
    // One whose attempt has ended by now is due again where it is found. Of the others the look may show a
    // state from before their attempt ended.
    const inProgress = new Set([...this.#running.values()].map(({ requestId }) => requestId))
    const pausedBefore = new Set(this.#paused)
    this.#queues = await this.#deps.queues()
    this.#tried = inProgress
    this.#paused = this.#paused.difference(pausedBefore)
  }

  /** Does the work; where it fails beside something in progress, logs that. */
  async unlessFailing(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (err) {
      if (this.isIdle) throw err
      this.#deps.logger.error({ err }, 'due erasures could not be looked up; it is tried again in a second')
    }
  }

  /** Without attempts in progress only at the first look: otherwise the round might never end. */
  #startBeside(): void {
    const { beside, logger } = this.#deps
    const isFirst = this.#looks++ === 0
    if (!isFirst && this.#running.size === 0) return
    for (const work of beside.filter((one) => !this.#beside.has(one))) {
      const ended = work()
        .catch((err: unknown) => logger.error({ err }, 'work beside erasures failed; it is tried again'))
        .finally(() => this.#beside.delete(work))
      this.#beside.set(work, ended)
    }
  }

  /** Starts what may start now. */
  async begin(): Promise<void> {
    const passed = new Set<string>()
    while (this.#hasPlace() && !this.#isAlone) {
      const request = this.#next(passed)
      if (request === null) return
      const placement = await this.#deps.placementOf(request.tenantId)
      if (this.#running.has(placement)) passed.add(request.tenantId)
      else this.#run(request, placement)
    }
  }

  #hasPlace(): boolean {
    const { clock, places } = this.#deps
    const oldMs = clock.elapsedMs() - newForMs
    const begunLately = this.#running.values().filter(({ begunMs }) => begunMs > oldMs)
    return this.#running.size < places.all && [...begunLately].length < places.new
  }

  /** Waits for what is in progress; nothing of it rejects. */
  async end(): Promise<void> {
    this.#timer.abort()
    await Promise.all(this.#inProgress())
  }

  #inProgress(): Promise<void>[] {
    return [...[...this.#running.values()].map(({ ended }) => ended), ...this.#beside.values()]
  }

  /** Waits until something in progress has ended or it is time for a look. Returns whether it is. */
  wait(): Promise<boolean> {
    const ended = Promise.race(this.#inProgress()).then(() => false)
    // Where both have resolved, the look comes first.
    return Promise.race([this.#woken, this.#isTime, ended])
  }

  /**
   * Returns the next request: of the organisations without an attempt in progress, the one that had the
   * fewest, where retention counts as some. A request during which the process ended runs alone, so that no
   * other request is counted a crash if that happens again.
   */
  #next(passed: ReadonlySet<string>): StoredDeletion | null {
    const had = (tenantId: string) => this.#had.get(tenantId) ?? 0
    const firsts = this.#queues.flatMap(
      (queue) => queue.find(({ requestId }) => !this.#tried.has(requestId)) ?? [],
    )
    const mayBegin = (tenantId: string) => !passed.has(tenantId) && !this.#paused.has(tenantId)
    const free = firsts.filter(({ tenantId }) => mayBegin(tenantId) && had(tenantId) < attemptsInRound)
    const calm = free.filter(({ crashes }) => crashes === 0)
    const candidates = calm.length > 0 || this.#running.size > 0 ? calm : free
    const rank = ({ requestedBy, tenantId }: StoredDeletion) =>
      had(tenantId) + (requestedBy.kind === 'system' ? attemptsBeforeRetention : 0)
    return candidates.reduce<StoredDeletion | null>(
      (best, one) => (best === null || rank(one) < rank(best) ? one : best),
      null,
    )
  }

  #run(request: StoredDeletion, placement: number | null): void {
    const { logger, workOff } = this.#deps
    const { crashes, requestId, tenantId } = request
    this.#tried.add(requestId)
    this.#isAlone = crashes > 0
    const ended = workOff(request)
      .catch((err: unknown) => {
        // If the end of an attempt can't be stored, it is tried again in the next round, and other
        // organisations continue.
        logger.error({ err, tenantId }, 'the erasures of an organisation could not continue')
        this.#had.set(tenantId, Number.POSITIVE_INFINITY)
        return false
      })
      .then((goesOn) => {
        this.#had.set(tenantId, (this.#had.get(tenantId) ?? 0) + 1)
        if (!goesOn) this.#paused.add(tenantId)
        this.#running.delete(placement)
        this.#isAlone = false
      })
    this.#running.set(placement, { requestId, begunMs: this.#deps.clock.elapsedMs(), ended })
  }
}
