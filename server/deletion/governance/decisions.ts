// What people decide about an existing request: cancel it, approve or reject one of somebody else, retry it,
// verify it again. Each decision is one compare-and-set; the one that loses a race is refused and changes
// nothing.

import type { DeletionStatus } from '../../../contract/deletion/requests.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import type { Caller } from '../../core/caller.ts'
import type { Clock } from '../../core/clock.ts'
import type { RequestQueries } from '../requests/queries.ts'
import type { MoveChanges, ReadBack, StoredDeletion } from '../requests/request.ts'
import { type DeletionEvent, hasBegun, transitions } from '../requests/states.ts'
import type { ChangesAt, RequestStore } from '../requests/store.ts'
import { ownRequest } from './policy.ts'

interface DecisionDeps {
  readonly requestStore: RequestStore
  readonly requests: RequestQueries
  readonly clock: Clock
  readonly verifyAgain: (request: StoredDeletion, requester: Actor, signal?: AbortSignal) => Promise<ReadBack>
  /**
   * Whether two requesters may be one person: they have the same token, or one person may have made both
   * tokens.
   */
  readonly areRelated: (tenantId: string, first: Actor, second: Actor) => Promise<boolean>
}

/** States in which a count is meaningful for the erasure. */
const countable: readonly DeletionStatus[] = ['completed', 'incomplete', 'failed', 'held']

export class Decisions {
  readonly #deps: DecisionDeps

  constructor(deps: DecisionDeps) {
    this.#deps = deps
  }

  /**
   * Cancels a request, so that its telemetry can be read again. Cancelling twice has no further effect. A
   * request whose erasure has begun can't be cancelled.
   */
  async cancel(caller: Caller, requestId: string): Promise<void> {
    const request = await this.#deps.requests.stored(caller.tenantId, requestId)
    if (request.status === 'cancelled') return
    const isPartErased = request.status === 'held' && hasBegun(request)
    if (transitions[request.status].cancel === null || isPartErased) {
      throw new AppError('deletion_state', {
        sentence: isPartErased
          ? 'It was begun, and a part of it may be erased; the rest continues when the legal hold is released.'
          : `The deletion is ${request.status}; only one that has not begun can be cancelled.`,
      })
    }
    await this.#move(request, 'cancel', caller)
  }

  async approve(caller: Caller, requestId: string): Promise<void> {
    const request = await this.#awaiting(caller, requestId)
    if (await this.#deps.areRelated(caller.tenantId, request.requestedBy, caller.requester)) {
      throw ownRequest('A deletion')
    }
    await this.#move(request, 'approve', caller, {}, (nowMs) => {
      if (isLate(request, nowMs)) throw tooLate()
      return { approval: { by: caller.requester, atMs: nowMs }, hiddenAtMs: nowMs }
    })
  }

  async reject(caller: Caller, requestId: string, reason: string): Promise<void> {
    await this.#move(await this.#awaiting(caller, requestId), 'reject', caller, { reason })
  }

  /** Retries a request that failed, or one that waits for its next attempt. Keeps the count of attempts. */
  async retry(caller: Caller, requestId: string): Promise<void> {
    const request = await this.#deps.requests.stored(caller.tenantId, requestId)
    if (request.status !== 'failed' && request.status !== 'incomplete') {
      throw new AppError('deletion_state', {
        sentence: `The deletion is ${request.status}; only one that failed or is incomplete can be tried again.`,
      })
    }
    const facts = { attempts: request.attempts }
    const changes = {
      attemptsForgiven: request.attempts,
      crashes: 0,
      retryAtMs: null,
      blockedReason: null,
      removedAtMs: null,
    }
    await this.#move(request, 'start', caller, facts, changes)
  }

  async verify(caller: Caller, requestId: string): Promise<ReadBack> {
    const request = await this.#deps.requests.stored(caller.tenantId, requestId)
    if (!countable.includes(request.status)) {
      throw new AppError('deletion_state', {
        sentence: `The deletion is ${request.status}; there is nothing to prove yet.`,
      })
    }
    return this.#deps.verifyAgain(request, caller.requester, caller.signal)
  }

  async #awaiting(caller: Caller, requestId: string): Promise<StoredDeletion> {
    const request = await this.#deps.requests.stored(caller.tenantId, requestId)
    if (isLate(request, this.#deps.clock.nowMs())) throw tooLate()
    if (request.status !== 'awaiting_approval') {
      throw new AppError('deletion_state', {
        sentence: `The deletion is ${request.status}; it does not wait for approval.`,
      })
    }
    return request
  }

  async #move(
    request: StoredDeletion,
    event: DeletionEvent,
    caller: Caller,
    facts: Record<string, unknown> = {},
    changes: MoveChanges | ChangesAt = {},
  ): Promise<void> {
    const by = { actor: caller.requester, facts, isPersonal: true }
    if ((await this.#deps.requestStore.move(request, event, by, changes)) !== null) return
    throw new AppError('deletion_state', {
      sentence: 'The deletion has just been moved by someone else; read it again.',
    })
  }
}

function isLate({ approveByMs }: StoredDeletion, nowMs: number): boolean {
  return approveByMs !== null && approveByMs <= nowMs
}

function tooLate(): AppError {
  return new AppError('deletion_state', {
    sentence: 'The deletion was not approved in time; ask for a new one.',
  })
}
