// POST, GET and list of /usage/storage/deletions. A 202 is sent when the request is on record and the selection
// is hidden, never before, and it never says that anything is gone.

import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { pageOf } from '../../contract/common.ts'
import {
  CreateDeletion,
  DeletionListQuery,
  DeletionParams,
  DeletionRequest,
} from '../../contract/deletion.ts'
import type { ValidationProblem } from '../../contract/errors.ts'
import { problem } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { decodeCursor, pageOfRows } from '../http/cursor.ts'
import { route } from '../http/route.ts'
import { crossFieldProblems, draftOf, isFinal } from './deletion.ts'
import type { StoredDeletion } from './deletion-record.ts'
import type { DeletionLedger } from './ledger.ts'

export interface DeletionRoutesDeps {
  readonly ledger: DeletionLedger
  /** Hides the selection of a request that is about to be committed, and shows it again should that fail. */
  readonly hide: (request: StoredDeletion) => void
  readonly unhide: (request: StoredDeletion) => void
  /** Tells the worker that there is something to do. */
  readonly nudge: () => void
}

const access = ['owner', 'admin'] as const
const tag = 'Deletion'
const address = '/usage/storage/deletions'

/** Seconds after which looking again is worth it; an erasure is usually done in one. */
const lookAgainSeconds = '1'

export function addDeletionRoutes(http: FastifyInstance, deps: DeletionRoutesDeps): void {
  addCreateRoute(http, deps)
  addReadingRoutes(http, deps.ledger)
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
    check: (body, caller, { headers }) => [
      ...crossFieldProblems(body, caller.tenantId),
      ...keyProblems(headers['idempotency-key']),
    ],
    onInvalid: (caller, problems) => recordMisconfirmed(deps.ledger, caller, problems),
    handle: async ({ caller, body, headers }) => {
      const idempotencyKey = [headers['idempotency-key']].flat()[0] ?? null
      const by = { requester: caller.requester, idempotencyKey }
      const created = await createHidden(deps, caller.tenantId, draftOf(body), by)
      if (created.isNew) deps.nudge()
      return {
        status: created.isNew ? 202 : 200,
        headers: {
          location: `${address}/${created.request.request_id}`,
          ...(!isFinal(created.request.status) && { 'retry-after': lookAgainSeconds }),
        },
        body: created.request,
      }
    },
  })
}

function addReadingRoutes(http: FastifyInstance, ledger: DeletionLedger): void {
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
      const requests = await ledger.list(caller.tenantId, page)
      return {
        body: pageOfRows(
          requests,
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
    summary: 'One deletion request: its status, clocks and counts',
    params: DeletionParams,
    result: DeletionRequest,
    refusals: [404],
    handle: async ({ caller, params }) => {
      const request = await ledger.get(caller.tenantId, params.request_id)
      return { headers: isFinal(request.status) ? {} : { 'retry-after': lookAgainSeconds }, body: request }
    },
  })
}

/** Hides before the transaction commits, so that no moment lies between being on record and being hidden. */
async function createHidden(
  deps: DeletionRoutesDeps,
  tenantId: string,
  draft: Parameters<DeletionLedger['create']>[1],
  by: Parameters<DeletionLedger['create']>[2],
) {
  let hidden: StoredDeletion | null = null
  try {
    return await deps.ledger.create(tenantId, draft, by, (request) => {
      hidden = request
      deps.hide(request)
    })
  } catch (error) {
    if (hidden !== null) deps.unhide(hidden)
    throw error
  }
}

function keyProblems(header: string | string[] | undefined): ValidationProblem[] {
  if (header === undefined || (typeof header === 'string' && /^[\x21-\x7e]{1,200}$/.test(header))) return []
  const sentence = 'Use 1 to 200 visible ASCII characters'
  return [problem(['header', 'Idempotency-Key'], 'value_error', sentence, header)]
}

async function recordMisconfirmed(
  ledger: DeletionLedger,
  caller: Caller,
  problems: readonly ValidationProblem[],
): Promise<void> {
  const isMisconfirmed = problems.some(({ loc, type }) => loc[1] === 'confirm' && type === 'value_error')
  if (!isMisconfirmed) return
  const places = new Set(problems.map(placeOf))
  await ledger.recordRefusal(caller.tenantId, caller.requester, [...places])
}

/** For the audit log, which keeps nothing that the sender made up: names of fields are ours, or left out. */
function placeOf({ loc, type }: ValidationProblem): string {
  const [part = '', field = ''] = loc
  return part === 'body' && Object.hasOwn(CreateDeletion.shape, field)
    ? `${part}.${field}: ${type}`
    : `${part}: ${type}`
}
