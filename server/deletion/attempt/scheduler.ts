// In which order due requests are carried out: several organisations at once, one request of each, and whoever has had
// least in this round is next. Of one placement there is one attempt at a time, since side tables are named by placement.
// What is asked for while a long attempt is at work begins beside it, and what attempts do to partitions they do by turns
// (attempt.ts), so one organisation's long rewrite delays another's first by no more than one partition.

import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../../core/clock.ts'
import type { StoredDeletion } from '../requests/request.ts'

export interface SchedulerDeps {
  /** What may be attempted now, a queue per organisation. */
  readonly queues: () => Promise<readonly (readonly StoredDeletion[])[]>
  /** Null for an organisation that is unknown. */
  readonly placementOf: (tenantId: string) => Promise<number | null>
  /** Attempts a request; answers whether its organisation goes on with the next one. */
  readonly workOff: (request: StoredDeletion) => Promise<boolean>
  /** Resolves when something was asked for. */
  readonly woken: () => Promise<void>
  readonly clock: Pick<Clock, 'sleep'>
  readonly logger: Pick<FastifyBaseLogger, 'error'>
  readonly attemptsAtOnce: number
}

/**
 * An attempt that only waits costs next to nothing, but its fence is up. Four let three organisations pass beside one whose
 * partitions are large.
 */
export const usualAttemptsAtOnce = 4

/** While an attempt is at work, what has become due is looked for this often. */
const lookEveryMs = 1000

/** Requests that come in during a round and are carried out in it; then it ends, for all else that a round does. */
const lateMax = 100

/** Carries out what is due, until nothing is, or what is under way after `signal` aborts. */
export async function carryOutDue(deps: SchedulerDeps, signal: AbortSignal): Promise<void> {
  const round = new Round(deps)
  await round.look()
  for (;;) {
    if (!signal.aborted) await round.begin()
    if (round.isIdle) return
    await round.wait()
  }
}

class Round {
  readonly #deps: SchedulerDeps
  readonly #tried = new Set<string>()
  /** Attempts by organisation; one that can't go on counts as endless. */
  readonly #had = new Map<string, number>()
  /** By placement; null stands for none. */
  readonly #running = new Map<number | null, Promise<void>>()
  #queues: readonly (readonly StoredDeletion[])[] = []
  /** Resolves when something was asked for since the last look. */
  #news: Promise<boolean> | null = null
  #mostTried = Number.POSITIVE_INFINITY
  /** Whether the only attempt under way is one that may end the process. */
  #isAlone = false

  constructor(deps: SchedulerDeps) {
    this.#deps = deps
  }

  get isIdle(): boolean {
    return this.#running.size === 0
  }

  async look(): Promise<void> {
    this.#news = this.#deps.woken().then(() => true)
    this.#queues = await this.#deps.queues()
    if (this.#mostTried === Number.POSITIVE_INFINITY) this.#mostTried = this.#queues.flat().length + lateMax
  }

  /** Begins what may begin now. */
  async begin(): Promise<void> {
    const passed = new Set<string>()
    while (this.#running.size < this.#deps.attemptsAtOnce && !this.#isAlone) {
      const request = this.#next(passed)
      if (request === null) return
      const placement = await this.#deps.placementOf(request.tenantId)
      if (this.#running.has(placement)) passed.add(request.tenantId)
      else this.#run(request, placement)
    }
  }

  /** Until an attempt has ended, or there may be something new to begin. */
  async wait(): Promise<void> {
    const { clock } = this.#deps
    const ended = new AbortController()
    const isNew = await Promise.race([
      Promise.race(this.#running.values()).then(() => false),
      this.#news,
      clock.sleep(lookEveryMs, ended.signal).then(() => true),
    ])
    ended.abort()
    if (isNew && this.#tried.size < this.#mostTried) await this.look()
  }

  /**
   * Of the organisations that have nothing under way the one that has had least, of several the first. A request during
   * which the process ended is carried out alone, so that no other is blamed should that happen again.
   */
  #next(passed: ReadonlySet<string>): StoredDeletion | null {
    const had = (tenantId: string) => this.#had.get(tenantId) ?? 0
    const firsts = this.#queues.flatMap(
      (queue) => queue.find(({ requestId }) => !this.#tried.has(requestId)) ?? [],
    )
    const free = firsts.filter(
      ({ tenantId }) => !passed.has(tenantId) && had(tenantId) < Number.POSITIVE_INFINITY,
    )
    const calm = free.filter(({ crashes }) => crashes === 0)
    const candidates = calm.length > 0 || !this.isIdle ? calm : free
    return candidates.reduce<StoredDeletion | null>(
      (best, one) => (best === null || had(one.tenantId) < had(best.tenantId) ? one : best),
      null,
    )
  }

  #run(request: StoredDeletion, placement: number | null): void {
    const { logger, workOff } = this.#deps
    const { crashes, requestId, tenantId } = request
    this.#tried.add(requestId)
    this.#isAlone = crashes > 0
    const running = workOff(request)
      .catch((err: unknown) => {
        // What can't even be recorded is tried again with the next round, and holds no other organisation up.
        logger.error({ err, tenantId }, 'the erasures of an organisation could not go on')
        return false
      })
      .then((goesOn) => {
        this.#had.set(tenantId, goesOn ? (this.#had.get(tenantId) ?? 0) + 1 : Number.POSITIVE_INFINITY)
        this.#running.delete(placement)
        this.#isAlone = false
      })
    this.#running.set(placement, running)
  }
}
