// Decides the order in which due requests are carried out: several organisations at once, one request of
// each, but few that have just begun. The organisation that had the fewest attempts lately is next. Those
// that erase without a pause follow each other, and one that erases now and then begins beside them. One
// attempt at a time per placement, because side tables are named by placement. Requests that arrive during a
// long attempt start beside it, and so do requests that continue after the release of a hold, and work that
// needs no attempt to end, such as retention. Work on partitions goes through partition-queue.ts, so a long
// rewrite of one organisation delays the first partition of another by no more than one partition.

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
  /**
   * A busy organisation begins where fewer than this are new: one that has another request due, or had an
   * attempt within the last {@link restMs}.
   */
  readonly newBesideBusy: number
}

/**
 * Few short attempts at once: they share cores and the session of rewrites, so a request would begin at once
 * and then wait at each of its partitions for those of all others. Here it waits for the end of one, and that
 * of a busy organisation until none is new (docs/decisions/0068). More beside long attempts, which mostly
 * wait for their turns, though their fences are up: a request begins soon also where seven organisations have
 * large partitions.
 */
export const usualPlaces: AttemptPlaces = { all: 8, new: 2, newBesideBusy: 1 }

/** How long an attempt is new, milliseconds: twice what one takes that has few partitions. */
export const newForMs = 2000

/**
 * How long after its last attempt an organisation is busy, milliseconds: four that erase without end, each
 * with one request at a time, begin again after some three seconds.
 */
export const restMs = 5000

/** How long an attempt counts where the organisation that had the fewest is next, milliseconds. */
const countedMs = 60_000

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

/** A request that may begin. */
interface Candidate {
  readonly request: StoredDeletion
  /** Whether its organisation wants more than this one: another one now, or one after the other. */
  readonly isBusy: boolean
  /** The lowest is next. */
  readonly rank: number
}

/** The first of two is next; of equals the one that waited longer. */
function isBefore(one: Candidate, other: Candidate): boolean {
  return one.rank === other.rank ? !one.isBusy && other.isBusy : one.rank < other.rank
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
  /** When attempts of an organisation ended, those of the last {@link countedMs} at least, in order. */
  readonly #endedMs = new Map<string, number[]>()
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
  /** Whether that has happened. */
  #isStale = false
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
    this.#isStale = false
    this.#woken = this.#deps.woken().then(() => {
      this.#isStale = true
      return true
    })
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
    while (this.#hasPlace(false) && !this.#isAlone) {
      const candidate = this.#next(passed)
      if (candidate === null) return
      const { tenantId } = candidate.request
      const placement = await this.#deps.placementOf(tenantId)
      if (this.#running.has(placement)) passed.add(tenantId)
      else if (this.#hasPlace(candidate.isBusy)) this.#run(candidate, placement)
      else return
    }
  }

  #hasPlace(isForBusy: boolean): boolean {
    const { clock, places } = this.#deps
    const oldMs = clock.elapsedMs() - newForMs
    const begunLately = [...this.#running.values()].filter(({ begunMs }) => begunMs > oldMs)
    const most = isForBusy ? places.newBesideBusy : places.new
    return this.#running.size < places.all && begunLately.length < most
  }

  /** Returns the first request of a queue that may begin; null where there is none. */
  #firstOf(queue: readonly StoredDeletion[]): Candidate | null {
    const untried = queue.values().filter(({ requestId }) => !this.#tried.has(requestId))
    const [request, another] = untried.take(2)
    if (request === undefined) return null
    const ended = this.#endedLately(request.tenantId)
    const restedSinceMs = this.#deps.clock.elapsedMs() - restMs
    const isBusy = another !== undefined || ended.some((endedMs) => endedMs > restedSinceMs)
    const isRetention = request.requestedBy.kind === 'system'
    return { request, isBusy, rank: ended.length + (isRetention ? attemptsBeforeRetention : 0) }
  }

  /** Returns when the attempts of an organisation ended that count, in order. */
  #endedLately(tenantId: string): number[] {
    const sinceMs = this.#deps.clock.elapsedMs() - countedMs
    return (this.#endedMs.get(tenantId) ?? []).filter((endedMs) => endedMs > sinceMs)
  }

  /** Waits for what is in progress; nothing of it rejects. */
  async end(): Promise<void> {
    this.#timer.abort()
    await Promise.all(this.#inProgress())
  }

  #inProgress(): Promise<void>[] {
    return [...[...this.#running.values()].map(({ ended }) => ended), ...this.#beside.values()]
  }

  /**
   * Waits until something in progress has ended or it is time for a look. Returns whether it is. Where
   * nothing may begin, new requests are looked at when an attempt ends: a client can send a hundred in a
   * second.
   */
  wait(): Promise<boolean> {
    const ended = Promise.race(this.#inProgress()).then(() => this.#isStale)
    const woken = this.#hasPlace(false) ? [this.#woken] : []
    // Where both have resolved, the look comes first.
    return Promise.race([...woken, this.#isTime, ended])
  }

  /**
   * Returns the next request: of the organisations without an attempt in progress, the one that had the
   * fewest, where retention counts as some. A request during which the process ended runs alone, so that no
   * other request is counted a crash if that happens again.
   */
  #next(passed: ReadonlySet<string>): Candidate | null {
    const mayBegin = ({ request: { tenantId } }: Candidate) =>
      !passed.has(tenantId) && !this.#paused.has(tenantId) && (this.#had.get(tenantId) ?? 0) < attemptsInRound
    const free = this.#queues.flatMap((queue) => this.#firstOf(queue) ?? []).filter(mayBegin)
    const uncrashed = free.filter(({ request }) => request.crashes === 0)
    const candidates = uncrashed.length > 0 || this.#running.size > 0 ? uncrashed : free
    return candidates.reduce<Candidate | null>(
      (best, one) => (best === null || isBefore(one, best) ? one : best),
      null,
    )
  }

  #run({ request }: Candidate, placement: number | null): void {
    const { clock, logger, workOff } = this.#deps
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
        this.#endedMs.set(tenantId, [...this.#endedLately(tenantId), clock.elapsedMs()])
        if (!goesOn) this.#paused.add(tenantId)
        this.#running.delete(placement)
        this.#isAlone = false
      })
    this.#running.set(placement, { requestId, begunMs: clock.elapsedMs(), ended })
  }
}
