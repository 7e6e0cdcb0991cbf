// The policy of a second person and legal holds over HTTP.

import type { FastifyInstance } from 'fastify'
import type { LegalHold, PlaceHold } from '../../../contract/deletion/governance.ts'
import { holdOperations, policyOperations } from '../../../contract/operations/governance.ts'
import type { Caller } from '../../core/caller.ts'
import { decodeCursor, pageOfRows } from '../../core/input/cursor.ts'
import type { Parsed, SentBody } from '../../core/input/parsed.ts'
import { serve } from '../../http/serve.ts'
import { reversedBounds } from '../requests/reversed-bounds.ts'
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

export function addGovernanceRoutes(http: FastifyInstance, deps: GovernanceRoutesDeps): void {
  addPolicyRoutes(http, deps.policies)
  addHoldRoutes(http, deps)
}

function addPolicyRoutes(http: FastifyInstance, policies: DeletionPolicies): void {
  serve(http, policyOperations.get, {
    handle: async ({ caller }) => ({
      body: { ...(await policies.get(caller.tenantId)), second_person: secondPerson },
    }),
  })
  serve(http, policyOperations.set, {
    usesReserve: true,
    handle: async ({ caller, body }) => {
      const policy = await policies.set(caller.tenantId, body.approval, caller.requester)
      return { body: { ...policy, second_person: secondPerson } }
    },
  })
}

function addHoldRoutes(http: FastifyInstance, { holds, placeHold, nudge }: GovernanceRoutesDeps): void {
  serve(http, holdOperations.place, {
    usesReserve: true,
    parse: readHold,
    handle: async ({ caller, value }) => {
      const hold = await placeHold(caller, value)
      return { headers: { location: `${holdOperations.list.path}/${hold.hold_id}` }, body: hold }
    },
  })
  serve(http, holdOperations.list, {
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
  serve(http, holdOperations.get, {
    handle: async ({ caller, params }) => ({ body: await holds.get(caller.tenantId, params.hold_id) }),
  })
  serve(http, holdOperations.release, {
    usesReserve: true,
    handle: async ({ caller, params }) => {
      const known = await holds.get(caller.tenantId, params.hold_id)
      // Repeated, a release continues what was interrupted after it, and changes nothing else.
      const hold = await holds.release(caller.tenantId, params.hold_id, caller.requester)
      if (known.released_at === null) nudge()
      return { body: hold }
    },
  })
}

function readHold({ body, fields, raw }: SentBody<PlaceHold>): Parsed<PlaceHold> {
  const problems = reversedBounds(fields, raw)
  return body === undefined || problems.length > 0 ? { problems } : { value: body }
}
