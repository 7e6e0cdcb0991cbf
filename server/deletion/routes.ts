// /usage/storage/deletions over HTTP: create a deletion, read it, and decide about it. The 202 is sent when
// the request is stored and, unless it waits for a second person, hidden. It never claims that anything is
// erased.

import type { FastifyInstance } from 'fastify'
import { CreateDeletion, type DeletionRequest } from '../../contract/deletion/requests.ts'
import type { ValidationProblem } from '../../contract/errors.ts'
import { deletionOperations } from '../../contract/operations/deletions.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { decodeCursor, pageOfRows } from '../core/input/cursor.ts'
import { serve } from '../http/serve.ts'
import type { Decisions } from './governance/decisions.ts'
import { readDeletion } from './requests/draft.ts'
import type { RequestQueries } from './requests/queries.ts'
import type { DeletionSelection } from './requests/selection.ts'
import { isFinal } from './requests/states.ts'
import type { RequestStore } from './requests/store.ts'

interface DeletionRoutesDeps {
  readonly requestStore: RequestStore
  readonly requests: RequestQueries
  readonly decisions: Decisions
  readonly clock: Clock
  /** Throws where the preview with this id is not of what would be erased now. */
  readonly checkPreview: (caller: Caller, previewId: string, selection: DeletionSelection) => Promise<void>
  /** Wakes the worker. */
  readonly nudge: () => void
}

/** Retry-After in seconds; an erasure usually takes one. */
const lookAgainSeconds = '1'

export function addDeletionRoutes(http: FastifyInstance, deps: DeletionRoutesDeps): void {
  addCreateRoute(http, deps)
  addReadingRoutes(http, deps.requests)
  addDecisionRoutes(http, deps)
  addVerifyRoute(http, deps)
}

async function refuseUnchecked(): Promise<never> {
  throw new AppError('preview_stale', {
    sentence: 'The deletion that this request repeats has just ended; preview again.',
  })
}

function addCreateRoute(http: FastifyInstance, deps: DeletionRoutesDeps): void {
  serve(http, deletionOperations.create, {
    usesReserve: true,
    parse: ({ caller, ...sent }) => readDeletion(sent, caller.tenantId),
    onInvalid: (caller, problems) => recordMisconfirmed(deps.requestStore, caller, problems),
    handle: async ({ caller, body, headers, value: draft }) => {
      const idempotencyKey = headers['idempotency-key'] ?? null
      const asked = { requester: caller.requester, idempotencyKey }
      let isUnchecked = false
      if (body.preview_id !== undefined) {
        // A repeated request is hidden already, so its preview would look stale.
        isUnchecked = await deps.requestStore.isRepeat(caller.tenantId, draft, asked)
        if (!isUnchecked) await deps.checkPreview(caller, body.preview_id, draft)
      }
      // The repeated request may end meanwhile, and then this one would be a new one.
      const by = { ...asked, ...(isUnchecked && { precondition: refuseUnchecked }) }
      const { isNew, row } = await deps.requestStore.create(caller.tenantId, draft, by)
      if (isNew) deps.nudge()
      const request = await deps.requests.wireForm(row)
      return {
        status: isNew ? 202 : 200,
        headers: {
          location: `${deletionOperations.list.path}/${request.request_id}`,
          ...(!isFinal(request.status) && { 'retry-after': lookAgainSeconds }),
        },
        body: request,
      }
    },
  })
}

function addReadingRoutes(http: FastifyInstance, requests: RequestQueries): void {
  serve(http, deletionOperations.list, {
    handle: async ({ caller, query }) => {
      const beforeId = decodeCursor(query.cursor, 1)?.[0] ?? null
      const page = { limit: query.limit + 1, beforeId, status: query.status ?? null }
      return {
        body: pageOfRows(
          await requests.list(caller.tenantId, page),
          query.limit,
          (request) => [request.request_id],
          (request) => request,
        ),
      }
    },
  })
  serve(http, deletionOperations.get, {
    handle: async ({ caller, params }) => answerOf(await requests.get(caller.tenantId, params.request_id)),
  })
}

function addDecisionRoutes(http: FastifyInstance, deps: DeletionRoutesDeps): void {
  const { decisions, requests } = deps
  const decide = (
    operation: (typeof deletionOperations)['cancel' | 'approve' | 'retry'],
    act: (caller: Caller, requestId: string) => Promise<void>,
  ) =>
    serve(http, operation, {
      usesReserve: true,
      handle: async ({ caller, params }) => {
        await act(caller, params.request_id)
        deps.nudge()
        return answerOf(await requests.get(caller.tenantId, params.request_id))
      },
    })
  decide(deletionOperations.cancel, (caller, id) => decisions.cancel(caller, id))
  decide(deletionOperations.approve, (caller, id) => decisions.approve(caller, id))
  decide(deletionOperations.retry, (caller, id) => decisions.retry(caller, id))
  serve(http, deletionOperations.reject, {
    usesReserve: true,
    handle: async ({ caller, params, body }) => {
      await decisions.reject(caller, params.request_id, body.reason)
      return answerOf(await requests.get(caller.tenantId, params.request_id))
    },
  })
}

function addVerifyRoute(http: FastifyInstance, { clock, decisions, requests }: DeletionRoutesDeps): void {
  serve(http, deletionOperations.verify, {
    usesReserve: true,
    handle: async ({ caller, params }) => {
      const { isClean, rowsLeft } = await decisions.verify(caller, params.request_id)
      return {
        body: {
          request_id: params.request_id,
          checked_at: instantText(clock.nowMs()),
          is_clean: isClean,
          remaining: { ...rowsLeft },
          deletion: await requests.get(caller.tenantId, params.request_id),
        },
      }
    },
  })
}

function answerOf(request: DeletionRequest) {
  return { headers: isFinal(request.status) ? {} : { 'retry-after': lookAgainSeconds }, body: request }
}

async function recordMisconfirmed(
  store: RequestStore,
  caller: Caller,
  problems: readonly ValidationProblem[],
): Promise<void> {
  const isMisconfirmed = problems.some(({ loc, type }) => loc[1] === 'confirm' && type === 'value_error')
  if (!isMisconfirmed) return
  const locations = new Set(problems.map(locationOf))
  await store.recordRefusal(caller.tenantId, caller.requester, [...locations])
}

/**
 * Describes the location of a problem for the audit log, without text of the sender: only names of our own
 * fields.
 */
function locationOf({ loc, type }: ValidationProblem): string {
  const [part = '', field = ''] = loc
  return part === 'body' && Object.hasOwn(CreateDeletion.shape, field)
    ? `${part}.${field}: ${type}`
    : `${part}: ${type}`
}
