// The caller, their organisation with its access tokens, and its removal. An admin can't make an owner token:
// nobody grants more rights than their own.

import type { FastifyInstance } from 'fastify'
import { tenancyOperations } from '../../contract/operations/tenancy.ts'
import { actorText } from '../core/actor.ts'
import { AppError, problem } from '../core/app-error.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { decodeCursor, pageOfRows } from '../core/input/cursor.ts'
import type { Parsed } from '../core/input/parsed.ts'
import { serve } from '../http/serve.ts'
import type { OrganisationRemoval } from './removal.ts'
import type { TenancyStore } from './store.ts'
import { newTokenSecret } from './tenancy.ts'
import type { OnAdministratorRevoked } from './token-revocation.ts'

const msPerDay = 86_400_000

export function addTenancyRoutes(
  http: FastifyInstance,
  store: TenancyStore,
  clock: Clock,
  onAdministratorRevoked: OnAdministratorRevoked,
): void {
  serve(http, tenancyOperations.me, {
    handle: async ({ caller }) => ({
      body: {
        tenant_id: caller.tenantId,
        organisation_name: caller.organisationName,
        role: caller.role,
        token_id: caller.requester.id,
        requester: actorText(caller.requester),
      },
    }),
  })

  serve(http, tenancyOperations.organisation, {
    handle: async ({ caller }) => ({
      body: {
        tenant_id: caller.tenantId,
        name: caller.organisationName,
        created_at: instantText(await store.createdAtMs(caller.tenantId)),
      },
    }),
  })

  serve(http, tenancyOperations.listTokens, {
    handle: async ({ caller, query }) => {
      const beforeId = decodeCursor(query.cursor, 1)?.[0] ?? null
      const page = {
        limit: query.limit + 1,
        beforeId,
        ...(query.active !== undefined && { isActive: query.active === 'true' }),
        ...(query.descendants_of !== undefined && { descendantsOf: query.descendants_of }),
      }
      const tokens = await store.listTokens(caller.tenantId, page, () => http.turns.turnOf(caller.tenantId))
      return {
        body: pageOfRows(
          tokens,
          query.limit,
          (token) => [token.id],
          (token) => token,
        ),
      }
    },
  })

  serve(http, tenancyOperations.createToken, {
    handle: async ({ caller, body }) => {
      if (body.role === 'owner' && caller.role !== 'owner') {
        throw new AppError('role_not_permitted', { sentence: 'Only an owner can create an owner token.' })
      }
      const token = newTokenSecret(body.role)
      const created = await store.createToken({
        tenantId: caller.tenantId,
        name: body.name,
        role: body.role,
        secret: token,
        expiresAtMs:
          body.expires_in_days === undefined ? null : clock.nowMs() + body.expires_in_days * msPerDay,
        actor: caller.requester,
      })
      return { body: { ...created, token } }
    },
  })
  addRevokeRoute(http, store, onAdministratorRevoked)
}

function addRevokeRoute(
  http: FastifyInstance,
  store: TenancyStore,
  onAdministratorRevoked: OnAdministratorRevoked,
): void {
  serve(http, tenancyOperations.revokeToken, {
    usesReserve: true,
    handle: async ({ caller, params, query }) => {
      const revocation = {
        tenantId: caller.tenantId,
        id: params.token_id,
        actor: caller.requester,
        actorRole: caller.role,
        withDescendants: query.descendants === 'true',
        onAdministratorRevoked,
      }
      return { body: await store.revokeToken(revocation, () => http.turns.turnOf(caller.tenantId)) }
    },
  })
}

export function addRemovalRoute(http: FastifyInstance, removal: OrganisationRemoval): void {
  serve(http, tenancyOperations.removeOrganisation, {
    usesReserve: true,
    parse: ({ fields, caller }) => readConfirmation(fields.confirm, caller.tenantId),
    onInvalid: async (caller, problems) => {
      const isMisconfirmed = problems.some(({ type }) => type === 'value_error')
      if (isMisconfirmed) await removal.recordRefusal(caller.tenantId, caller.requester)
    },
    handle: async ({ caller, value: tenantId }) => ({
      body: await removal.remove(tenantId, caller.requester),
    }),
  })
}

/** Returns the organisation to remove: the caller's own, where its tenant_id was typed. */
function readConfirmation(confirm: string | undefined, tenantId: string): Parsed<string> {
  if (confirm === tenantId) return { value: tenantId }
  // Anything but a text is refused by the schema.
  if (confirm === undefined) return { problems: [] }
  const ctx = { error: 'confirm does not equal your tenant_id' }
  const sentence = 'Type the tenant_id of your organisation exactly'
  return { problems: [problem(['body', 'confirm'], 'value_error', sentence, confirm, ctx)] }
}
