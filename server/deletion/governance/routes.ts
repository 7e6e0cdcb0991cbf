// The policy of a second person and legal holds over HTTP.

import type { FastifyInstance } from 'fastify'
import { pageOf } from '../../../contract/common.ts'
import {
  DeletionPolicy,
  HoldListQuery,
  HoldParams,
  LegalHold,
  PlaceHold,
  SetDeletionPolicy,
} from '../../../contract/deletion-governance.ts'
import type { ValidationProblem } from '../../../contract/errors.ts'
import { formatInstant } from '../../../contract/instant.ts'
import { problem } from '../../core/app-error.ts'
import type { Caller } from '../../core/caller.ts'
import { decodeCursor, pageOfRows } from '../../core/cursor.ts'
import { route } from '../../http/route.ts'
import type { LegalHolds } from './holds.ts'
import { type DeletionPolicies, secondPerson } from './policy.ts'

interface GovernanceRoutesDeps {
  readonly holds: LegalHolds
  readonly policies: DeletionPolicies
  /** Places a hold while nothing is erased from the organisation's placement. */
  readonly placeHold: (caller: Caller, body: PlaceHold) => Promise<LegalHold>
  /** Wakes the worker: a deferred deletion may continue. */
  readonly nudge: () => void
}

const access = ['owner', 'admin'] as const
const tag = 'Deletion'
const policyAddress = '/usage/storage/deletion-policy'
const holdsAddress = '/usage/storage/holds'

export function addGovernanceRoutes(http: FastifyInstance, deps: GovernanceRoutesDeps): void {
  addPolicyRoutes(http, deps.policies)
  addHoldRoutes(http, deps)
}

function addPolicyRoutes(http: FastifyInstance, policies: DeletionPolicies): void {
  route(http, {
    method: 'GET',
    url: policyAddress,
    access,
    tag,
    summary: 'Which deletions need a second person',
    result: DeletionPolicy,
    handle: async ({ caller }) => ({
      body: { ...(await policies.get(caller.tenantId)), second_person: secondPerson },
    }),
  })
  route(http, {
    method: 'PUT',
    url: policyAddress,
    access: ['owner'],
    tag,
    summary: 'Say which deletions need a second person; a looser rule takes effect a day later',
    body: SetDeletionPolicy,
    result: DeletionPolicy,
    usesReserve: true,
    handle: async ({ caller, body }) => {
      const policy = await policies.set(caller.tenantId, body.approval, caller.requester)
      return { body: { ...policy, second_person: secondPerson } }
    },
  })
}

function addHoldRoutes(http: FastifyInstance, { holds, placeHold, nudge }: GovernanceRoutesDeps): void {
  route(http, {
    method: 'POST',
    url: holdsAddress,
    access,
    tag,
    summary: 'Place a legal hold: what it covers is not erased until it is released',
    body: PlaceHold,
    status: 201,
    result: LegalHold,
    refusals: [409],
    usesReserve: true,
    check: reversedBounds,
    handle: async ({ caller, body }) => {
      const hold = await placeHold(caller, body)
      return { headers: { location: `${holdsAddress}/${hold.hold_id}` }, body: hold }
    },
  })
  route(http, {
    method: 'GET',
    url: holdsAddress,
    access,
    tag,
    summary: 'Legal holds of your organisation, newest first',
    query: HoldListQuery,
    result: pageOf(LegalHold),
    handle: async ({ caller, query }) => {
      const found = await holds.list(caller.tenantId, {
        limit: query.limit + 1,
        beforeId: decodeCursor(query.cursor, 1)?.[0] ?? null,
        isActive: query.active === undefined ? null : query.active === 'true',
      })
      return {
        body: pageOfRows(
          found,
          query.limit,
          (hold) => [hold.hold_id],
          (hold) => hold,
        ),
      }
    },
  })
  route(http, {
    method: 'GET',
    url: `${holdsAddress}/:hold_id`,
    access,
    tag,
    summary: 'One legal hold',
    params: HoldParams,
    result: LegalHold,
    refusals: [404],
    handle: async ({ caller, params }) => ({ body: await holds.get(caller.tenantId, params.hold_id) }),
  })
  route(http, {
    method: 'POST',
    url: `${holdsAddress}/:hold_id/release`,
    access,
    tag,
    summary: 'Release a legal hold; deletions it deferred go on by themselves',
    params: HoldParams,
    result: LegalHold,
    refusals: [404],
    usesReserve: true,
    handle: async ({ caller, params }) => {
      const hold = await holds.release(caller.tenantId, params.hold_id, caller.requester)
      nudge()
      return { body: hold }
    },
  })
}

function reversedBounds(raw: unknown): ValidationProblem[] {
  const bounds = PlaceHold.pick({ range_start: true, range_end: true }).strip().safeParse(raw)
  if (!bounds.success) return []
  const { range_start: startNs, range_end: endNs } = bounds.data
  if (startNs === undefined || endNs === undefined || startNs < endNs) return []
  return [
    problem(['body', 'range_end'], 'value_error', 'The end must be after the start', formatInstant(endNs), {
      error: 'range_end is not after range_start',
      range_start: formatInstant(startNs),
    }),
  ]
}
