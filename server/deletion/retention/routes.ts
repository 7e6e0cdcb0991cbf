// /usage/storage/retention over HTTP: how long each signal is kept, and the approval of a shorter rule. A 202
// means that a part of the change waits and is not in force.

import type { FastifyInstance } from 'fastify'
import { NoBody } from '../../../contract/common.ts'
import {
  PatchRetention,
  RejectRetentionChange,
  Retention,
  RetentionChangeParams,
  SetRetention,
} from '../../../contract/deletion-governance.ts'
import type { Caller } from '../../core/caller.ts'
import { route } from '../../http/route.ts'
import type { RetentionStore } from './store.ts'

interface RetentionRoutesDeps {
  readonly retention: RetentionStore
  /** Wakes the workers: there may be something to erase. */
  readonly nudge: () => void
}

const access = ['owner', 'admin'] as const
const tag = 'Deletion'
const address = '/usage/storage/retention'
const waiting = {
  status: 202,
  meaning: 'Fewer days of a signal wait in `pending` for a second person; the rest is in force.',
} as const

export function addRetentionRoutes(http: FastifyInstance, deps: RetentionRoutesDeps): void {
  const { nudge, retention } = deps
  route(http, {
    method: 'GET',
    url: address,
    access: ['owner', 'admin', 'member', 'viewer'],
    tag,
    summary: 'How long each signal is kept',
    result: Retention,
    handle: async ({ caller }) => ({ body: await retention.get(caller.tenantId) }),
  })
  const set = async ({ body, caller }: { body: PatchRetention; caller: Caller }) => {
    const { retention: rule, waits } = await retention.set(caller.tenantId, body, caller.requester)
    nudge()
    return { status: waits ? waiting.status : 200, body: rule }
  }
  route(http, {
    method: 'PUT',
    url: address,
    access,
    tag,
    summary:
      'Say how long each signal is kept, all three; what is older is erased at once, and then whenever a UTC day begins, in the ledger like any deletion',
    body: SetRetention,
    result: Retention,
    alsoStatus: waiting,
    usesReserve: true,
    handle: set,
  })
  route(http, {
    method: 'PATCH',
    url: address,
    access,
    tag,
    summary: 'Change how long some signals are kept; the others stay as they are',
    body: PatchRetention,
    bodyTypes: ['application/json', 'application/merge-patch+json'],
    result: Retention,
    alsoStatus: waiting,
    usesReserve: true,
    handle: set,
  })
  addDecisionRoutes(http, deps)
}

function addDecisionRoutes(http: FastifyInstance, { nudge, retention }: RetentionRoutesDeps): void {
  route(http, {
    method: 'POST',
    url: `${address}/changes/:change_id/approve`,
    access,
    tag,
    summary: 'Approve a shorter retention that somebody else asked for; it is in force at once',
    params: RetentionChangeParams,
    body: NoBody,
    result: Retention,
    refusals: [404],
    usesReserve: true,
    handle: async ({ caller, params }) => {
      const body = await retention.approve(caller.tenantId, params.change_id, caller.requester)
      nudge()
      return { body }
    },
  })
  route(http, {
    method: 'POST',
    url: `${address}/changes/:change_id/reject`,
    access,
    tag,
    summary: 'Reject a shorter retention that waits for approval; the one in force stays',
    params: RetentionChangeParams,
    body: RejectRetentionChange,
    result: Retention,
    refusals: [404],
    usesReserve: true,
    handle: async ({ body, caller, params }) => ({
      body: await retention.reject(caller.tenantId, params.change_id, caller.requester, body.reason),
    }),
  })
}
