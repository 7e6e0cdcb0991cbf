// /usage/storage/deletions over HTTP: create a deletion, read it, and decide about it. The 202 is sent when
// the request is stored and, unless it waits for a second person, hidden. It never claims that anything is
// erased.

import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { NoBody, pageOf } from '../../contract/common.ts'
import {
  CreateDeletion,
  DeletionListQuery,
  DeletionParams,
  DeletionRequest,
  ReadBackResult,
  RejectDeletion,
  StalePreview,
} from '../../contract/deletion.ts'
import type { ValidationProblem } from '../../contract/errors.ts'
import { problem } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { decodeCursor, pageOfRows } from '../core/cursor.ts'
import { route } from '../http/route.ts'
import type { Decisions } from './governance/decisions.ts'
import { crossFieldProblems, draftOf } from './requests/draft.ts'
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

const access = ['owner', 'admin'] as const
const tag = 'Deletion'
const address = '/usage/storage/deletions'

/** Retry-After in seconds; an erasure usually takes one. */
const lookAgainSeconds = '1'

/**
 * Each verification counts every store twice, over everything that the organisation has. A person verifies
 * now and then; a program may follow ten deletions.
 */
const verifyRate = { perMinute: 20, burst: 20 }

export function addDeletionRoutes(http: FastifyInstance, deps: DeletionRoutesDeps): void {
  addCreateRoute(http, deps)
  addReadingRoutes(http, deps.requests)
  addDecisionRoutes(http, deps)
  addVerifyRoute(http, deps)
}

function addCreateRoute(http: FastifyInstance, deps: DeletionRoutesDeps): void {
  route(http, {
    method: 'POST',
    url: address,
    access,
    tag,
    summary: 'Erase your organisation’s own telemetry: a time range, or all of it',
    body: CreateDeletion,
    headers: z.object({
      'idempotency-key': z
        .string()
        .optional()
        .describe(
          '1 to 200 visible ASCII characters: the same key with the same selection is the same request.',
        ),
    }),
    status: 202,
    alsoStatus: {
      status: 200,
      meaning: 'The identical request that is already active, or the one this Idempotency-Key made.',
    },
    result: DeletionRequest,
    refusals: [409, 413, 415, 429],
    usesReserve: true,
    ownRefusals: { 412: StalePreview },
    check: (body, caller, { headers }) => [
      ...crossFieldProblems(body, caller.tenantId),
      ...keyProblems(headers['idempotency-key']),
    ],
    onInvalid: (caller, problems) => recordMisconfirmed(deps.requestStore, caller, problems),
    handle: async ({ caller, body, headers }) => {
      const draft = draftOf(body)
      const idempotencyKey = [headers['idempotency-key']].flat()[0] ?? null
      // A repeated request is hidden already, so its preview would look stale.
      const isRepeat = await deps.requestStore.isRepeat(caller.tenantId, draft, idempotencyKey)
      if (body.preview_id !== undefined && !isRepeat) {
        await deps.checkPreview(caller, body.preview_id, draft)
      }
      const by = { requester: caller.requester, idempotencyKey }
      const { isNew, row } = await deps.requestStore.create(caller.tenantId, draft, by)
      if (isNew) deps.nudge()
      const request = await deps.requests.wireForm(row)
      return {
        status: isNew ? 202 : 200,
        headers: {
          location: `${address}/${request.request_id}`,
          ...(!isFinal(request.status) && { 'retry-after': lookAgainSeconds }),
        },
        body: request,
      }
    },
  })
}

function addReadingRoutes(http: FastifyInstance, requests: RequestQueries): void {
  route(http, {
    method: 'GET',
    url: address,
    access,
    tag,
    summary: 'Deletion requests of your organisation, newest first',
    query: DeletionListQuery,
    result: pageOf(DeletionRequest),
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

  route(http, {
    method: 'GET',
    url: `${address}/:request_id`,
    access,
    tag,
    summary: 'One deletion request: its status, clocks, counts and steps',
    params: DeletionParams,
    result: DeletionRequest,
    refusals: [404],
    handle: async ({ caller, params }) => answerOf(await requests.get(caller.tenantId, params.request_id)),
  })
}

function addDecisionRoutes(http: FastifyInstance, deps: DeletionRoutesDeps): void {
  const { decisions, requests } = deps
  const decide = (
    verb: string,
    summary: string,
    act: (caller: Caller, requestId: string) => Promise<void>,
    refusals: readonly number[] = [404, 409],
  ) =>
    route(http, {
      method: 'POST',
      url: `${address}/:request_id/${verb}`,
      access,
      tag,
      summary,
      params: DeletionParams,
      body: NoBody,
      result: DeletionRequest,
      refusals,
      usesReserve: true,
      handle: async ({ caller, params }) => {
        await act(caller, params.request_id)
        deps.nudge()
        return answerOf(await requests.get(caller.tenantId, params.request_id))
      },
    })
  decide('cancel', 'Take back a deletion that has not begun; its telemetry can be read again', (caller, id) =>
    decisions.cancel(caller, id),
  )
  decide('approve', 'Approve a deletion that somebody else asked for', (caller, id) =>
    decisions.approve(caller, id),
  )
  decide('retry', 'Try a failed or incomplete deletion again, now', (caller, id) =>
    decisions.retry(caller, id),
  )
  route(http, {
    method: 'POST',
    url: `${address}/:request_id/reject`,
    access,
    tag,
    summary: 'Reject a deletion that waits for approval',
    params: DeletionParams,
    body: RejectDeletion,
    result: DeletionRequest,
    refusals: [404, 409],
    usesReserve: true,
    handle: async ({ caller, params, body }) => {
      await decisions.reject(caller, params.request_id, body.reason)
      return answerOf(await requests.get(caller.tenantId, params.request_id))
    },
  })
}

function addVerifyRoute(http: FastifyInstance, { clock, decisions, requests }: DeletionRoutesDeps): void {
  route(http, {
    method: 'POST',
    url: `${address}/:request_id/verify`,
    access,
    tag,
    summary: 'Count again, now, everything a deletion selects',
    rate: verifyRate,
    params: DeletionParams,
    body: NoBody,
    result: ReadBackResult,
    refusals: [404, 409],
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

function keyProblems(header: string | string[] | undefined): ValidationProblem[] {
  if (header === undefined || (typeof header === 'string' && /^[\x21-\x7e]{1,200}$/.test(header))) return []
  const sentence = 'Use 1 to 200 visible ASCII characters'
  return [problem(['header', 'Idempotency-Key'], 'value_error', sentence, header)]
}

async function recordMisconfirmed(
  store: RequestStore,
  caller: Caller,
  problems: readonly ValidationProblem[],
): Promise<void> {
  const isMisconfirmed = problems.some(({ loc, type }) => loc[1] === 'confirm' && type === 'value_error')
  if (!isMisconfirmed) return
  const places = new Set(problems.map(placeOf))
  await store.recordRefusal(caller.tenantId, caller.requester, [...places])
}

/**
 * Describes the place of a problem for the audit log, without text of the sender: only names of our own
 * fields.
 */
function placeOf({ loc, type }: ValidationProblem): string {
  const [part = '', field = ''] = loc
  return part === 'body' && Object.hasOwn(CreateDeletion.shape, field)
    ? `${part}.${field}: ${type}`
    : `${part}: ${type}`
}
