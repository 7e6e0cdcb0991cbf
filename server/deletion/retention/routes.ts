// /usage/storage/retention over HTTP: how long each signal is kept, and the approval of a shorter rule. A 202
// means that a part of the change waits and is not in force.

import type { FastifyInstance } from 'fastify'
import type { PatchRetention } from '../../../contract/deletion/governance.ts'
import { retentionOperations } from '../../../contract/operations/governance.ts'
import type { Caller } from '../../core/caller.ts'
import { serve } from '../../http/serve.ts'
import type { RetentionStore } from './store.ts'

interface RetentionRoutesDeps {
  readonly retention: RetentionStore
  /** Wakes the workers: there may be something to erase. */
  readonly nudge: () => void
}

export function addRetentionRoutes(http: FastifyInstance, deps: RetentionRoutesDeps): void {
  const { nudge, retention } = deps
  serve(http, retentionOperations.get, {
    handle: async ({ caller }) => ({ body: await retention.get(caller.tenantId) }),
  })
  const set = async ({ body, caller }: { body: PatchRetention; caller: Caller }) => {
    const { retention: rule, waits } = await retention.set(caller.tenantId, body, caller.requester)
    nudge()
    return { status: waits ? 202 : 200, body: rule }
  }
  serve(http, retentionOperations.set, { usesReserve: true, handle: set })
  serve(http, retentionOperations.patch, { usesReserve: true, handle: set })
  addDecisionRoutes(http, deps)
}

function addDecisionRoutes(http: FastifyInstance, { nudge, retention }: RetentionRoutesDeps): void {
  serve(http, retentionOperations.approveChange, {
    usesReserve: true,
    handle: async ({ caller, params }) => {
      const body = await retention.approve(caller.tenantId, params.change_id, caller.requester)
      nudge()
      return { body }
    },
  })
  serve(http, retentionOperations.rejectChange, {
    usesReserve: true,
    handle: async ({ body, caller, params }) => ({
      body: await retention.reject(caller.tenantId, params.change_id, caller.requester, body.reason),
    }),
  })
}
